/*
 * Descriptors in flight: sockets sent over themselves or over each other are collected when nobody has them,
 * those that somebody can still reach are not; long chains; the limits of a message and of a user.
 */
#include "rights.h"
#include <sys/resource.h>
#include <sys/un.h>

static int pass(int over, const int *fds, int count)
{
	return (int)send_fds(over, "f", 1, fds, (size_t)count, MSG_DONTWAIT);
}

static int take(int from)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	if (recvmsg(from, &msg, MSG_DONTWAIT) < 0)
		return -1;
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = -1;
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
	return fd;
}

/* How many AF_UNIX sockets there are. */
static int sockets(void)
{
	const char *text = read_file("/proc/net/unix");
	int lines = -1;
	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* How many there are when what programs before this one left behind is collected. */
static int base;

static void open_and_close(void)
{
	int sv[2];
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	close(sv[0]);
	close(sv[1]);
}

/* Closing enough of them makes either kernel look for garbage, which may take it a moment. */
static int rest(void)
{
	int last = -1, same = 0;
	while (same < 10) {
		for (int i = 0; i < 300; i++)
			open_and_close();
		sleep_ms(20);
		int now = sockets();
		same = now == last ? same + 1 : 0;
		last = now;
	}
	return last;
}

/* Linux collects in a moment, after another socket was closed. */
static int settles_at(int wanted)
{
	for (int i = 0; i < 100; i++) {
		open_and_close();
		if (sockets() == wanted)
			return 1;
		sleep_ms(20);
	}
	SAY("%d sockets, not %d", sockets(), wanted);
	return 0;
}

static void cycles(int type)
{
	int before = base;
	for (int i = 0; i < 50; i++) {
		int a[2], b[2];
		MUST(socketpair(AF_UNIX, type, 0, a));
		MUST(socketpair(AF_UNIX, type, 0, b));
		/* over itself */
		pass(a[0], &a[1], 1);
		pass(a[1], &a[0], 1);
		/* over each other */
		pass(b[0], a, 2);
		pass(a[0], b, 2);
		close(a[0]);
		close(a[1]);
		close(b[0]);
		close(b[1]);
	}
	IS(settles_at(before));
}

static void reachable(void)
{
	int before = base, keep[2], a[2], fd;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, keep));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, a));
	write(a[0], "kept", 4);
	pass(a[1], &a[0], 1);
	pass(keep[0], &a[1], 1);
	close(a[0]);
	close(a[1]);
	IS(settles_at(before + 3));
	fd = take(keep[1]);
	IS(fd >= 0);
	char buf[8] = "";
	T(recv(fd, buf, 4, 0));
	SAY("%s", buf);
	close(fd);
	close(keep[0]);
	close(keep[1]);
	IS(settles_at(before));
}

/* A listener in flight with a connection that nobody has accepted, over which the listener was sent. */
static void listener(void)
{
	int before = base;
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0abi-cycle" };
	int l = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0)), c = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(bind(l, (struct sockaddr *)&name, sizeof name));
	MUST(listen(l, 1));
	MUST(connect(c, (struct sockaddr *)&name, sizeof name));
	pass(c, &l, 1);
	close(l);
	close(c);
	IS(settles_at(before));
}

static void chain(void)
{
	int before = base, last[2], next[2];
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, last));
	for (int i = 0; i < 3000; i++) {
		MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, next));
		if (pass(next[0], &last[1], 1) != 1) {
			SAY("link %d: %s", i, err_name(errno));
			return;
		}
		close(last[0]);
		close(last[1]);
		memcpy(last, next, sizeof last);
	}
	IS(sockets() > before + 3000);
	close(last[0]);
	close(last[1]);
	IS(settles_at(before));
}

static void limits(void)
{
	int sv[2], fds[300], null = (int)MUST(open("/dev/null", O_RDWR));
	for (int i = 0; i < 300; i++)
		fds[i] = null;
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	T(pass(sv[0], fds, 253));
	T(pass(sv[0], fds, 254));
	fds[1] = -1;
	T(pass(sv[0], fds, 2));
	T(pass(sv[0], fds, 0));
	close(sv[0]);
	close(sv[1]);
	fds[1] = null;
	CHILD("a user's limit") {
		struct rlimit r = { 20, 20 };
		MUST(setrlimit(RLIMIT_NOFILE, &r));
		MUST(setuid(4321));
		MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
		T(pass(sv[0], fds, 20));
		T(pass(sv[0], fds, 1));
		T(pass(sv[0], fds, 1));
		close(sv[0]);
		close(sv[1]);
		MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
		for (int i = 0; i < 100 && pass(sv[0], fds, 1) != 1; i++)
			sleep_ms(20);
		T(pass(sv[0], fds, 1));
	} END;
}

int main(void)
{
	base = rest();
	cycles(SOCK_STREAM);
	cycles(SOCK_DGRAM);
	cycles(SOCK_SEQPACKET);
	reachable();
	listener();
	chain();
	limits();
	return 0;
}
