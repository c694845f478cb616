/*
 * A group may be so large that what is read of it takes 16 KiB: E2BIG after that, since it would not fit into a record. And a sample
 * of one that large, with a call chain behind it, is whole.
 */
#include "../perf.h"
#include <sys/resource.h>

int main(void)
{
	struct rlimit most = { 4096, 4096 };
	MUST(setrlimit(RLIMIT_NOFILE, &most));
	struct perf_event_attr attr = every_fault();
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN;
	int leader = must_open(&attr, 0, -1, -1, 0), n = 1;
	struct ring ring = map(leader, 16);
	struct perf_event_attr member = software(PERF_COUNT_SW_DUMMY);
	member.exclude_kernel = 1;
	errno = 0;
	while (n < 3000 && perf(&member, 0, -1, leader, 0) >= 0)
		n++;
	SAY("%d events, then %s", n, err_name(errno));
	MUST(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(2);
	MUST(ioctl(leader, PERF_EVENT_IOC_DISABLE, 0));
	struct perf_event_header *first = (void *)((char *)ring.page + PAGE);
	uint64_t *words = (void *)(first + 1);
	IS(first->type == PERF_RECORD_SAMPLE && first->size > 16000);
	SAY("of %llu", (unsigned long long)words[0]);
	return 0;
}
