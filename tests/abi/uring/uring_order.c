/*
 * uring_order.c: what is submitted and what comes back: batches that end at a bad entry, links soft and hard, completions that
 * are not wanted, indices that are none, more completions than there is room for, waiting with a time limit and a mask.
 */
#include "uring.h"
#include <poll.h>

static struct ring r;

static struct io_uring_sqe *nop(unsigned long data, unsigned flags)
{
	struct io_uring_sqe *sqe = next(&r, IORING_OP_NOP, data);
	sqe->flags = (unsigned char)flags;
	return sqe;
}

/* An entry that fails when it is carried out. */
static struct io_uring_sqe *fails(unsigned long data, unsigned flags)
{
	struct io_uring_sqe *sqe = next(&r, IORING_OP_READ, data);
	sqe->fd = -1;
	sqe->flags = (unsigned char)flags;
	return sqe;
}

/* An entry that cannot even be looked at. */
static struct io_uring_sqe *bad(unsigned long data, unsigned flags)
{
	struct io_uring_sqe *sqe = next(&r, 250, data);
	sqe->flags = (unsigned char)flags;
	return sqe;
}

static void batches(void)
{
	SAY("-- batches");
	go(&r, 0, 0);
	nop(1, 0);
	nop(2, 0);
	go(&r, 1, 1);
	go(&r, 5, 1);
	nop(1, 0);
	bad(2, 0);
	nop(3, 0);
	go(&r, 3, 0);
	go(&r, 1, 0);
	fails(4, 0);
	nop(5, 0);
	go(&r, 2, 0);
	nop(1, 0x80);
	go(&r, 1, 0);
	nop(2, 0)->ioprio = 1;
	go(&r, 1, 0);
	nop(3, 0)->personality = 7;
	go(&r, 1, 0);
	nop(4, IOSQE_BUFFER_SELECT);
	go(&r, 1, 0);
	nop(5, IOSQE_ASYNC);
	go(&r, 1, 1);
}

static void links(void)
{
	SAY("-- links");
	nop(1, IOSQE_IO_LINK);
	nop(2, IOSQE_IO_LINK);
	nop(3, 0);
	go(&r, 3, 3);
	SAY("soft");
	fails(1, IOSQE_IO_LINK);
	nop(2, IOSQE_IO_LINK);
	nop(3, 0);
	nop(4, 0);
	go(&r, 4, 4);
	SAY("hard");
	fails(1, IOSQE_IO_HARDLINK);
	nop(2, IOSQE_IO_LINK);
	fails(3, IOSQE_IO_LINK);
	nop(4, 0);
	go(&r, 4, 4);
	SAY("bad in the middle");
	nop(1, IOSQE_IO_LINK);
	bad(2, IOSQE_IO_LINK);
	nop(3, 0);
	nop(4, 0);
	go(&r, 4, 4);
	SAY("bad at the end");
	nop(1, IOSQE_IO_LINK);
	bad(2, 0);
	nop(3, 0);
	go(&r, 3, 2);
	go(&r, 1, 1);
	SAY("bad first");
	bad(1, IOSQE_IO_HARDLINK);
	nop(2, 0);
	go(&r, 2, 2);
	SAY("a link that ends with the batch");
	nop(1, IOSQE_IO_LINK);
	nop(2, IOSQE_IO_LINK);
	nop(3, 0);
	go(&r, 2, 2);
	go(&r, 1, 1);
	SAY("short");
	int p[2];
	char got[4];
	MUST(pipe(p));
	MUST(write(p[1], "ab", 2));
	rw(&r, IORING_OP_READ, 1, p[0], got, 4)->flags = IOSQE_IO_LINK;
	nop(2, 0);
	go(&r, 2, 2);
	close(p[0]);
	close(p[1]);
}

static void drained(void)
{
	SAY("-- drained");
	nop(1, 0);
	nop(2, IOSQE_IO_DRAIN);
	nop(3, 0);
	go(&r, 3, 3);
}

static void silent(void)
{
	SAY("-- silent");
	nop(1, IOSQE_CQE_SKIP_SUCCESS);
	nop(2, 0);
	fails(3, IOSQE_CQE_SKIP_SUCCESS);
	go(&r, 3, 2);
	fails(1, IOSQE_CQE_SKIP_SUCCESS | IOSQE_IO_LINK);
	nop(2, IOSQE_IO_LINK);
	nop(3, 0);
	go(&r, 3, 1);
	fails(1, IOSQE_IO_LINK);
	nop(2, IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS);
	nop(3, 0);
	go(&r, 3, 3);
	nop(4, IOSQE_IO_DRAIN);
	go(&r, 1, 1);
}

static void indices(void)
{
	SAY("-- indices");
	nop(1, 0);
	nop(2, 0);
	nop(3, 0);
	number(&r, r.p.sq_off.array)[(r.tail - 2) & (r.p.sq_entries - 1)] = 0xffffffff;
	go(&r, 3, 0);
	SAY("dropped %u", *number(&r, r.p.sq_off.dropped));
	go(&r, 3, 0);
	SAY("a tail far ahead");
	*number(&r, r.p.sq_off.tail) = r.tail + 1000;
	for (unsigned i = 0; i < r.p.sq_entries; i++)
		r.sqes[i].user_data = 9;
	T(enter(r.fd, 1000, 0, IORING_ENTER_GETEVENTS));
	take(&r);
	*number(&r, r.p.sq_off.tail) = r.tail = *number(&r, r.p.sq_off.head);
	T(enter(r.fd, 1000, 0, IORING_ENTER_GETEVENTS));
	SAY("a head far ahead");
	nop(1, 0);
	*number(&r, r.p.cq_off.head) += 5;
	T(enter(r.fd, 1, 0, 0));
	*number(&r, r.p.cq_off.head) -= 5;
	T(enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
	take(&r);
}

static void say_poll(void)
{
	struct pollfd fd = { r.fd, POLLIN | POLLOUT, 0 };
	poll(&fd, 1, 0);
	SAY("poll: %s%s", fd.revents & POLLIN ? "in " : "", fd.revents & POLLOUT ? "out" : "");
}

static void too_many(void)
{
	SAY("-- too many");
	say_poll();
	for (int i = 0; i < 6; i++) {
		for (int j = 0; j < 4; j++)
			nop((unsigned long)(i * 4 + j), 0);
		if (i == 0)
			say_poll();
		T(enter(r.fd, 4, 0, 0));
	}
	say_poll();
	SAY("ready %u, flags %u, overflow %u", ready(&r), *number(&r, r.p.sq_off.flags), *number(&r, r.p.cq_off.overflow));
	take(&r);
	say_poll();
	T(enter(r.fd, 0, 8, IORING_ENTER_GETEVENTS));
	SAY("ready %u, flags %u", ready(&r), *number(&r, r.p.sq_off.flags));
	take(&r);
	T(enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	SAY("ready %u, flags %u", ready(&r), *number(&r, r.p.sq_off.flags));
	take(&r);
	say_poll();
}

static volatile int ticks;

static void on_alarm(int sig UNUSED)
{
	ticks++;
}

static void waits(void)
{
	SAY("-- waits");
	struct timespec ts = { 0, 20000000 };
	struct io_uring_getevents_arg arg = { .ts = (unsigned long)&ts };
	T(enter_arg(r.fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg));
	T(enter_arg(r.fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, 8));
	T(enter_arg(r.fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, NULL, sizeof arg));
	nop(1, 0);
	T(enter_arg(r.fd, 1, 2, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg));
	take(&r);
	nop(2, 0);
	T(enter(r.fd, 1, 0, 0));
	T(enter_arg(r.fd, 0, 2, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg));
	take(&r);
	sigset_t set;
	sigemptyset(&set);
	T(enter_arg(r.fd, 0, 1, IORING_ENTER_GETEVENTS, &set, 4));
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	MUST(sigaction(SIGALRM, &sa, NULL));
	MUST(sigprocmask(SIG_BLOCK, &blocked, NULL));
	raise(SIGALRM);
	T(enter_arg(r.fd, 0, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg));
	T(enter_arg(r.fd, 0, 1, IORING_ENTER_GETEVENTS, &set, 8));
	SAY("ticks %d", ticks);
	T(enter(r.fd, 0, 0, 1u << 20));
	T(enter(0, 0, 0, 0));
	T(enter(-1, 0, 0, 0));
}

int main(void)
{
	struct ring single = ring_with(4, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_SUBMIT_ALL, 0);
	r = single;
	bad(1, 0);
	nop(2, 0);
	go(&r, 2, 2);
	single = r;
	CHILD("another") r = single; nop(3, 0); T(enter(r.fd, 1, 0, 0)); END;
	r = ring_with(4, IORING_SETUP_NO_SQARRAY, 0);
	nop(1, 0);
	nop(2, 0);
	go(&r, 2, 2);
	ring_close(&r);
	r = ring(4);
	batches();
	links();
	drained();
	ring_close(&r);
	r = ring(4);
	silent();
	ring_close(&r);
	r = ring(4);
	indices();
	ring_close(&r);
	r = ring(4);
	too_many();
	waits();
	return 0;
}
