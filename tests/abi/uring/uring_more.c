/*
 * uring_more.c: operations on more than one file, and on what is no file: SPLICE, TEE, SEND_ZC and SEND to an address, MSG_RING,
 * FILES_UPDATE, FUTEX_WAIT and FUTEX_WAKE, WAITID; timeouts that count, come again or get another time; polls that are changed;
 * cancelling by operation, by a registered file, and at once.
 */
#include "uring.h"
#include <netinet/in.h>
#include <arpa/inet.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <net/if.h>
#include <sys/ioctl.h>

enum { OP_WAITID = 50, OP_FUTEX_WAIT = 51, OP_FUTEX_WAKE = 52, CANCEL_OP = 32, CANCEL_USERDATA = 16, TIMEOUT_MULTISHOT = 64 };

static struct ring r;

static struct io_uring_sqe *splices(unsigned long data, int in, int out, unsigned len, unsigned flags)
{
	struct io_uring_sqe *sqe = next(&r, IORING_OP_SPLICE, data);
	sqe->splice_fd_in = in;
	sqe->splice_off_in = -1UL;
	sqe->fd = out;
	sqe->off = -1UL;
	sqe->len = len;
	sqe->splice_flags = flags;
	return sqe;
}

static void splicing(void)
{
	SAY("-- splicing");
	r = ring(8);
	int a[2], b[2], fd = (int)MUST(open("/tmp/uring-more", O_CREAT | O_RDWR | O_TRUNC, 0600));
	char got[32] = { 0 };
	MUST(pipe(a));
	MUST(pipe(b));
	MUST(write(fd, "0123456789", 10));
	struct io_uring_sqe *sqe = splices(1, fd, a[1], 4, 0);
	sqe->splice_off_in = 3;
	go(&r, 1, 1);
	/* TEE leaves the bytes where they are. */
	sqe = next(&r, IORING_OP_TEE, 2);
	sqe->splice_fd_in = a[0];
	sqe->fd = b[1];
	sqe->len = 2;
	go(&r, 1, 1);
	T(read(b[0], got, 9));
	T(read(a[0], got, 9));
	SAY("%s", got);
	splices(3, a[0], fd, 0, 0);
	go(&r, 1, 1);
	splices(4, 999, fd, 5, 0);
	go(&r, 1, 1);
	splices(5, a[0], 999, 5, 0);
	go(&r, 1, 1);
	splices(6, fd, fd, 5, 0);
	go(&r, 1, 1);
	splices(7, a[0], fd, 5, 0x100);
	go(&r, 1, 1);
	splices(8, a[0], b[1], 5, SPLICE_F_NONBLOCK);
	go(&r, 1, 1);
	/* One that waits, and what is linked to it: short, and so the link breaks. */
	splices(9, a[0], b[1], 5, 0)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 10);
	T(enter(r.fd, 2, 0, 0));
	IS(!ready(&r));
	MUST(write(a[1], "xyz", 3));
	go(&r, 0, 2);
	T(read(b[0], got, 9));
	sqe = next(&r, IORING_OP_TEE, 11);
	sqe->splice_fd_in = a[0];
	sqe->fd = b[1];
	sqe->off = 1;
	go(&r, 1, 1);
	ring_close(&r);
	close(fd);
	unlink("/tmp/uring-more");
}

static void sending(void)
{
	SAY("-- sending");
	r = ring(8);
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof at;
	int from = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), to = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), sv[2];
	ioctl(from, SIOCSIFFLAGS, &lo);
	MUST(bind(to, (struct sockaddr *)&at, len));
	MUST(getsockname(to, (struct sockaddr *)&at, &len));
	char got[32];
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_SEND, 1, from, "hello", 5);
	sqe->addr2 = (unsigned long)&at;
	sqe->addr_len = sizeof at;
	go(&r, 1, 1);
	T(recv(to, got, sizeof got, 0));
	sqe = rw(&r, IORING_OP_SEND_ZC, 2, from, "without", 7);
	sqe->addr2 = (unsigned long)&at;
	sqe->addr_len = sizeof at;
	go(&r, 1, 2);
	T(recv(to, got, sizeof got, 0));
	rw(&r, IORING_OP_SEND_ZC, 3, from, "nowhere", 7);
	go(&r, 1, 2);
	rw(&r, IORING_OP_SEND_ZC, 4, 0, "no socket", 7);
	go(&r, 1, 2);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	rw(&r, IORING_OP_SEND_ZC, 5, sv[0], "unix", 4);
	go(&r, 1, 2);
	rw(&r, IORING_OP_SEND_ZC, 6, from, "x", 1)->ioprio = 0x100;
	go(&r, 1, 1);
	rw(&r, IORING_OP_SEND_ZC, 7, from, "x", 1)->flags = IOSQE_CQE_SKIP_SUCCESS;
	go(&r, 1, 1);
	struct iovec parts[2] = { { "a ", 2 }, { "message", 7 } };
	struct msghdr message = { .msg_name = &at, .msg_namelen = sizeof at, .msg_iov = parts, .msg_iovlen = 2 };
	rw(&r, IORING_OP_SENDMSG_ZC, 8, from, &message, 1);
	go(&r, 1, 2);
	T(recv(to, got, sizeof got, 0));
	rw(&r, IORING_OP_SENDMSG_ZC, 9, from, &message, 1)->ioprio = 8;
	go(&r, 1, 2);
	T(recv(to, got, sizeof got, 0));
	rw(&r, IORING_OP_SENDMSG_ZC, 10, from, &message, 1)->flags = IOSQE_ASYNC;
	go(&r, 1, 2);
	T(recv(to, got, sizeof got, 0));
	rw(&r, IORING_OP_SENDMSG_ZC, 11, sv[0], &message, 1);
	go(&r, 1, 2);
	rw(&r, IORING_OP_SENDMSG_ZC, 12, 0, &message, 1);
	go(&r, 1, 2);
	rw(&r, IORING_OP_SENDMSG_ZC, 13, from, (void *)8, 1);
	go(&r, 1, 1);
	rw(&r, IORING_OP_SENDMSG_ZC, 14, from, &message, 1)->addr2 = 8;
	go(&r, 1, 1);
	rw(&r, IORING_OP_SENDMSG_ZC, 15, from, &message, 1)->ioprio = 0x100;
	go(&r, 1, 1);
	rw(&r, IORING_OP_SENDMSG_ZC, 16, from, &message, 1)->flags = IOSQE_CQE_SKIP_SUCCESS;
	go(&r, 1, 1);
	rw(&r, IORING_OP_SENDMSG_ZC, 17, from, &message, 1)->flags = IOSQE_BUFFER_SELECT;
	go(&r, 1, 1);
	ring_close(&r);
}

static struct io_uring_sqe *tells(struct ring *from, unsigned long data, int fd, unsigned len, unsigned long what)
{
	struct io_uring_sqe *sqe = next(from, IORING_OP_MSG_RING, data);
	sqe->fd = fd;
	sqe->len = len;
	sqe->off = what;
	return sqe;
}

static void telling(void)
{
	SAY("-- telling");
	r = ring(8);
	struct ring other = ring(8), off = ring_with(4, IORING_SETUP_R_DISABLED, 0);
	tells(&r, 1, other.fd, 42, 1000);
	go(&r, 1, 1);
	take(&other);
	tells(&r, 2, r.fd, 43, 1001);
	go(&r, 1, 2);
	tells(&r, 3, 0, 0, 0);
	tells(&r, 4, 999, 0, 0);
	tells(&r, 5, off.fd, 0, 0);
	tells(&r, 6, other.fd, 0, 0)->addr = 9;
	tells(&r, 7, other.fd, 0, 0)->addr3 = 9;
	go(&r, 5, 5);
	tells(&r, 8, other.fd, 0, 0)->msg_ring_flags = 64;
	go(&r, 1, 1);
	tells(&r, 9, other.fd, 0x80000000, 1002);
	go(&r, 1, 1);
	go(&other, 0, 1);
	/* Who waits for it wakes. */
	CHILD("a child tells")
		tells(&r, 10, other.fd, 7, 1003);
		T(enter(r.fd, 1, 1, 0));
	END;
	go(&other, 0, 1);
	/* More than fit are kept. */
	r.tail = *number(&r, r.p.sq_off.tail);
	take(&r);
	for (int i = 0; i < 20; i++) {
		tells(&r, 11, other.fd, (unsigned)i, 1004)->flags = IOSQE_CQE_SKIP_SUCCESS;
		MUST(enter(r.fd, 1, 0, 0));
	}
	IS(ready(&other) == 16);
	take(&other);
	go(&other, 0, 4);
	ring_close(&off);
	ring_close(&other);
	ring_close(&r);
}

static void updating(void)
{
	SAY("-- updating files");
	r = ring(8);
	int p[2], fds[3] = { -1, -1, -1 };
	MUST(pipe(p));
	rw(&r, IORING_OP_FILES_UPDATE, 1, -1, &p[1], 1);
	go(&r, 1, 1);
	T(reg(r.fd, IORING_REGISTER_FILES, fds, 3));
	rw(&r, IORING_OP_FILES_UPDATE, 2, -1, &p[1], 1)->off = 2;
	rw(&r, IORING_OP_WRITE, 3, 2, "ab", 2)->flags = IOSQE_FIXED_FILE;
	rw(&r, IORING_OP_FILES_UPDATE, 4, -1, &p[1], 1)->off = 3;
	go(&r, 3, 3);
	rw(&r, IORING_OP_FILES_UPDATE, 5, -1, NULL, 0);
	go(&r, 1, 1);
	/* A request is cancelled by the registered file that it waits for. */
	char got[4];
	T(read(p[0], got, 4));
	T(reg(r.fd, IORING_UNREGISTER_FILES, NULL, 0));
	T(reg(r.fd, IORING_REGISTER_FILES, p, 2));
	rw(&r, IORING_OP_READ, 6, 0, got, 4)->flags = IOSQE_FIXED_FILE;
	T(enter(r.fd, 1, 0, 0));
	next(&r, IORING_OP_ASYNC_CANCEL, 7)->cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_FD_FIXED;
	go(&r, 1, 2);
	rw(&r, IORING_OP_READ, 8, p[0], got, 4);
	rw(&r, IORING_OP_POLL_ADD, 8, p[0], NULL, 0)->poll32_events = POLLIN;
	T(enter(r.fd, 2, 0, 0));
	struct io_uring_sqe *sqe = next(&r, IORING_OP_ASYNC_CANCEL, 9);
	sqe->cancel_flags = CANCEL_OP;
	sqe->len = IORING_OP_POLL_ADD;
	go(&r, 1, 2);
	struct io_uring_sync_cancel_reg now = { .addr = 8, .timeout = { -1, -1 } };
	T(reg(r.fd, IORING_REGISTER_SYNC_CANCEL, &now, 1));
	T(reg(r.fd, IORING_REGISTER_SYNC_CANCEL, &now, 1));
	take(&r);
	now.flags = 1024;
	T(reg(r.fd, IORING_REGISTER_SYNC_CANCEL, &now, 1));
	T(reg(r.fd, IORING_REGISTER_SYNC_CANCEL, NULL, 1));
	ring_close(&r);
}

static unsigned word;

static struct io_uring_sqe *futex(int op, unsigned long data, unsigned *at, unsigned long value, unsigned long mask)
{
	struct io_uring_sqe *sqe = next(&r, op, data);
	sqe->fd = 2 | 128;
	sqe->addr = (unsigned long)at;
	sqe->addr2 = value;
	sqe->addr3 = mask;
	return sqe;
}

static void futexes(void)
{
	SAY("-- futexes");
	r = ring(8);
	futex(OP_FUTEX_WAIT, 1, &word, 1, ~0U);
	futex(OP_FUTEX_WAIT, 2, &word, 0, 0);
	futex(OP_FUTEX_WAIT, 3, KERNEL_ADDRESS, 0, ~0U);
	go(&r, 3, 3);
	futex(OP_FUTEX_WAIT, 4, &word, 0, 1UL << 32);
	go(&r, 1, 1);
	futex(OP_FUTEX_WAIT, 5, &word, 0, ~0U)->fd = 1;
	go(&r, 1, 1);
	futex(OP_FUTEX_WAKE, 6, &word, 1, ~0U);
	go(&r, 1, 1);
	futex(OP_FUTEX_WAIT, 7, &word, 0, 1);
	futex(OP_FUTEX_WAIT, 8, &word, 0, 2);
	futex(OP_FUTEX_WAIT, 9, &word, 0, 4);
	T(enter(r.fd, 3, 0, 0));
	futex(OP_FUTEX_WAKE, 10, &word, 5, 2);
	go(&r, 1, 2);
	T(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	go(&r, 0, 1);
	next(&r, IORING_OP_ASYNC_CANCEL, 11)->addr = 9;
	go(&r, 1, 2);
	T(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	ring_close(&r);
}

static void children(void)
{
	SAY("-- children");
	r = ring(8);
	siginfo_t info;
	struct io_uring_sqe *sqe = next(&r, OP_WAITID, 1);
	sqe->len = P_ALL;
	sqe->file_index = WEXITED;
	sqe->addr2 = (unsigned long)&info;
	go(&r, 1, 1);
	int p[2];
	MUST(pipe(p));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		char byte;
		close(p[1]);
		read(p[0], &byte, 1);
		_exit(7);
	}
	sqe = next(&r, OP_WAITID, 2);
	sqe->len = P_PID;
	sqe->fd = child;
	sqe->file_index = WEXITED | WNOHANG;
	sqe->addr2 = (unsigned long)&info;
	go(&r, 1, 1);
	IS(info.si_pid == 0);
	sqe = next(&r, OP_WAITID, 3);
	sqe->len = P_PID;
	sqe->fd = child;
	sqe->file_index = WEXITED;
	sqe->addr2 = (unsigned long)&info;
	T(enter(r.fd, 1, 0, 0));
	IS(!ready(&r));
	close(p[1]);
	go(&r, 0, 1);
	SAY("mine %d, code %d, status %d, signal %d", info.si_pid == child, info.si_code, info.si_status, info.si_signo);
	sqe = next(&r, OP_WAITID, 4);
	sqe->len = 99;
	sqe->file_index = WEXITED;
	go(&r, 1, 1);
	next(&r, OP_WAITID, 5)->addr = 1;
	go(&r, 1, 1);
	ring_close(&r);
}

static struct io_uring_sqe *timeout(unsigned long data, void *ts, unsigned long count, unsigned flags)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_TIMEOUT, data, -1, ts, 1);
	sqe->off = count;
	sqe->timeout_flags = flags;
	return sqe;
}

/* Waits for so many, for each timeout ends a wait. */
static void all(unsigned count)
{
	while (ready(&r) < count)
		enter(r.fd, 0, count, IORING_ENTER_GETEVENTS);
	take(&r);
}

static void timeouts(void)
{
	SAY("-- timeouts");
	struct { long long s, ns; } hour = { 3600, 0 }, soon = { 0, 5000000 };
	r = ring(8);
	/* After two completions. */
	timeout(1, &hour, 2, 0);
	T(enter(r.fd, 1, 0, 0));
	next(&r, IORING_OP_NOP, 2);
	go(&r, 1, 1);
	next(&r, IORING_OP_NOP, 3);
	go(&r, 1, 2);
	timeout(4, &soon, 3, TIMEOUT_MULTISHOT);
	T(enter(r.fd, 1, 0, 0));
	all(3);
	timeout(5, &soon, 0, TIMEOUT_MULTISHOT | IORING_TIMEOUT_ABS);
	go(&r, 1, 1);
	/* Another time. */
	timeout(6, &hour, 0, 0);
	T(enter(r.fd, 1, 0, 0));
	struct io_uring_sqe *sqe = next(&r, IORING_OP_TIMEOUT_REMOVE, 7);
	sqe->addr = 6;
	sqe->addr2 = (unsigned long)&soon;
	sqe->timeout_flags = IORING_TIMEOUT_UPDATE;
	T(enter(r.fd, 1, 0, 0));
	all(2);
	sqe = next(&r, IORING_OP_TIMEOUT_REMOVE, 8);
	sqe->addr = 6;
	sqe->addr2 = (unsigned long)&soon;
	sqe->timeout_flags = IORING_TIMEOUT_UPDATE;
	go(&r, 1, 1);
	int p[2];
	char got[4];
	MUST(pipe(p));
	rw(&r, IORING_OP_READ, 9, p[0], got, 4)->flags = IOSQE_IO_LINK;
	rw(&r, IORING_OP_LINK_TIMEOUT, 10, -1, &hour, 1);
	T(enter(r.fd, 2, 0, 0));
	sqe = next(&r, IORING_OP_TIMEOUT_REMOVE, 11);
	sqe->addr = 10;
	sqe->addr2 = (unsigned long)&soon;
	sqe->timeout_flags = IORING_LINK_TIMEOUT_UPDATE;
	go(&r, 1, 1);
	sqe = next(&r, IORING_OP_TIMEOUT_REMOVE, 20);
	sqe->addr = 10;
	sqe->addr2 = (unsigned long)&soon;
	sqe->timeout_flags = IORING_TIMEOUT_UPDATE | IORING_LINK_TIMEOUT_UPDATE;
	T(enter(r.fd, 1, 0, 0));
	while (ready(&r) < 3)
		enter(r.fd, 0, 3, IORING_ENTER_GETEVENTS);
	/* Which of the two comes first is not said. */
	*number(&r, r.p.cq_off.head) += 3;
	/* One ends a wait for more. */
	timeout(21, &soon, 0, 0);
	go(&r, 1, 5);
	next(&r, IORING_OP_TIMEOUT_REMOVE, 12)->timeout_flags = 64;
	go(&r, 1, 1);
	/* A poll for something else, and under another name. */
	rw(&r, IORING_OP_POLL_ADD, 13, p[0], NULL, 0)->poll32_events = POLLPRI;
	T(enter(r.fd, 1, 0, 0));
	sqe = next(&r, IORING_OP_POLL_REMOVE, 14);
	sqe->addr = 13;
	sqe->off = 15;
	sqe->len = IORING_POLL_UPDATE_USER_DATA;
	go(&r, 1, 1);
	sqe = next(&r, IORING_OP_POLL_REMOVE, 16);
	sqe->addr = 15;
	sqe->len = IORING_POLL_UPDATE_EVENTS;
	sqe->poll32_events = POLLIN;
	go(&r, 1, 1);
	MUST(write(p[1], "x", 1));
	go(&r, 0, 1);
	sqe = next(&r, IORING_OP_POLL_REMOVE, 17);
	sqe->addr = 15;
	sqe->len = IORING_POLL_UPDATE_EVENTS;
	go(&r, 1, 1);
	next(&r, IORING_OP_POLL_REMOVE, 18)->len = IORING_POLL_ADD_MULTI;
	go(&r, 1, 1);
	next(&r, IORING_OP_POLL_REMOVE, 19)->off = 1;
	go(&r, 1, 1);
	ring_close(&r);
}

int main(void)
{
	splicing();
	sending();
	telling();
	updating();
	futexes();
	children();
	timeouts();
	return 0;
}
