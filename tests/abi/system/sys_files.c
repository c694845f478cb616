/*
 * Files below /proc/sys: who may write them, and that each takes the value that it has. kernel.printk's four numbers, dmesg_restrict,
 * nr_open, pipe-max-size, memfd_noexec, overcommit_memory and the defaults of sockets act.
 */
#include "check.h"
#include <ftw.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/klog.h>
#include <sys/resource.h>
#include <sys/socket.h>

static const char *const files[] = {
	"fs/epoll/max_user_watches", "fs/file-max", "fs/file-nr", "fs/inotify/max_queued_events", "fs/inotify/max_user_instances",
	"fs/inotify/max_user_watches", "fs/mount-max", "fs/mqueue/msg_default", "fs/mqueue/msg_max",
	"fs/mqueue/msgsize_default", "fs/mqueue/msgsize_max", "fs/mqueue/queues_max", "fs/nr_open", "fs/overflowgid", "fs/overflowuid", "fs/pipe-max-size",
	"fs/pipe-user-pages-hard", "fs/pipe-user-pages-soft", "fs/protected_fifos", "fs/protected_hardlinks",
	"fs/protected_regular", "fs/protected_symlinks", "fs/suid_dumpable", "kernel/arch", "kernel/cap_last_cap",
	"kernel/core_file_note_size_limit", "kernel/core_pattern", "kernel/core_pipe_limit", "kernel/core_uses_pid",
	"kernel/dmesg_restrict", "kernel/domainname", "kernel/hostname", "kernel/io_uring_disabled", "kernel/io_uring_group",
	"kernel/kptr_restrict", "kernel/modules_disabled", "kernel/msg_next_id", "kernel/msgmax", "kernel/msgmnb", "kernel/msgmni",
	"kernel/ngroups_max", "kernel/osrelease", "kernel/ostype", "kernel/overflowgid", "kernel/overflowuid",
	"kernel/perf_cpu_time_max_percent", "kernel/perf_event_max_contexts_per_stack", "kernel/perf_event_max_sample_rate",
	"kernel/perf_event_max_stack", "kernel/perf_event_mlock_kb", "kernel/perf_event_paranoid", "kernel/pid_max",
	"kernel/printk", "kernel/random/boot_id", "kernel/random/entropy_avail", "kernel/random/poolsize",
	"kernel/random/urandom_min_reseed_secs", "kernel/random/uuid", "kernel/random/write_wakeup_threshold",
	"kernel/randomize_va_space", "kernel/sched_rr_timeslice_ms", "kernel/sched_rt_period_us", "kernel/sched_rt_runtime_us",
	"kernel/seccomp/actions_avail", "kernel/seccomp/actions_logged", "kernel/sem", "kernel/sem_next_id", "kernel/shm_next_id",
	"kernel/shm_rmid_forced", "kernel/shmall", "kernel/shmmax", "kernel/shmmni", "kernel/sysrq", "kernel/tainted",
	"kernel/threads-max", "kernel/version", "net/core/optmem_max", "net/core/rmem_default", "net/core/rmem_max",
	"net/core/somaxconn", "net/core/wmem_default", "net/core/wmem_max", "net/ipv4/ip_default_ttl", "net/ipv4/ip_forward",
	"net/ipv4/ip_local_port_range", "net/ipv4/ip_unprivileged_port_start", "net/ipv4/ping_group_range",
	"net/ipv4/tcp_available_congestion_control", "net/ipv4/tcp_congestion_control", "net/ipv4/tcp_fin_timeout",
	"net/ipv4/tcp_keepalive_intvl", "net/ipv4/tcp_keepalive_probes", "net/ipv4/tcp_keepalive_time", "net/ipv4/tcp_rmem",
	"net/ipv4/tcp_syn_retries", "net/ipv4/tcp_wmem", "net/ipv6/bindv6only", "net/ipv6/conf/all/disable_ipv6",
	"net/ipv6/conf/default/disable_ipv6", "net/ipv6/conf/lo/disable_ipv6", "net/unix/max_dgram_qlen",
	"vm/admin_reserve_kbytes", "vm/dirty_background_ratio", "vm/dirty_ratio", "vm/legacy_va_layout", "vm/max_map_count",
	"vm/memfd_noexec", "vm/mmap_min_addr", "vm/nr_hugepages", "vm/oom_kill_allocating_task", "vm/overcommit_kbytes",
	"vm/overcommit_memory", "vm/overcommit_ratio", "vm/panic_on_oom", "vm/swappiness", "vm/user_reserve_kbytes",
	"vm/vfs_cache_pressure",
};

/* A line of text is read on from any place; numbers are read from the beginning only. */
static int is_line(const char *path)
{
	char rest[8];
	int fd = open(path, O_RDONLY);
	ssize_t n = pread(fd, rest, sizeof rest, 1);
	close(fd);
	return n != 0;
}

static void each(void)
{
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		char path[128], value[4096];
		struct stat st;
		snprintf(path, sizeof path, "/proc/sys/%s", files[i]);
		snprintf(value, sizeof value, "%s", get_setting(files[i]));
		MUST(stat(path, &st));
		printf("%s %o", files[i], st.st_mode & 07777);
		if (st.st_mode & 0222) {
			ssize_t put = put_setting(files[i], value);
			printf(" %s, %s", put == (ssize_t)strlen(value) ? "takes its value" : strerrorname_np(errno),
			       strcmp(value, get_setting(files[i])) ? "changed" : "the same");
		}
		printf(", %s\n", is_line(path) ? "a line" : "numbers");
	}
}

static int is_listed(const char *name)
{
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
		if (!strcmp(files[i], name))
			return 1;
	return 0;
}

static int found(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + strlen("/proc/sys/");
	if (type != FTW_D && !is_listed(name))
		printf("%s is not listed here\n", name);
	return 0;
}

/* The list above has every file of a kernel that has no more than it. */
static void all_of_them(void)
{
	if (access("/proc/alea", F_OK) == 0)
		MUST(nftw("/proc/sys", found, 16, FTW_PHYS));
}

/* The levels with which the last line that holds `text` was kept. */
static int level_of(const char *text)
{
	static char all[1 << 20];
	int len = klogctl(3, all, sizeof all - 1), level = -1;
	all[len < 0 ? 0 : len] = 0;
	for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, text))
			sscanf(line, "<%d>", &level);
	return level;
}

static void say(const char *text)
{
	int fd = (int)MUST(open("/dev/kmsg", O_WRONLY));
	MUST(write(fd, text, strlen(text)));
	close(fd);
}

static void printk(void)
{
	char before[64];
	snprintf(before, sizeof before, "%s", get_setting("kernel/printk"));
	static const char *const texts[] = {
		"3 5 2 6", "4", "5 6\n", " 3\t4\n1 7 ", "1 x", "x", "1 2 3 4 5", "-1 300", "3 4 1 99999999999", "", " ",
	};
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		ssize_t put = put_setting("kernel/printk", texts[i]);
		printf("\"%s\" %s %zd: %s", texts[i], put < 0 ? strerrorname_np(errno) : "ok", put, get_setting("kernel/printk"));
	}
	T(put_setting("kernel/printk", "3 5 2 6"));
	say("sys_files: no level\n");
	SAY("kept with level %d", level_of("sys_files: no level"));
	say("<3>sys_files: own level\n");
	SAY("kept with level %d", level_of("sys_files: own level"));
	T(klogctl(8, NULL, 1));
	printf("%s", get_setting("kernel/printk"));
	T(klogctl(8, NULL, 3));
	T(klogctl(6, NULL, 0));
	printf("%s", get_setting("kernel/printk"));
	T(klogctl(7, NULL, 0));
	printf("%s", get_setting("kernel/printk"));
	MUST(put_setting("kernel/printk", before));
}

static void may_read(const char *what)
{
	CHILD(what) {
		MUST(setresuid(1000, 1000, 1000));
		int fd = open("/dev/kmsg", O_RDONLY);
		SAY("kmsg %s", fd < 0 ? strerrorname_np(errno) : "opens");
		SAY("size %s", klogctl(10, NULL, 0) < 0 ? strerrorname_np(errno) : "told");
		T(put_setting("kernel/dmesg_restrict", "0"));
		T(put_setting("kernel/msg_next_id", "-1"));
	} END;
}

static void restricted(void)
{
	MUST(chmod("/dev/kmsg", 0644));
	printf("dmesg_restrict %s", get_setting("kernel/dmesg_restrict"));
	may_read("as it is");
	T(put_setting("kernel/dmesg_restrict", "0"));
	may_read("open");
	T(put_setting("kernel/dmesg_restrict", "2"));
	T(put_setting("kernel/dmesg_restrict", "1"));
	may_read("restricted");
}

static void files_and_memory(void)
{
	struct rlimit limit = { 1000, 5000 };
	T(put_setting("fs/nr_open", "63"));
	T(put_setting("fs/nr_open", "4096"));
	T(setrlimit(RLIMIT_NOFILE, &limit));
	T(put_setting("fs/nr_open", "1048576"));
	CHILD("nr_open") { T(setrlimit(RLIMIT_NOFILE, &limit)); } END;

	static const char *const sizes[] = { "5000", "1", "0", "-1", "70000", "x" };
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		ssize_t put = put_setting("fs/pipe-max-size", sizes[i]);
		printf("%s %s: %s", sizes[i], put < 0 ? strerrorname_np(errno) : "ok", get_setting("fs/pipe-max-size"));
	}
	CHILD("pipe-max-size") {
		int ends[2];
		MUST(pipe(ends));
		MUST(setresuid(1000, 1000, 1000));
		T(fcntl(ends[0], F_SETPIPE_SZ, 131072));
		T(fcntl(ends[0], F_SETPIPE_SZ, 131073));
	} END;
	T(put_setting("fs/pipe-max-size", "1048576"));

	for (int level = 0; level < 3; level++) {
		static const unsigned flags[] = { 0, MFD_ALLOW_SEALING, 8, 16 };
		char text[4];
		snprintf(text, sizeof text, "%d", level);
		T(put_setting("vm/memfd_noexec", text));
		for (int i = 0; i < 4; i++) {
			struct stat st = { 0 };
			int fd = memfd_create("settings", flags[i]);
			if (fd < 0)
				SAY("  %#x: %s", flags[i], strerrorname_np(errno));
			else
				SAY("  %#x: mode %o seals %#x", flags[i], fstat(fd, &st) ? 0 : st.st_mode & 0777, fcntl(fd, F_GET_SEALS));
			close(fd);
		}
	}
	T(put_setting("vm/memfd_noexec", "0"));

	size_t large = 1ul << 45;
	T(put_setting("vm/overcommit_memory", "0"));
	IS(mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	T(put_setting("vm/overcommit_memory", "1"));
	void *at = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	IS(at != MAP_FAILED);
	munmap(at, large);
	T(put_setting("vm/overcommit_memory", "3"));
	T(put_setting("vm/overcommit_memory", "0"));
}

static int option(int domain, int kind, int level, int name)
{
	int value = -1, fd = (int)MUST(socket(domain, kind, 0));
	socklen_t len = sizeof value;
	MUST(getsockopt(fd, level, name, &value, &len));
	close(fd);
	return value;
}

/* Sets a setting, prints what a new socket says, and sets it back. */
static void acts(const char *file, const char *value, int domain, int kind, int level, int name)
{
	char before[64];
	snprintf(before, sizeof before, "%s", get_setting(file));
	if (put_setting(file, value) < 0)
		SAY("%s = %s: %s", file, value, strerrorname_np(errno));
	else
		SAY("%s = %s: %d", file, value, option(domain, kind, level, name));
	MUST(put_setting(file, before));
	SAY("  and again %d", option(domain, kind, level, name));
}

static int bound(int port)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof name;
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	int got = bind(fd, (struct sockaddr *)&name, len) ? -errno : 0;
	if (!got) {
		getsockname(fd, (struct sockaddr *)&name, &len);
		got = ntohs(name.sin_port);
	}
	close(fd);
	return got;
}

static void sockets(void)
{
	acts("net/core/rmem_default", "50000", AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_RCVBUF);
	acts("net/core/wmem_default", "60000", AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_SNDBUF);
	acts("net/core/wmem_default", "100", AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_SNDBUF);
	acts("net/ipv4/ip_default_ttl", "33", AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_TTL);
	acts("net/ipv4/ip_default_ttl", "0", AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_TTL);
	acts("net/ipv4/ip_default_ttl", "256", AF_INET, SOCK_DGRAM, IPPROTO_IP, IP_TTL);
	acts("net/ipv4/tcp_keepalive_time", "60", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_KEEPIDLE);
	acts("net/ipv4/tcp_keepalive_intvl", "5", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_KEEPINTVL);
	acts("net/ipv4/tcp_keepalive_probes", "3", AF_INET6, SOCK_STREAM, IPPROTO_TCP, TCP_KEEPCNT);
	acts("net/ipv4/tcp_syn_retries", "2", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_SYNCNT);
	acts("net/ipv4/tcp_syn_retries", "0", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_SYNCNT);
	acts("net/ipv4/tcp_fin_timeout", "30", AF_INET, SOCK_STREAM, IPPROTO_TCP, TCP_LINGER2);

	int size = 1 << 20, fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), got = 0;
	socklen_t len = sizeof got;
	T(put_setting("net/core/rmem_max", "300000"));
	T(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size));
	MUST(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len));
	SAY("of a MiB: %d", got);
	T(put_setting("net/core/rmem_max", "212992"));
	close(fd);

	static const char *const ranges[] = { "40000 40003", "40003 40000", "1000 2000", "50000", "0 5", "1 2 3", "70000 80000", "x" };
	for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		ssize_t put = put_setting("net/ipv4/ip_local_port_range", ranges[i]);
		printf("%s: %s, %s", ranges[i], put < 0 ? strerrorname_np(errno) : "ok", get_setting("net/ipv4/ip_local_port_range"));
	}
	T(put_setting("net/ipv4/ip_local_port_range", "40000 40003"));
	int all = 1;
	for (int i = 0; i < 20; i++) {
		int port = bound(0);
		all &= port >= 40000 && port <= 40003;
	}
	IS(all);
	T(put_setting("net/ipv4/ip_unprivileged_port_start", "40001"));
	T(put_setting("net/ipv4/ip_local_port_range", "32768 60999"));
	T(put_setting("net/ipv4/ip_unprivileged_port_start", "80"));
	CHILD("low ports") {
		MUST(setresuid(1000, 1000, 1000));
		T(bound(79));
		T(bound(80));
	} END;
	T(put_setting("net/ipv4/ip_unprivileged_port_start", "1024"));
}

int main(void)
{
	each();
	all_of_them();
	printk();
	restricted();
	files_and_memory();
	sockets();
	return 0;
}
