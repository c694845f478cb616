/*
 * uring_waits.c: requests that wait: reads of empty pipes, sockets, polls once and often, timeouts, links with a time limit,
 * cancelling, draining behind what waits, and rings that are closed or polled meanwhile.
 */
#include "uring.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct ring r;
static struct timespec soon = { 0, 10000000 }, later = { 100, 0 };

/* Submits what is there, then what has completed is printed. */
static void give(unsigned count, unsigned least)
{
	T(enter(r.fd, count, least, IORING_ENTER_GETEVENTS));
	take(&r);
}

static struct io_uring_sqe *timeout(int op, unsigned long data, struct timespec *ts, unsigned flags)
{
	struct io_uring_sqe *sqe = rw(&r, op, data, -1, ts, 1);
	sqe->timeout_flags = flags;
	return sqe;
}

static struct io_uring_sqe *polls(unsigned long data, int fd, unsigned events, unsigned how)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_POLL_ADD, data, fd, NULL, how);
	sqe->poll32_events = events;
	return sqe;
}

static void pipes(void)
{
	SAY("-- pipes");
	int p[2];
	char got[8] = { 0 };
	MUST(pipe(p));
	rw(&r, IORING_OP_READ, 1, p[0], got, 8);
	give(1, 0);
	MUST(write(p[1], "abc", 3));
	give(0, 1);
	SAY("%s", got);
	SAY("linked");
	rw(&r, IORING_OP_READ, 1, p[0], got, 2)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 2);
	next(&r, IORING_OP_NOP, 3);
	give(3, 1);
	MUST(write(p[1], "de", 2));
	give(0, 2);
	SAY("another writes");
	rw(&r, IORING_OP_READ, 1, p[0], got, 2);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		sleep_ms(30);
		_exit(write(p[1], "fg", 2) != 2);
	}
	give(1, 1);
	say_status("writer", reap(child));
	SAY("not blocking");
	MUST(fcntl(p[0], F_SETFL, O_NONBLOCK));
	rw(&r, IORING_OP_READ, 1, p[0], got, 2);
	give(1, 0);
	MUST(write(p[1], "hi", 2));
	give(0, 1);
	rw(&r, IORING_OP_READ, 2, p[0], got, 2)->rw_flags = 8; /* RWF_NOWAIT */
	give(1, 1);
	SAY("the file is closed meanwhile");
	rw(&r, IORING_OP_READ, 1, p[0], got, 2);
	give(1, 0);
	close(p[0]);
	MUST(write(p[1], "jk", 2));
	give(0, 1);
	MUST(pipe(p));
	rw(&r, IORING_OP_READ, 1, p[0], got, 2);
	give(1, 0);
	close(p[1]);
	give(0, 1);
	close(p[0]);
	int event = (int)MUST(eventfd(0, 0));
	rw(&r, IORING_OP_READ, 1, event, got, 8);
	give(1, 0);
	MUST(write(event, "\3\0\0\0\0\0\0", 8));
	give(0, 1);
	SAY("%d", got[0]);
	close(event);
}

static void sockets(void)
{
	SAY("-- sockets");
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "sock" };
	char got[8] = { 0 };
	int s = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0)), c = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0)), a;
	MUST(bind(s, (void *)&name, sizeof name));
	MUST(listen(s, 4));
	rw(&r, IORING_OP_ACCEPT, 1, s, NULL, 0);
	give(1, 0);
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_CONNECT, 2, c, &name, 0);
	sqe->off = sizeof name;
	T(enter(r.fd, 1, 2, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 2);
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	for (a = -1; ready(&r);) {
		unsigned head = (*number(&r, r.p.cq_off.head))++;
		struct io_uring_cqe *cqe = &cqes[head & (r.p.cq_entries - 1)];
		if (cqe->user_data == 1)
			a = cqe->res;
	}
	IS(a >= 0);
	rw(&r, IORING_OP_RECV, 3, a, got, 8);
	give(1, 0);
	rw(&r, IORING_OP_SEND, 4, c, "xyz", 3);
	T(enter(r.fd, 1, 2, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 2);
	*number(&r, r.p.cq_off.head) += 2;
	SAY("%s", got);
	struct iovec iov = { got, 8 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	rw(&r, IORING_OP_RECVMSG, 5, a, &m, 1);
	give(1, 0);
	MUST(send(c, "uv", 2, 0));
	give(0, 1);
	rw(&r, IORING_OP_RECV, 6, a, got, 8)->msg_flags = MSG_DONTWAIT;
	give(1, 1);
	rw(&r, IORING_OP_RECV, 7, a, got, 8);
	give(1, 0);
	close(c);
	give(0, 1);
	rw(&r, IORING_OP_RECV, 8, s, got, 8);
	give(1, 1);
	close(a);
	close(s);
	unlink("sock");
}

static void polling(void)
{
	SAY("-- polling");
	int p[2];
	char got[8];
	MUST(pipe(p));
	polls(1, p[1], POLLOUT, 0);
	give(1, 1);
	polls(1, p[0], POLLIN, 0);
	give(1, 0);
	MUST(write(p[1], "a", 1));
	give(0, 1);
	polls(1, p[0], POLLIN, 0);
	give(1, 1);
	MUST(read(p[0], got, 8));
	SAY("often");
	polls(1, p[0], POLLIN, IORING_POLL_ADD_MULTI);
	give(1, 0);
	for (int i = 0; i < 2; i++) {
		MUST(write(p[1], "a", 1));
		give(0, 1);
		MUST(read(p[0], got, 8));
	}
	rw(&r, IORING_OP_POLL_REMOVE, 2, -1, (void *)1, 0);
	give(1, 2);
	rw(&r, IORING_OP_POLL_REMOVE, 2, -1, (void *)1, 0);
	give(1, 1);
	polls(1, p[0], POLLIN, 0);
	give(1, 0);
	close(p[1]);
	give(0, 1);
	polls(1, -1, POLLIN, 0);
	give(1, 1);
	polls(1, p[0], POLLIN, 64);
	give(1, 1);
	close(p[0]);
}

static void times(void)
{
	SAY("-- times");
	timeout(IORING_OP_TIMEOUT, 1, &soon, 0);
	give(1, 1);
	timeout(IORING_OP_TIMEOUT, 1, &soon, IORING_TIMEOUT_ETIME_SUCCESS)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 2);
	give(2, 2);
	timeout(IORING_OP_TIMEOUT, 1, &soon, 0)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 2);
	give(2, 2);
	timeout(IORING_OP_TIMEOUT, 1, &later, 0);
	give(1, 0);
	rw(&r, IORING_OP_TIMEOUT_REMOVE, 2, -1, (void *)1, 0);
	give(1, 2);
	rw(&r, IORING_OP_TIMEOUT_REMOVE, 2, -1, (void *)1, 0);
	give(1, 1);
	timeout(IORING_OP_TIMEOUT, 1, &soon, IORING_TIMEOUT_ABS);
	give(1, 1);
	struct timespec bad = { 0, -1 };
	timeout(IORING_OP_TIMEOUT, 1, &bad, 0);
	give(1, 1);
	timeout(IORING_OP_TIMEOUT, 1, NULL, 0);
	give(1, 1);
	SAY("links");
	int p[2];
	char got[8];
	MUST(pipe(p));
	rw(&r, IORING_OP_READ, 1, p[0], got, 8)->flags = IOSQE_IO_LINK;
	timeout(IORING_OP_LINK_TIMEOUT, 2, &soon, 0);
	T(enter(r.fd, 2, 2, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 2);
	*number(&r, r.p.cq_off.head) += 2;
	MUST(write(p[1], "a", 1));
	rw(&r, IORING_OP_READ, 1, p[0], got, 1)->flags = IOSQE_IO_LINK;
	timeout(IORING_OP_LINK_TIMEOUT, 2, &later, 0);
	give(2, 2);
	rw(&r, IORING_OP_READ, 1, p[0], got, 1)->flags = IOSQE_IO_LINK;
	timeout(IORING_OP_LINK_TIMEOUT, 2, &later, 0)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 3);
	give(3, 0);
	MUST(write(p[1], "a", 1));
	T(enter(r.fd, 0, 3, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 3);
	*number(&r, r.p.cq_off.head) += 3;
	close(p[0]);
	close(p[1]);
}

static void cancelling(void)
{
	SAY("-- cancelling");
	int p[2], q[2];
	char got[8];
	MUST(pipe(p));
	MUST(pipe(q));
	rw(&r, IORING_OP_READ, 1, p[0], got, 8);
	give(1, 0);
	rw(&r, IORING_OP_ASYNC_CANCEL, 9, -1, (void *)2, 0);
	give(1, 1);
	rw(&r, IORING_OP_ASYNC_CANCEL, 9, -1, (void *)1, 0);
	give(1, 2);
	rw(&r, IORING_OP_READ, 1, p[0], got, 8);
	rw(&r, IORING_OP_READ, 2, q[0], got, 8);
	polls(3, p[0], POLLIN, 0);
	give(3, 0);
	rw(&r, IORING_OP_ASYNC_CANCEL, 9, q[0], NULL, 0)->cancel_flags = 2; /* FD */
	give(1, 2);
	rw(&r, IORING_OP_ASYNC_CANCEL, 9, -1, NULL, 0)->cancel_flags = 4; /* ANY */
	T(enter(r.fd, 1, 3, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 3);
	*number(&r, r.p.cq_off.head) += 3;
	SAY("drained");
	rw(&r, IORING_OP_READ, 1, p[0], got, 8);
	next(&r, IORING_OP_NOP, 2)->flags = IOSQE_IO_DRAIN;
	next(&r, IORING_OP_NOP, 3);
	give(3, 0);
	MUST(write(p[1], "a", 1));
	give(0, 3);
	close(q[0]);
	close(q[1]);
	close(p[0]);
	close(p[1]);
}

static void closing(void)
{
	SAY("-- closing");
	int p[2];
	char got[8];
	MUST(pipe(p));
	struct ring other = ring(256);
	struct ring kept = r;
	r = other;
	for (int i = 0; i < 1024; i++) {
		rw(&r, IORING_OP_READ, 1, p[0], got, 8);
		if (i % 256 == 255)
			MUST(enter(r.fd, 256, 0, 0));
	}
	struct pollfd fd = { r.fd, POLLIN, 0 };
	T(poll(&fd, 1, 0));
	MUST(write(p[1], "abcdefgh", 8));
	T(poll(&fd, 1, 1000));
	give(0, 1);
	T(poll(&fd, 1, 0));
	ring_close(&r);
	/* Nobody reads it any more. */
	MUST(write(p[1], "z", 1));
	T(read(p[0], got, 8));
	r = kept;
	CHILD("ends with requests")
		struct ring mine = ring(2);
		r = mine;
		rw(&r, IORING_OP_READ, 1, p[0], got, 8);
		timeout(IORING_OP_TIMEOUT, 2, &later, 0);
		T(enter(r.fd, 2, 0, 0));
	END;
	CHILD("killed while it waits")
		struct ring mine = ring(1);
		r = mine;
		rw(&r, IORING_OP_READ, 1, p[0], got, 8);
		alarm(1);
		enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS);
	END;
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	r = ring(8);
	pipes();
	sockets();
	polling();
	times();
	cancelling();
	closing();
	return 0;
}
