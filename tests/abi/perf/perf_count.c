/*
 * perf_count: events that are counted: of a task, of its children, of a CPU, in groups; on and off; what read(2) gives;
 * what ioctl(2) does.
 */
#include "perf.h"
#include <poll.h>
#include <pthread.h>

static void formats(void)
{
	SAY("-- formats");
	for (unsigned format = 0; format < 32; format++) {
		struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
		attr.read_format = format;
		int leader = must_open(&attr, 0, -1, -1, 0);
		int member = must_open(&attr, 0, -1, leader, 0);
		uint64_t value[16];
		ssize_t least = 0;
		for (size_t len = 0; len <= sizeof value && least <= 0; len += 4) {
			least = read(leader, value, len);
			if (least < 0 && errno != ENOSPC)
				T(errno);
		}
		ssize_t of_member = read(member, value, sizeof value);
		printf("format %u: %zd of the leader, %zd of the member\n", format, least, of_member);
		close(member);
		of_member = read(leader, value, sizeof value);
		printf("  alone %zd\n", of_member);
		close(leader);
	}
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	int leader = must_open(&attr, 0, -1, -1, 0);
	int member = must_open(&attr, 0, -1, leader, 0);
	uint64_t ids[2] = {0}, value[7];
	T(ioctl(leader, PERF_EVENT_IOC_ID, &ids[0]));
	T(ioctl(member, PERF_EVENT_IOC_ID, &ids[1]));
	IS(ids[0] != ids[1]);
	touch_pages(100);
	T(read(leader, value, sizeof value));
	IS(value[0] == 2);
	IS(value[1] > 0 && value[1] == value[2]);
	IS(value[4] == ids[0] && value[6] == ids[1]);
	IS(value[3] >= 100 && value[3] < 150);
	IS(value[5] >= 100 && value[5] <= value[3]);
	T(read(leader, NULL, sizeof value));
	T(ioctl(leader, PERF_EVENT_IOC_ID, NULL));
	close(member);
	close(leader);
}

static void on_and_off(void)
{
	SAY("-- on and off");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	attr.disabled = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	int fd = must_open(&attr, 0, -1, -1, 0);
	uint64_t value[3], later[3];
	touch_pages(10);
	MUST(read(fd, value, sizeof value));
	IS(value[0] == 0 && value[1] == 0 && value[2] == 0);
	T(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(100);
	T(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	MUST(read(fd, value, sizeof value));
	IS(value[0] >= 100 && value[0] < 120);
	IS(value[1] > 0 && value[1] == value[2]);
	touch_pages(100);
	MUST(read(fd, later, sizeof later));
	IS(memcmp(value, later, sizeof value) == 0);
	T(ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	MUST(read(fd, later, sizeof later));
	IS(later[0] == 0 && later[1] == value[1]);
	T(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	T(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(50);
	MUST(read(fd, later, sizeof later));
	IS(later[0] >= 50 && later[0] < 70 && later[1] > value[1]);
	T(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	uint64_t period = 5;
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	T(ioctl(fd, PERF_EVENT_IOC_PERIOD, NULL));
	T(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	T(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, fd));
	T(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, 0));
	T(ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, 999));
	T(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "a"));
	T(ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	T(ioctl(fd, 0x2440, 0));
	T(ioctl(fd, FIONREAD, &period));
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	T(poll(&poller, 1, 0));
	IS(poller.revents == POLLHUP);
	close(fd);
}

static void kinds(void)
{
	SAY("-- kinds");
	struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
	int task_clock = must_open(&attr, 0, -1, -1, 0);
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	int cpu_clock = must_open(&attr, 0, -1, -1, 0);
	attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	int switches = must_open(&attr, 0, -1, -1, 0);
	attr.exclude_kernel = 1;
	int user_switches = must_open(&attr, 0, -1, -1, 0);
	attr = software(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	int major = must_open(&attr, 0, -1, -1, 0);
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	attr.exclude_user = 1;
	int kernel_faults = must_open(&attr, 0, -1, -1, 0);
	attr.config = PERF_COUNT_SW_CPU_MIGRATIONS;
	int migrations = must_open(&attr, 0, -1, -1, 0);
	attr.config = PERF_COUNT_SW_ALIGNMENT_FAULTS;
	int alignment = must_open(&attr, 0, -1, -1, 0);
	for (int i = 0; i < 10; i++)
		usleep(2000);
	spin_ms(20);
	touch_pages(50);
	IS(count_of(task_clock) >= 20000000 && count_of(task_clock) < 20000000000);
	IS(count_of(cpu_clock) >= 20000000 && count_of(cpu_clock) < 20000000000);
	IS(count_of(switches) >= 10);
	T(count_of(user_switches));
	T(count_of(major));
	T(count_of(kernel_faults));
	IS(count_of(migrations) < 10);
	T(count_of(alignment));
	char *fresh = mmap(NULL, 20 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(fresh, 20 * PAGE, MADV_NOHUGEPAGE);
	int zero = open("/dev/zero", O_RDONLY);
	for (int i = 0; i < 20; i++)
		MUST(read(zero, fresh + i * PAGE, 8));
	close(zero);
	IS(count_of(kernel_faults) >= 1);
	T(ioctl(task_clock, PERF_EVENT_IOC_RESET, 0));
	IS(count_of(task_clock) < 10000000000);
	T(ioctl(task_clock, PERF_EVENT_IOC_DISABLE, 0));
	uint64_t stays = count_of(task_clock);
	spin_ms(2);
	IS(count_of(task_clock) == stays);
	int all[] = {task_clock, cpu_clock, switches, user_switches, major, kernel_faults, migrations, alignment};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		close(all[i]);
}

static void *thread(void *unused)
{
	(void)unused;
	touch_pages(100);
	return NULL;
}

static void children(void)
{
	SAY("-- children");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	int own = must_open(&attr, 0, -1, -1, 0);
	attr.inherit = 1;
	int both = must_open(&attr, 0, -1, -1, 0);
	attr.inherit_thread = 1;
	int threads = must_open(&attr, 0, -1, -1, 0);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		touch_pages(1000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	IS(count_of(own) < 500);
	IS(count_of(both) >= 1000);
	IS(count_of(threads) < 500);
	uint64_t before = count_of(threads), alone = count_of(own);
	pthread_t other;
	pthread_create(&other, NULL, thread, NULL);
	pthread_join(other, NULL);
	IS(count_of(threads) >= before + 100);
	IS(count_of(own) < alone + 100);
	SAY("grandchildren");
	before = count_of(both);
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		if (fork() == 0) {
			touch_pages(1000);
			_exit(0);
		}
		wait(NULL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	IS(count_of(both) >= before + 1000);
	T(ioctl(both, PERF_EVENT_IOC_RESET, 0));
	IS(count_of(both) >= 1000);
	SAY("a child that lives");
	int go[2], done[2];
	MUST(pipe(go));
	MUST(pipe(done));
	before = count_of(both);
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char byte;
		touch_pages(200);
		MUST(write(done[1], "x", 1));
		MUST(read(go[0], &byte, 1));
		touch_pages(200);
		_exit(0);
	}
	char byte;
	MUST(read(done[0], &byte, 1));
	IS(count_of(both) >= before + 200);
	T(ioctl(both, PERF_EVENT_IOC_DISABLE, 0));
	before = count_of(both);
	MUST(write(go[1], "x", 1));
	waitpid(pid, NULL, 0);
	IS(count_of(both) == before);
	close(own);
	close(both);
	close(threads);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
}

static void others(void)
{
	SAY("-- others");
	int go[2];
	MUST(pipe(go));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char byte;
		MUST(read(go[0], &byte, 1));
		touch_pages(300);
		_exit(0);
	}
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	int fd = must_open(&attr, pid, -1, -1, 0);
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	int clock = must_open(&attr, pid, -1, -1, 0);
	MUST(write(go[1], "x", 1));
	waitpid(pid, NULL, 0);
	uint64_t value[2], later[2];
	MUST(read(fd, value, sizeof value));
	IS(value[0] >= 300 && value[0] < 400 && value[1] > 0);
	MUST(read(clock, value, sizeof value));
	IS(value[0] > 0 && value[1] > 0);
	spin_ms(2);
	MUST(read(clock, later, sizeof later));
	IS(memcmp(value, later, sizeof value) == 0);
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	T(poll(&poller, 1, 0));
	IS(poller.revents == POLLHUP);
	T(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	T(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	close(fd);
	close(clock);
	close(go[0]);
	close(go[1]);
	SAY("a whole cpu");
	attr = software(PERF_COUNT_SW_CPU_CLOCK);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = must_open(&attr, -1, 0, -1, 0);
	usleep(20000);
	uint64_t wide[3];
	MUST(read(fd, wide, sizeof wide));
	IS(wide[0] >= 20000000 && wide[1] >= 20000000 && wide[1] == wide[2]);
	close(fd);
}

static void groups(void)
{
	SAY("-- a group that is off");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	attr.disabled = 1;
	int leader = must_open(&attr, 0, -1, -1, 0);
	attr.disabled = 0;
	int member = must_open(&attr, 0, -1, leader, 0);
	uint64_t value[2];
	touch_pages(100);
	MUST(read(member, value, sizeof value));
	IS(value[0] == 0 && value[1] == 0);
	T(ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(100);
	MUST(read(member, value, sizeof value));
	IS(value[0] >= 100 && value[0] < 120 && value[1] > 0);
	T(ioctl(member, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP));
	IS(count_of(leader) < 10);
	T(ioctl(member, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	uint64_t before = count_of(leader);
	touch_pages(100);
	IS(count_of(leader) == before);
	T(ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	touch_pages(100);
	IS(count_of(member) >= 100 && count_of(leader) >= 100);
	close(leader);
	before = count_of(member);
	touch_pages(100);
	IS(count_of(member) >= before + 100);
	close(member);
}

static void exec_turns_on(void)
{
	SAY("-- exec");
	int go[2];
	MUST(pipe(go));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char byte;
		MUST(read(go[0], &byte, 1));
		execl("/proc/self/exe", "perf_count", "touch", NULL);
		_exit(1);
	}
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.disabled = 1;
	attr.enable_on_exec = 1;
	int fd = must_open(&attr, pid, -1, -1, 0);
	attr.disabled = 0;
	attr.enable_on_exec = 0;
	attr.remove_on_exec = 1;
	int removed = must_open(&attr, pid, -1, -1, 0);
	usleep(10000);
	T(count_of(fd));
	MUST(write(go[1], "x", 1));
	waitpid(pid, NULL, 0);
	IS(count_of(fd) >= 700);
	IS(count_of(removed) < 500);
	close(fd);
	close(removed);
	close(go[0]);
	close(go[1]);
}

int main(int argc, char **argv UNUSED)
{
	if (argc > 1) {
		touch_pages(700);
		return 0;
	}
	formats();
	on_and_off();
	kinds();
	children();
	others();
	groups();
	exec_turns_on();
	return 0;
}
