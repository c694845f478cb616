/*
 * Raw and ICMP sockets over the loopback: who may have one, echo requests that the kernel answers, what a raw
 * reader gets, names, filters, and the answers of packet sockets and of families that are not there.
 */
#include "net.h"
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>

#define ICMP_FILTER 1

static unsigned char buf[70000];

static uint16_t checksum(const void *data, size_t len)
{
	const uint8_t *b = data;
	uint32_t sum = 0;
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? b[i] : (uint32_t)b[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static size_t echo(uint8_t type, uint16_t id, uint16_t seq, const char *text)
{
	struct icmphdr *h = (struct icmphdr *)buf;
	memset(buf, 0, sizeof buf);
	h->type = type;
	h->un.echo.id = htons(id);
	h->un.echo.sequence = htons(seq);
	strcpy((char *)(h + 1), text);
	size_t len = sizeof *h + strlen(text);
	h->checksum = checksum(buf, len);
	return len;
}

/* Reads one message and tells what it is; 4 with an IP header before it. */
static void say_message(const char *what, int fd, int version)
{
	struct sockaddr_in6 from = { 0 };
	socklen_t size = sizeof from;
	memset(buf, 0, sizeof buf);
	ssize_t n = recvfrom(fd, buf, sizeof buf, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
	if (n < 0) {
		SAY("%s: %s", what, err_name(errno));
		return;
	}
	size_t at = 0;
	if (version == 4) {
		struct ip *ip = (struct ip *)buf;
		SAY("%s: ip version %d hl %d len %d ttl %d proto %d, sum %s, from %x to %x", what, ip->ip_v, ip->ip_hl, ntohs(ip->ip_len),
		    ip->ip_ttl, ip->ip_p, checksum(buf, ip->ip_hl * 4u) == 0 ? "right" : "wrong", ntohl(ip->ip_src.s_addr), ntohl(ip->ip_dst.s_addr));
		at = ip->ip_hl * 4u;
	}
	struct icmphdr *h = (struct icmphdr *)(buf + at);
	SAY("%s: %zd bytes, type %d code %d seq %d, text \"%s\", from %s, %d bytes of name", what, n, h->type, h->code, ntohs(h->un.echo.sequence),
	    (char *)(h + 1), words(&from, -1), (int)size);
	if (version != 6)
		SAY("%s: sum %s", what, checksum(buf + at, (size_t)n - at) == 0 ? "right" : "wrong");
}

static void raw4(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)), type, other;
	socklen_t len = sizeof type;
	T(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len));
	SAY("type %d", type);
	T(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &type, &len));
	SAY("protocol %d", type);
	T(listen(fd, 1));
	T(accept(fd, NULL, NULL));
	T(send(fd, buf, 8, 0));
	T(recv(fd, buf, 8, MSG_DONTWAIT));
	SAY("events %x", events(fd));
	size_t n = echo(ICMP_ECHO, 77, 1, "ping");
	T(sendto(fd, buf, n, 0, NAME4("127.0.0.1", 0)));
	SAY("awaited %x", await(fd, POLLIN));
	say_message("request", fd, 4);
	await(fd, POLLIN);
	say_message("reply", fd, 4);
	say_message("nothing", fd, 4);
	/* Another socket sees the same; a filter keeps the requests away. */
	other = (int)MUST(socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK, IPPROTO_ICMP));
	uint32_t mask = 1u << ICMP_ECHO;
	T(setsockopt(other, SOL_RAW, ICMP_FILTER, &mask, sizeof mask));
	mask = 0;
	len = sizeof mask;
	T(getsockopt(other, SOL_RAW, ICMP_FILTER, &mask, &len));
	SAY("filter %x, %d bytes", mask, (int)len);
	n = echo(ICMP_ECHO, 78, 2, "second");
	T(sendto(fd, buf, n, 0, NAME4("127.0.0.1", 99)));
	await(other, POLLIN);
	say_message("filtered", other, 4);
	say_message("filtered", other, 4);
	while (recv(fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
		;
	/* A wrong checksum is not answered, an answer neither. */
	n = echo(ICMP_ECHO, 1, 3, "wrong");
	buf[2] ^= 1;
	T(sendto(fd, buf, n, 0, NAME4("127.0.0.1", 0)));
	T(recv(fd, buf, sizeof buf, MSG_DONTWAIT));
	T(recv(fd, buf, sizeof buf, MSG_DONTWAIT));
	n = echo(ICMP_ECHOREPLY, 1, 4, "answer");
	T(sendto(fd, buf, n, 0, NAME4("127.0.0.1", 0)));
	T(recv(other, buf, sizeof buf, MSG_DONTWAIT));
	T(recv(other, buf, sizeof buf, MSG_DONTWAIT));
	while (recv(fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
		;
	close(other);
	/* Names. */
	say_names("fresh", fd, -1, -1);
	T(connect(fd, NAME4("127.0.0.1", 7)));
	say_names("connected", fd, -1, 7);
	n = echo(ICMP_ECHO, 1, 5, "connected");
	T(send(fd, buf, n, 0));
	await(fd, POLLIN);
	say_message("connected", fd, 4);
	say_message("connected", fd, 4);
	T(shutdown(fd, SHUT_WR));
	T(send(fd, buf, n, 0));
	close(fd);
	fd = (int)MUST(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	T(bind(fd, NAME4("127.0.0.2", 0)));
	T(bind(fd, NAME4("10.1.1.1", 0)));
	say_names("bound", fd, -1, -1);
	n = echo(ICMP_ECHO, 1, 6, "bound");
	T(sendto(fd, buf, n, 0, NAME4("127.0.0.1", 0)));
	await(fd, POLLIN);
	say_message("bound", fd, 4);
	say_message("bound", fd, 4);
	T(sendto(fd, buf, 0, 0, NAME4("127.0.0.1", 0)));
	T(sendto(fd, buf, 65515, 0, NAME4("127.0.0.1", 0)));
	T(sendto(fd, buf, 65516, 0, NAME4("127.0.0.1", 0)));
	T(sendto(fd, buf, 8, 0, NAME4("8.8.8.8", 0)));
	T(sendto(fd, buf, 8, 0, NAME4("255.255.255.255", 0)));
	T(sendto(fd, buf, 8, MSG_OOB, NAME4("127.0.0.1", 0)));
	T(sendto(fd, buf, 8, 0, NAME6("::1", 0)));
	T(sendto(fd, buf, 8, 0, (struct sockaddr *)buf, 4));
	close(fd);
}

static void headers(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_RAW, IPPROTO_RAW)), on = -1;
	int reader = (int)MUST(socket(AF_INET, SOCK_RAW, 253));
	socklen_t len = sizeof on;
	T(getsockopt(fd, IPPROTO_IP, IP_HDRINCL, &on, &len));
	SAY("hdrincl %d", on);
	struct {
		struct ip ip;
		char text[8];
	} packet = { .ip = { .ip_v = 4, .ip_hl = 5, .ip_ttl = 9, .ip_p = 253 }, .text = "packet" };
	inet_pton(AF_INET, "127.3.3.3", &packet.ip.ip_src);
	inet_pton(AF_INET, "127.0.0.1", &packet.ip.ip_dst);
	T(sendto(fd, &packet, sizeof packet, 0, NAME4("127.0.0.1", 0)));
	SAY("awaited %x", await(reader, POLLIN));
	T(recv(reader, buf, sizeof buf, MSG_DONTWAIT));
	struct ip *ip = (struct ip *)buf;
	SAY("ttl %d proto %d len %d from %x text %s sum %s id %s", ip->ip_ttl, ip->ip_p, ntohs(ip->ip_len), ntohl(ip->ip_src.s_addr), (char *)buf + 20,
	    checksum(buf, 20) == 0 ? "right" : "wrong", ip->ip_id ? "set" : "zero");
	T(sendto(fd, &packet, 10, 0, NAME4("127.0.0.1", 0)));
	T(recv(fd, buf, sizeof buf, MSG_DONTWAIT));
	/* Without a header of its own the kernel makes one, with the socket's time to live. */
	int ttl = 33;
	T(setsockopt(reader, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl));
	T(sendto(reader, "text", 4, 0, NAME4("127.0.0.1", 0)));
	await(reader, POLLIN);
	T(recv(reader, buf, sizeof buf, MSG_DONTWAIT));
	SAY("ttl %d proto %d len %d", ip->ip_ttl, ip->ip_p, ntohs(ip->ip_len));
	close(fd);
	close(reader);
}

static void raw6(void)
{
	int fd = (int)MUST(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
	size_t n = echo(ICMP6_ECHO_REQUEST, 5, 1, "six");
	T(sendto(fd, buf, n, 0, NAME6("::1", 0)));
	await(fd, POLLIN);
	say_message("six", fd, 6);
	await(fd, POLLIN);
	say_message("six", fd, 6);
	say_message("six", fd, 6);
	struct icmp6_filter filter, back;
	socklen_t len = sizeof back;
	ICMP6_FILTER_SETBLOCKALL(&filter);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
	T(setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter));
	T(getsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &back, &len));
	IS(memcmp(&filter, &back, sizeof back) == 0);
	n = echo(ICMP6_ECHO_REQUEST, 5, 2, "again");
	T(sendto(fd, buf, n, 0, NAME6("::1", 0)));
	await(fd, POLLIN);
	say_message("filtered", fd, 6);
	say_message("filtered", fd, 6);
	T(sendto(fd, buf, n, 0, NAME4("127.0.0.1", 0)));
	T(sendto(fd, buf, n, 0, NAME6("fe80::1", 0)));
	T(sendto(fd, buf, n, 0, NAME6("2001:db8::1", 0)));
	T(connect(fd, NAME6("::1", 3)));
	say_names("six", fd, -1, 3);
	close(fd);
}

/* Echo requests without privilege, if the group may (net.ipv4.ping_group_range). */
static void ping4(void)
{
	T(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	T(socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6));
	SAY("range %s", read_file("/proc/sys/net/ipv4/ping_group_range"));
	T(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMPV6));
	T(socket(AF_INET, SOCK_STREAM, IPPROTO_ICMP));
}

int main(void)
{
	net_up();
	T(close((int)socket(AF_INET, SOCK_RAW, 0)));
	T(close((int)socket(AF_INET, SOCK_RAW, 255)));
	T(close((int)socket(AF_INET, SOCK_RAW, IPPROTO_TCP)));
	T(close((int)socket(AF_INET, SOCK_RAW, 256)));
	T(close((int)socket(AF_INET, SOCK_RAW, -1)));
	T(close((int)socket(AF_INET6, SOCK_RAW, 0)));
	T(close((int)socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6)));
	T(socket(AF_X25, SOCK_SEQPACKET, 0));
	T(socket(AF_APPLETALK, SOCK_DGRAM, 0));
	T(socket(AF_INET, SOCK_DCCP, 0));
	raw4();
	headers();
	raw6();
	ping4();
	CHILD("without privilege") {
		MUST(setgid(1000));
		MUST(setuid(1000));
		T(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
		T(socket(AF_INET, SOCK_RAW, 0));
		T(socket(AF_INET, SOCK_RAW, 256));
		T(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
		T(socket(AF_PACKET, SOCK_RAW, 0));
		T(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	} END;
	return 0;
}
