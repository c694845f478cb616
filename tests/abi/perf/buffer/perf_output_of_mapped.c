/*
 * The records of an event that is mapped cannot be led elsewhere: EINVAL (perf_event_set_output: "Can't redirect output if we've got
 * an active mmap()").
 */
#include "../perf.h"

int main(void)
{
	struct perf_event_attr attr = every_fault();
	int one = must_open(&attr, 0, -1, -1, 0), two = must_open(&attr, 0, -1, -1, 0);
	struct ring first = map(one, 2), second = map(two, 2);
	T(ioctl(one, PERF_EVENT_IOC_SET_OUTPUT, two));
	T(ioctl(one, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	T(ioctl(one, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(4);
	T(ioctl(one, PERF_EVENT_IOC_DISABLE, 0));
	IS(first.page->data_head != 0);
	IS(second.page->data_head == 0);
	return 0;
}
