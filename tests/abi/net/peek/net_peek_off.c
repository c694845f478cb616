/*
 * SO_PEEK_OFF of UDP and TCP: MSG_PEEK looks where it says, and moves it; a read moves it back. An end of file is seen from any place,
 * and raw sockets and netlink have no such option.
 */
#include "peek.h"
#include <linux/netlink.h>
#include <netinet/ip_icmp.h>

static struct sockaddr_storage name;
static socklen_t name_len;

static int bound(int family, int kind)
{
	int fd = (int)MUST(socket(family, kind, 0));
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	if (family == AF_INET)
		MUST(bind(fd, (struct sockaddr *)&v4, sizeof v4));
	else
		MUST(bind(fd, (struct sockaddr *)&v6, sizeof v6));
	name_len = sizeof name;
	MUST(getsockname(fd, (struct sockaddr *)&name, &name_len));
	return fd;
}

static void datagrams(int family)
{
	int to = bound(family, SOCK_DGRAM);
	int from = (int)MUST(socket(family, SOCK_DGRAM, 0));
	MUST(connect(from, (struct sockaddr *)&name, name_len));
	values(to);
	looks(from, to);
	empty(from, to);
	close(from);
	close(to);
}

static void stream(int family)
{
	int listener = bound(family, SOCK_STREAM);
	MUST(listen(listener, 4));
	T(set_offset(listener, 5));
	int from = (int)MUST(socket(family, SOCK_STREAM, 0));
	MUST(connect(from, (struct sockaddr *)&name, name_len));
	int to = (int)MUST(accept(listener, NULL, NULL));
	SAY("of a connection %d", offset_of(to));
	T(set_offset(to, -1));
	values(to);
	looks(from, to);
	put(from, "last bytes");
	T(set_offset(to, 3));
	got(to, "look", 40, MSG_PEEK | MSG_WAITALL);
	got(to, "look", 4, MSG_PEEK);
	T(set_offset(to, 1));
	got(to, "read", 4, MSG_TRUNC);
	MUST(shutdown(from, SHUT_WR));
	/* The end comes when the peer hears of it. */
	struct pollfd end = { .fd = to, .events = POLLRDHUP };
	MUST(poll(&end, 1, LONG_MS));
	T(set_offset(to, 2));
	peeks(to, 40);
	peeks(to, 40);
	T(set_offset(to, 100));
	peeks(to, 40);
	reads(to, 40);
	peeks(to, 40);
	close(from);
	close(to);
	close(listener);
}

static void waits(int family)
{
	int listener = bound(family, SOCK_STREAM), status;
	MUST(listen(listener, 4));
	int from = (int)MUST(socket(family, SOCK_STREAM, 0));
	MUST(connect(from, (struct sockaddr *)&name, name_len));
	int to = (int)MUST(accept(listener, NULL, NULL));
	T(set_offset(to, 3));
	put(from, "abc");
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		char bytes[8] = "";
		ssize_t n = recv(to, bytes, 8, MSG_PEEK);
		SAY("waited: %zd \"%s\"", n, bytes);
		_exit(0);
	}
	sleep_ms(100);
	put(from, "de");
	MUST(waitpid(child, &status, 0));
	SAY("then %d", offset_of(to));
	close(from);
	close(to);
	close(listener);
}

static void others(int family, int kind, int protocol, const char *what)
{
	int fd = (int)MUST(socket(family, kind, protocol));
	int set = set_offset(fd, 0), error = errno;
	SAY("%s: set %s, get %d", what, set ? err_name(error) : "ok", offset_of(fd));
	close(fd);
}

int main(void)
{
	setbuf(stdout, NULL);
	net_up();
	const int families[] = { AF_INET, AF_INET6 };
	for (int at = 0; at < 2; at++) {
		SAY("family %d", families[at]);
		datagrams(families[at]);
		stream(families[at]);
		waits(families[at]);
	}
	others(AF_INET, SOCK_RAW, IPPROTO_ICMP, "raw");
	others(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, "raw of IPv6");
	others(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, "netlink");
	others(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE, "UDP-Lite");
	return 0;
}
