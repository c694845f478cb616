/*
 * uring_stable.c: what an entry points at is read while it is submitted (IORING_FEAT_SUBMIT_STABLE): vectors, headers, names of sockets and
 * of files, times and events are overwritten while their requests wait, for their files, behind a link or behind a drain.
 */
#include "net.h"
#include "uring.h"
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/uio.h>

#ifndef IORING_OP_BIND
#define IORING_OP_BIND 56
#endif

static struct ring r;
static int gate[2];
static char passed[4];

/* Submits what is there behind a read of an empty pipe. */
static void behind(unsigned how)
{
	rw(&r, IORING_OP_READ, 100, gate[0], passed, 1)->flags = (unsigned char)how;
}

static void open_gate(unsigned least)
{
	MUST(write(gate[1], "g", 1));
	go(&r, 0, least);
}

static void submit(unsigned count)
{
	T(enter(r.fd, count, 0, IORING_ENTER_GETEVENTS));
	take(&r);
}

static void vectors(void)
{
	SAY("-- vectors");
	int p[2];
	char a[4] = "", b[4] = "";
	MUST(pipe(p));
	struct iovec iov[2] = { { a, 2 }, { b, 2 } };
	rw(&r, IORING_OP_READV, 1, p[0], iov, 2);
	submit(1);
	memset(iov, 0, sizeof iov);
	MUST(write(p[1], "wxyz", 4));
	go(&r, 0, 1);
	SAY("%.2s %.2s", a, b);
	SAY("behind a link");
	iov[0] = (struct iovec){ a, 1 };
	iov[1] = (struct iovec){ b, 3 };
	MUST(write(p[1], "stuv", 4));
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_READV, 2, p[0], iov, 2);
	submit(2);
	memset(iov, 0xff, sizeof iov);
	open_gate(2);
	SAY("%.1s %.3s", a, b);
	SAY("behind a drain");
	iov[0] = (struct iovec){ "op", 2 };
	iov[1] = (struct iovec){ "qr", 2 };
	behind(0);
	rw(&r, IORING_OP_WRITEV, 3, p[1], iov, 2)->flags = IOSQE_IO_DRAIN;
	submit(2);
	memset(iov, 0, sizeof iov);
	open_gate(2);
	MUST(read(p[0], a, 4));
	SAY("%.4s", a);
	SAY("what cannot be read");
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_READV, 4, p[0], (void *)8, 2);
	submit(2);
	rw(&r, IORING_OP_READV, 5, p[0], (void *)8, 2);
	go(&r, 1, 1);
	close(p[0]);
	close(p[1]);
}

static void messages(void)
{
	SAY("-- messages");
	int s[2];
	char a[8] = "", control[64];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	struct iovec iov = { a, 8 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	rw(&r, IORING_OP_RECVMSG, 1, s[0], &m, 1);
	submit(1);
	memset(&m, 0x11, sizeof m);
	memset(&iov, 0x11, sizeof iov);
	MUST(write(s[1], "hello", 5));
	go(&r, 0, 1);
	SAY("%s, control %zu, flags %#x, vector %s", a, m.msg_controllen, m.msg_flags,
	    m.msg_iov == (void *)0x1111111111111111 ? "as it was" : "written");
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof to;
	int u = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), v = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(u, (void *)&to, len));
	MUST(getsockname(u, (void *)&to, &len));
	struct sockaddr_in name = to;
	iov = (struct iovec){ "sent", 4 };
	m = (struct msghdr){ .msg_name = &name, .msg_namelen = sizeof name, .msg_iov = &iov, .msg_iovlen = 1 };
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_SENDMSG, 2, v, &m, 1);
	submit(2);
	memset(&name, 0, sizeof name);
	memset(&iov, 0, sizeof iov);
	memset(&m, 0, sizeof m);
	open_gate(2);
	SAY("%ld", report("recv", recv(u, a, 8, MSG_DONTWAIT)));
	name = to;
	for (int zc = 0; zc < 2; zc++) {
		behind(IOSQE_IO_LINK);
		struct io_uring_sqe *sqe = rw(&r, zc ? IORING_OP_SEND_ZC : IORING_OP_SEND, 3, v, "name", 4);
		name = to;
		sqe->addr2 = (unsigned long)&name;
		sqe->addr_len = sizeof name;
		submit(2);
		memset(&name, 0, sizeof name);
		open_gate(zc ? 3 : 2);
		SAY("%ld", report("recv", recv(u, a, 8, MSG_DONTWAIT)));
	}
	SAY("no such memory");
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_SENDMSG, 4, v, (void *)8, 1)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 5);
	submit(3);
	close(u);
	close(v);
	SAY("-- connections");
	int l = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	to.sin_port = 0;
	name = to;
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_BIND, 6, l, &name, 0)->addr2 = sizeof name;
	submit(2);
	memset(&name, 0xff, sizeof name);
	open_gate(2);
	MUST(listen(l, 1));
	MUST(getsockname(l, (void *)&to, &len));
	name = to;
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_CONNECT, 7, c, &name, 0)->addr2 = sizeof name;
	submit(2);
	memset(&name, 0xff, sizeof name);
	open_gate(2);
	close(l);
	close(c);
	close(s[0]);
	close(s[1]);
}

static void times(void)
{
	SAY("-- times");
	struct timespec begin, soon = { 0, 20000000 }, hour = { 3600, 0 };
	int p[2];
	MUST(pipe(p));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_TIMEOUT, 1, -1, &soon, 1);
	submit(2);
	soon = hour;
	open_gate(2);
	soon = (struct timespec){ 0, 20000000 };
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_READ, 2, p[0], passed, 1)->flags = IOSQE_IO_LINK;
	rw(&r, IORING_OP_LINK_TIMEOUT, 3, -1, &soon, 1);
	submit(3);
	soon = hour;
	MUST(write(gate[1], "g", 1));
	T(enter(r.fd, 0, 3, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 3);
	*number(&r, r.p.cq_off.head) += 3;
	rw(&r, IORING_OP_TIMEOUT, 4, -1, &hour, 1);
	behind(IOSQE_IO_LINK);
	soon = (struct timespec){ 0, 20000000 };
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_TIMEOUT_REMOVE, 5, -1, (void *)4, 0);
	sqe->addr2 = (unsigned long)&soon;
	sqe->timeout_flags = IORING_TIMEOUT_UPDATE;
	submit(3);
	soon = hour;
	open_gate(3);
	IS(elapsed_ms(&begin) < 20000);
	SAY("a time that is none");
	soon = (struct timespec){ 0, -1 };
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_TIMEOUT, 6, -1, &soon, 1);
	submit(2);
	close(p[0]);
	close(p[1]);
}

static void epoll_events(void)
{
	SAY("-- events");
	int e = (int)MUST(epoll_create1(0)), p[2];
	MUST(pipe(p));
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 42 };
	behind(IOSQE_IO_LINK);
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_EPOLL_CTL, 1, e, &event, EPOLL_CTL_ADD);
	sqe->off = (unsigned long)p[0];
	submit(2);
	memset(&event, 0, sizeof event);
	open_gate(2);
	MUST(write(p[1], "a", 1));
	T(epoll_wait(e, &event, 1, 0));
	SAY("%#x %lu", event.events, event.data.u64);
	close(p[0]);
	close(p[1]);
	close(e);
}

static void names(void)
{
	SAY("-- names of files");
	char a[32], b[32];
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 0600 };
	struct statx st;
	strcpy(a, "opened");
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_OPENAT, 1, AT_FDCWD, a, 0600)->open_flags = O_CREAT | O_WRONLY | O_CLOEXEC;
	submit(2);
	strcpy(a, "other");
	MUST(write(gate[1], "g", 1));
	T(enter(r.fd, 0, 2, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 2);
	*number(&r, r.p.cq_off.head) += 2;
	T(access("opened", F_OK));
	strcpy(a, "opened2");
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_OPENAT2, 2, AT_FDCWD, a, sizeof how)->off = (unsigned long)&how;
	submit(2);
	strcpy(a, "other");
	memset(&how, 0xff, sizeof how);
	MUST(write(gate[1], "g", 1));
	T(enter(r.fd, 0, 2, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 2);
	*number(&r, r.p.cq_off.head) += 2;
	T(access("opened2", F_OK));
	static const struct {
		int op;
		const char *a, *b;
		unsigned len;
	} all[] = {
		{ IORING_OP_MKDIRAT, "dir", NULL, 0700 },
		{ IORING_OP_SYMLINKAT, "opened", "symlink", 0 },
		{ IORING_OP_LINKAT, "opened", "link", (unsigned)AT_FDCWD },
		{ IORING_OP_RENAMEAT, "link", "renamed", (unsigned)AT_FDCWD },
		{ IORING_OP_UNLINKAT, "opened2", NULL, 0 },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		strcpy(a, all[i].a);
		strcpy(b, all[i].b ? all[i].b : "");
		behind(IOSQE_IO_LINK);
		struct io_uring_sqe *sqe = rw(&r, all[i].op, 3 + i, AT_FDCWD, a, all[i].len);
		if (all[i].b)
			sqe->addr2 = (unsigned long)b;
		submit(2);
		strcpy(a, "other");
		strcpy(b, "another");
		open_gate(2);
	}
	strcpy(a, "dir");
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_STATX, 10, AT_FDCWD, a, STATX_TYPE)->off = (unsigned long)&st;
	submit(2);
	strcpy(a, "other");
	open_gate(2);
	IS(S_ISDIR(st.stx_mode));
	T(access("symlink", F_OK));
	T(access("renamed", F_OK));
	T(access("opened2", F_OK));
	T(access("other", F_OK));
	SAY("no such memory");
	behind(IOSQE_IO_LINK);
	rw(&r, IORING_OP_UNLINKAT, 11, AT_FDCWD, (void *)8, 0);
	submit(2);
	rw(&r, IORING_OP_MKDIRAT, 12, AT_FDCWD, (void *)8, 0700);
	go(&r, 1, 1);
}

int main(void)
{
	scratch();
	net_up();
	r = ring(16);
	IS(r.p.features & IORING_FEAT_SUBMIT_STABLE);
	MUST(pipe(gate));
	vectors();
	messages();
	times();
	epoll_events();
	names();
	return 0;
}
