/*
 * uring_nested.c: requests that wait for what wakes others in turn: polls of an epoll, of another ring, of their own ring, once and often,
 * also in a circle and beside what goes away; and the eventfd of a ring that goes on only when it is entered.
 */
#include "uring.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static struct ring r, other;
static int fed[2], epoll_fd;

static struct io_uring_sqe *polls(struct ring *by, unsigned long data, int fd, unsigned how)
{
	struct io_uring_sqe *sqe = rw(by, IORING_OP_POLL_ADD, data, fd, NULL, how);
	sqe->poll32_events = POLLIN;
	return sqe;
}

static void feed(void)
{
	MUST(write(fed[1], "x", 1));
}

static void drain(void)
{
	char c;
	MUST(read(fed[0], &c, 1));
}

static int readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return (int)MUST(poll(&p, 1, ms));
}

static void epolls(void)
{
	SAY("-- an epoll");
	feed();
	polls(&r, 1, epoll_fd, 0);
	go(&r, 1, 1);
	drain();
	polls(&r, 2, epoll_fd, 0);
	go(&r, 1, 0);
	feed();
	go(&r, 0, 1);
	drain();
	SAY("another process feeds it");
	polls(&r, 3, epoll_fd, 0);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		sleep_ms(30);
		feed();
		_exit(0);
	}
	go(&r, 1, 1);
	say_status("child", reap(child));
	drain();
	SAY("often");
	polls(&r, 4, epoll_fd, IORING_POLL_ADD_MULTI);
	go(&r, 1, 0);
	for (int i = 0; i < 2; i++) {
		feed();
		go(&r, 0, 1);
		drain();
	}
	rw(&r, IORING_OP_POLL_REMOVE, 5, -1, (void *)4, 0);
	T(enter(r.fd, 1, 2, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 2);
	*number(&r, r.p.cq_off.head) += 2;
	SAY("linked, with a limit");
	struct timespec limit = { 0, 20000000 };
	polls(&r, 6, epoll_fd, 0)->flags = IOSQE_IO_LINK;
	rw(&r, IORING_OP_LINK_TIMEOUT, 7, -1, &limit, 1);
	go(&r, 2, 2);
	SAY("cancelled by its file");
	polls(&r, 8, epoll_fd, 0);
	go(&r, 1, 0);
	struct io_uring_sqe *sqe = next(&r, IORING_OP_ASYNC_CANCEL, 9);
	sqe->fd = epoll_fd;
	sqe->cancel_flags = IORING_ASYNC_CANCEL_FD;
	T(enter(r.fd, 1, 2, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 2);
	*number(&r, r.p.cq_off.head) += 2;
}

static void rings(void)
{
	SAY("-- another ring");
	polls(&r, 1, other.fd, 0);
	go(&r, 1, 0);
	next(&other, IORING_OP_NOP, 2);
	go(&other, 1, 1);
	SAY("what was taken is not there any more");
	next(&other, IORING_OP_NOP, 3);
	MUST(enter(other.fd, 1, 0, 0));
	go(&r, 0, 1);
	take(&other);
	SAY("often is once");
	polls(&r, 4, other.fd, IORING_POLL_ADD_MULTI);
	go(&r, 1, 0);
	next(&other, IORING_OP_NOP, 5);
	MUST(enter(other.fd, 1, 0, 0));
	go(&r, 0, 1);
	take(&other);
	SAY("its requests wait, too");
	polls(&other, 6, fed[0], 0);
	go(&other, 1, 0);
	polls(&r, 7, other.fd, 0);
	go(&r, 1, 0);
	feed();
	go(&r, 0, 1);
	take(&other);
	drain();
	SAY("each waits for the other");
	polls(&other, 8, r.fd, 0);
	go(&other, 1, 0);
	polls(&r, 9, other.fd, 0);
	go(&r, 1, 0);
	next(&r, IORING_OP_NOP, 10);
	MUST(enter(r.fd, 1, 0, 0));
	IS(readable(other.fd, 3000));
	IS(readable(r.fd, 3000));
	while (ready(&r) < 2)
		MUST(enter(r.fd, 0, 2, IORING_ENTER_GETEVENTS));
	take(&r);
	take(&other);
	SAY("-- its own");
	polls(&r, 11, r.fd, 0);
	go(&r, 1, 0);
	next(&r, IORING_OP_NOP, 12);
	MUST(enter(r.fd, 1, 0, 0));
	while (ready(&r) < 2)
		MUST(enter(r.fd, 0, 2, IORING_ENTER_GETEVENTS));
	take(&r);
	SAY("-- an epoll with the ring in it");
	struct epoll_event e = { .events = EPOLLIN };
	MUST(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, r.fd, &e));
	polls(&r, 13, epoll_fd, 0);
	go(&r, 1, 0);
	next(&r, IORING_OP_NOP, 14);
	MUST(enter(r.fd, 1, 0, 0));
	while (ready(&r) < 2)
		MUST(enter(r.fd, 0, 2, IORING_ENTER_GETEVENTS));
	take(&r);
	MUST(epoll_ctl(epoll_fd, EPOLL_CTL_DEL, r.fd, &e));
}

static void closing(void)
{
	SAY("-- rings that wait for themselves and for each other are closed");
	for (int i = 0; i < 200; i++) {
		struct ring a = ring(4), b = ring(4);
		polls(&a, 1, a.fd, 0);
		polls(&a, 2, b.fd, IORING_POLL_ADD_MULTI);
		polls(&a, 3, epoll_fd, 0);
		MUST(enter(a.fd, 3, 0, 0));
		polls(&b, 1, a.fd, 0);
		MUST(enter(b.fd, 1, 0, 0));
		if (i % 2)
			ring_close(&a);
		ring_close(&b);
		if (i % 2 == 0)
			ring_close(&a);
	}
	feed();
	drain();
}

static void deferring(void)
{
	SAY("-- a ring that goes on when it is entered tells its eventfd");
	struct ring d = ring_with(8, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0);
	int event = (int)MUST(eventfd(0, EFD_NONBLOCK));
	unsigned long count;
	MUST(reg(d.fd, IORING_REGISTER_EVENTFD, &event, 1));
	polls(&d, 1, fed[0], 0);
	go(&d, 1, 0);
	IS(!readable(event, 0));
	feed();
	IS(readable(event, 3000));
	IS(ready(&d) == 0);
	IS(*number(&d, d.p.sq_off.flags) & IORING_SQ_TASKRUN);
	T(read(event, &count, 8));
	IS(count == 1);
	go(&d, 0, 1);
	T(read(event, &count, 8));
	IS(count == 1);
	drain();
	SAY("another process feeds it");
	polls(&d, 2, epoll_fd, 0);
	go(&d, 1, 0);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		feed();
		_exit(0);
	}
	IS(readable(event, 3000));
	reap(child);
	IS(ready(&d) == 0);
	go(&d, 0, 1);
	drain();
	SAY("only of what others complete");
	MUST(reg(d.fd, IORING_UNREGISTER_EVENTFD, NULL, 0));
	MUST(read(event, &count, 8));
	MUST(reg(d.fd, IORING_REGISTER_EVENTFD_ASYNC, &event, 1));
	polls(&d, 3, fed[0], 0);
	go(&d, 1, 0);
	feed();
	IS(!readable(event, 50));
	go(&d, 0, 1);
	drain();
	SAY("no eventfd: who waits in the ring is woken");
	MUST(reg(d.fd, IORING_UNREGISTER_EVENTFD, NULL, 0));
	polls(&d, 4, epoll_fd, 0);
	child = (pid_t)MUST(fork());
	if (child == 0) {
		sleep_ms(30);
		feed();
		_exit(0);
	}
	go(&d, 1, 1);
	reap(child);
	drain();
	close(event);
	ring_close(&d);
}

int main(void)
{
	r = ring(8);
	other = ring(8);
	MUST(pipe(fed));
	epoll_fd = (int)MUST(epoll_create1(0));
	struct epoll_event e = { .events = EPOLLIN };
	MUST(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fed[0], &e));
	epolls();
	rings();
	closing();
	deferring();
	return 0;
}
