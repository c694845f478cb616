/*
 * Where a read of an AF_UNIX stream ends: behind the bytes that brought descriptors, not before them; between two senders,
 * but only for who asked for credentials (SO_PASSCRED). What a sender's credentials are if nobody asked, MSG_PEEK over
 * several messages, reads of no bytes and into memory that is not there, who refuses what is sent to a socket that is shut, and
 * for how many bytes a read waits (SO_RCVLOWAT).
 */
#include "rights.h"
#include <poll.h>
#include <sys/un.h>

static int sv[2];

static void fresh(int type)
{
	if (sv[0] > 0) {
		close(sv[0]);
		close(sv[1]);
	}
	MUST(socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, sv));
}

static void passcred(int s, int on)
{
	MUST(setsockopt(s, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
}

/* Sends text, with `files` descriptors beside it. */
static void give(const char *text, int files)
{
	int fds[4] = { 0, 0, 0, 0 };
	MUST(send_fds(sv[0], text, strlen(text), fds, (size_t)files, 0));
}

/* The same from a child, by write or by send. */
static pid_t give_from_child(const char *text, int by_write)
{
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		if (by_write)
			write(sv[0], text, strlen(text));
		else
			send(sv[0], text, strlen(text), 0);
		_exit(0);
	}
	reap(child);
	return child;
}

/* Receives and says what came: bytes, descriptors, whose credentials. */
static void get(size_t room, int flags, pid_t child)
{
	char bytes[64] = { 0 }, control[256];
	struct iovec iov = { bytes, room };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(sv[1], &msg, flags | MSG_DONTWAIT);
	if (n < 0) {
		SAY("got %s", err_name(errno));
		return;
	}
	printf("got %zd '%.*s' flags %#x", n, (int)n, bytes, msg.msg_flags);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_type == SCM_RIGHTS) {
			int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			printf(", %d files", count);
			for (int i = 0; i < count; i++) {
				int fd;
				memcpy(&fd, CMSG_DATA(c) + 4 * i, sizeof fd);
				close(fd);
			}
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred cred;
			memcpy(&cred, CMSG_DATA(c), sizeof cred);
			printf(", from %s, user %d, group %d", cred.pid == getpid() ? "me" : cred.pid == 0 ? "nobody" :
			       cred.pid == child ? "the child" : "another", (int)cred.uid, (int)cred.gid);
		}
	}
	printf("\n");
}

static void descriptors(void)
{
	SAY("a read runs into a message with descriptors, not past it");
	fresh(SOCK_STREAM);
	give("ab", 0), give("cd", 1), give("ef", 0);
	get(60, 0, 0), get(60, 0, 0), get(60, 0, 0);
	SAY("two of them");
	give("ab", 1), give("cd", 2), give("ef", 0);
	get(60, 0, 0), get(60, 0, 0), get(60, 0, 0), get(60, 0, 0);
	SAY("they come with the first of their bytes");
	give("abcd", 2), give("ef", 0);
	get(1, 0, 0), get(60, 0, 0), get(60, 0, 0);
	SAY("a read may end just before them");
	give("ab", 0), give("cd", 1);
	get(2, 0, 0), get(60, 0, 0);
	SAY("and within what brought them");
	give("ab", 0), give("cd", 1), give("ef", 0);
	get(3, 0, 0), get(60, 0, 0), get(60, 0, 0);
	SAY("peeked");
	give("ab", 0), give("cd", 1), give("ef", 0);
	get(60, MSG_PEEK, 0), get(3, MSG_PEEK, 0), get(2, MSG_PEEK, 0), get(60, 0, 0), get(60, MSG_PEEK, 0), get(60, 0, 0);
	SAY("MSG_WAITALL ends there too");
	give("ab", 0), give("cd", 1), give("ef", 0);
	get(60, MSG_WAITALL, 0), get(60, MSG_WAITALL, 0);
	SAY("read drops them");
	give("ab", 1), give("cd", 0);
	char bytes[16];
	T(read(sv[1], bytes, 16));
	T(read(sv[1], bytes, 16));
	SAY("no bytes");
	give("ab", 1);
	get(0, 0, 0), get(60, 0, 0);
	T(recv(sv[1], bytes, 0, MSG_DONTWAIT));
	give("ab", 1);
	get(0, MSG_PEEK, 0), get(60, 0, 0);
}

static void peeks(void)
{
	char bytes[64] = { 0 };
	SAY("several messages peeked");
	fresh(SOCK_STREAM);
	give("ab", 0), give("cd", 0), give("ef", 0);
	get(3, MSG_PEEK, 0), get(60, MSG_PEEK, 0), get(3, 0, 0), get(60, MSG_PEEK, 0);
	T(recv(sv[1], bytes, 3, MSG_PEEK | MSG_WAITALL));
	T(recv(sv[1], bytes, 9, MSG_PEEK | MSG_WAITALL));
	get(60, 0, 0), get(60, MSG_PEEK, 0);
	SAY("memory that is not there");
	give("abcdefgh", 0);
	T(recv(sv[1], page_end() - 4, 8, 0));
	T(recv(sv[1], page_end() - 4, 4, MSG_PEEK));
	T(read(sv[1], page_end(), 8));
	get(60, 0, 0);
	give("abcd", 0), give("efgh", 0);
	T(recv(sv[1], page_end() - 6, 8, 0));
	get(60, 0, 0);
	give("abcd", 1);
	T(recv(sv[1], page_end() - 2, 4, 0));
	get(60, 0, 0);
	fresh(SOCK_DGRAM);
	give("abcdefgh", 0), give("next", 0);
	T(recv(sv[1], page_end() - 4, 8, MSG_PEEK));
	T(recv(sv[1], page_end() - 4, 8, 0));
	get(60, 0, 0), get(60, 0, 0);
}

static void credentials(int type)
{
	SAY("credentials, type %d", type);
	fresh(type);
	SAY("not asked for: reads are not split");
	pid_t child = give_from_child("ab", 0);
	give("cd", 0);
	get(60, 0, child), get(60, 0, child);
	SAY("asked for: they are");
	passcred(sv[1], 1);
	child = give_from_child("ab", 0);
	give("cd", 0), give("ef", 0);
	get(60, 0, child), get(60, 0, child), get(60, 0, child);
	SAY("peeked");
	child = give_from_child("ab", 0);
	give("cd", 0), give("ef", 0);
	get(60, MSG_PEEK, child), get(60, 0, child), get(3, MSG_PEEK, child), get(60, 0, child), get(60, 0, child);
	SAY("by write too");
	child = give_from_child("ab", 1);
	write(sv[0], "cd", 2);
	get(60, 0, child), get(60, 0, child);
	SAY("asked for too late");
	passcred(sv[1], 0);
	child = give_from_child("ab", 0);
	give("cd", 0);
	passcred(sv[1], 1);
	give("ef", 0);
	get(60, 0, child), get(60, 0, child), get(60, 0, child);
	SAY("asked for by the sender alone");
	passcred(sv[1], 0);
	passcred(sv[0], 1);
	child = give_from_child("ab", 0);
	give("cd", 0);
	passcred(sv[1], 1);
	get(60, 0, child), get(60, 0, child);
	passcred(sv[0], 0);
	SAY("the user is the real one");
	fflush(stdout);
	child = (pid_t)MUST(fork());
	if (child == 0) {
		MUST(setresgid(5, 6, 7));
		MUST(setresuid(2, 3, 4));
		write(sv[0], "ab", 2);
		send(sv[0], "cd", 2, 0);
		_exit(0);
	}
	reap(child);
	get(60, 0, child), get(60, 0, child);
	SAY("at the end");
	shutdown(sv[0], SHUT_WR);
	get(60, 0, child);
}

/* A connection that nobody has accepted yet may ask for them still. */
static void not_accepted(void)
{
	SAY("sent before the connection is accepted");
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "listener" };
	int l = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(bind(l, (struct sockaddr *)&name, sizeof name));
	MUST(listen(l, 1));
	close(sv[0]);
	close(sv[1]);
	sv[0] = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(connect(sv[0], (struct sockaddr *)&name, sizeof name));
	pid_t child = give_from_child("ab", 1);
	sv[1] = (int)MUST(accept(l, NULL, NULL));
	give("cd", 0);
	passcred(sv[1], 1);
	get(60, 0, child), get(60, 0, child);
	close(l);
}

static void refusals(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "receiver" };
	socklen_t len = sizeof name;
	int how[] = { SHUT_RD, SHUT_WR, SHUT_RDWR };
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 3; i++) {
		SAY("a datagram receiver that is shut: %d", how[i]);
		int r = (int)MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), s = (int)MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
		unlink(name.sun_path);
		MUST(bind(r, (struct sockaddr *)&name, len));
		T(shutdown(r, how[i]));
		T(sendto(s, "x", 1, 0, (struct sockaddr *)&name, len));
		T(connect(s, (struct sockaddr *)&name, len));
		T(send(s, "x", 1, 0));
		T(write(s, "x", 1));
		struct pollfd p = { s, POLLIN | POLLOUT | POLLRDHUP, 0 };
		T(poll(&p, 1, 0));
		SAY("revents %#x", p.revents);
		close(r);
		T(send(s, "x", 1, 0));
		T(send(s, "x", 1, 0));
		T(sendto(s, "x", 1, 0, (struct sockaddr *)&name, len));
		close(s);
		SAY("a pair of datagram sockets");
		fresh(SOCK_DGRAM);
		T(shutdown(sv[1], how[i]));
		T(send(sv[0], "x", 1, 0));
		T(send(sv[1], "x", 1, MSG_DONTWAIT));
		close(sv[1]);
		T(send(sv[0], "x", 1, 0));
		T(send(sv[0], "x", 1, 0));
		sv[1] = (int)MUST(dup(sv[0]));
		SAY("packets");
		fresh(SOCK_SEQPACKET);
		T(shutdown(sv[1], how[i]));
		T(send(sv[0], "x", 1, 0));
		T(send(sv[1], "x", 1, 0));
	}
	signal(SIGPIPE, SIG_DFL);
	int types[] = { SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM };
	for (int i = 0; i < 3; i++) {
		fresh(types[i]);
		shutdown(sv[1], SHUT_RD);
		SAY("SIGPIPE, type %d", types[i]);
		CHILD("send") {
			T(send(sv[0], "x", 1, 0));
		} END;
		CHILD("write") {
			T(write(sv[0], "x", 1));
		} END;
	}
}

/* SO_RCVLOWAT: a read of a stream waits for as many bytes, if it has room for them; a poll does not. */
static void low_water(int type)
{
	int sv[2], low = 0;
	socklen_t len = sizeof low;
	char got[16];
	SAY("low water of type %d", type);
	MUST(socketpair(AF_UNIX, type, 0, sv));
	static const int values[] = { 0, -1, 7, 5 };
	for (int i = 0; i < 4; i++) {
		T(setsockopt(sv[0], SOL_SOCKET, SO_RCVLOWAT, &values[i], sizeof values[i]));
		MUST(getsockopt(sv[0], SOL_SOCKET, SO_RCVLOWAT, &low, &len));
		SAY("%d", low);
	}
	struct timeval soon = { 0, 200000 };
	MUST(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon));
	for (size_t room = 2; room <= 10; room += 4) {
		struct pollfd p = { sv[0], POLLIN, 0 };
		MUST(write(sv[1], "abc", 3));
		T(poll(&p, 1, 0));
		T(recv(sv[0], got, room, 0));
		T(recv(sv[0], got, room, MSG_DONTWAIT));
	}
	soon = (struct timeval){ 0, 0 };
	MUST(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon));
	MUST(write(sv[1], "abc", 3));
	pid_t parent = getpid(), writer = (pid_t)MUST(fork());
	if (writer == 0) {
		wait_state(parent, "S");
		write(sv[1], "de", 2);
		_exit(0);
	}
	T(recv(sv[0], got, sizeof got, 0));
	reap(writer);
	MUST(write(sv[1], "abc", 3));
	close(sv[1]);
	T(recv(sv[0], got, sizeof got, MSG_DONTWAIT) > 0);
	close(sv[0]);
}

int main(void)
{
	scratch();
	low_water(SOCK_STREAM);
	low_water(SOCK_SEQPACKET);
	descriptors();
	peeks();
	credentials(SOCK_STREAM);
	credentials(SOCK_DGRAM);
	credentials(SOCK_SEQPACKET);
	not_accepted();
	refusals();
	return 0;
}
