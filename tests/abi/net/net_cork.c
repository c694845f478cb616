/*
 * Datagrams that several calls put together: MSG_MORE and UDP_CORK, with names, without, with other names for the parts, too
 * long, with a fault, after shutdown, by two families, UDP-Lite, empty parts, sendmmsg, close before the end.
 */
#include "net.h"
#include <netinet/udp.h>
#include <sys/uio.h>

static char bytes[70000];
static int to4, to6, other;

static void got(int fd)
{
	static char in[70000];
	struct sockaddr_storage from;
	socklen_t len = sizeof from;
	for (;;) {
		ssize_t n = recvfrom(fd, in, sizeof in, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
		if (n < 0) {
			SAY("  then %s", err_name(errno));
			return;
		}
		unsigned sum = 0;
		for (ssize_t i = 0; i < n; i++)
			sum = sum * 31 + (unsigned char)in[i];
		if (n < 64)
			SAY("  a datagram of %d bytes: %.*s", (int)n, (int)n, in);
		else
			SAY("  a datagram of %d bytes, sum %#x", (int)n, sum);
	}
}

static int receiver(int family, int protocol)
{
	int fd = (int)MUST(socket(family, SOCK_DGRAM, protocol));
	if (family == AF_INET)
		MUST(bind(fd, NAME4("127.0.0.1", 0)));
	else
		MUST(bind(fd, NAME6("::1", 0)));
	return fd;
}

static void by_more(int connected)
{
	printf("MSG_MORE, %s\n", connected ? "connected" : "with a name");
	int in = receiver(AF_INET, 0), out = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), port = port_of(in);
	if (connected)
		MUST(connect(out, NAME4("127.0.0.1", port)));
	T(connected ? send(out, "one ", 4, MSG_MORE) : sendto(out, "one ", 4, MSG_MORE, NAME4("127.0.0.1", port)));
	got(in);
	T(connected ? send(out, "two ", 4, MSG_MORE) : sendto(out, "two ", 4, MSG_MORE, NAME4("127.0.0.1", other)));
	T(send(out, "three", 5, 0));
	got(in);
	T(connected ? send(out, "four", 4, 0) : sendto(out, "four", 4, 0, NAME4("127.0.0.1", port)));
	got(in);
	puts("empty parts");
	T(connected ? send(out, "", 0, MSG_MORE) : sendto(out, "", 0, MSG_MORE, NAME4("127.0.0.1", port)));
	got(in);
	T(send(out, "", 0, MSG_MORE));
	T(send(out, "x", 1, MSG_MORE));
	T(send(out, "", 0, 0));
	got(in);
	T(connected ? send(out, "", 0, MSG_MORE) : sendto(out, "", 0, MSG_MORE, NAME4("127.0.0.1", port)));
	T(send(out, "", 0, 0));
	got(in);
	puts("a fault");
	T(connected ? send(out, "ab", 2, MSG_MORE) : sendto(out, "ab", 2, MSG_MORE, NAME4("127.0.0.1", port)));
	T(send(out, (void *)8, 4, MSG_MORE));
	T(connected ? send(out, "cd", 2, 0) : sendto(out, "cd", 2, 0, NAME4("127.0.0.1", port)));
	got(in);
	puts("too long");
	T(connected ? send(out, bytes, 60000, MSG_MORE) : sendto(out, bytes, 60000, MSG_MORE, NAME4("127.0.0.1", port)));
	T(send(out, bytes, 5507, MSG_MORE));
	T(send(out, "", 0, 0));
	got(in);
	T(connected ? send(out, bytes, 60000, MSG_MORE) : sendto(out, bytes, 60000, MSG_MORE, NAME4("127.0.0.1", port)));
	T(send(out, bytes, 5508, MSG_MORE));
	T(connected ? send(out, "ef", 2, 0) : sendto(out, "ef", 2, 0, NAME4("127.0.0.1", port)));
	got(in);
	puts("no name");
	int fresh = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	T(send(fresh, "a", 1, MSG_MORE));
	T(sendto(fresh, "b", 1, 0, NAME4("127.0.0.1", port)));
	got(in);
	T(sendto(fresh, "c", 1, MSG_MORE, NAME4("127.0.0.1", port)));
	T(send(fresh, "d", 1, MSG_OOB | MSG_MORE));
	T(send(fresh, "e", 1, 0));
	got(in);
	puts("shut, and closed");
	T(sendto(fresh, "f", 1, MSG_MORE, NAME4("127.0.0.1", port)));
	close(fresh);
	got(in);
	if (connected) {
		T(send(out, "g", 1, MSG_MORE));
		T(shutdown(out, SHUT_WR));
		T(send(out, "h", 1, MSG_MORE | MSG_NOSIGNAL));
		T(send(out, "i", 1, MSG_NOSIGNAL));
		got(in);
		T(send(out, "j", 1, MSG_MORE | MSG_NOSIGNAL));
	}
	close(in);
	close(out);
}

static void by_option(int family, int protocol, int level)
{
	printf("UDP_CORK, family %d, protocol %d, level %d\n", family, protocol, level);
	int in = receiver(family, protocol), out = (int)MUST(socket(family, SOCK_DGRAM, protocol)), port = port_of(in);
	if (family == AF_INET)
		MUST(connect(out, NAME4("127.0.0.1", port)));
	else
		MUST(connect(out, NAME6("::1", port)));
	int on = 5, off = 0;
	socklen_t len = sizeof on;
	T(setsockopt(out, level, UDP_CORK, &on, 3));
	T(setsockopt(out, level, UDP_CORK, &off, sizeof off));
	T(setsockopt(out, level, UDP_CORK, &on, sizeof on));
	T(getsockopt(out, level, UDP_CORK, &on, &len));
	SAY("on: %d", on);
	on = 9;
	T(getsockopt(out, IPPROTO_UDP, UDP_CORK, &on, &len));
	SAY("on: %d", on);
	on = 1;
	T(send(out, "one ", 4, 0));
	struct iovec parts[2] = { { "two ", 4 }, { "three ", 6 } };
	T(writev(out, parts, 2));
	T(setsockopt(out, level, UDP_CORK, &on, sizeof on));
	got(in);
	T(write(out, "four", 4));
	T(setsockopt(out, level, UDP_CORK, &off, sizeof off));
	got(in);
	T(send(out, "alone", 5, 0));
	got(in);
	puts("sendmmsg");
	struct mmsghdr all[3];
	memset(all, 0, sizeof all);
	for (int i = 0; i < 3; i++) {
		all[i].msg_hdr.msg_iov = parts;
		all[i].msg_hdr.msg_iovlen = (size_t)i % 2 + 1;
	}
	T(sendmmsg(out, all, 3, MSG_MORE));
	T(setsockopt(out, level, UDP_CORK, &off, sizeof off));
	got(in);
	T(setsockopt(out, level, UDP_CORK, &off, sizeof off));
	got(in);
	puts("refused");
	close(in);
	T(send(out, "a", 1, MSG_MORE));
	T(send(out, "b", 1, 0));
	T(send(out, "c", 1, MSG_MORE));
	T(send(out, "d", 1, 0));
	close(out);
}

/* A socket of IPv6 that sends by both. */
static void both(void)
{
	puts("both families");
	int out = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	int p4 = port_of(to4), p6 = port_of(to6);
	char mapped[] = "::ffff:127.0.0.1";
	T(sendto(out, "a", 1, MSG_MORE, NAME6("::1", p6)));
	T(sendto(out, "b", 1, MSG_MORE, NAME6(mapped, p4)));
	T(sendto(out, "c", 1, MSG_MORE, NAME4("127.0.0.1", p4)));
	T(sendto(out, "d", 1, MSG_MORE, NAME6("::1", p6)));
	T(sendto(out, "D", 1, 0, NAME6("::1", p6)));
	got(to6);
	got(to4);
	T(sendto(out, "e", 1, MSG_MORE, NAME4("127.0.0.1", p4)));
	T(sendto(out, "f", 1, MSG_MORE, NAME6("::1", p6)));
	T(sendto(out, "g", 1, MSG_MORE, NAME6(mapped, p4)));
	T(send(out, "h", 1, 0));
	got(to6);
	got(to4);
	struct sockaddr_in unnamed = { .sin_family = AF_UNSPEC };
	T(sendto(out, "i", 1, MSG_MORE, NAME6("::1", p6)));
	T(sendto(out, "j", 1, 0, (struct sockaddr *)&unnamed, sizeof unnamed));
	got(to6);
	unnamed.sin_family = AF_UNIX;
	T(sendto(out, "k", 1, MSG_MORE, NAME6("::1", p6)));
	T(sendto(out, "l", 1, 0, (struct sockaddr *)&unnamed, sizeof unnamed));
	T(sendto(out, "m", 1, 0, (struct sockaddr *)&unnamed, 4));
	T(send(out, "n", 1, 0));
	got(to6);
	close(out);
}

int main(void)
{
	net_up();
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 7);
	to4 = receiver(AF_INET, 0);
	to6 = receiver(AF_INET6, 0);
	other = port_of(to4);
	by_more(0);
	by_more(1);
	by_option(AF_INET, 0, IPPROTO_UDP);
	by_option(AF_INET6, 0, IPPROTO_UDP);
	by_option(AF_INET, IPPROTO_UDPLITE, IPPROTO_UDPLITE);
	both();
	got(to4);
	return 0;
}
