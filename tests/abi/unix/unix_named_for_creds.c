/*
 * A socket that wants credentials (SO_PASSCRED) has a name once it has tried to connect, or to send a message: any free one,
 * if it had none, and its receiver is told. To ask for any name changes nothing where there is one; one that comes while
 * somebody connects disturbs nobody.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct sockaddr_un there = { AF_UNIX, "there" }, nowhere = { AF_UNIX, "nowhere" };

/* How the name of a socket looks. */
static void name_of(const char *what, int s)
{
	struct sockaddr_un name = { 0 };
	socklen_t len = sizeof name;
	MUST(getsockname(s, (struct sockaddr *)&name, &len));
	SAY("%s: %d bytes, %s", what, (int)len, len == 2 ? "none" : name.sun_path[0] ? name.sun_path : "abstract");
}

static int wanting(int kind, int on)
{
	int s = (int)MUST(socket(AF_UNIX, kind, 0));
	MUST(setsockopt(s, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	return s;
}

static void each(int kind)
{
	struct sockaddr_un own = { AF_UNIX, "own" };
	int listener = (int)MUST(socket(AF_UNIX, kind, 0));
	MUST(bind(listener, (struct sockaddr *)&there, sizeof there));
	if (kind != SOCK_DGRAM)
		MUST(listen(listener, 4));
	for (int on = 0; on < 2; on++) {
		int s = wanting(kind, on);
		SAY("kind %d, wanted: %d", kind, on);
		name_of("at first", s);
		T(connect(s, (struct sockaddr *)&there, 2));
		name_of("to no name", s);
		T(connect(s, (struct sockaddr *)&nowhere, sizeof nowhere));
		name_of("to nowhere", s);
		T(connect(s, (struct sockaddr *)&there, sizeof there));
		name_of("connected", s);
		T(connect(s, (struct sockaddr *)&there, sizeof there));
		close(s);
	}
	int s = wanting(kind, 1);
	MUST(bind(s, (struct sockaddr *)&own, sizeof own));
	T(connect(s, (struct sockaddr *)&there, sizeof there));
	name_of("with a name of its own", s);
	close(s);
	close(listener);
	unlink("there");
	unlink("own");
}

/* What a receiver who wants credentials is told of the sender. */
static void got(int s)
{
	char byte, control[CMSG_SPACE(64)];
	struct sockaddr_un from = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control, .msg_controllen = sizeof control };
	if (T(recvmsg(s, &msg, MSG_DONTWAIT)) < 0)
		return;
	int digits = 0;
	for (int i = 1; i < 6; i++)
		digits += strchr("0123456789abcdef", from.sun_path[i]) != NULL && from.sun_path[i];
	SAY("from %d bytes, family %d, %d digits, flags %#x", (int)msg.msg_namelen, from.sun_family, digits, msg.msg_flags);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		struct ucred *cred = (void *)CMSG_DATA(c);
		SAY("type %d: own %d, uid %d, gid %d", c->cmsg_type, cred->pid == getpid(), cred->uid, cred->gid);
	}
}

/* Datagrams to a receiver who wants credentials or not, from a sender who does or not. */
static void sends(int receiver_wants, int sender_wants)
{
	static char large[1 << 20];
	int r = wanting(SOCK_DGRAM, receiver_wants), s = wanting(SOCK_DGRAM, sender_wants);
	SAY("the receiver wants: %d, the sender: %d", receiver_wants, sender_wants);
	MUST(bind(r, (struct sockaddr *)&there, sizeof there));
	T(send(s, "x", 1, 0));
	name_of("with no peer", s);
	T(sendto(s, "x", 1, 0, (struct sockaddr *)&there, 2));
	name_of("to no name", s);
	T(sendto(s, "x", 1, MSG_OOB, (struct sockaddr *)&there, sizeof there));
	name_of("out of band", s);
	T(sendto(s, "x", 1, 0, (struct sockaddr *)&there, sizeof there));
	name_of("to a name", s);
	got(r);
	close(s);
	s = wanting(SOCK_DGRAM, sender_wants);
	T(sendto(s, "x", 1, 0, (struct sockaddr *)&nowhere, sizeof nowhere));
	name_of("to nowhere", s);
	close(s);
	s = wanting(SOCK_DGRAM, sender_wants);
	T(sendto(s, large, sizeof large, 0, (struct sockaddr *)&there, sizeof there));
	name_of("too large", s);
	close(s);
	s = wanting(SOCK_DGRAM, 0);
	MUST(connect(s, (struct sockaddr *)&there, sizeof there));
	MUST(setsockopt(s, SOL_SOCKET, SO_PASSCRED, &sender_wants, sizeof sender_wants));
	name_of("connected before", s);
	T(send(s, "x", 1, 0));
	name_of("to its peer", s);
	got(r);
	T(write(s, "x", 1));
	got(r);
	close(s);
	close(r);
	unlink("there");
}

/* Pairs have no names: those that carry messages get one when they send. */
static void pairs(int kind)
{
	int sv[2], on = 1;
	SAY("pair of kind %d", kind);
	MUST(socketpair(AF_UNIX, kind, 0, sv));
	MUST(setsockopt(sv[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	T(write(sv[1], "x", 1));
	got(sv[0]);
	name_of("who receives", sv[0]);
	T(write(sv[0], "x", 1));
	name_of("who has sent", sv[0]);
	got(sv[1]);
	T(shutdown(sv[1], SHUT_RDWR));
	close(sv[0]);
	close(sv[1]);
}

static void any_name(void)
{
	struct sockaddr_un name = { 0 }, again = { 0 }, own = { AF_UNIX, "own" };
	socklen_t len = sizeof name, size = sizeof again;
	int s = wanting(SOCK_DGRAM, 0);
	SAY("any name");
	T(bind(s, (struct sockaddr *)&there, 2));
	MUST(getsockname(s, (struct sockaddr *)&name, &len));
	T(bind(s, (struct sockaddr *)&there, 2));
	MUST(getsockname(s, (struct sockaddr *)&again, &size));
	IS(len == 8 && size == len && memcmp(&name, &again, len) == 0);
	T(bind(s, (struct sockaddr *)&own, sizeof own));
	T(access("own", F_OK));
	close(s);
	s = wanting(SOCK_DGRAM, 0);
	MUST(bind(s, (struct sockaddr *)&own, sizeof own));
	T(bind(s, (struct sockaddr *)&there, 2));
	name_of("its own", s);
	close(s);
	unlink("own");
}

static volatile int shared = -1, stop;

/* Gives each socket that it sees a name. */
static void *binds(void *arg)
{
	int *odd = arg;
	while (!stop) {
		int s = shared;
		if (s < 0)
			continue;
		struct sockaddr_un name = { AF_UNIX, "\0race" };
		if (bind(s, (struct sockaddr *)&name, 7) != 0 && errno != EINVAL)
			(*odd)++;
		shared = -1;
	}
	return NULL;
}

static void races(void)
{
	pthread_t thread;
	int odd = 0, failed = 0, r = wanting(SOCK_DGRAM, 0);
	MUST(bind(r, (struct sockaddr *)&there, sizeof there));
	pthread_create(&thread, NULL, binds, &odd);
	for (int i = 0; i < 3000; i++) {
		int s = wanting(SOCK_DGRAM, 1);
		shared = s;
		failed += connect(s, (struct sockaddr *)&there, sizeof there) != 0;
		failed += connect(s, (struct sockaddr *)&there, sizeof there) != 0;
		while (shared >= 0)
			sched_yield();
		close(s);
	}
	stop = 1;
	pthread_join(thread, NULL);
	SAY("connects that failed: %d, odd binds: %d", failed, odd);
	close(r);
	unlink("there");
}

int main(void)
{
	scratch();
	each(SOCK_STREAM);
	each(SOCK_SEQPACKET);
	each(SOCK_DGRAM);
	for (int wants = 0; wants < 4; wants++)
		sends(wants & 1, wants >> 1);
	pairs(SOCK_STREAM);
	pairs(SOCK_SEQPACKET);
	pairs(SOCK_DGRAM);
	any_name();
	races();
	return 0;
}
