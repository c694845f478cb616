/*
 * data_tail counts modulo the size of the buffer (CIRC_SPACE): who writes the place in the buffer, and not how far it has read in all,
 * reads on and on.
 */
#include "../perf.h"

int main(void)
{
	struct perf_event_attr attr = every_fault();
	attr.sample_type = PERF_SAMPLE_ADDR;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 1);
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (int i = 0; i < 20; i++) {
		touch_pages(60);
		ring.page->data_tail = ring.page->data_head % ring.size;
	}
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	IS(ring.page->data_head >= 20 * 60 * 16);
	return 0;
}
