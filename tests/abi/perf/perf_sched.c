/*
 * perf_sched: tracepoints of the scheduler: their formats in tracefs, what is counted of a task and its children, the raw data of
 * samples (who, in which state, which program), filters on their fields.
 */
#include "perf.h"
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/mount.h>
#include <sys/prctl.h>

static const char *const names[] = {"sched_switch", "sched_wakeup", "sched_wakeup_new", "sched_process_fork", "sched_process_exec",
				    "sched_process_exit"};

static void formats(void)
{
	SAY("-- formats");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[128], line[2048];
		snprintf(path, sizeof path, "/tmp/tracing/events/sched/%s/format", names[i]);
		FILE *file = fopen(path, "r");
		while (fgets(line, sizeof line, file))
			if (!strstr(line, "common_"))
				fputs(line, stdout);
		fclose(file);
	}
	static const char *const calls[] = {"sys_enter_openat", "sys_enter_newfstat", "sys_enter_mmap", "sys_enter_getpid", "sys_exit_read"};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		char path[128], line[2048];
		snprintf(path, sizeof path, "/tmp/tracing/events/syscalls/%s/format", calls[i]);
		FILE *file = fopen(path, "r");
		while (file && fgets(line, sizeof line, file))
			if (!strstr(line, "common_") && strncmp(line, "ID:", 3))
				fputs(line, stdout);
		if (file)
			fclose(file);
	}
	IS(access("/tmp/tracing/events/ftrace", R_OK) == 0);
}

static struct perf_event_attr of_sched(const char *name)
{
	char path[64];
	snprintf(path, sizeof path, "sched/%s", name);
	return tracepoint(path);
}

static long switches(void)
{
	struct rusage usage;
	MUST(getrusage(RUSAGE_SELF, &usage));
	return usage.ru_nvcsw;
}

/* Sleeps so often; a nap that is over before it begins, on a slow machine, does not count. */
static void nap(int times)
{
	for (long end = switches() + times; switches() < end;)
		usleep(500);
}

static pid_t child_that(const char *program)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (program)
			execl("/proc/self/exe", "again", program, NULL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return pid;
}

static void counts(void)
{
	SAY("-- counted");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (int inherit = 0; inherit < 2; inherit++) {
			struct perf_event_attr attr = of_sched(names[i]);
			attr.inherit = (unsigned)inherit;
			int fd = must_open(&attr, 0, -1, -1, 0);
			MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
			if (i == 0)
				nap(5);
			else
				child_that("again");
			MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
			unsigned long count = count_of(fd);
			if (i == 0)
				printf("%s: %s\n", names[i], count >= 5 ? "at least 5" : "too few");
			else if (i != 1)
				printf("%s%s: %lu\n", names[i], inherit ? " with a child" : "", count);
			close(fd);
		}
}

static uint64_t record[1024];

struct __attribute__((packed)) raw {
	uint32_t size;
	uint16_t type;
	uint8_t flags, preempt;
	int32_t pid;
	union {
		struct __attribute__((packed)) {
			char prev_comm[16];
			int32_t prev_pid, prev_prio;
			int64_t prev_state;
			char next_comm[16];
			int32_t next_pid, next_prio;
		} on;
		struct {
			char comm[16];
			int32_t pid, prio, cpu;
		} wakeup;
		struct {
			char parent[16];
			int32_t parent_pid;
			char child[16];
			int32_t child_pid;
		} fork;
		struct {
			uint32_t where;
			int32_t pid, old_pid;
		} exec;
	};
};

static struct ring ring;
static int event, of_all;

static void begin(const char *name, const char *filter, int inherit)
{
	struct perf_event_attr attr = of_sched(name);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
	attr.inherit = (unsigned)inherit;
	/* A buffer takes records of children only of an event of one CPU. */
	event = must_open(&attr, of_all ? -1 : 0, 0, -1, 0);
	ring = map(event, 8);
	if (filter)
		MUST(ioctl(event, PERF_EVENT_IOC_SET_FILTER, filter));
	MUST(ioctl(event, PERF_EVENT_IOC_ENABLE, 0));
}

static void end(void)
{
	munmap(ring.page, 9 * PAGE);
	close(event);
}

static struct raw *sample(void)
{
	for (;;) {
		unsigned type = next(&ring, record, sizeof record);
		if (type == 0)
			return NULL;
		if (type == PERF_RECORD_SAMPLE)
			return (void *)(record + 3);
	}
}

static int own(const struct raw *raw)
{
	return (int)(record[1] & 0xffffffff) == getpid() && (int)(record[1] >> 32) == getpid() && raw->pid == getpid();
}

static void samples(void)
{
	struct raw *raw;
	char filter[64];
	SAY("-- switches");
	snprintf(filter, sizeof filter, "prev_pid == %d && prev_state == 1", getpid());
	begin("sched_switch", filter, 0);
	nap(3);
	MUST(ioctl(event, PERF_EVENT_IOC_DISABLE, 0));
	for (int i = 0; i < 3 && (raw = sample()); i++)
		printf("raw %u, own %d, of %s, its number %d, prio %d, state %d, next %s, prio %d\n", raw->size, own(raw), raw->on.prev_comm,
		       raw->on.prev_pid == getpid(), raw->on.prev_prio, (int)raw->on.prev_state, raw->on.next_pid == getpid() ? "itself" : "another",
		       raw->on.next_prio > 0);
	end();
	begin("sched_switch", NULL, 0);
	int pipes[2];
	MUST(pipe(pipes));
	pid_t spinner = fork();
	if (spinner == 0) {
		write(pipes[1], "x", 1);
		for (;;)
			;
	}
	char byte;
	read(pipes[0], &byte, 1);
	MUST(ioctl(event, PERF_EVENT_IOC_RESET, 0));
	while (sample())
		;
	sched_yield();
	spin_ms(30);
	int preempted = 0, asleep = 0;
	while ((raw = sample())) {
		preempted |= (raw->on.prev_state & 0xff) == 0 && raw->on.next_pid == spinner;
		asleep |= raw->on.prev_state == 1;
	}
	IS(preempted);
	IS(!asleep);
	kill(spinner, SIGKILL);
	waitpid(spinner, NULL, 0);
	end();

	SAY("-- a new task");
	begin("sched_process_fork", NULL, 0);
	pid_t child = child_that(NULL);
	raw = sample();
	printf("raw %u, own %d, %s makes %s, numbers %d %d\n", raw->size, own(raw), raw->fork.parent, raw->fork.child, raw->fork.parent_pid == getpid(),
	       raw->fork.child_pid == child);
	IS(sample() == NULL);
	end();
	begin("sched_wakeup_new", NULL, 0);
	child = child_that(NULL);
	raw = sample();
	printf("raw %u, own %d, %s, number %d, prio %d, CPU %d\n", raw->size, own(raw), raw->wakeup.comm, raw->wakeup.pid == child, raw->wakeup.prio,
	       raw->wakeup.cpu);
	IS(sample() == NULL);
	end();

	SAY("-- a wake-up");
	int back[2];
	MUST(pipe(back));
	child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, "sleeper");
		setpriority(PRIO_PROCESS, 0, 7);
		write(back[1], "x", 1);
		read(pipes[0], &byte, 1);
		_exit(0);
	}
	read(back[0], &byte, 1);
	usleep(20000);
	snprintf(filter, sizeof filter, "pid == %d", child);
	begin("sched_wakeup", filter, 0);
	write(pipes[1], "x", 1);
	waitpid(child, NULL, 0);
	raw = sample();
	if (raw)
		printf("raw %u, own %d, %s, number %d, prio %d, CPU %d\n", raw->size, own(raw), raw->wakeup.comm, raw->wakeup.pid == child, raw->wakeup.prio,
		       raw->wakeup.cpu);
	end();

	SAY("-- an exec, and the end");
	begin("sched_process_exec", NULL, 1);
	child = child_that("again");
	raw = sample();
	unsigned at = raw->exec.where & 0xffff;
	printf("raw %u, %s, %u bytes at %u, numbers %d %d\n", raw->size, (char *)raw + 4 + at, raw->exec.where >> 16, at, raw->exec.pid == child,
	       raw->exec.old_pid == child);
	IS(sample() == NULL);
	end();
	of_all = 1;
	begin("sched_process_exit", NULL, 0);
	child = child_that("again");
	while ((raw = sample()))
		if (raw->wakeup.pid == child)
			printf("raw %u, %s, its own %d, prio %d\n", raw->size, raw->wakeup.comm, raw->pid == child, raw->wakeup.prio);
	end();
}

static void of_a_cpu(void)
{
	SAY("-- all of a CPU");
	for (size_t i = 3; i < sizeof names / sizeof *names; i++) {
		struct perf_event_attr attr = of_sched(names[i]);
		int fd = must_open(&attr, -1, 0, -1, 0);
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		child_that("again");
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		printf("%s: %s\n", names[i], count_of(fd) >= 1 ? "counted" : "nothing");
		close(fd);
	}
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
	attr.comm = attr.task = attr.mmap2 = attr.mmap = attr.sample_id_all = 1;
	int fd = must_open(&attr, -1, 0, -1, 0), seen = 0;
	ring = map(fd, 64);
	child_that("again");
	for (unsigned type; (type = next(&ring, record, sizeof record));)
		if (type < 16)
			seen |= 1 << type;
	printf("COMM %d, FORK %d, EXIT %d, MMAP2 %d\n", seen >> PERF_RECORD_COMM & 1, seen >> PERF_RECORD_FORK & 1, seen >> PERF_RECORD_EXIT & 1,
	       seen >> PERF_RECORD_MMAP2 & 1);
	munmap(ring.page, 65 * PAGE);
	close(fd);
}

static void woken(void)
{
	SAY("-- who polls is woken by a switch");
	int pipes[2];
	char byte;
	MUST(pipe(pipes));
	pid_t child = fork();
	if (child == 0) {
		read(pipes[0], &byte, 1);
		pause();
	}
	usleep(20000);
	struct perf_event_attr attr = software(PERF_COUNT_SW_CONTEXT_SWITCHES);
	attr.sample_period = 1;
	attr.wakeup_events = 1;
	int fd = must_open(&attr, child, -1, -1, 0);
	ring = map(fd, 1);
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	write(pipes[1], "x", 1);
	int number = poll(&polled, 1, 5000);
	printf("%d, %s\n", number, polled.revents & POLLIN ? "POLLIN" : "none");
	munmap(ring.page, 2 * PAGE);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fd);
}

static void filters(void)
{
	static const char *const all[] = {"prev_prio == 120", "prev_state & 1", "next_pid != 0 && prev_pid > 0", "prev_comm == 3", "pid == 1", "next_cpu == 0"};
	struct perf_event_attr attr = of_sched("sched_switch");
	SAY("-- filters");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int fd = must_open(&attr, 0, -1, -1, 0);
		errno = 0;
		int failed = ioctl(fd, PERF_EVENT_IOC_SET_FILTER, all[i]);
		printf("'%s': %s\n", all[i], failed ? err_name(errno) : "ok");
		close(fd);
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 0;
	cpu_set_t first;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof first, &first);
	mkdir("/tmp", 0777);
	MUST(mkdir("/tmp/tracing", 0755));
	MUST(mount("tracefs", "/tmp/tracing", "tracefs", 0, NULL));
	formats();
	counts();
	samples();
	of_a_cpu();
	woken();
	filters();
	MUST(umount("/tmp/tracing"));
	MUST(rmdir("/tmp/tracing"));
	return 0;
}
