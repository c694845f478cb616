/*
 * uring_dying.c: what dies under a ring: the table of its files, a group of buffers, their memory, the ring itself, while requests
 * wait for them; a ring that could hold itself; rings of buffers with tails and entries that lie.
 */
#include "uring.h"
#include "rights.h"
#include <sys/epoll.h>
#include <sys/uio.h>

enum { OP_INSTALL = 54, FILES2 = 13, FILES_UPDATE2 = 14, SPARSE = 1, PBUF_RING = 22, UNREGISTER_PBUF = 23, SYNC_CANCEL = 24, STATUS = 26 };
#define ANY 0xffffffffu

struct resources { unsigned nr, flags; unsigned long long resv2, data, tags; };
struct buf { unsigned long addr; unsigned len; unsigned short bid, resv; };
struct buf_reg { unsigned long ring_addr; unsigned entries; unsigned short bgid, flags; unsigned long resv[3]; };

static struct ring r;
static unsigned long count;
static int ends[2];
static char *bytes;
static struct buf *bufs;

static void tail(unsigned short to)
{
	__atomic_store_n((unsigned short *)bufs + 7, to, __ATOMIC_RELEASE);
}

static void group(unsigned entries)
{
	memset(bufs, 0, PAGE);
	struct buf_reg reg_ = { (unsigned long)bufs, entries, 1, 0, { 0 } };
	MUST(reg(r.fd, PBUF_RING, &reg_, 1));
}

static struct io_uring_sqe *recvs(int fd, unsigned len, unsigned prio)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_RECV, ++count, fd, NULL, len);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = 1;
	sqe->ioprio = (unsigned short)prio;
	return sqe;
}

static void sparse(unsigned nr)
{
	struct resources all = { .nr = nr, .flags = SPARSE };
	MUST(reg(r.fd, FILES2, &all, sizeof all));
}

static void update(unsigned at, int fd)
{
	struct io_uring_files_update up = { .offset = at, .fds = (unsigned long)&fd };
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, &up, 1));
}

static struct io_uring_sqe *fixed(struct io_uring_sqe *sqe)
{
	sqe->flags |= IOSQE_FIXED_FILE;
	return sqe;
}

/* A read waits for a file that leaves the table, and is then of nobody else. */
static void table(void)
{
	SAY("-- table");
	r = ring(8);
	sparse(4);
	for (int what = 0; what < 2; what++) {
		char got[4] = { 0 };
		int pipes[2];
		MUST(pipe(pipes));
		update(2, pipes[0]);
		close(pipes[0]);
		fixed(rw(&r, IORING_OP_READ, ++count, 2, got, 4));
		T(enter(r.fd, 1, 0, 0));
		if (what == 0)
			update(2, -1);
		else {
			next(&r, IORING_OP_CLOSE, ++count)->file_index = 3;
			go(&r, 1, 1);
		}
		T(write(pipes[1], "abc", 3));
		go(&r, 0, 1);
		SAY("%s", got);
		/* That was its last end. */
		signal(SIGPIPE, SIG_IGN);
		T(write(pipes[1], "abc", 3));
		close(pipes[1]);
	}
	/* Cancelled by the place of its file, or all of a file. */
	int pipes[2];
	char got[4];
	MUST(pipe(pipes));
	update(1, pipes[0]);
	for (int what = 0; what < 6; what++) {
		fixed(rw(&r, IORING_OP_READ, ++count, 1, got, 4));
		struct io_uring_sqe *sqe = rw(&r, IORING_OP_READ, ++count, pipes[0], got, 4);
		sqe = next(&r, IORING_OP_ASYNC_CANCEL, ++count);
		static const unsigned flags[] = { 2, 2 | 8, 2 | 8 | 1, 4 | 2, 1 | 4, 2 | 1 };
		sqe->cancel_flags = flags[what];
		sqe->fd = what == 1 || what == 2 ? 1 : pipes[0];
		MUST(enter(r.fd, 3, 1, IORING_ENTER_GETEVENTS));
		/* In which order is not said. */
		int all = 0, cancelled = 0, res = 0;
		for (; ready(&r); all++) {
			struct io_uring_cqe *cqe = (struct io_uring_cqe *)(r.rings + r.p.cq_off.cqes) + (*number(&r, r.p.cq_off.head) & (r.p.cq_entries - 1));
			cancelled += cqe->res == -ECANCELED;
			if (cqe->user_data == count)
				res = cqe->res;
			++*number(&r, r.p.cq_off.head);
		}
		SAY("%d answers, %d cancelled, %d", all, cancelled, res);
	}
	struct io_uring_sync_cancel_reg cancel = { .flags = 4 | 1, .timeout = { -1, -1 } };
	T(reg(r.fd, SYNC_CANCEL, &cancel, 1));
	go(&r, 0, 0);
	cancel.flags = 8 | 2, cancel.fd = 1;
	fixed(rw(&r, IORING_OP_READ, ++count, 1, got, 4));
	T(enter(r.fd, 1, 0, 0));
	T(reg(r.fd, SYNC_CANCEL, &cancel, 1));
	go(&r, 0, 1);
	cancel.fd = 0;
	T(reg(r.fd, SYNC_CANCEL, &cancel, 1));
	cancel.fd = 99;
	T(reg(r.fd, SYNC_CANCEL, &cancel, 1));
	close(pipes[0]), close(pipes[1]);
	ring_close(&r);
}

/* What holds the ring is held by it. The runner looks whether anything stays. */
static void loops(void)
{
	SAY("-- loops");
	r = ring(8);
	sparse(4);
	int ep = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	T(epoll_ctl(ep, EPOLL_CTL_ADD, r.fd, &event));
	update(0, ep);
	next(&r, IORING_OP_NOP, ++count);
	T(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	T(epoll_wait(ep, &event, 1, 0));
	take(&r);
	T(epoll_ctl(0, EPOLL_CTL_ADD, 0, &event));
	T(epoll_ctl(0, EPOLL_CTL_ADD, 1, &event));
	T(epoll_ctl(0, EPOLL_CTL_ADD, r.fd, &event));
	int event_fd = (int)syscall(SYS_eventfd2, 0, 0);
	T(epoll_ctl(ep, EPOLL_CTL_ADD, event_fd, &event));
	T(reg(r.fd, IORING_REGISTER_EVENTFD, &event_fd, 1));
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_EPOLL_CTL, ++count, ep, &event, EPOLL_CTL_MOD);
	sqe->off = (unsigned)r.fd;
	go(&r, 1, 1);
	sqe = rw(&r, IORING_OP_EPOLL_CTL, ++count, 0, &event, EPOLL_CTL_ADD);
	sqe->off = (unsigned)ends[0];
	go(&r, 1, 1);
	close(event_fd);
	int sock[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	char c = 'x';
	RIGHTS_ROOM(control, 1);
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int *carried = carry(&msg, control, &r.fd, 1);
	T(sendmsg(sock[0], &msg, 0));
	rw(&r, IORING_OP_SENDMSG, ++count, sock[0], &msg, 1);
	go(&r, 1, 1);
	/* An end that holds the other, and waits for it. */
	*carried = sock[1];
	T(sendmsg(sock[0], &msg, 0));
	*carried = sock[0];
	T(sendmsg(sock[1], &msg, 0));
	update(1, sock[0]), update(2, sock[1]);
	char big[8];
	T(recv(sock[0], big, 1, MSG_PEEK));
	close(sock[0]), close(sock[1]);
	fixed(rw(&r, IORING_OP_POLL_ADD, ++count, 1, NULL, 0))->poll32_events = EPOLLRDHUP;
	T(enter(r.fd, 1, 0, 0));
	close(ep);
	ring_close(&r);
}

/* Its memory and its group go away while a request waits. */
static void buffers(void)
{
	SAY("-- buffers");
	for (int what = 0; what < 10; what++) {
		SAY("%d", what);
		bufs = (void *)pages(2);
		r = ring(8);
		group(4);
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
		for (int i = 0; i < 4; i++) {
			bufs[i].addr = (unsigned long)bytes + (unsigned)i * 64, bufs[i].len = 64, bufs[i].bid = (unsigned short)(i + 10);
		}
		tail(4);
		recvs(ends[0], 0, IORING_RECV_MULTISHOT);
		T(enter(r.fd, 1, 0, 0));
		struct buf_reg reg_ = { .bgid = 1 };
		switch (what) {
		case 1: T(reg(r.fd, UNREGISTER_PBUF, &reg_, 1)); break;
		case 2: T(reg(r.fd, UNREGISTER_PBUF, &reg_, 1)); group(2); bufs[0].addr = (unsigned long)bytes; bufs[0].len = 3; tail(1); break;
		case 3: bufs[0].addr = (unsigned long)KERNEL_ADDRESS; break;
		case 4: bufs[0].len = 0xffffffff; break;
		case 5: bufs[0].len = 0; break;
		case 6: tail(60000); break;
		case 7: bufs[0].addr = 0; break;
		case 9: close(ends[0]); break;
		}
		for (int i = 0; i < 3; i++) {
			T(write(ends[1], "hello", 5));
			go(&r, 0, what == 1 && i ? 0 : 0);
		}
		shutdown(ends[1], SHUT_WR);
		go(&r, 0, 0);
		close(ends[1]);
		if (what != 9)
			close(ends[0]);
		ring_close(&r);
		munmap(bufs, 2 * PAGE);
	}
}

static void lengths(void)
{
	SAY("-- lengths");
	static const unsigned len[] = { 0, 1, 3, 64, 65, 0x7fffffff, 0x80000000, 0xffffffff };
	for (unsigned i = 0; i < sizeof len / sizeof *len; i++)
		for (int op = 0; op < 8; op++) {
			bufs = (void *)pages(1);
			r = ring(8);
			group(4);
			MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
			bufs[0].addr = (unsigned long)bytes, bufs[0].len = 4, bufs[0].bid = 65535;
			tail(1);
			SAY("%u", len[i]);
			MUST(write(ends[1], "hello", 5));
			struct io_uring_sqe *sqe = recvs(ends[0], len[i], op == 2 ? IORING_RECV_MULTISHOT : 0);
			if (op == 0)
				sqe->opcode = IORING_OP_READ, sqe->off = -1ull;
			if (op > 2 && op < 5)
				sqe->flags = 0, sqe->addr = (unsigned long)bytes;
			if (op == 4)
				sqe->opcode = IORING_OP_SEND, sqe->msg_flags = MSG_DONTWAIT;
			struct iovec iov = { NULL, len[i] };
			struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
			if (op == 5 || op == 6)
				sqe->opcode = IORING_OP_RECVMSG, sqe->addr = (unsigned long)&msg, sqe->len = 1;
			if (op == 6)
				sqe->ioprio = IORING_RECV_MULTISHOT;
			if (op == 7)
				bufs[0].addr = 0;
			SAY("op %d", op);
			go(&r, 1, 1);
			unsigned status[10] = { 1 };
			T(reg(r.fd, STATUS, status, 1));
			SAY("head %u", status[1]);
			if (op == 7)
				bufs[0].addr = (unsigned long)bytes, recvs(ends[0], 0, 0), go(&r, 1, 1);
			close(ends[0]), close(ends[1]);
			ring_close(&r);
			munmap(bufs, PAGE);
		}
}

/* A length is a number with a sign, where a socket moves it. */
static void negative(void)
{
	SAY("-- negative");
	static const int ops[] = { IORING_OP_SEND, IORING_OP_RECV, IORING_OP_SENDMSG, IORING_OP_RECVMSG };
	r = ring(8);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	struct iovec iov = { bytes, 3 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	for (unsigned i = 0; i < 4; i++)
		for (unsigned len = 0x7ffff000; len != 0x80001000; len += 0x1000) {
			SAY("%d %#x", ops[i], len);
			int is_message = ops[i] == IORING_OP_SENDMSG || ops[i] == IORING_OP_RECVMSG;
			struct io_uring_sqe *sqe = rw(&r, ops[i], ++count, ends[0], is_message ? (void *)&msg : bytes, len);
			sqe->flags = IOSQE_IO_LINK;
			sqe->msg_flags = MSG_DONTWAIT;
			next(&r, IORING_OP_ASYNC_CANCEL, ++count)->cancel_flags = 5;
			T(enter(r.fd, 2, 0, IORING_ENTER_GETEVENTS));
			sleep_ms(20);
			T(enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
			take(&r);
			T(recv(ends[1], bytes, PAGE, MSG_DONTWAIT) > 0);
		}
	ring_close(&r);
	close(ends[0]), close(ends[1]);
}

/* Headers that say too much. */
static void headers(void)
{
	SAY("-- headers");
	static const struct { unsigned name, control; int many; } h[] = {
		{ 0, 0, 0 }, { 0, 0, 1 }, { 16, 0, 1 }, { 0, 16, 1 }, { 48, 0, 1 }, { 49, 0, 1 }, { 0, 48, 1 }, { 0, 49, 1 }, { 200, 0, 1 },
		{ 0x7fffffff, 0, 1 }, { 0x7ffffff0, 0, 1 }, { 0x40000000, 0x40000000, 1 }, { 0, 0x7ffffff0, 1 }, { 0, 0xffffffff, 1 }, { 0xffffffff, 0, 1 },
		{ 0x7fffffef, 0, 1 }, { 0, 0x7fffffef, 1 }, { 0x80000000, 0, 0 }, { 200, 0, 0 },
	};
	for (unsigned i = 0; i < sizeof h / sizeof *h; i++) {
		bufs = (void *)pages(1);
		r = ring(8);
		group(4);
		MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
		for (int j = 0; j < 4; j++)
			bufs[j].addr = (unsigned long)bytes + (unsigned)j * 64, bufs[j].len = 64, bufs[j].bid = (unsigned short)j;
		tail(4);
		SAY("%u %u %d", h[i].name, h[i].control, h[i].many);
		memset(bytes, 0x55, PAGE);
		MUST(write(ends[1], "hello", 5));
		struct msghdr msg = { .msg_name = h[i].many ? NULL : bytes + 2048, .msg_namelen = h[i].name, .msg_controllen = h[i].control };
		struct io_uring_sqe *sqe = recvs(ends[0], 1, h[i].many ? IORING_RECV_MULTISHOT : 0);
		sqe->opcode = IORING_OP_RECVMSG;
		sqe->addr = (unsigned long)&msg;
		go(&r, 1, 0);
		unsigned *out = (unsigned *)bytes;
		SAY("%u %u %u %#x", out[0], out[1], out[2], out[3]);
		MUST(write(ends[1], "", 0));
		go(&r, 0, 0);
		MUST(write(ends[1], bytes, 200));
		go(&r, 0, 0);
		out += 16;
		SAY("%u %u %u %#x", out[0], out[1], out[2], out[3]);
		close(ends[0]), close(ends[1]);
		ring_close(&r);
		munmap(bufs, PAGE);
	}
}

int main(void)
{
	scratch();
	bytes = pages(1);
	table();
	loops();
	buffers();
	lengths();
	negative();
	headers();
	return 0;
}
