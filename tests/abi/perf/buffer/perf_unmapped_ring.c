/*
 * The buffer of an event goes with its last mapping: then poll says POLLHUP, there is nothing to pause, and nothing is kept.
 */
#include "../perf.h"
#include <poll.h>

static long kib(const char *name)
{
	const char *text = "";
	static char buf[8192];
	int fd = (int)MUST(open("/proc/meminfo", O_RDONLY));
	long n = read(fd, buf, sizeof buf - 1);
	close(fd);
	buf[n > 0 ? n : 0] = 0;
	text = strstr(buf, name);
	return text ? atol(text + strlen(name)) : -1;
}

int main(void)
{
	struct perf_event_attr attr = every_fault();
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 2);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	poll(&p, 1, 0);
	SAY("mapped: %#x", p.revents);
	T(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	MUST(munmap(ring.page, 3 * PAGE));
	poll(&p, 1, 0);
	SAY("unmapped: %#x", p.revents);
	T(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	long before = kib("MemFree:");
	for (int i = 0; i < 400; i++) {
		int other = must_open(&attr, 0, -1, -1, 0);
		ring = map(other, 128);
		MUST(munmap(ring.page, 129 * PAGE));
	}
	/* 400 times 516 KiB, memory that nobody's limit counts. */
	IS(before - kib("MemFree:") < 50000);
	return 0;
}
