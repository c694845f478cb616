/*
 * Who waits in poll for the records of an event hears that its task has ended: POLLHUP, and nothing else (perf_event_exit_event
 * wakes; is_event_hup comes first).
 */
#include "../perf.h"
#include <poll.h>
#include <time.h>

static long ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(void)
{
	int gate[2];
	char c = 0;
	MUST(pipe(gate));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		read(gate[0], &c, 1);
		usleep(200000);
		_exit(0);
	}
	struct perf_event_attr attr = every_fault();
	attr.sample_type = PERF_SAMPLE_ADDR;
	int fd = must_open(&attr, pid, -1, -1, 0);
	map(fd, 2);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	write(gate[1], "x", 1);
	long from = ms();
	int n = poll(&p, 1, 5000);
	SAY("waited for the end: %d, %#x, in time: %d", n, p.revents, ms() - from < 3000);
	waitpid(pid, NULL, 0);

	/* With samples that nobody heard of: POLLHUP alone. */
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		read(gate[0], &c, 1);
		touch_pages(3);
		_exit(0);
	}
	attr.wakeup_events = 1;
	fd = must_open(&attr, pid, -1, -1, 0);
	map(fd, 2);
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	write(gate[1], "x", 1);
	waitpid(pid, NULL, 0);
	p.fd = fd;
	n = poll(&p, 1, 0);
	SAY("with samples: %d, %#x", n, p.revents);
	return 0;
}
