/*
 * perf_tracepoint: tracepoints of system calls: their numbers and formats in tracefs, what is counted of a task, of its children and
 * of a CPU, the raw data of samples, filters, and who may.
 */
#include "perf.h"
#include <pthread.h>
#include <sys/mount.h>
#include <sys/statfs.h>

static void show_format(const char *name)
{
	char path[128], line[512];
	snprintf(path, sizeof path, "/tmp/tracing/events/%s/format", name);
	FILE *file = fopen(path, "r");
	while (fgets(line, sizeof line, file))
		if (!strncmp(line, "ID:", 3))
			printf("ID: %s\n", atoi(line + 3) == id_of(name) ? "the same" : "another");
		else if (strncmp(line, "print", 5))
			fputs(line, stdout);
	fclose(file);
}

static void files(void)
{
	struct statfs fs;
	SAY("-- files");
	mkdir("/tmp", 0777);
	MUST(mkdir("/tmp/tracing", 0755));
	MUST(mount("tracefs", "/tmp/tracing", "tracefs", 0, NULL));
	MUST(statfs("/tmp/tracing", &fs));
	IS(fs.f_type == 0x74726163);
	show_format("raw_syscalls/sys_enter");
	show_format("raw_syscalls/sys_exit");
	show_format("syscalls/sys_exit_getpid");
	IS(id_of("syscalls/sys_enter_getpid") != id_of("syscalls/sys_enter_getppid"));
}

static void calls(int number)
{
	for (int i = 0; i < number; i++)
		syscall(SYS_getppid);
}

static void counts(void)
{
	SAY("-- counted");
	static const char *const names[] = {"raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "syscalls/sys_enter_getppid",
					    "syscalls/sys_exit_getppid", "syscalls/sys_enter_getpid"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct perf_event_attr attr = tracepoint(names[i]);
		int fd = must_open(&attr, 0, -1, -1, 0);
		calls(5);
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		calls(100);
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		calls(5);
		printf("%s: %lu\n", names[i], (unsigned long)count_of(fd));
		close(fd);
	}
	struct perf_event_attr attr = tracepoint("syscalls/sys_enter_getppid");
	attr.inherit = 1;
	attr.disabled = 0;
	int fd = must_open(&attr, 0, -1, -1, 0);
	if (fork() == 0) {
		calls(50);
		_exit(0);
	}
	wait(NULL);
	calls(7);
	printf("with a child: %lu\n", (unsigned long)count_of(fd));
	close(fd);
	attr.inherit = 0;
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN), all[64];
	for (int cpu = 0; cpu < cpus && cpu < 64; cpu++)
		all[cpu] = must_open(&attr, -1, cpu, -1, 0);
	if (fork() == 0) {
		calls(50);
		_exit(0);
	}
	wait(NULL);
	unsigned long sum = 0;
	for (int cpu = 0; cpu < cpus && cpu < 64; cpu++) {
		sum += count_of(all[cpu]);
		close(all[cpu]);
	}
	printf("of all CPUs: %lu\n", sum);
	attr.exclude_kernel = 1;
	fd = must_open(&attr, 0, -1, -1, 0);
	calls(7);
	printf("of user mode: %lu\n", (unsigned long)count_of(fd));
	close(fd);
}

static uint64_t record[512];

struct __attribute__((packed)) raw {
	uint32_t size;
	uint16_t type;
	uint8_t flags, preempt;
	int32_t pid;
	int64_t id;
	uint64_t values[6];
};

static void samples(void)
{
	SAY("-- sampled");
	static const char *const names[] = {"raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "syscalls/sys_exit_dup2"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct perf_event_attr attr = tracepoint(names[i]);
		attr.sample_period = 1;
		attr.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN;
		attr.exclude_callchain_kernel = attr.exclude_callchain_user = 1;
		attr.wakeup_events = 1;
		int fd = must_open(&attr, 0, -1, -1, 0);
		struct ring ring = map(fd, 8);
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		syscall(SYS_dup2, 12345L, -7L);
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE) {
			struct raw *raw = (void *)(record + 2);
			if ((int)raw->id != SYS_dup2)
				continue;
			printf("%s: record %u, raw %u, own type %d, own pid %d, %ld", names[i], ((struct perf_event_header *)record)->size, raw->size,
			       raw->type == attr.config, raw->pid == getpid(), (long)raw->values[0]);
			if (i == 0)
				printf(" %ld", (long)raw->values[1]);
			printf("\n");
		}
		munmap(ring.page, 9 * PAGE);
		close(fd);
	}
}

static void filters(void)
{
	static const char *const all[] = {
		"id == 110", "id != 110", "id == 110 || id == 39", "id == 110 && common_pid == 0", "!(id == 110)", "id > 100 && id < 120",
		"id & 0x40", "(id == 110)", "id >= 110 && (id <= 110 || id == 3)", "id==0x6e", "common_pid != 0", "0", "", "id", "id ==",
		"nobody == 1", "id == 110)", "(id == 110", "id = 110", "id == x",
	};
	struct perf_event_attr attr = tracepoint("raw_syscalls/sys_enter");
	SAY("-- filters");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int fd = must_open(&attr, 0, -1, -1, 0);
		errno = 0;
		int failed = ioctl(fd, PERF_EVENT_IOC_SET_FILTER, all[i]);
		printf("'%s': %s", all[i], failed ? err_name(errno) : "ok");
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		calls(10);
		syscall(SYS_getuid);
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		printf(", counts %lu\n", (unsigned long)count_of(fd));
		close(fd);
	}
	int fd = must_open(&attr, 0, -1, -1, 0);
	T(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, KERNEL_ADDRESS));
	char *longest = malloc(2 * PAGE);
	memset(longest, ' ', 2 * PAGE);
	longest[2 * PAGE - 1] = 0;
	T(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, longest));
	close(fd);
	attr = software(PERF_COUNT_SW_DUMMY);
	fd = must_open(&attr, 0, -1, -1, 0);
	T(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "id == 1"));
	close(fd);
}

static void may(const char *level)
{
	struct perf_event_attr attr = tracepoint("raw_syscalls/sys_enter");
	int set = (int)MUST(open("/proc/sys/kernel/perf_event_paranoid", O_WRONLY));
	MUST(write(set, level, strlen(level)));
	close(set);
	printf("-- who may, paranoid %s\n", level);
	attr.config = 999999;
	try_open("of no such number", &attr, 0, -1, -1, 0);
	attr.config = (uint64_t)id_of("raw_syscalls/sys_enter");
	fflush(stdout);
	if (fork() == 0) {
		MUST(setgid(1000));
		MUST(setuid(1000));
		IS(open("/tmp/tracing/events", O_RDONLY) < 0 && errno == EACCES);
		try_open("own", &attr, 0, -1, -1, 0);
		try_open("of a CPU", &attr, -1, 0, -1, 0);
		attr.sample_type = PERF_SAMPLE_RAW;
		attr.sample_period = 1;
		try_open("own, raw", &attr, 0, -1, -1, 0);
		try_open("of a CPU, raw", &attr, -1, 0, -1, 0);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
}

static volatile int stop;

static void *caller(void *unused)
{
	while (!stop)
		syscall(SYS_getppid);
	return unused;
}

static void going(void)
{
	static const char *const texts[] = {"id == 110", "id != 110", "id < 400"};
	SAY("-- events that go while calls are made");
	pthread_t thread;
	pthread_create(&thread, NULL, caller, NULL);
	for (int i = 0; i < 200; i++) {
		struct perf_event_attr attr = tracepoint("raw_syscalls/sys_enter");
		attr.sample_period = 1;
		attr.sample_type = PERF_SAMPLE_RAW;
		attr.disabled = 0;
		int fd = i % 2 ? must_open(&attr, -1, 0, -1, 0) : must_open(&attr, getpid(), -1, -1, 0);
		struct ring ring = map(fd, 1);
		MUST(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, texts[i % 3]));
		sched_yield();
		munmap(ring.page, 2 * PAGE);
		close(fd);
	}
	stop = 1;
	pthread_join(thread, NULL);
	SAY("over");
}

int main(void)
{
	files();
	counts();
	samples();
	filters();
	may("3");
	may("0");
	may("-1");
	may("3");
	going();
	MUST(umount("/tmp/tracing"));
	MUST(rmdir("/tmp/tracing"));
	return 0;
}
