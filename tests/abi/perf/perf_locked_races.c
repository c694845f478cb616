/*
 * perf_locked_races: two processes of one user map and unmap buffers at the same time; afterwards the user may have as much as
 * before. On one CPU little can happen.
 */
#include "perf.h"
#include <sys/resource.h>

/* Enough to lose an update on a kernel that can; Linux under emulation is not through with them in the time a program has. */
enum { ROUNDS = 12000, LONGEST_MS = 3000 };

static void maps(void)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.exclude_kernel = 1;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < ROUNDS && elapsed_ms(&start) < LONGEST_MS; i++) {
		void *map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map == MAP_FAILED)
			_exit(errno);
		munmap(map, 2 * PAGE);
	}
	_exit(0);
}

/* What the default settings let each user have: 516 KiB for each CPU. */
static void whole_budget(void)
{
	long budget = 129 * sysconf(_SC_NPROCESSORS_ONLN), size = 1;
	while (2 * size + 1 <= budget)
		size *= 2;
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.exclude_kernel = 1;
	int fd = must_open(&attr, 0, -1, -1, 0);
	void *map = mmap(NULL, (size_t)(size + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	IS(map != MAP_FAILED);
	munmap(map, (size_t)(size + 1) * PAGE);
}

int main(void)
{
	/* Debian's is 3: no events at all. */
	char paranoid[16] = "";
	int set = (int)MUST(open("/proc/sys/kernel/perf_event_paranoid", O_RDWR));
	MUST(read(set, paranoid, sizeof paranoid - 1));
	MUST(pwrite(set, "2", 1, 0));
	CHILD("a user") {
		struct rlimit none = {0, 0};
		MUST(setrlimit(RLIMIT_MEMLOCK, &none));
		MUST(setgid(1000));
		MUST(setuid(1000));
		whole_budget();
		pid_t one = (pid_t)MUST(fork());
		if (one == 0)
			maps();
		pid_t two = (pid_t)MUST(fork());
		if (two == 0)
			maps();
		say_status("one", reap(one));
		say_status("two", reap(two));
	} END;
	CHILD("the same user later") {
		struct rlimit none = {0, 0};
		MUST(setrlimit(RLIMIT_MEMLOCK, &none));
		MUST(setgid(1000));
		MUST(setuid(1000));
		whole_budget();
	} END;
	MUST(pwrite(set, paranoid, strlen(paranoid), 0));
	return 0;
}
