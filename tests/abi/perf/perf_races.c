/*
 * perf_races: buffers that processes share or lose: over fork, mapped twice at once, read while others are unmapped; commands on
 * events whose task has gone; events that end on one CPU while they count on another.
 */
#include "perf.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

static int touches(volatile char *at)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(*at);
	int status = reap(pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : 0;
}

static void shared(void)
{
	SAY("-- shared");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.exclude_kernel = 1;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring one = map(fd, 4), two = map(fd, 4);
	SAY("of a child: %d", touches((char *)one.page));
	T(mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	T(mmap(NULL, 5 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
	T(mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, fd, PAGE) == MAP_FAILED);
	T(madvise(one.page, PAGE, MADV_DOFORK));
	T(madvise(one.page, PAGE, MADV_DODUMP));
	T(madvise(one.page, 5 * PAGE, MADV_DONTNEED));
	T(madvise(one.page, 5 * PAGE, MADV_REMOVE));
	T(madvise(one.page, 5 * PAGE, MADV_FREE));
	T(mlock(one.page, 5 * PAGE));
	touch_pages(20);
	(void)two.page->data_head;
	IS(one.page->data_head == two.page->data_head && one.page->data_head > 0);
	MUST(munmap(one.page, 5 * PAGE));
	uint64_t before = two.page->data_head;
	touch_pages(5);
	IS(two.page->data_head > before);
	close(fd);
	before = two.page->data_head;
	touch_pages(5);
	/* The mapping keeps it open. */
	IS(two.page->data_head > before);
	fd = (int)MUST(eventfd(0, 0));
	close(fd);
	MUST(munmap(two.page, 5 * PAGE));
}

static volatile int go, stop;

static void *maps(void *arg)
{
	while (!go)
		;
	return mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *(int *)arg, 0);
}

static void at_once(void)
{
	SAY("-- mapped at once");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	int right = 0, rounds = 200;
	attr.sample_period = 1;
	attr.exclude_kernel = 1;
	for (int round = 0; round < rounds; round++) {
		int fd = must_open(&attr, 0, -1, -1, 0);
		pthread_t threads[2];
		struct perf_event_mmap_page *pages_[2];
		go = 0;
		for (int n = 0; n < 2; n++)
			MUST(pthread_create(&threads[n], NULL, maps, &fd));
		go = 1;
		for (int n = 0; n < 2; n++)
			pthread_join(threads[n], (void **)&pages_[n]);
		touch_pages(4);
		for (int n = 0; n < 2; n++)
			(void)*(volatile __u64 *)&pages_[n]->data_head;
		right += pages_[0] != MAP_FAILED && pages_[1] != MAP_FAILED && pages_[0]->data_head == pages_[1]->data_head &&
			 pages_[0]->data_head > 0;
		munmap(pages_[0], 5 * PAGE);
		munmap(pages_[1], 5 * PAGE);
		close(fd);
	}
	SAY("%d of %d", right, rounds);
}

static void *comes_and_goes(void *arg)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	long rounds = 0;
	(void)arg;
	for (; rounds < 300; rounds++) {
		int fd = must_open(&attr, 0, -1, -1, 0);
		void *at = (void *)MUST(mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
		close(fd);
		MUST(munmap(at, 2 * PAGE));
	}
	return (void *)rounds;
}

/* The last mapping closes the event while another thread maps one. */
static void in_turn(void)
{
	SAY("-- mapped and unmapped");
	pthread_t thread;
	void *rounds;
	MUST(pthread_create(&thread, NULL, comes_and_goes, NULL));
	SAY("%ld", (long)comes_and_goes(NULL));
	pthread_join(thread, &rounds);
	SAY("%ld", (long)rounds);
}

static void gone(void)
{
	SAY("-- of who has gone");
	struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_attr other = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.inherit = other.inherit = 0;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST;
	other.read_format = attr.read_format;
	other.sample_period = 3;
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		for (;;)
			touch_pages(3);
	int fd = must_open(&attr, pid, -1, -1, 0), member = must_open(&other, pid, -1, fd, 0);
	struct ring ring = map(member, 1);
	struct pollfd p = { .fd = member, .events = POLLIN };
	while (count_of(fd) == 0)
		sched_yield();
	sleep_ms(50);
	kill(pid, SIGKILL);
	reap(pid);
	poll(&p, 1, 0);
	poll(&p, 1, 0);
	SAY("poll %#x", p.revents);
	uint64_t words[16], again[16], id;
	SAY("%zd", read(fd, words, sizeof words));
	sleep_ms(10);
	SAY("%zd", read(fd, again, sizeof again));
	IS(!memcmp(words, again, 64));
	SAY("members %d", (int)words[0]);
	T(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	T(ioctl(fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	T(ioctl(fd, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP));
	T(ioctl(member, PERF_EVENT_IOC_REFRESH, 1));
	T(ioctl(member, PERF_EVENT_IOC_PERIOD, &(uint64_t){ 7 }));
	T(ioctl(fd, PERF_EVENT_IOC_ID, &id));
	T(ioctl(member, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	T(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, member));
	T(ioctl(member, PERF_EVENT_IOC_SET_OUTPUT, -1));
	T(read(fd, again, 8));
	SAY("%zd", read(fd, again, sizeof again));
	SAY("counts %d %d", again[2] != 0, again[5] != 0);
	int late = perf(&other, pid, -1, fd, 0);
	SAY("%s", late < 0 ? err_name(errno) : "ok");
	late = perf(&other, 0, -1, fd, 0);
	SAY("%s", late < 0 ? err_name(errno) : "ok");
	close(fd);
	/* The group has lost its leader. */
	read(member, again, sizeof again);
	SAY("members %d", (int)again[0]);
	munmap(ring.page, 2 * PAGE);
	close(member);
}

static void *works(void *arg)
{
	(void)arg;
	while (!stop)
		touch_pages(2);
	return NULL;
}

static void *reads(void *arg)
{
	uint64_t words[32];
	while (!stop) {
		read(*(int *)arg, words, sizeof words);
		ioctl(*(int *)arg, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
		ioctl(*(int *)arg, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	}
	return NULL;
}

static void ends(void)
{
	SAY("-- ended while they count");
	struct perf_event_attr attr = software(PERF_COUNT_SW_CPU_CLOCK);
	attr.sample_freq = 5000;
	attr.freq = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST;
	attr.mmap = attr.comm = attr.task = attr.context_switch = attr.sample_id_all = attr.mmap2 = 1;
	struct perf_event_attr member = software(PERF_COUNT_SW_PAGE_FAULTS);
	member.sample_period = 1;
	member.sample_type = attr.sample_type;
	member.read_format = attr.read_format;
	pthread_t threads[3];
	stop = 0;
	static int fds[2];
	fds[0] = must_open(&attr, 0, -1, -1, 0);
	MUST(pthread_create(&threads[0], NULL, works, NULL));
	MUST(pthread_create(&threads[1], NULL, works, NULL));
	MUST(pthread_create(&threads[2], NULL, reads, &fds[0]));
	int opened = 0;
	DIR *dir = opendir("/proc/self/task");
	pid_t tids[4];
	int known = 0;
	for (struct dirent *d; (d = readdir(dir)) && known < 4;)
		if (d->d_name[0] != '.')
			tids[known++] = atoi(d->d_name);
	closedir(dir);
	for (int round = 0; round < 150; round++) {
		int leader = perf(&attr, tids[1 + round % 3], round & 4 ? round & 1 : -1, -1, 0);
		if (leader < 0)
			continue;
		int second = perf(&member, tids[1 + round % 3], round & 4 ? round & 1 : -1, leader, PERF_FLAG_FD_OUTPUT);
		struct ring ring = map(leader, 1 << (round % 4));
		if (second >= 0)
			ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, leader);
		opened++;
		if (round & 8)
			sched_yield();
		if (round & 1) {
			munmap(ring.page, (size_t)((1 << (round % 4)) + 1) * PAGE);
			close(leader);
			close(second);
		} else {
			close(leader);
			close(second);
			munmap(ring.page, (size_t)((1 << (round % 4)) + 1) * PAGE);
		}
	}
	stop = 1;
	for (int n = 0; n < 3; n++)
		pthread_join(threads[n], NULL);
	close(fds[0]);
	SAY("some: %d", opened > 60);
}

static void generations(void)
{
	SAY("-- generations");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.inherit = 1;
	attr.exclude_kernel = 1;
	attr.read_format = PERF_FORMAT_GROUP;
	struct perf_event_attr member = attr;
	int fd = must_open(&attr, 0, -1, -1, 0), others[20];
	for (int n = 0; n < 20; n++)
		others[n] = must_open(&member, 0, -1, fd, 0);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		for (int depth = 0; depth < 40; depth++) {
			pid_t next_ = fork();
			if (next_ != 0) {
				pid_t victim = fork();
				if (victim == 0)
					for (;;)
						touch_pages(1);
				kill(victim, SIGKILL);
				reap(victim);
				_exit(reap(next_) != 0);
			}
			touch_pages(2);
		}
		touch_pages(50);
		_exit(0);
	}
	sleep_ms(1);
	close(others[7]);
	close(others[0]);
	reap(pid);
	uint64_t words[32];
	SAY("%zd", read(fd, words, sizeof words));
	int same = 0;
	for (unsigned n = 1; n <= words[0]; n++)
		same += words[n] >= 130 && words[n] < 100000;
	SAY("%d of %d", same, (int)words[0]);
	close(fd);
	for (int n = 1; n < 20; n++)
		if (n != 7)
			close(others[n]);
}

int main(void)
{
	shared();
	gone();
	generations();
	ends();
	at_once();
	in_turn();
	return 0;
}
