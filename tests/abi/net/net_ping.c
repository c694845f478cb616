/*
 * Sockets that send echo requests without privilege: who may (net.ipv4.ping_group_range), what may be sent, the identifier that the
 * kernel gives or bind asks for, the answers, and what is not theirs.
 */
#include "net.h"
#include <grp.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>

#define RANGE "net/ipv4/ping_group_range"

static unsigned char buf[70000];

static const char *range(void) { return read_file("/proc/sys/" RANGE); }

static size_t echo(uint8_t type, uint16_t seq, const char *text)
{
	struct icmphdr *h = (struct icmphdr *)buf;
	memset(buf, 0, sizeof buf);
	h->type = type;
	h->un.echo.id = htons(4711);
	h->un.echo.sequence = htons(seq);
	strcpy((char *)(h + 1), text);
	return sizeof *h + strlen(text);
}

/* This machine's address of the family that is looked at, to be called with a port or an identifier. */
static int v6;
#define HERE(port) here(port), v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)
static struct sockaddr *here(uint16_t port)
{
	static struct sockaddr_in6 six;
	static struct sockaddr_in four;
	six = in6("::1", port);
	four = in4("127.0.0.1", port);
	return v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
}

/* Another one's, or of the other family. */
#define ELSEWHERE(port) elsewhere(port), v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)
static struct sockaddr *elsewhere(uint16_t port)
{
	static struct sockaddr_in6 six;
	static struct sockaddr_in four;
	six = in6("2001:db8::1", port);
	four = in4("10.1.1.1", port);
	return v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
}

static void say_answer(const char *what, int fd)
{
	struct sockaddr_in6 from = { 0 };
	socklen_t size = sizeof from;
	memset(buf, 0, sizeof buf);
	ssize_t n = recvfrom(fd, buf, sizeof buf, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
	if (n < 0) {
		SAY("%s: %s", what, err_name(errno));
		return;
	}
	struct icmphdr *h = (struct icmphdr *)buf;
	SAY("%s: %zd bytes, type %d code %d seq %d, own identifier %s, text \"%s\", from %s", what, n, h->type, h->code,
	    ntohs(h->un.echo.sequence), ntohs(h->un.echo.id) == port_of(fd) ? "yes" : "no", (char *)(h + 1), words(&from, -1));
}

static void setting(void)
{
	static const char *const texts[] = {
		"0 2147483647", "5", "7 3", "x", "3 x", "0 4294967295", "0 4294967294", "-1 5", "", " ", "10\t20\n", "1 2 3", "0x10 20", "1 0",
	};
	SAY("at first %s", range());
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		ssize_t put = put_setting(RANGE, texts[i]);
		printf("\"%s\" %s %zd: %s", texts[i], put < 0 ? strerrorname_np(errno) : "ok", put, range());
	}
}

static void who_may(gid_t own, gid_t other)
{
	char name[64];
	sprintf(name, "group %u and %u", own, other);
	CHILD(name) {
		MUST(setgroups(1, &other));
		MUST(setresgid(own, own, own));
		MUST(setresuid(1000, 1000, 1000));
		T(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) >= 0);
		T(socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6) >= 0);
	} END;
}

static void requests(int family)
{
	int value;
	v6 = family == AF_INET6;
	socklen_t len = sizeof value;
	int fd = (int)MUST(socket(family, SOCK_DGRAM, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP));
	int other = (int)MUST(socket(family, SOCK_DGRAM, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP));
	uint8_t type = v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO;
	MUST(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len));
	SAY("type %d", value);
	MUST(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &len));
	SAY("protocol %d", value);
	value = 0;
	T(setsockopt(fd, SOL_RAW, 1, &value, sizeof value));
	T(setsockopt(fd, IPPROTO_IP, IP_HDRINCL, &value, sizeof value));
	T(setsockopt(fd, IPPROTO_ICMPV6, 1, &value, sizeof value));
	T(listen(fd, 1));
	IS(port_of(fd) == 0);
	SAY("events %x", events(fd));
	size_t n = echo(type, 1, "first");
	T(send(fd, buf, n, 0));
	T(sendto(fd, buf, n, 0, HERE(0)));
	IS(port_of(fd) != 0);
	SAY("awaited %x", await(fd, POLLIN));
	say_answer("answer", fd);
	say_answer("nothing", fd);
	n = echo(type, 2, "of the other");
	T(sendto(other, buf, n, 0, HERE(0)));
	IS(port_of(fd) != port_of(other));
	await(other, POLLIN);
	say_answer("other", other);
	say_answer("not the first", fd);
	puts("-- what may not be sent");
	n = echo(v6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY, 3, "an answer");
	T(sendto(fd, buf, n, 0, HERE(0)));
	n = echo(type, 3, "code");
	buf[1] = 1;
	T(sendto(fd, buf, n, 0, HERE(0)));
	n = echo(type, 3, "short");
	T(sendto(fd, buf, 7, 0, HERE(0)));
	T(sendto(fd, buf, 8, 0, HERE(0)));
	await(fd, POLLIN);
	say_answer("least", fd);
	n = echo(type, 3, "good");
	T(sendto(fd, buf, 65536, 0, HERE(0)));
	T(sendto(fd, buf, n, MSG_OOB, HERE(0)));
	if (v6)
		T(sendto(fd, buf, n, 0, NAME4("127.0.0.1", 0)));
	else
		T(sendto(fd, buf, n, 0, NAME6("::1", 0)));
	T(sendto(fd, buf, n, 0, (struct sockaddr *)buf, 4));
	T(sendto(fd, NULL, n, 0, HERE(0)));
	if (!v6) {
		T(sendto(fd, buf, 65516, 0, HERE(0)));
		T(sendto(fd, buf, n, 0, NAME4("255.255.255.255", 0)));
	}
	puts("-- connected and bound");
	T(connect(fd, HERE(9)));
	say_names("connected", fd, -1, 9);
	n = echo(type, 4, "connected");
	T(send(fd, buf, n, 0));
	await(fd, POLLIN);
	say_answer("connected", fd);
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	T(connect(fd, &none, sizeof none));
	IS(port_of(fd) == 0);
	n = echo(type, 4, "nowhere");
	T(send(fd, buf, n, 0));
	T(bind(other, HERE(77)));
	close(fd);
	fd = (int)MUST(socket(family, SOCK_DGRAM, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP));
	T(bind(fd, ELSEWHERE(78)));
	T(bind(fd, HERE(78)));
	IS(port_of(fd) == 78);
	T(bind(fd, HERE(79)));
	close(other);
	other = (int)MUST(socket(family, SOCK_DGRAM, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP));
	n = echo(type, 5, "bound");
	T(sendto(fd, buf, n, 0, HERE(0)));
	await(fd, POLLIN);
	say_answer("bound", fd);
	puts("-- two with one identifier");
	MUST(getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, &len));
	SAY("reuse %d", value);
	T(bind(other, HERE(78)));
	n = echo(type, 6, "to the later");
	T(sendto(fd, buf, n, 0, HERE(0)));
	await(other, POLLIN);
	say_answer("later", other);
	say_answer("earlier", fd);
	close(other);
	n = echo(type, 7, "to who is left");
	T(sendto(fd, buf, n, 0, HERE(0)));
	await(fd, POLLIN);
	say_answer("left", fd);
	other = (int)MUST(socket(family, SOCK_DGRAM, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP));
	value = 0;
	MUST(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &value, sizeof value));
	T(bind(other, HERE(78)));
	T(bind(other, HERE(79)));
	T(bind(other, HERE(80)));
	close(other);
	other = (int)MUST(socket(family, SOCK_DGRAM, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP));
	T(bind(other, HERE(0)));
	IS(port_of(other) != 0 && port_of(other) != 78);
	T(connect(fd, &none, sizeof none));
	IS(port_of(fd) == 78);
	T(shutdown(fd, SHUT_RD));
	close(fd);
	close(other);
	fd = (int)MUST(socket(family, SOCK_DGRAM, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP));
	T(bind(fd, HERE(78)));
	close(fd);
}

/* What a raw socket forges: a good answer reaches the one whose identifier it has, whoever sent it; a bad one nobody. */
static void forged(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	int raw = (int)MUST(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	MUST(bind(fd, NAME4("127.0.0.1", 4711)));
	size_t n = echo(ICMP_ECHOREPLY, 1, "good");
	for (int good = 1; good >= 0; good--) {
		uint32_t sum = 0;
		buf[2] = buf[3] = 0;
		for (size_t i = 0; i < n; i++)
			sum += i % 2 ? buf[i] : (uint32_t)buf[i] << 8;
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		buf[2] = (unsigned char)(~sum >> 8);
		buf[3] = (unsigned char)(~sum ^ (good ? 0 : 1));
		T(sendto(raw, buf, n, 0, NAME4("127.0.0.1", 0)));
		say_answer(good ? "good" : "bad", fd);
		n = echo(ICMP_ECHOREPLY, 1, "bad!");
	}
	close(raw);
	close(fd);
}

int main(void)
{
	net_up();
	setting();
	MUST(put_setting(RANGE, "100 200"));
	who_may(100, 5);
	who_may(200, 5);
	who_may(201, 5);
	who_may(99, 150);
	who_may(99, 99);
	T(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	MUST(put_setting(RANGE, "0 2147483647"));
	puts("-- IPv4");
	requests(AF_INET);
	puts("-- IPv6");
	requests(AF_INET6);
	puts("-- forged");
	forged();
	MUST(put_setting(RANGE, "1 0"));
	T(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	return 0;
}
