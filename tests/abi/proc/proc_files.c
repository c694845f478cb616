/*
 * procfs: the shape of the files that programs parse (stat, status, cmdline, maps, fd, exe, cwd, root, environ, comm, statm,
 * limits, mounts, cpuinfo, meminfo, loadavg, version, filesystems), their links, permissions and what they say of a dead
 * process.
 */
#include "check.h"
#include <dirent.h>

static int has(const char *file, const char *text)
{
	return strstr(read_file(file), text) != NULL;
}

static void link_of(const char *path, const char *want)
{
	char text[256];
	ssize_t n = readlink(path, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	SAY("%s: %s", path, n < 0 ? err_name(errno) : strcmp(text, want) == 0 ? "right" : text);
}

int main(int argc, char **argv)
{
	char text[256], path[64];
	struct stat st;
	scratch();
	for (int fd = 3; fd < 20; fd++)
		close(fd);
	snprintf(text, sizeof text, "%d", getpid());
	link_of("/proc/self", text);
	snprintf(text, sizeof text, "%d/task/%d", getpid(), getpid());
	link_of("/proc/thread-self", text);
	link_of("/proc/self/cwd", scratch_path);
	link_of("/proc/self/root", "/");
	T(open("f", O_RDWR | O_CREAT, 0600));
	snprintf(text, sizeof text, "%s/f", scratch_path);
	link_of("/proc/self/fd/3", text);
	MUST(unlink("f"));
	strcat(text, " (deleted)");
	link_of("/proc/self/fd/3", text);
	lstat("/proc/self/fd/3", &st);
	SAY("fd link mode %o size %ld", st.st_mode, (long)st.st_size);
	T(stat("/proc/self/fd/3", &st));
	SAY("nlink %ld", (long)st.st_nlink);
	T(open("/proc/self/fd/3", O_RDONLY));
	int p[2];
	MUST(pipe(p));
	ssize_t n = readlink("/proc/self/fd/5", text, 255);
	text[n] = 0;
	SAY("%.6s", text);
	T(readlink("/proc/self/fd/99", text, 10));
	T(readlink("/proc/self/fd/03", text, 10));
	DIR *d = opendir("/proc/self/fd");
	int count = 0;
	for (struct dirent *e; (e = readdir(d));)
		count += e->d_name[0] != '.';
	SAY("descriptors %d", count);
	closedir(d);
	printf("%.15s", strstr(read_file("/proc/self/fdinfo/3"), "flags:"));
	/* stat */
	snprintf(text, sizeof text, "%d (proc_files) R %d %d %d ", getpid(), getppid(), getpgrp(), getsid(0));
	IS(strncmp(read_file("/proc/self/stat"), text, strlen(text)) == 0);
	int fields = 0;
	for (const char *c = read_file("/proc/self/stat"); *c; c++)
		fields += *c == ' ' || *c == '\n';
	SAY("fields %d", fields);
	/* status */
	static const char *const keys[] = { "Name:\tproc_files\n", "State:\tR (running)\n", "Tgid:", "Pid:", "PPid:", "TracerPid:\t0\n",
		"Uid:\t0\t0\t0\t0\n", "Gid:\t0\t0\t0\t0\n", "FDSize:", "Groups:", "VmPeak:", "VmSize:", "VmRSS:", "VmData:", "VmStk:",
		"VmExe:", "VmLib:", "Threads:\t1\n", "SigQ:", "SigPnd:\t0000000000000000\n", "ShdPnd:", "SigBlk:", "SigIgn:", "SigCgt:",
		"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "NoNewPrivs:\t0\n", "Cpus_allowed:", "voluntary_ctxt_switches:" };
	for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (!has("/proc/self/status", keys[i]))
			SAY("status lacks %s", keys[i]);
	signal(SIGUSR1, SIG_IGN);
	SAY("%.16s", strstr(read_file("/proc/self/status"), "SigIgn:\t") + 8);
	/* maps */
	const char *maps = read_file("/proc/self/maps");
	IS(strstr(maps, "r-xp") && strstr(maps, "[stack]") && strstr(maps, "[heap]") && strstr(maps, "/proc_files"));
	unsigned long lo, hi;
	int ours = 0;
	for (const char *l = maps; l && *l; l = strchr(l, '\n') ? strchr(l, '\n') + 1 : NULL)
		if (sscanf(l, "%lx-%lx", &lo, &hi) == 2)
			ours += (unsigned long)&st >= lo && (unsigned long)&st < hi && strstr(l, "[stack]");
	SAY("a local is on the stack: %d", ours >= 1);
	char *m = pages(3);
	mprotect(m + PAGE, PAGE, PROT_READ);
	snprintf(text, sizeof text, "%lx-%lx r--p 00000000 00:00 0", (unsigned long)m + PAGE, (unsigned long)m + 2 * PAGE);
	IS(has("/proc/self/maps", text));
	int pages_total = 0, rss = 0;
	IS(sscanf(read_file("/proc/self/statm"), "%d %d", &pages_total, &rss) == 2 && rss > 0 && rss <= pages_total);
	/* the rest */
	n = (ssize_t)strlen(read_file("/proc/self/cmdline"));
	IS(n > 0);
	printf("%s", read_file("/proc/self/comm"));
	IS(has("/proc/self/environ", "PATH="));
	IS(has("/proc/self/mounts", " /proc proc "));
	IS(has("/proc/mounts", " / "));
	IS(has("/proc/self/mountinfo", " / "));
	static const char *const mem[] = { "MemTotal:", "MemFree:", "MemAvailable:", "Buffers:", "Cached:", "SwapTotal:", "SwapFree:",
		"AnonPages:", "Mapped:", "Shmem:", "Slab:", "PageTables:" };
	for (unsigned i = 0; i < sizeof mem / sizeof mem[0]; i++)
		if (!has("/proc/meminfo", mem[i]))
			SAY("meminfo lacks %s", mem[i]);
	IS(has("/proc/cpuinfo", "processor\t: 0") && has("/proc/cpuinfo", "vendor_id\t: ") && has("/proc/cpuinfo", "flags\t\t: "));
	double up, idle;
	IS(sscanf(read_file("/proc/uptime"), "%lf %lf", &up, &idle) == 2 && up > 0);
	float l1, l5, l15;
	int run, all, last;
	IS(sscanf(read_file("/proc/loadavg"), "%f %f %f %d/%d %d", &l1, &l5, &l15, &run, &all, &last) == 6 && run >= 1);
	IS(strncmp(read_file("/proc/version"), "Linux version ", 14) == 0);
	IS(has("/proc/filesystems", "nodev\tproc\n") && has("/proc/filesystems", "nodev\ttmpfs\n"));
	static const char *const stat_keys[] = { "cpu  ", "cpu0 ", "intr ", "ctxt ", "btime ", "processes ", "procs_running ", "procs_blocked " };
	for (unsigned i = 0; i < 8; i++)
		if (!has("/proc/stat", stat_keys[i]))
			SAY("stat lacks %s", stat_keys[i]);
	IS(atoi(read_file("/proc/sys/kernel/pid_max")) > 1000);
	printf("%s", read_file("/proc/sys/kernel/ostype"));
	IS(strlen(read_file("/proc/cmdline")) > 1);
	IS(has("/proc/devices", "Character devices:") && has("/proc/devices", "  1 mem"));
	IS(access("/proc/interrupts", R_OK) == 0 && access("/proc/partitions", R_OK) == 0 && access("/proc/vmstat", R_OK) == 0);
	/* refusals */
	T(open("/proc/self/stat", O_WRONLY) == -1 ? -1 : 0);
	T(open("/proc/new", O_CREAT | O_RDWR, 0600) == -1 ? -1 : 0);
	T(mkdir("/proc/new", 0755));
	T(unlink("/proc/self/stat"));
	T(open("/proc/999999999", O_RDONLY));
	T(open("/proc/self/nothing", O_RDONLY));
	T(open("/proc/0", O_RDONLY));
	T(open("/proc/01", O_RDONLY));
	T(lseek((int)open("/proc/self/stat", O_RDONLY), 5, SEEK_SET));
	T(lseek((int)open("/proc/uptime", O_RDONLY), 0, SEEK_END) == -1 ? -1 : 0);
	stat("/proc/self/stat", &st);
	SAY("stat mode %o size %ld", st.st_mode, (long)st.st_size);
	stat("/proc/self", &st);
	SAY("self mode %o uid %d", st.st_mode, st.st_uid);
	/* a child that dies while its file is open */
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		for (;;)
			pause();
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = (int)MUST(open(path, O_RDONLY));
	snprintf(path, sizeof path, "/proc/%d", pid);
	int dir = (int)MUST(open(path, O_RDONLY));
	IS(wait_state(pid, "S"));
	kill(pid, SIGKILL);
	IS(wait_state(pid, "Z"));
	snprintf(text, sizeof text, "/proc/%d/cmdline", pid);
	SAY("zombie's cmdline is empty: %d", read_file(text)[0] == 0);
	snprintf(text, sizeof text, "/proc/%d/exe", pid);
	T(readlink(text, path, 10));
	snprintf(path, sizeof path, "/proc/%d", pid);
	reap(pid);
	T(read(fd, text, 100));
	T(openat(dir, "stat", O_RDONLY));
	T(access(path, F_OK));
	T(kill(pid, 0));
	/* other users */
	CHILD("as uid 1000") {
		MUST(setuid(1000));
		T(readlink("/proc/1/exe", text, 10));
		T(open("/proc/1/environ", O_RDONLY));
		T(open("/proc/1/maps", O_RDONLY));
		T(open("/proc/1/fd", O_RDONLY));
		T(open("/proc/1/stat", O_RDONLY) >= 0);
		T(open("/proc/1/status", O_RDONLY) >= 0);
		T(open("/proc/1/cmdline", O_RDONLY) >= 0);
	} END;
	return 0;
}
