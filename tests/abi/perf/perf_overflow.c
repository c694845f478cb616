/*
 * perf_overflow: counts in samples, alone and of a group; PERF_EVENT_IOC_REFRESH, which lets so many samples be taken; a period that is
 * changed.
 */
#include "perf.h"

static uint64_t record[512];

static int samples(struct ring *ring)
{
	int number = 0;
	for (unsigned type; (type = next(ring, record, sizeof record));)
		number += type == PERF_RECORD_SAMPLE;
	return number;
}

static void alone(void)
{
	SAY("-- the count of an event");
	struct perf_event_attr attr = every_fault();
	attr.sample_type = PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_RAW;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | PERF_FORMAT_LOST;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 8);
	uint64_t id;
	MUST(ioctl(fd, PERF_EVENT_IOC_ID, &id));
	touch_pages(1);
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(20);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	uint64_t expected = 1;
	int good = 1, number = 0;
	while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE) {
		struct perf_event_header *head = (void *)record;
		number++;
		good &= head->size == 8 + 8 + 5 * 8 + 8 && record[1] == 1 && record[2] == expected && record[4] <= record[3] && record[5] == id &&
			record[6] == 0;
		expected = record[2] + 1;
	}
	IS(number >= 20);
	IS(good);
	IS(count_of(fd) == (uint64_t)number);
	munmap(ring.page, 9 * PAGE);
	close(fd);
}

static void groups(void)
{
	SAY("-- the counts of a group");
	struct perf_event_attr attr = every_fault();
	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
	int leader = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(leader, 8);
	struct perf_event_attr other = software(PERF_COUNT_SW_TASK_CLOCK);
	other.read_format = attr.read_format;
	int clock = must_open(&other, 0, -1, leader, 0);
	other = software(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	other.read_format = attr.read_format;
	other.exclude_kernel = 1;
	int minor = must_open(&other, 0, -1, leader, 0);
	uint64_t ids[3];
	int fds[3] = {leader, clock, minor};
	for (int i = 0; i < 3; i++)
		MUST(ioctl(fds[i], PERF_EVENT_IOC_ID, &ids[i]));
	MUST(ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	touch_pages(20);
	MUST(ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	int good = 1, number = 0;
	uint64_t clock_before = 0;
	while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE) {
		struct perf_event_header *head = (void *)record;
		number++;
		good &= head->size == 8 + 8 + 8 + 3 * 16 && record[1] == 3 && record[3] == (uint64_t)number;
		good &= record[4] == ids[0] && record[6] == ids[1] && record[8] == ids[2];
		good &= record[5] >= clock_before && record[7] + 1 >= record[3] && record[7] <= record[3];
		clock_before = record[5];
	}
	IS(number >= 20);
	IS(good);
	close(clock);
	MUST(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(5);
	MUST(ioctl(leader, PERF_EVENT_IOC_DISABLE, 0));
	next(&ring, record, sizeof record);
	printf("one less: %d\n", (int)record[1]);
	munmap(ring.page, 9 * PAGE);
	close(minor);
	close(leader);
}

static void inherited(void)
{
	SAY("-- and children");
	struct perf_event_attr attr = every_fault();
	attr.inherit = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	try_open("without the task", &attr, 0, -1, -1, 0);
	attr.sample_type |= PERF_SAMPLE_TID;
	attr.disabled = 0;
	int fd = must_open(&attr, 0, 0, -1, 0);
	close(fd);
}

static void refreshed(void)
{
	SAY("-- REFRESH");
	struct perf_event_attr attr = every_fault();
	attr.sample_type = PERF_SAMPLE_IP;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 8);
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 3));
	touch_pages(20);
	printf("%d samples, %lu counted\n", samples(&ring), (unsigned long)count_of(fd));
	touch_pages(20);
	printf("%d samples, %lu counted\n", samples(&ring), (unsigned long)count_of(fd));
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	touch_pages(20);
	printf("%d samples more, %lu counted\n", samples(&ring), (unsigned long)count_of(fd));
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 0));
	touch_pages(10);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	IS(samples(&ring) >= 10);
	munmap(ring.page, 9 * PAGE);
	close(fd);
	attr.sample_period = 0;
	fd = must_open(&attr, 0, -1, -1, 0);
	T(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	close(fd);
	attr = every_fault();
	attr.inherit = 1;
	fd = must_open(&attr, 0, 0, -1, 0);
	T(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	close(fd);
}

static void periods(void)
{
	SAY("-- PERIOD");
	struct perf_event_attr attr = every_fault();
	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_IP;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 8);
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(100);
	printf("%d samples\n", samples(&ring));
	uint64_t period = 10;
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	touch_pages(100);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	int number = samples(&ring);
	/* At once, and then once more after the old period. */
	printf("%d sample\n", number);
	period = 0;
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	period = 1ull << 63;
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, KERNEL_ADDRESS));
	munmap(ring.page, 9 * PAGE);
	close(fd);

	/* Who wants to know for how many a sample stands gets one for each. */
	attr = every_fault();
	attr.sample_period = 1000000;
	attr.sample_type = PERF_SAMPLE_PERIOD;
	fd = must_open(&attr, 0, -1, -1, 0);
	ring = map(fd, 8);
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(20);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	number = 0;
	while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE && record[1] == 1)
		number++;
	IS(number >= 20);
	munmap(ring.page, 9 * PAGE);
	close(fd);

	attr = software(PERF_COUNT_SW_TASK_CLOCK);
	attr.sample_period = 1000000000;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = must_open(&attr, 0, -1, -1, 0);
	ring = map(fd, 8);
	spin_ms(20);
	printf("a slow clock: %d samples\n", samples(&ring));
	period = 1000000;
	MUST(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	/* a busy host takes time away from the guest, and samples with it */
	int taken = 0, tries = 0;
	while (taken < 20 && tries++ < 50) {
		spin_ms(100);
		taken += samples(&ring);
	}
	printf("a faster one: %s\n", taken >= 20 && taken <= 200 * tries ? "many" : "not what was asked for");
	munmap(ring.page, 9 * PAGE);
	close(fd);

	attr.freq = 1;
	attr.sample_freq = 10;
	fd = must_open(&attr, 0, -1, -1, 0);
	period = 1000;
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	period = 1000000000;
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	close(fd);
	attr = software(PERF_COUNT_SW_DUMMY);
	fd = must_open(&attr, 0, -1, -1, 0);
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	close(fd);
}

int main(void)
{
	alone();
	groups();
	inherited();
	refreshed();
	periods();
	return 0;
}
