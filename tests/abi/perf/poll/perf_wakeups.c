/*
 * When poll says POLLIN: each time half of the buffer was written, also without attr.watermark; as often as the event that is
 * sampled wants (wakeup_events), whosever buffer it is; and a watermark is counted from the last watermark, not from where records ended then.
 */
#include "../perf.h"
#include <poll.h>

static int ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	poll(&p, 1, 0);
	return p.revents;
}

int main(void)
{
	struct perf_event_attr attr = every_fault();
	attr.sample_type = PERF_SAMPLE_ADDR;
	int fd = must_open(&attr, 0, -1, -1, 0);
	map(fd, 1);
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(100);
	SAY("1,600 of 4,096 bytes: %#x", ready(fd));
	touch_pages(60);
	SAY("2,560 of 4,096 bytes: %#x", ready(fd));
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));

	int one = must_open(&attr, 0, -1, -1, 0);
	attr.wakeup_events = 2;
	int two = must_open(&attr, 0, -1, -1, 0);
	map(one, 8);
	MUST(ioctl(two, PERF_EVENT_IOC_SET_OUTPUT, one));
	MUST(ioctl(two, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(4);
	MUST(ioctl(two, PERF_EVENT_IOC_DISABLE, 0));
	SAY("two samples of who wants to hear of two: %#x", ready(one));

	attr.watermark = 1;
	attr.wakeup_watermark = 100;
	fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 4);
	char *at = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(at, 64 * PAGE, MADV_NOHUGEPAGE);
	unsigned long heads[40];
	int n = 0;
	ready(fd);
	for (int i = 0; i < 40; i++) {
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		((volatile char *)at)[i * PAGE] = 1;
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		if (ready(fd))
			heads[n++] = ring.page->data_head;
	}
	printf("watermark 100:");
	for (int i = 0; i < n; i++)
		printf(" %lu", heads[i]);
	puts("");
	return 0;
}
