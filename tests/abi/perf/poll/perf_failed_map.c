/*
 * An mmap that is refused changes nothing: an event whose records are led into another's buffer (SET_OUTPUT) goes on writing there.
 */
#include "../perf.h"

static void records(struct ring *ring, int fd, const char *after)
{
	uint64_t head = ring->page->data_head;
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(3);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	SAY("%s: %llu bytes", after, (unsigned long long)(ring->page->data_head - head));
}

int main(void)
{
	struct perf_event_attr attr = every_fault();
	attr.sample_type = PERF_SAMPLE_ADDR;
	int one = must_open(&attr, 0, -1, -1, 0), two = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(one, 2);
	MUST(ioctl(two, PERF_EVENT_IOC_SET_OUTPUT, one));
	records(&ring, two, "led");
	OK(mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, two, 0));
	records(&ring, two, "after a mapping of a wrong size");
	T(ioctl(two, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	MUST(ioctl(two, PERF_EVENT_IOC_SET_OUTPUT, one));
	OK(mmap(ring.page, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, two, 0));
	records(&ring, two, "after one where another is");
	return 0;
}
