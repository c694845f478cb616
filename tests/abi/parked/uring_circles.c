/*
 * uring_circles.c: rings and epolls that poll each other in circles, filled by one thread and closed by another in each order, with thousands of
 * requests that wait, held by children, over fork, exec and the end of who made them: nothing of them is left.
 */
#include "uring.h"
#include "meet.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>

#define RINGS 5
#define ROUNDS 60

static struct ring rings[RINGS];
static int epolls[RINGS], ends[2];
static int rounds;

static long available(void)
{
	const char *at = strstr(read_file("/proc/meminfo"), "MemAvailable:");
	return at ? strtol(at + 13, NULL, 10) : -1;
}

static void poll_of(struct ring *by, int fd, unsigned long data)
{
	struct io_uring_sqe *sqe = rw(by, IORING_OP_POLL_ADD, data, fd, NULL, data % 2 ? IORING_POLL_ADD_MULTI : 0);
	sqe->poll32_events = POLLIN;
}

static void build(int round)
{
	static const unsigned flags[] = { 0, IORING_SETUP_COOP_TASKRUN, 0 };
	for (int i = 0; i < RINGS; i++) {
		rings[i] = ring_with(16, flags[(round + i) % 3], 0);
		epolls[i] = (int)MUST(epoll_create1(0));
	}
	for (int i = 0; i < RINGS; i++) {
		struct epoll_event e = { .events = i % 2 ? EPOLLIN : EPOLLIN | EPOLLET };
		MUST(epoll_ctl(epolls[i], EPOLL_CTL_ADD, rings[(i + 1) % RINGS].fd, &e));
		MUST(epoll_ctl(epolls[i], EPOLL_CTL_ADD, rings[i].fd, &e));
		MUST(epoll_ctl(epolls[i], EPOLL_CTL_ADD, ends[0], &e));
	}
	for (int i = 0; i < RINGS; i++) {
		for (int j = 0; j < RINGS; j++) {
			poll_of(&rings[i], rings[j].fd, (unsigned long)(2 * j));
			poll_of(&rings[i], epolls[j], (unsigned long)(2 * j + round % 2));
		}
		enter(rings[i].fd, 2 * RINGS, 0, 0);
	}
}

static void *closes(void *unused)
{
	for (int round = 1; round <= rounds; round++) {
		meet(0, 2 * round - 1);
		for (int i = 0; i < RINGS; i++) {
			int at = (i * (1 + round % 4) + round) % RINGS;
			close(round % 2 ? epolls[at] : rings[at].fd);
			close(round % 2 ? rings[at].fd : epolls[at]);
		}
		meet(0, 2 * round);
	}
	return unused;
}

static void circles(int count)
{
	pthread_t other;
	rounds = count;
	at_start[0] = at_start[1] = 0;
	MUST(-!!pthread_create(&other, NULL, closes, NULL));
	for (int round = 1; round <= rounds; round++) {
		build(round);
		pid_t child = round % 8 ? 0 : (pid_t)MUST(fork());
		if (round % 8 == 0 && child == 0) {
			for (int i = 0; i < RINGS; i++) {
				next(&rings[i], IORING_OP_NOP, 99);
				enter(rings[i].fd, 1, 0, IORING_ENTER_GETEVENTS);
			}
			_exit(0);
		}
		meet(1, 2 * round - 1);
		for (int i = 0; i < RINGS; i++) {
			next(&rings[i], IORING_OP_NOP, 99);
			enter(rings[i].fd, 1, 0, IORING_ENTER_GETEVENTS);
		}
		MUST(write(ends[1], "x", 1));
		meet(1, 2 * round);
		char c;
		MUST(read(ends[0], &c, 1));
		for (int i = 0; i < RINGS; i++) {
			munmap(rings[i].rings, rings[i].rings_len);
			munmap(rings[i].sqes, rings[i].p.sq_entries * sizeof *rings[i].sqes);
		}
		if (child > 0)
			reap(child);
	}
	pthread_join(other, NULL);
}

/* Many wait, a child has the ring and more of them wait for it, and the maker executes a program meanwhile. */
static void many(int round)
{
	pid_t maker = (pid_t)MUST(fork());
	if (maker)
		return (void)reap(maker);
	struct ring r = ring(1024);
	for (int batch = 0; batch < 5; batch++) {
		for (int i = 0; i < 1024; i++)
			poll_of(&r, ends[0], (unsigned long)i);
		enter(r.fd, 1024, 0, 0);
	}
	pid_t parent = getpid(), child = (pid_t)MUST(fork());
	if (child == 0) {
		fcntl(r.fd, F_SETFD, 0);
		for (int i = 0; i < 1024; i++)
			poll_of(&r, ends[0], (unsigned long)i);
		enter(r.fd, 1024, 0, 0);
		if (round % 2)
			while (getppid() == parent)
				sleep_ms(1);
		struct timespec limit = { 0, 1000000 };
		rw(&r, IORING_OP_TIMEOUT, 7, -1, &limit, 1);
		enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS);
		_exit(0);
	}
	if (round % 3 == 0)
		execl("/proc/self/exe", "uring_circles", "again", NULL);
	if (round % 6 == 4)
		reap(child);
	_exit(0);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 0;
	alone = sysconf(_SC_NPROCESSORS_ONLN) < 2;
	MUST(pipe(ends));
	circles(8);
	many(0);
	long before = available();
	circles(ROUNDS);
	puts("circles");
	for (int i = 0; i < 12; i++)
		many(i);
	puts("many");
	long gone = 0;
	for (int i = 0; i < 50 && (gone = before - available()) > 6000; i++)
		sleep_ms(100);
	if (gone > 6000)
		SAY("%ld KiB are gone", gone);
	puts("all is back");
	return 0;
}
