/*
 * perf_attack: as many events as there are descriptors, storms of forks and threads that inherit them, descriptors that are
 * closed and read from other threads meanwhile, tasks that are killed, programs that may not be watched.
 */
#include "perf.h"
#include <pthread.h>
#include <sys/resource.h>

static void many(void)
{
	SAY("-- many");
	struct rlimit limit = {4096, 4096};
	setrlimit(RLIMIT_NOFILE, &limit);
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.inherit = 1;
	static int fds[4096];
	int opened = 0;
	for (int fd; (fd = perf(&attr, 0, -1, -1, 0)) >= 0;)
		fds[opened++] = fd;
	IS(errno == EMFILE && opened > 4000);
	touch_pages(3);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		touch_pages(3);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	IS(count_of(fds[0]) >= 6 && count_of(fds[opened - 1]) >= 6);
	while (opened > 0)
		close(fds[--opened]);
}

static void storm(void)
{
	SAY("-- a storm");
	struct perf_event_attr attr = software(PERF_COUNT_SW_TASK_CLOCK);
	attr.inherit = 1;
	int leader = must_open(&attr, 0, -1, -1, 0);
	attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	int member = must_open(&attr, 0, -1, leader, 0);
	for (int round = 0; round < 20; round++) {
		pid_t pids[8];
		for (int i = 0; i < 8; i++) {
			pids[i] = (pid_t)MUST(fork());
			if (pids[i] == 0) {
				if (fork() == 0)
					_exit(0);
				touch_pages(2);
				pause();
			}
		}
		uint64_t sum = 0;
		for (int i = 0; i < 8; i++) {
			sum += count_of(leader) + count_of(member);
			kill(pids[i], SIGKILL);
			ioctl(leader, i % 2 ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
		}
		if (sum == 0)
			SAY("nothing counted");
		while (wait(NULL) > 0)
			;
	}
	close(leader);
	IS(count_of(member) > 0);
	close(member);
}

static volatile int shared_fd = -1, stop;

static void *reader(void *unused)
{
	(void)unused;
	uint64_t value[32];
	while (!stop) {
		read(shared_fd, value, sizeof value);
		ioctl(shared_fd, PERF_EVENT_IOC_RESET, 0);
		ioctl(shared_fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
		ioctl(shared_fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	return NULL;
}

static void *nothing(void *unused)
{
	(void)unused;
	return NULL;
}

static void races(void)
{
	SAY("-- closed from elsewhere");
	pthread_t threads[2];
	stop = 0;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	for (int round = 0; round < 300; round++) {
		struct perf_event_attr attr = software(round % 12);
		attr.inherit = 1;
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
		int fd = must_open(&attr, 0, round % 3 ? -1 : 0, -1, 0);
		int member = perf(&attr, 0, round % 3 ? -1 : 0, fd, 0);
		shared_fd = fd;
		pthread_t other;
		pthread_create(&other, NULL, nothing, NULL);
		sched_yield();
		close(fd);
		close(member);
		pthread_join(other, NULL);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	SAY("over");
}

static void ending(void)
{
	SAY("-- of those who end meanwhile");
	int failed = 0;
	for (int round = 0; round < 200; round++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0)
			_exit(0);
		struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
		attr.inherit = 1;
		int fd = perf(&attr, pid, -1, -1, 0);
		if (fd < 0)
			failed += errno != ESRCH;
		else
			count_of(fd);
		waitpid(pid, NULL, 0);
		if (fd >= 0) {
			count_of(fd);
			close(fd);
		}
	}
	IS(failed == 0);
}

static void guarded(void)
{
	SAY("-- a program that may not be watched");
	int go[2];
	MUST(pipe(go));
	/* It can be executed, and not be read. */
	int in = (int)MUST(open("/proc/self/exe", O_RDONLY)), out = (int)MUST(open("/tmp/guarded", O_CREAT | O_WRONLY, 0711));
	static char bytes[65536];
	for (ssize_t got; (got = read(in, bytes, sizeof bytes)) > 0;)
		MUST(write(out, bytes, (size_t)got));
	close(in);
	close(out);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(setgid(1000));
		MUST(setuid(1000));
		char byte;
		MUST(read(go[0], &byte, 1));
		execl("/tmp/guarded", "perf_attack", "touch", NULL);
		_exit(1);
	}
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	int fd = must_open(&attr, pid, -1, -1, 0);
	usleep(10000);
	uint64_t before = count_of(fd);
	MUST(write(go[1], "x", 1));
	waitpid(pid, NULL, 0);
	IS(count_of(fd) < before + 500);
	close(fd);
	close(go[0]);
	close(go[1]);
	unlink("/tmp/guarded");
}

int main(int argc, char **argv UNUSED)
{
	if (argc > 1) {
		touch_pages(700);
		return 0;
	}
	setbuf(stdout, NULL);
	guarded();
	storm();
	races();
	ending();
	many();
	return 0;
}
