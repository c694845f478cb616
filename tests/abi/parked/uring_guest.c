/*
 * uring_guest.c: a ring that a child has from its parent: its polls and times wait there and end though it has ended, what it cancels, what
 * goes on for whom; and requests of threads that have ended.
 */
#include "uring.h"
#include <poll.h>
#include <pthread.h>

static struct ring r;
static int fed[2];
static char got[8];
static struct timespec soon = { 0, 30000000 }, later = { 0, 300000000 };

static struct io_uring_sqe *polls(unsigned long data, int fd)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_POLL_ADD, data, fd, NULL, 0);
	sqe->poll32_events = POLLIN;
	return sqe;
}

static pid_t guest(void (*act)(void))
{
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		act();
		_exit(0);
	}
	return child;
}

/* Where the entries go on after the child. */
static void catch_up(pid_t child)
{
	say_status("child", reap(child));
	r.tail = *number(&r, r.p.sq_off.tail);
}

static void waits_itself(void)
{
	rw(&r, IORING_OP_TIMEOUT, 1, -1, &soon, 1);
	go(&r, 1, 1);
	polls(2, fed[0]);
	T(enter(r.fd, 1, 0, 0));
	MUST(write(fed[1], "x", 1));
	go(&r, 0, 1);
	MUST(read(fed[0], got, 1));
	SAY("cancelled by the child");
	rw(&r, IORING_OP_ASYNC_CANCEL, 3, -1, (void *)10, 0);
	T(enter(r.fd, 1, 2, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 2);
	*number(&r, r.p.cq_off.head) += 2;
}

static void leaves_behind(void)
{
	polls(1, r.fd)->flags = IOSQE_IO_LINK;
	rw(&r, IORING_OP_TIMEOUT, 2, -1, &later, 1);
	rw(&r, IORING_OP_TIMEOUT, 3, -1, &later, 1);
	T(enter(r.fd, 3, 0, 0));
}

static void leaves_a_poll(void)
{
	polls(4, fed[0]);
	T(enter(r.fd, 1, 0, 0));
}

static void looks(void)
{
	/* Drained work of the parent's is not the child's. */
	T(enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
}

static void *submits_read(void *unused)
{
	(void)unused;
	rw(&r, IORING_OP_READ, 20, fed[0], got, 1);
	MUST(enter(r.fd, 1, 0, 0));
	return NULL;
}

static void *submits_poll(void *unused)
{
	(void)unused;
	polls(21, fed[0]);
	MUST(enter(r.fd, 1, 0, 0));
	return NULL;
}

static void *submits_time(void *unused)
{
	(void)unused;
	rw(&r, IORING_OP_TIMEOUT, 22, -1, &soon, 1);
	MUST(enter(r.fd, 1, 0, 0));
	return NULL;
}

static void thread(void *(*act)(void *))
{
	pthread_t t;
	IS(pthread_create(&t, NULL, act, NULL) == 0);
	pthread_join(t, NULL);
	sleep_ms(10);
}

int main(void)
{
	r = ring(16);
	MUST(pipe(fed));
	SAY("-- the child waits");
	rw(&r, IORING_OP_READ, 10, fed[0], got, 1);
	rw(&r, IORING_OP_TIMEOUT, 11, -1, &(struct timespec){ 3600, 0 }, 1);
	T(enter(r.fd, 1, 0, 0));
	rw(&r, IORING_OP_ASYNC_CANCEL, 12, -1, (void *)10, 0);
	T(enter(r.fd, 2, 1, IORING_ENTER_GETEVENTS));
	take(&r);
	int other[2];
	MUST(pipe(other));
	rw(&r, IORING_OP_READ, 10, other[0], got, 1);
	T(enter(r.fd, 1, 0, 0));
	catch_up(guest(waits_itself));
	SAY("-- the child has ended");
	catch_up(guest(leaves_behind));
	while (ready(&r) < 3)
		MUST(enter(r.fd, 0, 3, IORING_ENTER_GETEVENTS));
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	for (unsigned long data = 1; data < 4; data++)
		for (unsigned at = *number(&r, r.p.cq_off.head), i = 0; i < 3; i++)
			if (cqes[(at + i) & (r.p.cq_entries - 1)].user_data == data)
				say_cqe(data, cqes[(at + i) & (r.p.cq_entries - 1)].res, 0);
	*number(&r, r.p.cq_off.head) += 3;
	catch_up(guest(leaves_a_poll));
	MUST(write(fed[1], "x", 1));
	go(&r, 0, 1);
	MUST(read(fed[0], got, 1));
	SAY("-- drained work");
	rw(&r, IORING_OP_READ, 13, fed[0], got, 1);
	rw(&r, IORING_OP_TIMEOUT_REMOVE, 14, -1, (void *)11, 0);
	T(enter(r.fd, 2, 2, IORING_ENTER_GETEVENTS));
	take(&r);
	rw(&r, IORING_OP_READ, 15, fed[0], got + 1, 1)->flags = IOSQE_IO_DRAIN;
	T(enter(r.fd, 1, 0, 0));
	MUST(write(fed[1], "ab", 2));
	catch_up(guest(looks));
	go(&r, 0, 2);
	SAY("%.2s", got);
	SAY("-- threads that have ended");
	thread(submits_read);
	MUST(write(fed[1], "c", 1));
	go(&r, 0, 1);
	thread(submits_time);
	go(&r, 0, 1);
	MUST(read(fed[0], got, 1));
	thread(submits_poll);
	MUST(write(fed[1], "d", 1));
	go(&r, 0, 1);
	return 0;
}
