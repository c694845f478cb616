/*
 * Reports of errors (IP_RECVERR, MSG_ERRQUEUE): a port that nobody has, by IPv4, IPv6 and both, connected and not; what is quoted and
 * who told; datagrams that are too long; the order of reports and SO_ERROR; what raw sockets see of it; TCP, which has none;
 * the notices of sends with MSG_ZEROCOPY.
 */
#include "net.h"
#include <linux/errqueue.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <sys/epoll.h>

static char buf[70000];

/* A port that nobody has. */
static int free_port(void)
{
	int fd = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	MUST(bind(fd, NAME6("::", 0)));
	int port = port_of(fd);
	close(fd);
	return port;
}

static void say_control(struct msghdr *m, int port)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);
		void *data = CMSG_DATA(c);
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) || (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
			struct sock_extended_err *e = data;
			SAY("  level %d: %s origin %d type %d code %d info %u data %u, offender %s, %zu bytes", c->cmsg_level, err_name((int)e->ee_errno),
			    e->ee_origin, e->ee_type, e->ee_code, e->ee_info, e->ee_data, words(SO_EE_OFFENDER(e), port), len);
		} else if (c->cmsg_level == SOL_SOCKET) {
			SAY("  a time, %zu bytes", len);
		} else {
			SAY("  level %d type %d: %d, %zu bytes", c->cmsg_level, c->cmsg_type, len >= 4 ? *(int *)data : *(char *)data & 0xff, len);
		}
	}
}

/* Reads a report with so much room. */
static void report_of(const char *what, int fd, size_t room, int port)
{
	char control[512];
	struct sockaddr_in6 to;
	memset(&to, 0, sizeof to);
	memset(buf, 0, 8);
	struct iovec iov = { buf, room };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(fd, &m, MSG_ERRQUEUE);
	if (n < 0) {
		SAY("%s: %s", what, err_name(errno));
		return;
	}
	SAY("%s: %zd bytes \"%.4s\" flags %#x, to %s, %d bytes of name", what, n, buf, m.msg_flags, words(&to, port), (int)m.msg_namelen);
	say_control(&m, port);
}

static void turn(int fd, int level, int option, int on)
{
	MUST(setsockopt(fd, level, option, &on, sizeof on));
}

static void unconnected(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), port = free_port(), on = 1;
	socklen_t len = sizeof on;
	report_of("nothing", fd, 100, port);
	T(sendto(fd, "lost", 4, 0, NAME4("127.0.0.1", port)));
	SAY("not asked: events %#x", events(fd));
	turn(fd, IPPROTO_IP, IP_RECVERR, 1);
	T(getsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, &len));
	T(sendto(fd, "one", 3, 0, NAME4("127.0.0.1", port)));
	SAY("asked: events %#x", await(fd, POLLERR));
	T(recv(fd, buf, 10, MSG_DONTWAIT));
	SAY("after the error: events %#x", events(fd));
	T(recv(fd, buf, 10, MSG_DONTWAIT));
	report_of("one", fd, 100, port);
	report_of("no more", fd, 100, port);
	SAY("read: events %#x, error %s", events(fd), so_error(fd));
	/* The report that is read takes its error with it. */
	T(sendto(fd, "two", 3, 0, NAME4("127.0.0.2", port)));
	await(fd, POLLERR);
	report_of("two", fd, 1, port);
	SAY("events %#x, error %s", events(fd), so_error(fd));
	T(sendto(fd, "first", 5, 0, NAME4("127.0.0.1", port)));
	await(fd, POLLERR);
	T(sendto(fd, "second", 6, 0, NAME4("127.0.0.1", port)));
	T(sendto(fd, "second", 6, 0, NAME4("127.0.0.1", port)));
	sleep_ms(50);
	report_of("first", fd, 100, port);
	SAY("the second's error %s", so_error(fd));
	report_of("second", fd, 100, port);
	SAY("no error %s", so_error(fd));
	/* Turned off, it forgets. */
	T(sendto(fd, "gone", 4, 0, NAME4("127.0.0.1", port)));
	await(fd, POLLERR);
	turn(fd, IPPROTO_IP, IP_RECVERR, 0);
	report_of("turned off", fd, 100, port);
	SAY("error %s, events %#x", so_error(fd), events(fd));
	close(fd);
}

static void connected(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), port = free_port(), other = free_port();
	MUST(connect(fd, NAME4("127.0.0.1", port)));
	T(sendto(fd, "elsewhere", 9, 0, NAME4("127.0.0.2", other)));
	sleep_ms(50);
	SAY("another's port: events %#x, error %s", events(fd), so_error(fd));
	turn(fd, IPPROTO_IP, IP_RECVERR, 1);
	T(sendto(fd, "elsewhere", 9, 0, NAME4("127.0.0.2", other)));
	sleep_ms(50);
	SAY("another's port: events %#x, error %s", events(fd), so_error(fd));
	turn(fd, IPPROTO_IP, IP_RECVTTL, 1);
	turn(fd, IPPROTO_IP, IP_RECVTOS, 1);
	turn(fd, SOL_SOCKET, SO_TIMESTAMP, 1);
	turn(fd, IPPROTO_IP, IP_TTL, 1);
	turn(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	T(send(fd, "hop", 3, 0));
	await(fd, POLLERR);
	T(send(fd, "hop", 3, 0));
	report_of("hop", fd, 100, port);
	/* What is quoted is cut. */
	T(send(fd, buf, 520, 0));
	await(fd, POLLERR);
	report_of("520", fd, sizeof buf, port);
	T(send(fd, buf, 2000, 0));
	await(fd, POLLERR);
	report_of("2000", fd, sizeof buf, port);
	T(send(fd, "", 0, 0));
	await(fd, POLLERR);
	report_of("empty", fd, sizeof buf, port);
	turn(fd, SOL_SOCKET, SO_TIMESTAMP, 0);
	T(send(fd, buf, 65507, 0));
	await(fd, POLLERR);
	report_of("longest", fd, sizeof buf, port);
	T(send(fd, buf, 65508, 0));
	SAY("too long: events %#x", events(fd));
	report_of("too long", fd, sizeof buf, port);
	SAY("read: events %#x", events(fd));
	T(send(fd, buf, 65536, 0));
	report_of("longer than a length", fd, sizeof buf, port);
	close(fd);
	fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	turn(fd, IPPROTO_IP, IP_RECVERR, 1);
	T(sendto(fd, buf, 65508, 0, NAME4("127.0.0.1", port)));
	report_of("too long, not connected", fd, sizeof buf, port);
	close(fd);
}

static void v6(void)
{
	int fd = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0)), port = free_port();
	turn(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	turn(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	T(sendto(fd, "six", 3, 0, NAME6("::1", port)));
	SAY("events %#x", await(fd, POLLERR));
	report_of("six", fd, 100, port);
	T(sendto(fd, buf, 1184, 0, NAME6("::1", port)));
	await(fd, POLLERR);
	report_of("1184", fd, sizeof buf, port);
	T(sendto(fd, buf, 3000, 0, NAME6("::1", port)));
	await(fd, POLLERR);
	report_of("3000", fd, sizeof buf, port);
	T(sendto(fd, buf, 65528, 0, NAME6("::1", port)));
	report_of("too long", fd, sizeof buf, port);
	/* IPv4's errors are asked for by IPv4's option. */
	T(sendto(fd, "four", 4, 0, NAME6("::ffff:127.0.0.1", port)));
	sleep_ms(50);
	report_of("not asked", fd, 100, port);
	turn(fd, IPPROTO_IP, IP_RECVERR, 1);
	T(sendto(fd, "four", 4, 0, NAME6("::ffff:127.0.0.1", port)));
	await(fd, POLLERR);
	report_of("four", fd, 100, port);
	close(fd);
}

/* The message that a raw socket sees: types, and the headers that it quotes. */
static void seen_raw(void)
{
	int raw = (int)MUST(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)), fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), port = free_port();
	T(sendto(fd, "quoted", 6, 0, NAME4("127.0.0.1", port)));
	await(raw, POLLIN);
	ssize_t n = recv(raw, buf, sizeof buf, MSG_DONTWAIT);
	struct ip *outer = (struct ip *)buf, *inner = (struct ip *)(buf + 28);
	struct icmphdr *icmp = (struct icmphdr *)(buf + 20);
	uint16_t ports[3];
	memcpy(ports, buf + 48, sizeof ports);
	SAY("%zd bytes, tos %#x ttl %d protocol %d, type %d code %d", n, outer->ip_tos, outer->ip_ttl, outer->ip_p, icmp->type, icmp->code);
	SAY("of protocol %d ttl %d, %d bytes, port %s, %d bytes \"%.6s\"", inner->ip_p, inner->ip_ttl, ntohs(inner->ip_len),
	    ntohs(ports[1]) == port ? "expected" : "other", ntohs(ports[2]), buf + 56);
	T(recv(raw, buf, sizeof buf, MSG_DONTWAIT));
	turn(raw, IPPROTO_IP, IP_RECVERR, 1);
	T(sendto(raw, buf, 65516, 0, NAME4("127.0.0.1", 0)));
	SAY("events %#x", events(raw));
	report_of("raw", raw, 100, 0);
	close(raw);
	close(fd);
	raw = (int)MUST(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
	fd = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	T(sendto(fd, "quoted", 6, 0, NAME6("::1", port)));
	await(raw, POLLIN);
	n = recv(raw, buf, sizeof buf, MSG_DONTWAIT);
	memcpy(ports, buf + 48, sizeof ports);
	SAY("%zd bytes, type %d code %d, version %d protocol %d hops %d, port %s, \"%.6s\"", n, buf[0], buf[1], buf[8] >> 4, buf[14], buf[15],
	    ntohs(ports[1]) == port ? "expected" : "other", buf + 56);
	close(raw);
	close(fd);
}

static void tcp(void)
{
	int a, b, port = free_port();
	connection(&a, &b);
	turn(a, IPPROTO_IP, IP_RECVERR, 1);
	MUST(send(b, "data", 4, 0));
	await(a, POLLIN);
	report_of("tcp", a, 100, 0);
	T(recv(a, buf, 100, 0));
	close(a);
	close(b);
	a = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	turn(a, IPPROTO_IP, IP_RECVERR, 1);
	T(connect(a, NAME4("127.0.0.1", port)));
	report_of("refused", a, 100, 0);
	close(a);
}

#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY 60
#endif

static void may_ask(const char *what, int family, int type, int protocol)
{
	int fd = (int)MUST(socket(family, type, protocol)), on = 1, two = 2, got = 7;
	socklen_t len = sizeof got;
	SAY("%s", what);
	T(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, 3));
	T(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &two, sizeof two));
	T(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
	T(getsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &got, &len));
	SAY("it is %d", got);
	close(fd);
}

static void notices(const char *what, int fd, int to)
{
	int epoll = (int)MUST(epoll_create1(0));
	struct epoll_event event = { .events = EPOLLET | EPOLLERR };
	SAY("notices of %s", what);
	T(send(fd, "not asked", 9, MSG_ZEROCOPY));
	T(recv(to, buf, sizeof buf, 0));
	report_of("not asked", fd, 100, 0);
	turn(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	T(epoll_wait(epoll, &event, 1, 0));
	T(send(fd, "plain", 5, 0));
	T(recv(to, buf, sizeof buf, 0));
	report_of("plain", fd, 100, 0);
	T(send(fd, "one", 3, MSG_ZEROCOPY));
	T(recv(to, buf, sizeof buf, 0));
	SAY("events %#x, error %s", await(fd, POLLERR), so_error(fd));
	T(epoll_wait(epoll, &event, 1, 1000));
	T(epoll_wait(epoll, &event, 1, 0));
	T(recv(fd, buf, sizeof buf, MSG_DONTWAIT));
	report_of("one", fd, 100, 0);
	report_of("no more", fd, 100, 0);
	SAY("events %#x", events(fd));
	for (int i = 0; i < 3; i++) {
		T(send(fd, "many", 4, MSG_ZEROCOPY));
		T(recv(to, buf, sizeof buf, 0));
	}
	sleep_ms(50);
	T(epoll_wait(epoll, &event, 1, 0));
	T(send(fd, "", 0, MSG_ZEROCOPY));
	T(send(fd, (void *)8, 4, MSG_ZEROCOPY));
	report_of("three", fd, 100, 0);
	T(send(fd, "last", 4, MSG_ZEROCOPY));
	sleep_ms(50);
	turn(fd, SOL_SOCKET, SO_ZEROCOPY, 0);
	report_of("last", fd, 0, 0);
	T(send(fd, "off", 3, MSG_ZEROCOPY));
	report_of("off", fd, 100, 0);
	close(epoll);
	close(fd);
	close(to);
}

static void zerocopy(void)
{
	may_ask("tcp", AF_INET, SOCK_STREAM, 0);
	may_ask("udp", AF_INET6, SOCK_DGRAM, 0);
	may_ask("udplite", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE);
	may_ask("raw", AF_INET, SOCK_RAW, IPPROTO_UDP);
	may_ask("unix", AF_UNIX, SOCK_STREAM, 0);
	may_ask("netlink", AF_NETLINK, SOCK_RAW, 0);
	int a, b;
	connection(&a, &b);
	notices("tcp", a, b);
	a = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	b = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(b, NAME4("127.0.0.1", 0)));
	MUST(connect(a, NAME4("127.0.0.1", port_of(b))));
	notices("udp", a, b);
	a = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	b = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	MUST(bind(b, NAME6("::1", 0)));
	MUST(connect(a, NAME6("::1", port_of(b))));
	notices("udp by IPv6", a, b);
}

int main(void)
{
	net_up();
	unconnected();
	connected();
	v6();
	seen_raw();
	tcp();
	zerocopy();
	return 0;
}
