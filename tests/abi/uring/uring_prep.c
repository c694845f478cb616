/*
 * uring_prep.c: what an entry points at is read when the entry is taken. If that fails, the entry is told and the batch ends there, also
 * without a link; with IORING_SETUP_SUBMIT_ALL it goes on. An error of the operation itself ends nothing.
 */
#include "uring.h"
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define BAD ((void *)8)

static struct ring r;
static int sv[2], ep;
static char bytes[8], seen[256];

/* Before it and behind it an entry that does nothing: how many are taken, and what is told. */
static void between(const char *what, struct io_uring_sqe like)
{
	SAY("%s", what);
	next(&r, IORING_OP_NOP, 1);
	struct io_uring_sqe *sqe = next(&r, like.opcode, 2);
	*sqe = like;
	sqe->user_data = 2;
	next(&r, IORING_OP_NOP, 3);
	unsigned submit = 3;
	while (submit) {
		long taken = T(enter(r.fd, submit, 0, IORING_ENTER_GETEVENTS));
		if (taken <= 0)
			break;
		submit -= (unsigned)taken;
		settle(&r, (unsigned)taken);
	}
}

static struct io_uring_sqe entry(int op, int fd, const void *addr, unsigned len, unsigned long off)
{
	struct io_uring_sqe sqe = { .opcode = (unsigned char)op, .fd = fd, .addr = (unsigned long)addr, .len = len, .off = off };
	return sqe;
}

static void all(void)
{
	struct iovec one = { bytes, 4 }, nowhere = { BAD, 4 };
	struct msghdr empty = { 0 }, wrong = { .msg_iov = BAD, .msg_iovlen = 1 };
	struct io_uring_sqe sqe;
	between("readv, no vector", entry(IORING_OP_READV, sv[0], BAD, 1, 0));
	between("readv, 2000 pieces", entry(IORING_OP_READV, sv[0], &one, 2000, 0));
	between("writev, no vector", entry(IORING_OP_WRITEV, sv[0], BAD, 1, 0));
	between("writev, a vector of nothing", entry(IORING_OP_WRITEV, sv[0], &nowhere, 1, 0));
	between("write of nothing", entry(IORING_OP_WRITE, sv[0], BAD, 4, 0));
	between("sendmsg, no header", entry(IORING_OP_SENDMSG, sv[0], BAD, 1, 0));
	between("sendmsg, a header without a vector", entry(IORING_OP_SENDMSG, sv[0], &wrong, 1, 0));
	between("recvmsg, no header", entry(IORING_OP_RECVMSG, sv[0], BAD, 1, 0));
	between("sendmsg of nothing to no socket", entry(IORING_OP_SENDMSG, ep, &empty, 1, 0));
	between("connect, no name", entry(IORING_OP_CONNECT, sv[0], BAD, 0, 16));
	between("connect, a name of 200 bytes", entry(IORING_OP_CONNECT, sv[0], bytes, 0, 200));
	between("timeout, no time", entry(IORING_OP_TIMEOUT, -1, BAD, 1, 0));
	struct { long long s, n; } past = { -1, 0 };
	between("timeout, a time before the first", entry(IORING_OP_TIMEOUT, -1, &past, 1, 0));
	between("epoll_ctl, no event", entry(IORING_OP_EPOLL_CTL, ep, BAD, EPOLL_CTL_ADD, (unsigned long)sv[0]));
	between("epoll_ctl, no epoll", entry(IORING_OP_EPOLL_CTL, sv[0], bytes, EPOLL_CTL_DEL, (unsigned long)sv[1]));
	between("openat, no name", entry(IORING_OP_OPENAT, AT_FDCWD, BAD, 0, 0));
	between("openat, an empty name", entry(IORING_OP_OPENAT, AT_FDCWD, "", 0, 0));
	between("openat, not there", entry(IORING_OP_OPENAT, AT_FDCWD, "/no/such", 0, 0));
	between("mkdirat, an empty name", entry(IORING_OP_MKDIRAT, AT_FDCWD, "", 0, 0));
	between("symlinkat, an empty name", entry(IORING_OP_SYMLINKAT, AT_FDCWD, "/x", 0, (unsigned long)""));
	between("statx, an empty name", entry(IORING_OP_STATX, AT_FDCWD, "", 0, (unsigned long)seen));
	sqe = entry(IORING_OP_STATX, sv[0], "", 0, (unsigned long)seen);
	sqe.statx_flags = AT_EMPTY_PATH;
	between("statx, an empty name that may be", sqe);
	between("statx, no name", entry(IORING_OP_STATX, AT_FDCWD, BAD, 0, (unsigned long)bytes));
	between("unlinkat, no name", entry(IORING_OP_UNLINKAT, AT_FDCWD, BAD, 0, 0));
	between("unlinkat, not there", entry(IORING_OP_UNLINKAT, AT_FDCWD, "/no/such", 0, 0));
	between("mkdirat, no name", entry(IORING_OP_MKDIRAT, AT_FDCWD, BAD, 0, 0));
	between("symlinkat, no name", entry(IORING_OP_SYMLINKAT, AT_FDCWD, BAD, 0, (unsigned long)"/x"));
	between("symlinkat, no second name", entry(IORING_OP_SYMLINKAT, AT_FDCWD, "/x", 0, (unsigned long)BAD));
	sqe = entry(IORING_OP_RENAMEAT, AT_FDCWD, "/no/such", (unsigned)AT_FDCWD, (unsigned long)BAD);
	between("renameat, no second name", sqe);
	sqe = entry(IORING_OP_LINKAT, AT_FDCWD, BAD, (unsigned)AT_FDCWD, (unsigned long)"/x");
	between("linkat, no name", sqe);
}

int main(void)
{
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	ep = (int)MUST(epoll_create1(0));
	r = ring(8);
	all();
	ring_close(&r);
	SAY("\nwith SUBMIT_ALL");
	r = ring_with(8, IORING_SETUP_SUBMIT_ALL, 0);
	all();
	ring_close(&r);
	return 0;
}
