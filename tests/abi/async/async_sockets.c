/*
 * O_ASYNC of sockets, AF_UNIX and AF_INET: a message or a connection arrives, there is room again, the peer shuts down, closes or
 * breaks off, an error comes; a reader that waits is told of no bytes.
 */
#include "../net.h"
#include "told.h"
#include <pthread.h>
#include <sys/un.h>

static int BASE;
#define WITHIN 20
static char bytes[1 << 16];

static void fill(int fd)
{
	while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

static void drain(int fd)
{
	while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
}

static void *reader(void *arg)
{
	char c;
	recv(*(int *)arg, &c, 1, 0);
	return NULL;
}

/* Two that are connected. */
static void pairs(const char *name, int s[2])
{
	int stream, kind;
	socklen_t len = sizeof kind;
	MUST(getsockopt(s[0], SOL_SOCKET, SO_TYPE, &kind, &len));
	stream = kind == SOCK_STREAM;
	SAY("- %s", name);
	BASE = s[0];
	asks(s[0]);
	told_within("asked", BASE, WITHIN);
	TOLD(send(s[1], "a", 1, 0));
	TOLD(send(s[1], "b", 1, 0));
	TOLD(send(s[0], "c", 1, 0));
	TOLD(recv(s[1], bytes, 1, 0));
	TOLD(recv(s[0], bytes, 1, 0));
	if (stream)
		TOLD(send(s[1], "d", 1, MSG_OOB));
	drain(s[0]);
	pthread_t thread;
	pthread_create(&thread, NULL, reader, &s[0]);
	sleep_ms(100);
	MUST(send(s[1], "a", 1, 0));
	pthread_join(thread, NULL);
	told_within("a reader waits", BASE, WITHIN);
	fill(s[0]);
	told_within("filled", BASE, WITHIN);
	drain(s[1]);
	told_within("drained", BASE, WITHIN);
	drain(s[1]);
	TOLD(send(s[0], "c", 1, 0));
	TOLD(recv(s[1], bytes, 1, 0));
	TOLD(shutdown(s[1], SHUT_RD));
}

static void ends(const char *name, int s[2], int how)
{
	SAY("- %s, %s", name, how == 0 ? "SHUT_WR" : how == 1 ? "SHUT_RDWR" : how == 2 ? "close" : "close with bytes unread");
	BASE = s[0];
	asks(s[0]);
	if (how == 0) {
		TOLD(shutdown(s[1], SHUT_WR));
		TOLD(shutdown(s[0], SHUT_WR));
	}
	if (how == 1)
		TOLD(shutdown(s[1], SHUT_RDWR));
	if (how == 3)
		TOLD(send(s[0], "a", 1, 0));
	TOLD(close(s[1]));
	close(s[0]);
}

static int listener;

static void tcp_pair(int s[2])
{
	s[0] = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(s[0], NAME4("127.0.0.1", port_of(listener))));
	s[1] = (int)MUST(accept(listener, NULL, NULL));
}

static void udp_pair(int s[2])
{
	for (int at = 0; at < 2; at++) {
		s[at] = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
		MUST(bind(s[at], NAME4("127.0.0.1", 0)));
	}
	MUST(connect(s[0], NAME4("127.0.0.1", port_of(s[1]))));
	MUST(connect(s[1], NAME4("127.0.0.1", port_of(s[0]))));
}

static void all_pairs(void)
{
	int s[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	pairs("unix stream", s);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	pairs("unix packets", s);
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	pairs("unix datagrams", s);
	tcp_pair(s);
	pairs("tcp", s);
	udp_pair(s);
	pairs("udp", s);
	for (int how = 0; how < 4; how++) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		ends("unix stream", s, how);
		MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
		ends("unix datagrams", s, how);
		tcp_pair(s);
		ends("tcp", s, how);
	}
}

static void listeners(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0async" };
	int l = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0)), c = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	SAY("- listeners");
	MUST(bind(l, NAME(name)));
	MUST(listen(l, 5));
	BASE = l;
	asks(l);
	TOLD(connect(c, NAME(name)));
	int s = (int)T(accept(l, NULL, NULL)) < 0;
	told_within("accepted", BASE, WITHIN);
	IS(s);
	close(l);
	close(c);
	BASE = listener;
	asks(listener);
	c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	TOLD(connect(c, NAME4("127.0.0.1", port_of(listener))));
	s = (int)MUST(accept(listener, NULL, NULL));
	told_within("accepted", BASE, WITHIN);
	IS(fcntl(s, F_GETFL) & O_ASYNC);
	close(c);
	close(s);
}

static void connects(void)
{
	SAY("- those that connect");
	int c = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)), u = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(fcntl(listener, F_SETFL, 0));
	BASE = c;
	asks(c);
	TOLD(connect(c, NAME4("127.0.0.1", port_of(listener))));
	close(c);
	c = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	BASE = c;
	asks(c);
	TOLD(connect(c, NAME4("127.0.0.1", 1)));
	close(c);
	BASE = u;
	asks(u);
	MUST(connect(u, NAME4("127.0.0.1", 1)));
	TOLD(send(u, "a", 1, 0));
	close(u);
	int raw = (int)MUST(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	static const unsigned char echo[8] = { 8, 0, 0xf7, 0xff };
	BASE = raw;
	asks(raw);
	TOLD(sendto(raw, echo, sizeof echo, 0, NAME4("127.0.0.1", 0)));
	close(raw);
}

int main(void)
{
	told_begin();
	signal(SIGPIPE, SIG_IGN);
	net_up();
	listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(listener, NAME4("127.0.0.1", 0)));
	MUST(listen(listener, 5));
	all_pairs();
	listeners();
	connects();
	return 0;
}
