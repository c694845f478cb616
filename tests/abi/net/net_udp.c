/*
 * UDP over the loopback: names, connected and not, refused, truncation, peeking, empty datagrams, too long ones,
 * control messages, broadcast and multicast, many messages in a call, shutdown, events; UDP-Lite; and the same by IPv6.
 */
#include "net.h"

static char buf[70000];

static int udp4(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(fd, NAME4("127.0.0.1", 0)));
	return fd;
}

static void basics(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP));
	SAY("fresh: events %#x", events(fd));
	say_names("fresh", fd, 0, 0);
	T(send(fd, "x", 1, 0));
	T(recv(fd, buf, 1, MSG_DONTWAIT));
	T(listen(fd, 1));
	T(accept(fd, NULL, NULL));
	T(shutdown(fd, SHUT_WR));
	close(fd);
	int a = udp4(), b = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), port = port_of(a);
	T(sendto(b, "hello", 5, 0, NAME4("127.0.0.1", port)));
	SAY("receiver: events %#x", await(a, POLLIN));
	say_names("sender", b, 0, 0);
	int n = 0;
	T(ioctl(a, FIONREAD, &n));
	SAY("%d bytes", n);
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	T(recvfrom(a, buf, 3, MSG_PEEK, (struct sockaddr *)&from, &len));
	SAY("from %s, %d bytes", words(&from, port_of(b)), (int)len);
	T(recvfrom(a, buf, 3, MSG_TRUNC, NULL, NULL));
	T(recv(a, buf, 3, MSG_DONTWAIT));
	T(sendto(b, "", 0, 0, NAME4("127.0.0.1", port)));
	await(a, POLLIN);
	T(recv(a, buf, 100, 0));
	T(sendto(b, buf, 65507, 0, NAME4("127.0.0.1", port)));
	T(sendto(b, buf, 65508, 0, NAME4("127.0.0.1", port)));
	T(sendto(b, buf, 65536, 0, NAME4("127.0.0.1", port)));
	await(a, POLLIN);
	T(recv(a, buf, sizeof buf, 0));
	T(sendto(b, "x", 1, 0, NAME4("127.0.0.1", 0)));
	T(sendto(b, "x", 1, 0, NAME4("10.1.2.3", 5)));
	T(sendto(b, "x", 1, 0, NAME4("255.255.255.255", 5)));
	T(sendto(b, "x", 1, 0, NAME4("127.255.255.255", 5)));
	T(sendto(b, "x", 1, 0, NAME4("224.0.0.1", 5)));
	T(sendto(b, "x", 1, 0, NAME6("::1", 5)));
	T(sendto(b, "x", 1, 0, (struct sockaddr *)&from, 4));
	T(sendto(b, "x", 1, MSG_OOB, NAME4("127.0.0.1", port)));
	T(sendto(b, "x", 1, 0, NON_CANONICAL, 16));
	T(sendto(b, "any", 3, 0, NAME4("0.0.0.0", port)));
	await(a, POLLIN);
	T(recv(a, buf, sizeof buf, 0));
	/* connected */
	T(connect(b, NAME4("127.0.0.1", port)));
	say_names("connected", b, 0, port);
	T(write(b, "connected", 9));
	await(a, POLLIN);
	T(read(a, buf, 100));
	int c = udp4();
	T(sendto(c, "stranger", 8, 0, NAME4("127.0.0.1", port_of(b))));
	T(sendto(a, "friend", 6, 0, NAME4("127.0.0.1", port_of(b))));
	await(b, POLLIN);
	T(recv(b, buf, 100, MSG_DONTWAIT));
	T(recv(b, buf, 100, MSG_DONTWAIT));
	T(sendto(b, "elsewhere", 9, 0, NAME4("127.0.0.1", port_of(c))));
	await(c, POLLIN);
	T(recv(c, buf, 100, MSG_DONTWAIT));
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	T(connect(b, &none, sizeof none));
	say_names("disconnected", b, 0, 0);
	T(send(b, "x", 1, 0));
	close(a);
	/* nobody there */
	T(sendto(b, "x", 1, 0, NAME4("127.0.0.1", port)));
	SAY("unconnected to nobody: error %s", so_error(b));
	T(connect(b, NAME4("127.0.0.1", port)));
	T(send(b, "x", 1, 0));
	SAY("events %#x", await(b, POLLERR));
	T(send(b, "x", 1, 0));
	T(send(b, "x", 1, 0));
	await(b, POLLERR);
	T(recv(b, buf, 1, 0));
	T(recv(b, buf, 1, MSG_DONTWAIT));
	T(send(b, "x", 1, 0));
	await(b, POLLERR);
	SAY("error %s", so_error(b));
	T(shutdown(b, SHUT_RD));
	SAY("events %#x", events(b));
	T(recv(b, buf, 1, 0));
	T(recv(b, buf, 1, MSG_DONTWAIT));
	T(shutdown(b, SHUT_WR));
	SAY("events %#x", events(b));
	T(send(b, "x", 1, 0));
	close(b);
	close(c);
}

/* Where a datagram was sent to, in the words of who receives it. */
static void origins(void)
{
	int a = udp4(), b = udp4(), on = 1, port = port_of(a);
	int six = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0)), c6 = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	SAY("origins");
	MUST(bind(six, NAME6("::", 0)));
	int port6 = port_of(six);
	T(setsockopt(a, IPPROTO_IP, IP_RECVORIGDSTADDR, &on, sizeof on));
	T(setsockopt(six, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, &on, sizeof on));
	T(setsockopt(six, IPPROTO_IP, IP_RECVORIGDSTADDR, &on, sizeof on));
	T(setsockopt(six, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on));
	T(setsockopt(six, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on));
	T(setsockopt(a, IPPROTO_IP, IP_RECVTTL, &on, sizeof on));
	T(sendto(b, "four", 4, 0, NAME4("127.0.0.1", port)));
	T(sendto(c6, "six", 3, 0, NAME6("::1", port6)));
	T(sendto(b, "four", 4, 0, NAME4("127.0.0.7", port6)));
	for (int i = 0; i < 3; i++) {
		int s = i == 0 ? a : six;
		char control[256];
		struct iovec iov = { buf, 100 };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
		await(s, POLLIN);
		T(recvmsg(s, &m, MSG_DONTWAIT));
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			SAY("control %d %d, %d bytes", c->cmsg_level, c->cmsg_type, (int)c->cmsg_len);
			if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR)
				SAY("to %s", words((void *)CMSG_DATA(c), i == 0 ? port : port6));
			if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_ORIGDSTADDR)
				SAY("to %s", words((void *)CMSG_DATA(c), port6));
		}
	}
	close(a);
	close(b);
	close(six);
	close(c6);
}

static void controls(void)
{
	int a = udp4(), b = udp4(), on = 1;
	T(setsockopt(a, IPPROTO_IP, IP_PKTINFO, &on, sizeof on));
	T(setsockopt(a, IPPROTO_IP, IP_RECVTTL, &on, sizeof on));
	T(setsockopt(a, IPPROTO_IP, IP_RECVTOS, &on, sizeof on));
	T(setsockopt(a, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on));
	int ttl = 7, tos = 0x10;
	T(setsockopt(b, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl));
	T(setsockopt(b, IPPROTO_IP, IP_TOS, &tos, sizeof tos));
	sendto(b, "told", 4, 0, NAME4("127.0.0.1", port_of(a)));
	await(a, POLLIN);
	char control[512];
	struct iovec iov = { buf, 100 };
	struct sockaddr_in from;
	struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	T(recvmsg(a, &m, 0));
	SAY("flags %#x", m.msg_flags);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		SAY("control %d %d, %d bytes", c->cmsg_level, c->cmsg_type, (int)c->cmsg_len);
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo *info = (void *)CMSG_DATA(c);
			SAY("interface %d, %#x, %#x", info->ipi_ifindex, ntohl(info->ipi_spec_dst.s_addr), ntohl(info->ipi_addr.s_addr));
		} else if (c->cmsg_level == IPPROTO_IP) {
			SAY("value %d", *CMSG_DATA(c));
		}
	}
	/* a buffer for one header only, and one for nothing */
	sendto(b, "told", 4, 0, NAME4("127.0.0.1", port_of(a)));
	await(a, POLLIN);
	m.msg_controllen = 40;
	m.msg_namelen = sizeof from;
	T(recvmsg(a, &m, 0));
	SAY("flags %#x, control %d", m.msg_flags, (int)m.msg_controllen);
	/* the sender chooses where it comes from */
	memset(control, 0, sizeof control);
	struct cmsghdr *c = (void *)control;
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
	struct in_pktinfo *info = (void *)CMSG_DATA(c);
	info->ipi_spec_dst.s_addr = htonl(0x7f000009);
	struct sockaddr_in to = in4("127.0.0.1", port_of(a));
	struct iovec out = { "from", 4 };
	struct msghdr s = { .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &out, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof *info) };
	int any = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	T(sendmsg(any, &s, 0));
	await(a, POLLIN);
	socklen_t len = sizeof from;
	T(recvfrom(a, buf, 100, 0, (struct sockaddr *)&from, &len));
	SAY("from %s", words(&from, port_of(any)));
	info->ipi_ifindex = 77;
	T(sendmsg(any, &s, 0));
	info->ipi_ifindex = 0;
	c->cmsg_type = IP_TTL;
	T(sendmsg(any, &s, 0));
	c->cmsg_type = 99;
	T(sendmsg(any, &s, 0));
	c->cmsg_level = SOL_SOCKET;
	T(sendmsg(any, &s, 0));
	c->cmsg_type = SCM_RIGHTS;
	T(sendmsg(any, &s, 0));
	c->cmsg_level = 12345;
	T(sendmsg(any, &s, 0));
	c->cmsg_len = 3;
	T(sendmsg(any, &s, 0));
	c->cmsg_len = 4000;
	T(sendmsg(any, &s, 0));
	s.msg_controllen = 1 << 30;
	T(sendmsg(any, &s, 0));
	s.msg_control = NON_CANONICAL;
	s.msg_controllen = 64;
	T(sendmsg(any, &s, 0));
	s.msg_control = NULL;
	s.msg_controllen = 0;
	s.msg_iovlen = 1025;
	T(sendmsg(any, &s, 0));
	s.msg_iovlen = 1;
	s.msg_namelen = 129;
	T(sendmsg(any, &s, 0));
	close(any);
	close(a);
	close(b);
}

static void many(void)
{
	int a = udp4(), b = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(connect(b, NAME4("127.0.0.1", port_of(a))));
	struct iovec out[3] = { { "one", 3 }, { "three", 5 }, { "seven!!", 7 } };
	struct mmsghdr sends[3] = { 0 }, gets[4] = { 0 };
	static char bytes[4][16];
	struct iovec in[4];
	for (int i = 0; i < 4; i++) {
		if (i < 3) {
			sends[i].msg_hdr.msg_iov = &out[i];
			sends[i].msg_hdr.msg_iovlen = 1;
		}
		in[i] = (struct iovec){ bytes[i], 6 };
		gets[i].msg_hdr.msg_iov = &in[i];
		gets[i].msg_hdr.msg_iovlen = 1;
	}
	T(sendmmsg(b, sends, 3, 0));
	SAY("%d %d %d", sends[0].msg_len, sends[1].msg_len, sends[2].msg_len);
	await(a, POLLIN);
	T(recvmmsg(a, gets, 4, MSG_WAITFORONE, NULL));
	for (int i = 0; i < 3; i++)
		SAY("%d %.6s %#x", gets[i].msg_len, bytes[i], gets[i].msg_hdr.msg_flags);
	struct timespec limit = { 0, 1000 };
	T(sendmmsg(b, sends, 3, 0));
	T(recvmmsg(a, gets, 2, 0, &limit));
	T(recvmmsg(a, gets, 2, MSG_DONTWAIT, &limit));
	limit.tv_nsec = -1;
	T(recvmmsg(a, gets, 2, MSG_DONTWAIT, &limit));
	T(recvmmsg(a, gets, 2, MSG_DONTWAIT, NULL));
	T(recvmmsg(a, NON_CANONICAL, 2, MSG_DONTWAIT, NULL));
	T(sendmmsg(b, sends, 0, 0));
	close(a);
	close(b);
}

static void shared(void)
{
	int a = udp4(), b = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), port = port_of(a), on = 1;
	T(bind(b, NAME4("127.0.0.1", port)));
	T(bind(b, NAME4("0.0.0.0", port)));
	MUST(setsockopt(b, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	T(bind(b, NAME4("127.0.0.1", port)));
	MUST(setsockopt(a, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	T(bind(b, NAME4("127.0.0.1", port)));
	close(a);
	close(b);
	a = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	b = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(a, NAME4("0.0.0.0", 0)));
	port = port_of(a);
	int c = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	T(bind(c, NAME4("127.0.0.2", port)));
	close(c);
	T(setsockopt(b, SOL_SOCKET, SO_BROADCAST, &on, sizeof on));
	T(sendto(b, "all", 3, 0, NAME4("127.255.255.255", port)));
	await(a, POLLIN);
	T(recv(a, buf, 10, MSG_DONTWAIT));
	T(sendto(b, "all", 3, 0, NAME4("255.255.255.255", port)));
	T(sendto(b, "two", 3, 0, NAME4("127.0.0.2", port)));
	await(a, POLLIN);
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	T(recvfrom(a, buf, 10, MSG_DONTWAIT, (struct sockaddr *)&from, &len));
	SAY("from %s", words(&from, port_of(b)));
	close(a);
	close(b);
}

static void six(void)
{
	int a = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0)), on = 1;
	say_names("fresh six", a, 0, 0);
	T(bind(a, NAME6("::", 0)));
	int port = port_of(a), b = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	int four = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	say_names("six", a, port, 0);
	T(setsockopt(a, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on));
	T(setsockopt(a, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof on));
	T(sendto(b, "six", 3, 0, NAME6("::1", port)));
	T(sendto(four, "four", 4, 0, NAME4("127.0.0.1", port)));
	T(sendto(b, "mapped", 6, 0, NAME6("::ffff:127.0.0.1", port)));
	T(sendto(b, "plain", 5, 0, NAME4("127.0.0.1", port)));
	for (int i = 0; i < 4; i++) {
		await(a, POLLIN);
		char control[256];
		struct sockaddr_in6 from;
		struct iovec iov = { buf, 100 };
		struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
		T(recvmsg(a, &m, MSG_DONTWAIT));
		SAY("from %s, %d bytes", words(&from, 0), (int)m.msg_namelen);
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
			SAY("control %d %d, %d bytes", c->cmsg_level, c->cmsg_type, (int)c->cmsg_len);
	}
	T(sendto(b, "x", 1, 0, NAME6("2001:db8::1", 5)));
	T(sendto(b, "x", 1, 0, NAME6("ff02::1", 5)));
	T(sendto(b, "x", 1, 0, NAME6("::ffff:10.0.0.1", 5)));
	T(connect(b, NAME4("127.0.0.1", port)));
	say_names("six to four", b, 0, port);
	close(b);
	b = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	T(setsockopt(b, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
	T(sendto(b, "x", 1, 0, NAME6("::ffff:127.0.0.1", port)));
	T(connect(b, NAME6("::ffff:127.0.0.1", port)));
	T(bind(b, NAME6("::1", port)));
	T(connect(b, NAME6("::", port)));
	say_names("six to any", b, 0, port);
	close(a);
	close(b);
	close(four);
}

int main(void)
{
	net_up();
	basics();
	controls();
	origins();
	many();
	shared();
	six();
	T(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE) >= 0);
	return 0;
}
