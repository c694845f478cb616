/*
 * perf.h: what the programs about perf_event_open(2) share.
 */
#ifndef ALEA_ABI_PERF_H
#define ALEA_ABI_PERF_H

#include "../check.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>

static UNUSED int perf(const struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
}

/* A software event that counts nothing outside of user mode unless changed. */
static UNUSED struct perf_event_attr software(uint64_t config)
{
	struct perf_event_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = config;
	return attr;
}

/* Each fault of the program's is a sample, once it is switched on. */
static UNUSED struct perf_event_attr every_fault(void)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	return attr;
}

/* The number of a tracepoint, as "sched/sched_switch", where the program has mounted tracefs. */
static UNUSED int id_of(const char *name)
{
	char path[128], text[32] = {0};
	snprintf(path, sizeof path, "/tmp/tracing/events/%s/id", name);
	int fd = (int)MUST(open(path, O_RDONLY));
	MUST(read(fd, text, sizeof text - 1));
	close(fd);
	return atoi(text);
}

/* An event of it, off at first. */
static UNUSED struct perf_event_attr tracepoint(const char *name)
{
	struct perf_event_attr attr = software((uint64_t)id_of(name));
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.disabled = 1;
	return attr;
}

/* Opens it, says what came of it, and closes it. */
static UNUSED void try_open(const char *what, const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
			    unsigned long flags)
{
	errno = 0;
	int fd = perf(attr, pid, cpu, group, flags);
	printf("%s: %s\n", what, fd < 0 ? err_name(errno) : "ok");
	if (fd >= 0)
		close(fd);
}

/* Opens it, or ends the program. */
static UNUSED int must_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	return (int)MUST(perf(attr, pid, cpu, group, flags));
}

static UNUSED uint64_t count_of(int fd)
{
	uint64_t value[8] = {0};
	MUST(read(fd, value, sizeof value));
	return value[0];
}

static UNUSED void touch_pages(int pages)
{
	char *at = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(at, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < pages; i++)
		((volatile char *)at)[i * PAGE] = 1;
	munmap(at, (size_t)pages * PAGE);
}

static UNUSED void spin_ms(int ms)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	long end = now.tv_sec * 1000000000 + now.tv_nsec + ms * 1000000L;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec * 1000000000 + now.tv_nsec < end);
}

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	char *data;
	uint64_t size;
};

static UNUSED struct ring map(int fd, int pages)
{
	struct ring ring = {.fd = fd, .size = (uint64_t)pages * PAGE};
	ring.page = (void *)MUST(mmap(NULL, (size_t)(pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	ring.data = (char *)ring.page + PAGE;
	return ring;
}

/* The next record, copied out; its type, or 0. */
static UNUSED unsigned next(struct ring *ring, void *to, size_t room)
{
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE), tail = ring->page->data_tail;
	if (tail == head)
		return 0;
	struct perf_event_header *at = to;
	for (size_t i = 0; i < 8; i++)
		((char *)to)[i] = ring->data[(tail + i) % ring->size];
	size_t size = at->size < room ? at->size : room;
	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ring->data[(tail + i) % ring->size];
	__atomic_store_n(&ring->page->data_tail, tail + at->size, __ATOMIC_RELEASE);
	return at->type;
}

#endif
