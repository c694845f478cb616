/*
 * uring_person.c: a request with a personality that has to wait is carried out as that one, whoever goes on with it: the sender's
 * identity that a socket tells. So is it when the personality has been taken back meanwhile.
 */
#define _GNU_SOURCE
#include "../uring.h"
#include <sys/socket.h>
#include <sys/wait.h>

static struct ring r;
static int sv[2];

/* Fills the socket: how many bytes. */
static size_t fill(void)
{
	static char bytes[4096];
	size_t all = 0;
	for (ssize_t n; (n = send(sv[0], bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
		all += (size_t)n;
	return all;
}

static void drain(size_t all)
{
	static char bytes[4096];
	while (all) {
		ssize_t n = MUST(recv(sv[1], bytes, all < sizeof bytes ? all : sizeof bytes, 0));
		all -= (size_t)n;
	}
}

static void from_whom(void)
{
	char bytes[64], control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = { bytes, sizeof bytes };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n = MUST(recvmsg(sv[1], &m, 0));
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	struct ucred cred = { 0 };
	if (c && c->cmsg_type == SCM_CREDENTIALS)
		memcpy(&cred, CMSG_DATA(c), sizeof cred);
	SAY("\"%.*s\" from user %d, group %d", (int)n, bytes, (int)cred.uid, (int)cred.gid);
}

static int person(uid_t uid, gid_t gid)
{
	MUST(setresgid(gid, gid, 0));
	MUST(setresuid(uid, uid, 0));
	int id = (int)reg(r.fd, IORING_REGISTER_PERSONALITY, NULL, 0);
	MUST(setresuid(0, 0, 0));
	MUST(setresgid(0, 0, 0));
	return id;
}

static void sends(const char *what, int personality, int taken_back)
{
	SAY("-- %s", what);
	size_t filled = fill();
	rw(&r, IORING_OP_SEND, 1, sv[0], "waits", 5)->personality = (unsigned short)personality;
	T(enter(r.fd, 1, 0, 0));
	SAY("%u completions", ready(&r));
	if (taken_back)
		T(reg(r.fd, IORING_UNREGISTER_PERSONALITY, NULL, (unsigned)personality));
	drain(filled);
	go(&r, 0, 1);
	from_whom();
	SAY("as user %d", (int)getuid());
}

int main(void)
{
	int on = 1;
	alarm(20);
	r = ring(8);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	MUST(setsockopt(sv[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	int somebody = person(1000, 2000), other = person(1001, 2001);
	SAY("%d %d", somebody, other);
	sends("nobody else", 0, 0);
	sends("a personality", somebody, 0);
	sends("one that is taken back", other, 1);
	rw(&r, IORING_OP_SEND, 2, sv[0], "at once", 7)->personality = (unsigned short)somebody;
	go(&r, 1, 1);
	from_whom();
	rw(&r, IORING_OP_SEND, 3, sv[0], "gone", 4)->personality = (unsigned short)other;
	go(&r, 1, 1);
	/* What is linked to one that waits is carried out as its own. */
	size_t filled = fill();
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_SEND, 4, sv[0], "first", 5);
	sqe->personality = (unsigned short)somebody;
	sqe->flags = IOSQE_IO_LINK;
	rw(&r, IORING_OP_SEND, 5, sv[0], "second", 6);
	T(enter(r.fd, 2, 0, 0));
	drain(filled);
	go(&r, 0, 2);
	from_whom();
	from_whom();
	return 0;
}
