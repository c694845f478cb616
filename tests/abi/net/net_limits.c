/*
 * Sockets until there are no more: descriptors, ports, backlogs, queues, buffers of all sizes, names until memory or a limit ends it.
 * The errors are Linux's, nothing breaks, and afterwards all works as before.
 */
#include "net.h"
#include <sys/resource.h>
#include <sys/un.h>

static char buf[1 << 17];

static int ends(const char *what, int made, int fd)
{
	SAY("%s: %s after %s", what, fd < 0 ? err_name(errno) : "no end", made > 10 ? "many" : "few");
	return made;
}

static void descriptors(void)
{
	MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, 64 }));
	static const int kinds[][3] = { { AF_INET, SOCK_STREAM, 0 }, { AF_INET6, SOCK_DGRAM, 0 }, { AF_UNIX, SOCK_STREAM, 0 }, { AF_NETLINK, SOCK_RAW, 0 } };
	for (int k = 0; k < 4; k++) {
		int fd, n = 0, sv[2];
		while ((fd = socket(kinds[k][0], kinds[k][1], 0)) >= 0)
			n++;
		ends("socket", n, fd);
		SAY("%d made", n);
		T(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
		close(63);
		T(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
		T(dup(0));
		for (fd = 3; fd < 64; fd++)
			close(fd);
	}
	int l = listener4(5), c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(c, NAME4("127.0.0.1", port_of(l))));
	while (dup(0) >= 0)
		;
	T(accept(l, NULL, NULL));
	close(63);
	OK(accept(l, NULL, NULL));
	/* A received descriptor that has no place is lost, and said to be. */
	close(62), close(61);
	int sv[2], fd = 0;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .align = { .cmsg_len = CMSG_LEN(4), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	memcpy(CMSG_DATA(&control.align), &fd, 4);
	struct iovec iov = { buf, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	T(sendmsg(sv[0], &m, 0));
	T(recvmsg(sv[1], &m, 0));
	SAY("flags %x, control %zu", m.msg_flags, (size_t)m.msg_controllen);
}

/* Datagrams, bytes and connections that nobody takes. */
static void queues(void)
{
	int sv[2], n = 0, u = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), r = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sv));
	while (send(sv[0], "x", 1, 0) == 1)
		n++;
	ends("unix datagrams", n, -1);
	close(sv[0]), close(sv[1]);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv));
	for (n = 0; send(sv[0], buf, 4096, 0) > 0;)
		n++;
	ends("unix bytes", n, -1);
	T(send(sv[0], "", 0, 0));
	close(sv[0]), close(sv[1]);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv));
	for (n = 0; send(sv[0], "", 0, 0) == 0 && n < 100000;)
		n++;
	ends("empty packets", n, -1);
	T(send(sv[0], buf, sizeof buf, 0));
	MUST(bind(r, NAME4("127.0.0.1", 0)));
	MUST(connect(u, NAME4("127.0.0.1", port_of(r))));
	for (n = 0; n < 5000 && send(u, buf, 1000, MSG_DONTWAIT) == 1000;)
		n++;
	SAY("udp: %d sent", n);
	for (n = 0; recv(r, buf, sizeof buf, MSG_DONTWAIT) > 0;)
		n++;
	IS(n > 50 && n < 1000);
	int a, b;
	connection(&a, &b);
	for (n = 0; send(a, buf, 4096, MSG_DONTWAIT) > 0 && n < 100000;)
		n++;
	ends("tcp bytes", n, -1);
	close(a), close(b), close(u), close(r), close(sv[0]), close(sv[1]);
	int l = listener4(2), c[50];
	for (n = 0; n < 50; n++) {
		c[n] = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		if (connect(c[n], NAME4("127.0.0.1", port_of(l))) != 0 && errno != EINPROGRESS)
			SAY("connect: %s", err_name(errno));
	}
	for (n = 0; n < 3; n++)
		OK(accept4(l, NULL, NULL, SOCK_NONBLOCK));
	for (n = 0; n < 50; n++)
		close(c[n]);
	close(l);
	l = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0limits" };
	MUST(bind(l, (struct sockaddr *)&name, 9));
	MUST(listen(l, 3));
	for (n = 0; n < 6; n++) {
		c[n] = (int)MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
		T(connect(c[n], (struct sockaddr *)&name, 9));
	}
	for (n = 0; n < 6; n++)
		close(c[n]);
	close(l);
}

static void sizes(void)
{
	static const int wanted[] = { 0, 1, 4096, 100000, 1 << 30, INT_MAX, -1, INT_MIN };
	static const int kinds[][2] = { { AF_INET, SOCK_STREAM }, { AF_INET, SOCK_DGRAM }, { AF_UNIX, SOCK_STREAM } };
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < 8; i++) {
			int fd = (int)MUST(socket(kinds[k][0], kinds[k][1], 0)), in = 0, out = 0;
			socklen_t len = sizeof in;
			int r1 = setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &wanted[i], 4), r2 = setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted[i], 4);
			getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &in, &len);
			getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &out, &len);
			SAY("%d %d wants %d: %d %d, gets %d %d", kinds[k][0], kinds[k][1], wanted[i], r1, r2, in, out);
			close(fd);
		}
	int sv[2], small = 1, got = 0;
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sv));
	MUST(setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
	T(send(sv[0], buf, 3000, 0));
	T(send(sv[0], buf, 6000, 0));
	while (recv(sv[1], buf, sizeof buf, 0) > 0)
		got++;
	SAY("got %d", got);
}

/* Each of many sockets in the queue of the next, and all let go at once. */
static void flights(void)
{
	MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 300, 300 }));
	int sv[2], n = 0;
	long r;
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sv));
	union {
		char bytes[CMSG_SPACE(200 * sizeof(int))];
		struct cmsghdr align;
	} control = { .align = { .cmsg_len = CMSG_LEN(200 * 4), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	for (int i = 0; i < 200; i++)
		memcpy(CMSG_DATA(&control.align) + i * 4, &sv[0], 4);
	struct iovec iov = { buf, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	while ((r = sendmsg(sv[0], &m, 0)) == 1 && n < 100)
		n++;
	SAY("root: %s after %d", err_name(errno), n);
	close(sv[0]), close(sv[1]);
	MUST(setuid(1000));
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, sv));
	for (n = 0; (r = sendmsg(sv[0], &m, 0)) == 1 && n < 100;)
		n++;
	SAY("user: %s after %d", err_name(errno), n);
}

/*
 * Settings allow buffers of a byte: who sends more than they take waits, has nothing to poll for, and can be killed.
 */
static void small_buffers(void)
{
	static const char *const names[] = { "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem" };
	static char was[2][64];
	for (int i = 0; i < 2; i++) {
		snprintf(was[i], sizeof was[i], "%s", get_setting(names[i]));
		IS(put_setting(names[i], "1 1 1") == 5);
		printf("%s", get_setting(names[i]));
	}
	int listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), from = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), to;
	socklen_t len = sizeof(struct sockaddr_in);
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	MUST(bind(listener, (struct sockaddr *)&here, sizeof here));
	MUST(listen(listener, 5));
	MUST(getsockname(listener, (struct sockaddr *)&here, &len));
	MUST(connect(from, (struct sockaddr *)&here, sizeof here));
	to = (int)MUST(accept(listener, NULL, NULL));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		for (;;)
			send(from, buf, sizeof buf, 0);
	}
	IS(wait_state(pid, "S"));
	struct pollfd p = { .fd = from, .events = POLLOUT };
	T(poll(&p, 1, 0));
	T(send(from, buf, sizeof buf, MSG_DONTWAIT));
	kill(pid, SIGKILL);
	say_status("who sends", reap(pid));
	close(to);
	close(from);
	close(listener);
	for (int i = 0; i < 2; i++)
		put_setting(names[i], was[i]);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	net_up();
	CHILD("descriptors") {
		descriptors();
	} END;
	CHILD("queues") {
		queues();
	} END;
	CHILD("sizes") {
		sizes();
	} END;
	CHILD("flights") {
		flights();
	} END;
	CHILD("buffers of a byte") {
		small_buffers();
	} END;
	int a, b;
	connection(&a, &b);
	T(send(a, "works", 5, 0));
	T(recv(b, buf, 5, MSG_WAITALL));
	return 0;
}
