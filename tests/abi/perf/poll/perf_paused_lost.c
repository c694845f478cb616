/*
 * What happens while a buffer is paused is lost, and counted so (PERF_FORMAT_LOST); the next record is preceded by PERF_RECORD_LOST.
 */
#include "../perf.h"

int main(void)
{
	struct perf_event_attr attr = every_fault();
	attr.sample_type = PERF_SAMPLE_ADDR;
	attr.read_format = PERF_FORMAT_LOST;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 1);
	MUST(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(5);
	MUST(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	touch_pages(1);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	uint64_t record[32];
	for (unsigned type; (type = next(&ring, record, sizeof record)) != 0;)
		SAY("type %u, lost %llu", type, type == PERF_RECORD_LOST ? (unsigned long long)record[2] : 0ULL);
	uint64_t value[2] = {0};
	MUST(read(fd, value, sizeof value));
	SAY("%llu counted, %llu lost", (unsigned long long)value[0], (unsigned long long)value[1]);
	return 0;
}
