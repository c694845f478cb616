/*
 * uring_spin.c: who waits for completions by looking at the ring alone: what was parked completes without a call, wherever the wake-up
 * comes from, but not under DEFER_TASKRUN; and what a thread left is not done in another process.
 */
#include "uring.h"
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

static long now_ms(void)
{
	struct timespec at;
	MUST(clock_gettime(CLOCK_MONOTONIC, &at));
	return at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

/* Whether so many completions appear within a time, with no call into the ring. */
static int spin(struct ring *r, unsigned count, long ms)
{
	long end = now_ms() + ms;
	while (ready(r) < count)
		if (now_ms() > end)
			return 0;
	return 1;
}

static struct __kernel_timespec soon = { .tv_nsec = 20000000 };

static void timeout(struct ring *r, unsigned long data)
{
	rw(r, IORING_OP_TIMEOUT, data, -1, &soon, 1);
	T(enter(r->fd, 1, 0, 0));
}

static void alone(unsigned flags)
{
	struct ring r = ring_with(8, flags, 0);
	SAY("a time comes");
	timeout(&r, 1);
	IS(spin(&r, 1, 20000));
	take(&r);
	ring_close(&r);
}

static void from_another(void)
{
	struct ring r = ring(8);
	char got[4][4] = { { 0 } };
	int p[2];
	SAY("another process writes");
	MUST(pipe(p));
	for (unsigned long i = 0; i < 4; i++)
		rw(&r, IORING_OP_READ, i, p[0], got[i], 4)->flags = i < 3 ? IOSQE_IO_LINK : 0;
	T(enter(r.fd, 4, 0, 0));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		for (int i = 0; i < 4; i++) {
			usleep(10000);
			MUST(write(p[1], "four", 4));
		}
		_exit(0);
	}
	IS(spin(&r, 4, 20000));
	take(&r);
	MUST(waitpid(child, NULL, 0));
	close(p[0]), close(p[1]);
	ring_close(&r);
}

static struct ring shared;

static void *writes(void *fd)
{
	usleep(10000);
	MUST(write((int)(long)fd, "x", 1));
	return NULL;
}

/* Two rings and a thread that wakes both. */
static void from_thread(void)
{
	struct ring other = ring(4);
	int p[2], q[2];
	pthread_t threads[2];
	char got[2];
	SAY("threads write");
	shared = ring(4);
	MUST(pipe(p));
	MUST(pipe(q));
	rw(&shared, IORING_OP_READ, 1, p[0], got, 1);
	T(enter(shared.fd, 1, 0, 0));
	rw(&other, IORING_OP_READ, 2, q[0], got + 1, 1);
	T(enter(other.fd, 1, 0, 0));
	pthread_create(&threads[0], NULL, writes, (void *)(long)p[1]);
	pthread_create(&threads[1], NULL, writes, (void *)(long)q[1]);
	IS(spin(&shared, 1, 20000));
	IS(spin(&other, 1, 20000));
	take(&shared);
	take(&other);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	ring_close(&shared);
	ring_close(&other);
}

static void deferred(void)
{
	struct ring r = ring_with(8, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0);
	SAY("whoever wants it deferred enters");
	timeout(&r, 1);
	IS(!spin(&r, 1, 100));
	go(&r, 0, 1);
	ring_close(&r);
}

/* One that goes on ends with the room for completions, and tells so. */
static void full(void)
{
	struct ring r = ring_with(1, IORING_SETUP_CQSIZE, 2);
	int p[2];
	SAY("polled until there is no room");
	MUST(pipe(p));
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_POLL_ADD, 1, p[0], NULL, IORING_POLL_ADD_MULTI);
	sqe->poll32_events = POLLIN;
	T(enter(r.fd, 1, 0, 0));
	for (int i = 0; i < 5; i++)
		MUST(write(p[1], "x", 1));
	take(&r);
	go(&r, 0, 0);
	MUST(write(p[1], "x", 1));
	go(&r, 0, 0);
	close(p[0]), close(p[1]);
	ring_close(&r);
}

/* Closing what waits, and its end by exec and exit, leaves nothing behind that a wake-up could find. */
static void closed(void)
{
	int p[2];
	char got[4];
	SAY("closed while it waits");
	MUST(pipe(p));
	for (int i = 0; i < 50; i++) {
		pid_t child = (pid_t)MUST(fork());
		if (child == 0) {
			struct ring r = ring(4);
			rw(&r, IORING_OP_READ, 1, p[0], got, 4);
			rw(&r, IORING_OP_TIMEOUT, 2, -1, &soon, 1);
			MUST(enter(r.fd, 2, 0, 0));
			if (i % 2)
				ring_close(&r);
			if (i % 3 == 0)
				execl("/proc/self/exe", "uring_spin", "exit", NULL);
			_exit(0);
		}
		MUST(waitpid(child, NULL, 0));
	}
	T(write(p[1], "x", 1));
	T(read(p[0], got, 4));
	close(p[0]), close(p[1]);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 0;
	alone(0);
	alone(IORING_SETUP_COOP_TASKRUN);
	from_another();
	from_thread();
	deferred();
	full();
	closed();
	return 0;
}
