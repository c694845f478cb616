/*
 * uring_parts.c: transfers in parts. With MSG_WAITALL a RECV or SEND on a stream goes on until all is there, ends early with the stream,
 * breaks its link then, and tells what it moved when it is cancelled; a linked timeout that ends its request says nothing if it
 * wants no completion.
 */
#include "uring.h"
#include "../net.h"

static struct ring r;
static int sv[2];
static char got[64];

static struct io_uring_sqe *transfer(int op, unsigned long data, int fd, void *bytes, unsigned len, unsigned flags)
{
	struct io_uring_sqe *sqe = rw(&r, op, data, fd, bytes, len);
	sqe->msg_flags = flags;
	return sqe;
}

/* Completions that are there now. */
static void now(const char *what)
{
	SAY("%s", what);
	T(enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
	/* Without IORING_CQE_F_SOCK_NONEMPTY, which is a hint. */
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	while (ready(&r)) {
		struct io_uring_cqe *cqe = &cqes[*number(&r, r.p.cq_off.head) & (r.p.cq_entries - 1)];
		say_cqe(cqe->user_data, cqe->res, cqe->flags & ~4U);
		*number(&r, r.p.cq_off.head) += 1;
	}
	SAY("'%s'", got);
}

static void in_parts(void)
{
	memset(got, 0, sizeof got);
	transfer(IORING_OP_RECV, 1, sv[0], got, 6, MSG_WAITALL);
	T(enter(r.fd, 1, 0, 0));
	MUST(send(sv[1], "ab", 2, 0));
	now("two of six");
	MUST(send(sv[1], "cde", 3, 0));
	now("five of six");
	MUST(send(sv[1], "fgh", 3, 0));
	now("eight, of which six are wanted");
	memset(got, 0, sizeof got);
	transfer(IORING_OP_RECV, 2, sv[0], got, 6, 0);
	T(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	now("not waiting for all: the other two");
	/* A part is there at once. */
	memset(got, 0, sizeof got);
	MUST(send(sv[1], "ij", 2, 0));
	transfer(IORING_OP_RECV, 3, sv[0], got, 4, MSG_WAITALL);
	T(enter(r.fd, 1, 0, 0));
	now("two of four");
	MUST(send(sv[1], "kl", 2, 0));
	now("all four");
	memset(got, 0, sizeof got);
	MUST(send(sv[1], "mn", 2, 0));
	transfer(IORING_OP_RECV, 4, sv[0], got, 4, MSG_WAITALL | MSG_DONTWAIT);
	T(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	now("two of four, and no wait");
}

/* The same with vectors. */
static void messages(void)
{
	struct iovec in[3] = { { got, 1 }, { got + 1, 3 }, { got + 4, 4 } };
	struct msghdr msg = { .msg_iov = in, .msg_iovlen = 3 };
	memset(got, 0, sizeof got);
	transfer(IORING_OP_RECVMSG, 20, sv[0], &msg, 1, MSG_WAITALL);
	T(enter(r.fd, 1, 0, 0));
	MUST(send(sv[1], "ab", 2, 0));
	now("two of eight");
	MUST(send(sv[1], "cde", 3, 0));
	now("five of eight");
	MUST(send(sv[1], "fgh", 3, 0));
	now("all eight");
	/* Who wants control data gets one part. */
	char control[64];
	memset(got, 0, sizeof got);
	msg.msg_control = control;
	msg.msg_controllen = sizeof control;
	MUST(send(sv[1], "ij", 2, 0));
	transfer(IORING_OP_RECVMSG, 21, sv[0], &msg, 1, MSG_WAITALL);
	T(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	now("two of eight");
}

static void ended(void)
{
	memset(got, 0, sizeof got);
	transfer(IORING_OP_RECV, 5, sv[0], got, 6, MSG_WAITALL);
	T(enter(r.fd, 1, 0, 0));
	MUST(send(sv[1], "op", 2, 0));
	now("two of six");
	struct io_uring_sqe *cancel = next(&r, IORING_OP_ASYNC_CANCEL, 6);
	cancel->addr = 5;
	T(enter(r.fd, 1, 2, IORING_ENTER_GETEVENTS));
	now("cancelled");
	memset(got, 0, sizeof got);
	transfer(IORING_OP_RECV, 7, sv[0], got, 6, MSG_WAITALL)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 8);
	T(enter(r.fd, 2, 0, 0));
	MUST(send(sv[1], "qr", 2, 0));
	now("two of six");
	MUST(shutdown(sv[1], SHUT_WR));
	T(enter(r.fd, 0, 2, IORING_ENTER_GETEVENTS));
	now("the end, and the link breaks");
}

static void sent(void)
{
	static char big[600000], back[sizeof big];
	int small = 4608;
	for (unsigned i = 0; i < sizeof big; i++)
		big[i] = (char)(i / 7);
	MUST(setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
	transfer(IORING_OP_SEND, 9, sv[0], big, sizeof big, MSG_WAITALL);
	T(enter(r.fd, 1, 0, 0));
	size_t have = 0;
	/* Who looks lets the ring go on. */
	while (have < sizeof back) {
		ssize_t n = recv(sv[1], back + have, sizeof back - have, MSG_DONTWAIT);
		if (n > 0)
			have += (size_t)n;
		else if (n == 0 || errno != EAGAIN)
			break;
		enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS);
	}
	IS(have == sizeof back && memcmp(big, back, sizeof big) == 0);
	T(enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	now("all was sent");
}

static void packets(void)
{
	int p[2];
	memset(got, 0, sizeof got);
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, p));
	MUST(send(p[1], "ab", 2, 0));
	transfer(IORING_OP_RECV, 10, p[0], got, 6, MSG_WAITALL)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 11);
	T(enter(r.fd, 2, 2, IORING_ENTER_GETEVENTS));
	now("a datagram is whole, but shorter than all");
	close(p[0]);
	close(p[1]);
}

static void silent(void)
{
	int p[2];
	struct { long long s, ns; } soon = { 0, 20000000 };
	MUST(pipe(p));
	rw(&r, IORING_OP_READ, 12, p[0], got, 8)->flags = IOSQE_IO_LINK;
	struct io_uring_sqe *sqe = next(&r, IORING_OP_LINK_TIMEOUT, 13);
	sqe->addr = (unsigned long)&soon;
	sqe->len = 1;
	sqe->flags = IOSQE_CQE_SKIP_SUCCESS;
	T(enter(r.fd, 2, 1, IORING_ENTER_GETEVENTS));
	sleep_ms(50);
	memset(got, 0, sizeof got);
	now("the read was cancelled, and the timeout says nothing");
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	net_up();
	for (int tcp = 0; tcp < 2; tcp++) {
		SAY("-- %s", tcp ? "TCP" : "AF_UNIX");
		r = ring(8);
		if (tcp)
			connection(&sv[0], &sv[1]);
		else
			MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
		in_parts();
		messages();
		ended();
		sent();
		close(sv[0]);
		close(sv[1]);
		ring_close(&r);
	}
	r = ring(8);
	packets();
	silent();
	return 0;
}
