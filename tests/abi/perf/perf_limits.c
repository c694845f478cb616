/*
 * perf_limits: ten thousand events, buffers as large as numbers get, buffers beyond what an ordinary user may lock, and buffers that are
 * unmapped while they are written.
 */
#include "perf.h"
#include <pthread.h>
#include <sys/resource.h>

enum { MANY = 10000 };

static void ten_thousand(void)
{
	SAY("-- ten thousand events");
	struct rlimit limit = {MANY + 100, MANY + 100};
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	static int fds[MANY];
	int opened = 0;
	while (opened < MANY && (fds[opened] = perf(&attr, 0, -1, -1, 0)) >= 0)
		opened++;
	IS(opened == MANY);
	touch_pages(3);
	IS(count_of(fds[0]) >= 3 && count_of(fds[MANY - 1]) >= 3);
	while (opened > 0)
		close(fds[--opened]);
}

static void try_map(const char *what, int fd, size_t size, off_t at)
{
	errno = 0;
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
	printf("%s: %s\n", what, map == MAP_FAILED ? err_name(errno) : "ok");
	if (map != MAP_FAILED)
		munmap(map, size);
}

static void large(void)
{
	SAY("-- as large as numbers get");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	int fd = must_open(&attr, 0, -1, -1, 0);
	try_map("2^63", fd, 1UL << 63, 0);
	try_map("2^63 - a page", fd, (1UL << 63) - PAGE, 0);
	try_map("2^63 + a page", fd, (1UL << 63) + PAGE, 0);
	try_map("2^62 + a page", fd, (1UL << 62) + PAGE, 0);
	try_map("2^40 + a page", fd, (1UL << 40) + PAGE, 0);
	try_map("all that there is", fd, -1UL, 0);
	try_map("nothing", fd, 0, 0);
	try_map("three pages of records", fd, 4 * PAGE, 0);
	try_map("at a page", fd, 2 * PAGE, PAGE);
	try_map("at 2^63 - a page", fd, 2 * PAGE, (off_t)((1UL << 63) - PAGE));
	attr.sample_period = 1UL << 63;
	IS(perf(&attr, 0, -1, -1, 0) < 0 && errno == EINVAL);
	attr.sample_period = (1UL << 63) - 1;
	int other = perf(&attr, 0, -1, -1, 0);
	IS(other >= 0);
	uint64_t period = 1UL << 63;
	T(ioctl(other, PERF_EVENT_IOC_PERIOD, &period));
	close(other);
	close(fd);
}

/* What the settings let each user have, in pages: of the default, 516 KiB for each CPU. */
static void beyond(void)
{
	SAY("-- beyond what may be locked");
	/* Debian's is 3: no events at all. */
	char paranoid[16] = "";
	int set = (int)MUST(open("/proc/sys/kernel/perf_event_paranoid", O_RDWR));
	MUST(read(set, paranoid, sizeof paranoid - 1));
	MUST(pwrite(set, "2", 1, 0));
	long budget = 129 * sysconf(_SC_NPROCESSORS_ONLN), size = 1;
	while (2 * size + 1 <= budget)
		size *= 2;
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		struct rlimit none = {0, 0};
		MUST(setrlimit(RLIMIT_MEMLOCK, &none));
		MUST(setgid(1000));
		MUST(setuid(1000));
		struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
		attr.exclude_kernel = 1;
		int fd = must_open(&attr, 0, -1, -1, 0), other = must_open(&attr, 0, -1, -1, 0);
		try_map("twice as much", fd, (size_t)(4 * size + 1) * PAGE, 0);
		size_t own = (size_t)(size + 1) * PAGE;
		void *map = mmap(NULL, own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		IS(map != MAP_FAILED);
		try_map("as much again", other, own, 0);
		munmap(map, own);
		try_map("as much once that is gone", other, own, 0);
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	MUST(pwrite(set, paranoid, strlen(paranoid), 0));
	close(set);
}

static volatile int stop;

static void *faults(void *unused)
{
	(void)unused;
	while (!stop)
		touch_pages(8);
	return NULL;
}

static void unmapped(void)
{
	SAY("-- unmapped while it is written");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
	attr.inherit = 1;
	attr.inherit_thread = 1;
	int fd = must_open(&attr, 0, 0, -1, 0), other = must_open(&attr, 0, 0, -1, 0);
	pthread_t threads[2];
	stop = 0;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, faults, NULL);
	int failed = 0;
	for (int round = 0; round < 300; round++) {
		size_t size = (size_t)(1 + (1 << round % 4)) * PAGE;
		void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		failed += map == MAP_FAILED;
		if (round % 3 == 0)
			ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, round % 2 ? fd : -1);
		sched_yield();
		if (map == MAP_FAILED)
			continue;
		((struct perf_event_mmap_page *)map)->data_tail = round % 5 ? 1UL << 63 : 0;
		/* Part of it first, now and then. */
		if (round % 7 == 0)
			munmap((char *)map + PAGE, PAGE);
		munmap(map, size);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	IS(failed == 0);
	close(other);
	close(fd);
}

int main(void)
{
	setbuf(stdout, NULL);
	large();
	beyond();
	unmapped();
	ten_thousand();
	return 0;
}
