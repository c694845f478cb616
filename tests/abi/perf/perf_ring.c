/*
 * perf_ring: the buffer of an event: what can be mapped, the records of a program's life, samples of faults and of time,
 * what is lost, poll, and buffers that go while they are written.
 */
#include "perf.h"
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>

static void mapping(void)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
	SAY("-- mapping");
	int fd = must_open(&attr, 0, -1, -1, 0);
	for (unsigned pages = 0; pages < 10; pages++) {
		errno = 0;
		void *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		printf("%u pages: %s\n", pages, at == MAP_FAILED ? err_name(errno) : "ok");
		if (at != MAP_FAILED)
			munmap(at, pages * PAGE);
	}
	OK(mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
	OK(mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, fd, PAGE));
	OK(mmap(NULL, 1L << 62, PROT_READ, MAP_SHARED, fd, 0));
	OK(mmap(NULL, ~0UL << 12, PROT_READ, MAP_SHARED, fd, 0));
	struct ring ring = map(fd, 2);
	IS(ring.page->data_offset == PAGE && ring.page->data_size == 2 * PAGE && ring.page->data_head == 0);
	OK(mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	OK(mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	/* It goes whole or not at all. */
	char *first = (char *)ring.page;
	T(munmap(first, PAGE));
	T(munmap(first + PAGE, PAGE));
	T(munmap(first + 2 * PAGE, PAGE));
	T(mprotect(first + PAGE, PAGE, PROT_READ));
	OK(mmap(first + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	OK(mremap(first, 3 * PAGE, PAGE, MREMAP_MAYMOVE));
	OK(mremap(first, 3 * PAGE, 5 * PAGE, MREMAP_MAYMOVE));
	OK(mremap(first + PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, first + 16 * PAGE));
	T(mprotect(first, 3 * PAGE, PROT_READ));
	T(mprotect(first, 3 * PAGE, PROT_READ | PROT_WRITE));
	void *away = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ring.page = (void *)mremap(first, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, away);
	IS(ring.page == away && ring.page->data_size == 2 * PAGE);
	int other = must_open(&attr, 0, -1, -1, 0);
	T(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd));
	T(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	T(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, other));
	T(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		/* It is not inherited. */
		unsigned char vec[1];
		T(mincore(ring.page, PAGE, vec));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	close(fd);
	IS(ring.page->data_size == 2 * PAGE);
	close(other);
	attr.inherit = 1;
	fd = must_open(&attr, 0, -1, -1, 0);
	OK(mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, fd, 0));
	close(fd);
}

static const char *name_of(unsigned type)
{
	static const char *const names[] = {"?", "MMAP", "LOST", "COMM", "EXIT", "THROTTLE", "UNTHROTTLE", "FORK", "READ", "SAMPLE", "MMAP2"};
	return names[type < 11 ? type : 0];
}

static void life(void)
{
	SAY("-- a life");
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
	attr.comm = attr.task = attr.mmap = attr.mmap2 = attr.comm_exec = 1;
	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	attr.inherit = 0;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 16);
	prctl(PR_SET_NAME, "renamed");
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	int self = (int)MUST(open("/proc/self/exe", O_RDONLY));
	mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0);
	close(self);
	uint64_t id;
	MUST(ioctl(fd, PERF_EVENT_IOC_ID, &id));
	union {
		struct perf_event_header head;
		uint64_t words[128];
		struct {
			struct perf_event_header head;
			uint32_t pid, tid;
			char text[100];
		} comm;
		struct {
			struct perf_event_header head;
			uint32_t pid, ppid, tid, ptid;
			uint64_t time;
		} task;
		struct {
			struct perf_event_header head;
			uint32_t pid, tid;
			uint64_t addr, len, off;
			uint32_t major, minor;
			uint64_t ino, generation;
			uint32_t prot, flags;
			char name[512];
		} map;
	} record;
	for (unsigned type; (type = next(&ring, &record, sizeof record)) != 0;) {
		printf("%s misc %x, size %u", name_of(type), record.head.misc, type == PERF_RECORD_MMAP2 ? 0 : record.head.size);
		if (type == PERF_RECORD_COMM)
			printf(" %s own %d", record.comm.text, record.comm.pid == (uint32_t)getpid());
		if (type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT)
			printf(" child %d of own %d", record.task.pid == (uint32_t)pid, record.task.ppid == (uint32_t)getpid());
		if (type == PERF_RECORD_MMAP2)
			printf(" len %lx off %lx prot %x flags %x %s", (long)record.map.len, (long)record.map.off, record.map.prot,
			       record.map.flags, strrchr(record.map.name, '/'));
		uint64_t *end = (uint64_t *)((char *)&record + record.head.size);
		printf(" id %d cpu %d\n", end[-1] == id, (uint32_t)end[-2] < 64);
	}
	close(fd);
	munmap(ring.page, 17 * PAGE);
}

static void faults(void)
{
	SAY("-- faults");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.sample_period = 10;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD;
	attr.wakeup_events = 3;
	attr.disabled = 1;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 4);
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	T(poll(&poller, 1, 0));
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(100);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	T(poll(&poller, 1, 0));
	IS(poller.revents == POLLIN);
	T(poll(&poller, 1, 0));
	uint64_t record[64];
	int samples = 0;
	while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE)
		samples++;
	IS(samples >= 3);
	SAY("lost");
	attr.sample_period = 1;
	attr.read_format = PERF_FORMAT_LOST;
	int many = must_open(&attr, 0, -1, -1, 0);
	struct ring small = map(many, 1);
	MUST(ioctl(many, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(500);
	samples = 0;
	while (next(&small, record, sizeof record) == PERF_RECORD_SAMPLE)
		samples++;
	IS(samples > 50 && samples < 103);
	uint64_t counts[2];
	MUST(read(many, counts, sizeof counts));
	IS(counts[1] > 300 && counts[1] <= counts[0] - samples);
	touch_pages(1);
	T(next(&small, record, sizeof record));
	IS(record[2] > 300);
	/* Nonsense in the head and the tail. */
	small.page->data_tail = UINT64_MAX;
	touch_pages(10);
	small.page->data_tail = 12345;
	small.page->data_head = 77777777;
	touch_pages(10);
	munmap(small.page, 2 * PAGE);
	touch_pages(10);
	close(many);
	close(fd);
	munmap(ring.page, 5 * PAGE);
}

static void of_time(const char *what, uint64_t config, int freq)
{
	struct perf_event_attr attr = software(config);
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
	attr.freq = freq != 0;
	attr.sample_freq = freq ? 100 : 10000000;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 16);
	uint64_t record[64], before = 0;
	int samples = 0, in_order = 1, tries = 0;
	/* a busy host takes time away from the guest, and samples with it */
	while (samples <= 10 && tries++ < 20) {
		spin_ms(400);
		while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE) {
			samples++;
			in_order &= record[3] > before;
			before = record[3];
		}
	}
	printf("%s: some %d, not too many %d, in order %d\n", what, samples > 10, samples < 200 * tries, in_order);
	close(fd);
	munmap(ring.page, 17 * PAGE);
}

static volatile int stop;

static void *unmapper(void *unused)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
	while (!stop) {
		int fd = must_open(&attr, getpid(), -1, -1, 0);
		struct ring ring = map(fd, 1);
		sched_yield();
		munmap(ring.page, 2 * PAGE);
		sched_yield();
		close(fd);
	}
	return unused;
}

static void going(void)
{
	SAY("-- buffers that go");
	pthread_t thread;
	pthread_create(&thread, NULL, unmapper, NULL);
	for (int i = 0; i < 200; i++)
		touch_pages(20);
	stop = 1;
	pthread_join(thread, NULL);
	SAY("over");
}

int main(void)
{
	mapping();
	life();
	faults();
	SAY("-- time");
	of_time("task clock", PERF_COUNT_SW_TASK_CLOCK, 0);
	of_time("cpu clock", PERF_COUNT_SW_CPU_CLOCK, 0);
	of_time("cpu clock by frequency", PERF_COUNT_SW_CPU_CLOCK, 1);
	going();
	return 0;
}
