/*
 * TCP over the loopback: connecting (blocking or not, refused, twice), names, transfer, peeking, waiting for
 * all, half-close, resets, errors told once, poll's events in every state, backlog, SIGPIPE.
 */
#include "net.h"

static char buf[256];

static void fresh(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	SAY("fresh: events %#x", events(fd));
	say_names("fresh", fd, 0, 0);
	T(recv(fd, buf, 1, MSG_DONTWAIT));
	T(send(fd, "x", 1, MSG_NOSIGNAL));
	T(shutdown(fd, SHUT_RDWR));
	T(accept(fd, NULL, NULL));
	T(listen(fd, 5));
	SAY("listening unbound: events %#x", events(fd));
	T(connect(fd, NAME4("127.0.0.1", 9)));
	T(recv(fd, buf, 1, MSG_DONTWAIT));
	T(send(fd, "x", 1, MSG_NOSIGNAL));
	close(fd);
}

static void basics(void)
{
	int l = listener4(5), port = port_of(l);
	say_names("listener", l, port, 0);
	SAY("listener: events %#x", events(l));
	T(bind(l, NAME4("127.0.0.1", 0)));
	MUST(fcntl(l, F_SETFL, O_NONBLOCK));
	T(accept(l, NULL, NULL));
	int c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(c, NAME4("127.0.0.1", port)));
	say_names("client", c, 0, port);
	SAY("client: events %#x", events(c));
	SAY("listener: events %#x", await(l, POLLIN));
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	int s = (int)MUST(accept4(l, (struct sockaddr *)&from, &len, SOCK_CLOEXEC));
	IS(fcntl(s, F_GETFD) == FD_CLOEXEC);
	IS((fcntl(s, F_GETFL) & O_NONBLOCK) == 0);
	SAY("from %s, %d bytes", words(&from, port_of(c)), (int)len);
	say_names("server", s, port, port_of(c));
	T(connect(c, NAME4("127.0.0.1", port)));
	T(write(c, "hello", 5));
	SAY("server: events %#x", await(s, POLLIN));
	int n = 0;
	T(ioctl(s, FIONREAD, &n));
	SAY("%d bytes", n);
	T(recv(s, buf, 3, MSG_PEEK));
	T(recv(s, buf, 2, 0));
	T(recv(s, buf, 100, 0));
	T(recv(s, buf, 100, MSG_DONTWAIT));
	T(recv(s, buf, 0, MSG_DONTWAIT));
	T(send(c, "", 0, 0));
	T(write(c, "abc", 3));
	T(write(c, "def", 3));
	T(recv(s, buf, 6, MSG_WAITALL));
	SAY("%.6s", buf);
	T(send(s, "truncated", 9, 0));
	T(recv(c, NULL, 4, MSG_TRUNC));
	T(recv(c, buf, 100, MSG_PEEK | MSG_TRUNC));
	T(recv(c, buf, 100, 0));
	SAY("%.5s", buf);
	struct iovec iov[2] = { { "one ", 4 }, { "two", 3 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2, .msg_name = "ignored", .msg_namelen = 7 };
	T(sendmsg(s, &m, 0));
	char a[3], b[10];
	struct iovec in[2] = { { a, 3 }, { b, 10 } };
	struct sockaddr_in name;
	struct msghdr r = { .msg_iov = in, .msg_iovlen = 2, .msg_name = &name, .msg_namelen = sizeof name };
	T(recvmsg(c, &r, 0));
	SAY("flags %#x, name %d, control %d", r.msg_flags, (int)r.msg_namelen, (int)r.msg_controllen);
	T(sendto(c, "to", 2, 0, NAME4("127.0.0.1", 1)));
	T(recv(s, buf, 100, 0));
	T(recv(s, NON_CANONICAL, 5, MSG_DONTWAIT));
	T(send(c, NON_CANONICAL, 5, 0));
	T(send(c, "x", 1, 0));
	await(s, POLLIN);
	T(recv(s, NON_CANONICAL, 5, 0));
	T(recv(s, buf, 5, 0));
	/* half-close */
	T(shutdown(c, SHUT_WR));
	SAY("client: events %#x", events(c));
	SAY("server: events %#x", await(s, POLLRDHUP));
	T(send(c, "x", 1, MSG_NOSIGNAL));
	T(recv(s, buf, 1, 0));
	T(recv(s, buf, 1, 0));
	T(send(s, "still", 5, 0));
	T(recv(c, buf, 100, 0));
	T(shutdown(s, SHUT_WR));
	SAY("client: events %#x", await(c, POLLHUP));
	SAY("server: events %#x", events(s));
	T(recv(c, buf, 1, 0));
	T(shutdown(c, SHUT_RD));
	say_names("client at the end", c, 0, port);
	say_names("server at the end", s, port, 0);
	CHILD("send after both ends shut") {
		send(c, "x", 1, 0);
	} END;
	close(c);
	close(s);
	close(l);
}

static void refused(void)
{
	int l = listener4(1), port = port_of(l);
	close(l);
	int c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(c, NAME4("127.0.0.1", port)));
	SAY("events %#x, error %s", events(c), so_error(c));
	say_names("refused", c, 0, port);
	T(connect(c, NAME4("127.0.0.1", port)));
	close(c);
	c = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect(c, NAME4("127.0.0.1", port)));
	SAY("events %#x", await(c, POLLOUT));
	T(recv(c, buf, 1, 0));
	SAY("error %s, events %#x", so_error(c), events(c));
	T(recv(c, buf, 1, 0));
	T(send(c, "x", 1, MSG_NOSIGNAL));
	T(connect(c, NAME4("127.0.0.1", port)));
	T(connect(c, NAME4("127.0.0.1", port)));
	await(c, POLLOUT);
	SAY("error %s, %s", so_error(c), so_error(c));
	T(connect(c, NAME4("127.0.0.1", port)));
	l = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(l, NAME4("127.0.0.1", port)));
	MUST(listen(l, 1));
	T(connect(c, NAME4("127.0.0.1", port)));
	SAY("events %#x, error %s", await(c, POLLOUT), so_error(c));
	T(connect(c, NAME4("127.0.0.1", port)));
	T(connect(c, NAME4("127.0.0.1", port)));
	close(c);
	close(l);
}

/* c: the peer closes, w: it is written to, d: it writes; r: one reads, e: and asks for the error. */
static void one_after_another(const char *order)
{
	int c, s;
	connection(&c, &s);
	SAY("-- %s", order);
	for (const char *at = order; *at; at++) {
		if (*at == 'c')
			close(s);
		else if (*at == 'd')
			MUST(send(s, "yy", 2, 0));
		else if (*at == 'w')
			T(send(c, "x", 1, MSG_NOSIGNAL));
		else if (*at == 'r')
			T(recv(c, buf, 8, MSG_DONTWAIT));
		else
			SAY("error %s", so_error(c));
		sleep_ms(10);
	}
	close(c);
}

static void resets(void)
{
	int c, s;
	connection(&c, &s);
	write(c, "unread", 6);
	await(s, POLLIN);
	close(s);
	SAY("unread at close: events %#x", await(c, POLLERR));
	T(read(c, buf, 1));
	T(read(c, buf, 1));
	T(send(c, "x", 1, MSG_NOSIGNAL));
	close(c);

	connection(&c, &s);
	write(s, "last words", 10);
	struct linger linger = { 1, 0 };
	MUST(setsockopt(s, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
	await(c, POLLIN);
	close(s);
	SAY("linger 0: events %#x", await(c, POLLERR));
	T(read(c, buf, 100));
	T(read(c, buf, 100));
	T(read(c, buf, 100));
	close(c);

	connection(&c, &s);
	close(s);
	SAY("closed: events %#x", await(c, POLLRDHUP));
	T(read(c, buf, 1));
	T(send(c, "first", 5, MSG_NOSIGNAL));
	SAY("events %#x", await(c, POLLERR));
	T(send(c, "second", 6, MSG_NOSIGNAL));
	T(send(c, "third", 5, MSG_NOSIGNAL));
	T(read(c, buf, 1));
	SAY("error %s", so_error(c));
	close(c);

	connection(&c, &s);
	close(s);
	await(c, POLLRDHUP);
	send(c, "first", 5, MSG_NOSIGNAL);
	await(c, POLLERR);
	SAY("error %s, then %s", so_error(c), so_error(c));
	CHILD("SIGPIPE") {
		send(c, "x", 1, 0);
	} END;
	close(c);

	/* An end of file that has come is read even if what was written since was answered by a reset. */
	const char *orders[] = { "cwrrwe", "cwwr", "cwer", "dcwrrre", "wcrrwe", "wcwr", "dwcrrw" };
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		one_after_another(orders[i]);

	/* a listener that closes on a connection it has not accepted */
	int l = listener4(5);
	c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(c, NAME4("127.0.0.1", port_of(l))));
	close(l);
	SAY("never accepted: events %#x", await(c, POLLERR));
	T(read(c, buf, 1));
	close(c);

	/* connect to nothing: forget the peer */
	connection(&c, &s);
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	T(connect(c, &none, sizeof none));
	say_names("disconnected", c, 0, 0);
	SAY("events %#x, peer %#x", events(c), await(s, POLLERR));
	T(read(s, buf, 1));
	close(c);
	close(s);
}

static void listeners(void)
{
	int l = listener4(0), port = port_of(l);
	int c[1];
	c[0] = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect(c[0], NAME4("127.0.0.1", port)));
	SAY("first: events %#x", await(c[0], POLLOUT));
	int s = (int)MUST(accept(l, NULL, NULL));
	write(c[0], "x", 1);
	T(read(s, buf, 1));
	close(s);
	T(shutdown(l, SHUT_WR));
	SAY("events %#x", events(l));
	T(shutdown(l, SHUT_RD));
	SAY("events %#x", events(l));
	T(accept(l, NULL, NULL));
	T(listen(l, 3));
	int on = -1;
	socklen_t len = sizeof on;
	T(getsockopt(l, SOL_SOCKET, SO_ACCEPTCONN, &on, &len));
	SAY("accepts %d", on);
	close(c[0]);
	/* a blocked accept ends when the listener is shut down */
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		T(accept(l, NULL, NULL));
		_exit(0);
	}
	wait_state(pid, "S");
	sleep_ms(20);
	shutdown(l, SHUT_RDWR);
	reap(pid);
	close(l);
}

static void ports(void)
{
	int l = listener4(5), port = port_of(l), on = 1;
	int other = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	T(bind(other, NAME4("127.0.0.1", port)));
	T(bind(other, NAME4("0.0.0.0", port)));
	MUST(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	T(bind(other, NAME4("127.0.0.1", port)));
	T(bind(other, NAME4("127.0.0.2", port)));
	T(listen(other, 5));
	close(other);
	/* the end that closes first keeps the port */
	int c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(c, NAME4("127.0.0.1", port)));
	int s = (int)MUST(accept(l, NULL, NULL));
	close(l);
	close(s);
	await(c, POLLRDHUP);
	close(c);
	other = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	T(bind(other, NAME4("127.0.0.1", port)));
	MUST(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	SAY("reuse although the listener had it not");
	T(bind(other, NAME4("127.0.0.1", port)));
	close(other);
	/* two with SO_REUSEADDR from the start */
	int a = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), b = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(setsockopt(a, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	MUST(setsockopt(b, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	MUST(bind(a, NAME4("127.0.0.1", 0)));
	port = port_of(a);
	T(bind(b, NAME4("127.0.0.1", port)));
	T(listen(a, 1));
	T(listen(b, 1));
	close(a);
	T(listen(b, 1));
	close(b);
	a = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), b = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(setsockopt(a, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
	MUST(bind(a, NAME4("127.0.0.1", 0)));
	port = port_of(a);
	T(bind(b, NAME4("127.0.0.1", port)));
	MUST(setsockopt(b, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
	T(bind(b, NAME4("127.0.0.1", port)));
	T(listen(a, 1));
	T(listen(b, 1));
	close(a);
	close(b);
}

static void full(void)
{
	int c, s;
	connection(&c, &s);
	MUST(fcntl(c, F_SETFL, O_NONBLOCK));
	static char block[65536];
	long sent = 0, n;
	while ((n = write(c, block, sizeof block)) > 0)
		sent += n;
	SAY("full: %s, events %#x, more than a block %d", err_name(errno), events(c), sent > 65536);
	int queued = 0;
	T(ioctl(c, TIOCOUTQ, &queued));
	IS(queued > 0);
	long got = 0;
	while (got < sent && (n = read(s, block, sizeof block)) > 0)
		got += n;
	IS(got == sent);
	SAY("empty: events %#x", await(c, POLLOUT));
	struct timeval limit = { 0, 50000 };
	MUST(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	T(read(s, buf, 1));
	close(c);
	close(s);
}

static void urgent(void)
{
	int c, s;
	connection(&c, &s);
	T(recv(s, buf, 1, MSG_OOB));
	T(send(c, "abc", 3, MSG_OOB));
	SAY("urgent: events %#x", await(s, POLLPRI));
	T(recv(s, buf, 10, MSG_OOB));
	SAY("%c", buf[0]);
	T(recv(s, buf, 10, 0));
	T(recv(s, buf, 10, MSG_OOB));
	close(c);
	close(s);
}

static void itself(void)
{
	int c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(c, NAME4("127.0.0.1", 0)));
	int port = port_of(c);
	T(connect(c, NAME4("127.0.0.1", port)));
	say_names("itself", c, port, port);
	T(write(c, "echo", 4));
	T(read(c, buf, 10));
	close(c);
}

int main(void)
{
	net_up();
	fresh();
	basics();
	refused();
	resets();
	listeners();
	ports();
	full();
	urgent();
	itself();
	return 0;
}
