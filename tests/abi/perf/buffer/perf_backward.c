/*
 * attr.write_backward: records are written from the end of the buffer downwards, so data_head goes down from 0 (perf record --overwrite).
 */
#include "../perf.h"

int main(void)
{
	struct perf_event_attr attr = every_fault();
	attr.write_backward = 1;
	attr.sample_type = PERF_SAMPLE_ADDR;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct perf_event_mmap_page *page = (void *)MUST(mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, fd, 0));
	T(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(2);
	T(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	IS((int64_t)page->data_head < 0);
	struct perf_event_header *last = (void *)((char *)page + PAGE + (page->data_head & (2 * PAGE - 1)));
	IS(last->type == PERF_RECORD_SAMPLE && last->size == 16);
	/* Both ways do not mix. */
	attr.write_backward = 0;
	int other = must_open(&attr, 0, -1, -1, 0);
	T(ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd));
	return 0;
}
