/*
 * What filters of sockets see of a message, and what becomes of it: UDP, AF_UNIX, netlink, raw and ping sockets. Loads
 * by offsets from the data and from the headers before them, lengths, what is told of a packet, drops and cuts.
 */
#include "socket_filter.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <sys/un.h>

static char buf[70000];

/* What comes of one message: its bytes, or that none came. */
static int comes(int fd)
{
	memset(buf, 0, sizeof buf);
	return (int)recv(fd, buf, sizeof buf, MSG_DONTWAIT);
}

/* Two sockets: what goes into the first comes to the second. */
struct pair { int from, to; };

static struct pair udp(int family)
{
	struct pair p = { (int)MUST(socket(family, SOCK_DGRAM, 0)), (int)MUST(socket(family, SOCK_DGRAM, 0)) };
	struct sockaddr_in6 name = in6("::1", 4001), own = in6("::1", 4002);
	struct sockaddr_in name4 = in4("127.0.0.1", 4001), own4 = in4("127.0.0.1", 4002);
	int is4 = family == AF_INET;
	MUST(bind(p.to, is4 ? (void *)&name4 : (void *)&name, is4 ? sizeof name4 : sizeof name));
	MUST(bind(p.from, is4 ? (void *)&own4 : (void *)&own, is4 ? sizeof own4 : sizeof own));
	MUST(connect(p.from, is4 ? (void *)&name4 : (void *)&name, is4 ? sizeof name4 : sizeof name));
	MUST(setsockopt(p.from, SOL_SOCKET, SO_MARK, &(int){ 77 }, sizeof(int)));
	return p;
}

static struct pair local(int kind)
{
	int fds[2];
	MUST(socketpair(AF_UNIX, kind, 0, fds));
	return (struct pair){ fds[0], fds[1] };
}

static void end(struct pair p)
{
	close(p.from);
	close(p.to);
}

/* The bytes 1 to n. */
static const char *numbers(void)
{
	static char bytes[300];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i + 1);
	return bytes;
}

/* Whether a filter whose A is this at its end lets a message through. */
static int holds(struct pair p, const struct sock_filter *filter, size_t len, uint32_t value)
{
	struct sock_filter program[16];
	memcpy(program, filter, len * sizeof *filter);
	program[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	program[len++] = (struct sock_filter)RET(-1);
	program[len++] = (struct sock_filter)RET(0);
	MUST(attach(p.to, program, len));
	MUST(send(p.from, numbers(), 100, 0));
	return comes(p.to) > 0;
}

/* The value of A, found bit by bit; a filter that ends before has none. */
static void value_of(const char *text, struct pair p, const struct sock_filter *filter, size_t len)
{
	struct sock_filter program[16];
	memcpy(program, filter, len * sizeof *filter);
	program[len] = (struct sock_filter)RET(-1);
	MUST(attach(p.to, program, len + 1));
	MUST(send(p.from, numbers(), 100, 0));
	int came = comes(p.to);
	if (came < 0) {
		SAY("%s: dropped", text);
		return;
	}
	if (came != 100) {
		SAY("%s: ended, %d came", text, came);
		return;
	}
	uint32_t value = 0;
	for (int bit = 31; bit >= 0; bit--) {
		program[len] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1u << bit, 0, 1);
		program[len + 1] = (struct sock_filter)RET(-1);
		program[len + 2] = (struct sock_filter)RET(0);
		MUST(attach(p.to, program, len + 3));
		MUST(send(p.from, numbers(), 100, 0));
		if (comes(p.to) > 0)
			value |= 1u << bit;
	}
	SAY("%s: %x", text, value);
}
#define VALUE(p, ...) ({ struct sock_filter f_[] = { __VA_ARGS__ }; value_of(#__VA_ARGS__, p, f_, LEN(f_)); })
#define HOLDS(p, value, ...) ({ struct sock_filter f_[] = { __VA_ARGS__ }; SAY("%s is %x: %d", #__VA_ARGS__, (unsigned)(value), holds(p, f_, LEN(f_), (uint32_t)(value))); })

static void loads(struct pair p, int udp)
{
	VALUE(p, LOAD(BPF_B, 0));
	VALUE(p, LOAD(BPF_H, 1));
	VALUE(p, LOAD(BPF_W, 4));
	if (!udp)
		VALUE(p, LOAD(BPF_H, 6));
	VALUE(p, LOAD(BPF_W, 9));
	VALUE(p, LOAD(BPF_B, 99));
	VALUE(p, LOAD(BPF_B, 100));
	VALUE(p, LOAD(BPF_W, 96));
	VALUE(p, LOAD(BPF_W, 97));
	VALUE(p, LOAD(BPF_W, 104));
	VALUE(p, LOAD(BPF_W, 105));
	VALUE(p, LOAD(BPF_H, 0x7fffffff));
	VALUE(p, LOAD(BPF_W, 0x80000000));
	VALUE(p, X(10), LOADX(BPF_W, 2));
	VALUE(p, X(10), LOADX(BPF_H, -2));
	VALUE(p, X(0xfffffffe), LOADX(BPF_B, 14));
	VALUE(p, X(0x80000000), LOADX(BPF_B, 0));
	VALUE(p, X(0x1000), LOADX(BPF_B, SKF_AD_OFF));
	VALUE(p, X(200), LOADX(BPF_W, 2));
	VALUE(p, A(5), BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 10), BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0));
	VALUE(p, BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 200));
	VALUE(p, BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0));
	VALUE(p, BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_MISC | BPF_TXA, 0));
	VALUE(p, A(47), X(10), BPF_STMT(BPF_ALU | BPF_MOD | BPF_X, 0));
	VALUE(p, A(47), X(0), BPF_STMT(BPF_ALU | BPF_MOD | BPF_X, 0));
	VALUE(p, A(47), BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 9));
}

static void headers(struct pair p, int v6)
{
	VALUE(p, LOAD(BPF_B, SKF_NET_OFF));
	VALUE(p, LOAD(BPF_H, SKF_NET_OFF + (v6 ? 4 : 2)));
	VALUE(p, LOAD(BPF_B, SKF_NET_OFF + (v6 ? 6 : 8)));
	VALUE(p, LOAD(BPF_B, SKF_NET_OFF + 9));
	VALUE(p, LOAD(BPF_W, SKF_NET_OFF + (v6 ? 20 : 12)));
	VALUE(p, LOAD(BPF_W, SKF_NET_OFF + (v6 ? 36 : 16)));
	VALUE(p, LOAD(BPF_W, SKF_NET_OFF + (v6 ? 40 : 20)));
	VALUE(p, LOAD(BPF_W, SKF_NET_OFF + 60));
	VALUE(p, LOAD(BPF_B, SKF_NET_OFF + 4000));
	VALUE(p, LOAD(BPF_W, SKF_LL_OFF));
	VALUE(p, LOAD(BPF_H, SKF_LL_OFF + 12));
	VALUE(p, LOAD(BPF_W, SKF_LL_OFF + 14 + (v6 ? 36 : 16)));
	VALUE(p, LOAD(BPF_B, SKF_LL_OFF - 1));
	VALUE(p, X(3), LOADX(BPF_B, SKF_NET_OFF + (v6 ? 4 : 6)));
}

static void facts(struct pair p)
{
	VALUE(p, A(9), TOLD(SKF_AD_PROTOCOL));
	VALUE(p, A(9), LOAD(BPF_B, SKF_AD_OFF + SKF_AD_PROTOCOL));
	VALUE(p, A(9), TOLD(SKF_AD_PKTTYPE));
	VALUE(p, A(9), TOLD(SKF_AD_IFINDEX));
	VALUE(p, A(9), TOLD(SKF_AD_HATYPE));
	VALUE(p, A(9), TOLD(SKF_AD_MARK));
	VALUE(p, A(9), TOLD(SKF_AD_QUEUE));
	VALUE(p, A(9), TOLD(SKF_AD_VLAN_TAG));
	VALUE(p, A(9), TOLD(SKF_AD_VLAN_TAG_PRESENT));
	VALUE(p, A(9), TOLD(SKF_AD_VLAN_TPID));
	VALUE(p, A(9), TOLD(SKF_AD_PAY_OFFSET));
	VALUE(p, A(9), X(5), TOLD(SKF_AD_ALU_XOR_X));
	VALUE(p, A(9), TOLD(SKF_AD_CPU), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 10));
	VALUE(p, A(9), TOLD(SKF_AD_RANDOM), A(3));
}

/* What is cut, and what is dropped. */
static void verdicts(struct pair p)
{
	static const uint32_t said[] = { 0, 1, 7, 8, 9, 20, 99, 100, 108, 109, 0x7fffffff, 0xffffffff };
	for (size_t i = 0; i < LEN(said); i++) {
		MUST(ATTACH(p.to, RET(said[i])));
		long sent = send(p.from, numbers(), 100, 0);
		int came = comes(p.to);
		SAY("%x: %ld sent, %d came, the last is %d", said[i], sent, came, came > 0 ? buf[came - 1] : 0);
	}
	MUST(DETACH(p.to));
	T(send(p.from, numbers(), 0, 0));
	T(comes(p.to));
	/* One that is there before is not looked at again. */
	T(send(p.from, numbers(), 50, 0));
	MUST(ATTACH(p.to, RET(0)));
	T(comes(p.to));
	T(send(p.from, numbers(), 50, 0));
	T(comes(p.to));
	struct pollfd poll_to = { p.to, POLLIN, 0 };
	T(poll(&poll_to, 1, 0));
	MUST(DETACH(p.to));
	T(send(p.from, numbers(), 50, 0));
	T(comes(p.to));
	/* Its own filter does not matter to who sends. */
	MUST(ATTACH(p.from, RET(0)));
	T(send(p.from, numbers(), 60, 0));
	T(comes(p.to));
	MUST(DETACH(p.from));
}

static long counter(const char *which)
{
	char names[1024], values[1024], *n_at, *v_at;
	FILE *file = fopen("/proc/net/snmp", "r");
	long found = -1;
	while (fgets(names, sizeof names, file) && fgets(values, sizeof values, file)) {
		if (strncmp(names, "Udp: ", 5))
			continue;
		char *n = strtok_r(names, " \n", &n_at), *v = strtok_r(values, " \n", &v_at);
		for (; n && v; n = strtok_r(NULL, " \n", &n_at), v = strtok_r(NULL, " \n", &v_at))
			if (!strcmp(n, which))
				found = atol(v);
	}
	fclose(file);
	return found;
}

static void counted(void)
{
	struct pair p = udp(AF_INET);
	long errors = counter("InErrors"), full = counter("RcvbufErrors");
	MUST(ATTACH(p.to, RET(0)));
	for (int i = 0; i < 3; i++)
		MUST(send(p.from, numbers(), 10, 0));
	SAY("errors %ld, no room %ld", counter("InErrors") - errors, counter("RcvbufErrors") - full);
	end(p);
}

static void echo(int family, int kind)
{
	int v6 = family == AF_INET6;
	int fd = (int)MUST(socket(family, kind, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP));
	SAY("-- echo %d %d", family, kind);
	struct sockaddr_in6 name = in6("::1", 0);
	struct sockaddr_in name4 = in4("127.0.0.1", 0);
	MUST(connect(fd, v6 ? (void *)&name : (void *)&name4, v6 ? sizeof name : sizeof name4));
	/* What comes first is the request itself where the socket is raw; the answer is what counts. */
	uint8_t answer = v6 ? 129 : 0;
	uint8_t request[24] = { v6 ? 128 : 8, 0, 0, 0, 0, 9, 0, 1, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' };
	uint32_t sum = 0;
	for (int i = 0; i < 24; i += 2)
		sum += (uint32_t)request[i] << 8 | request[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	if (!v6) {
		request[2] = (uint8_t)(~sum >> 8);
		request[3] = (uint8_t)~sum;
	}
	int at = kind == SOCK_RAW && !v6 ? 20 : 0;
	struct { const char *what; struct sock_filter load; uint32_t value; } tests[] = {
		{ "type", LOAD(BPF_B, at), answer }, { "behind", LOAD(BPF_B, at + 8), 'a' }, { "length", BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), (uint32_t)at + 24 },
		{ "version", LOAD(BPF_B, SKF_NET_OFF), v6 ? 0x60 : 0x45 }, { "protocol", LOAD(BPF_B, SKF_NET_OFF + (v6 ? 6 : 9)), v6 ? 58 : 1 },
		{ "ethernet", LOAD(BPF_H, SKF_LL_OFF + 12), v6 ? 0x86dd : 0x800 }, { "payload", TOLD(SKF_AD_PAY_OFFSET), (uint32_t)at + 8 },
		{ "through", TOLD(SKF_AD_IFINDEX), 1 },
	};
	for (size_t i = 0; i < LEN(tests); i++) {
		MUST(ATTACH(fd, tests[i].load, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, tests[i].value, 0, 3), LOAD(BPF_B, at),
			    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, answer, 0, 1), RET(-1), RET(0)));
		MUST(send(fd, request, sizeof request, 0));
		sleep_ms(10);
		int came = comes(fd);
		SAY("%s: %d", tests[i].what, came);
	}
	MUST(ATTACH(fd, LOAD(BPF_B, at), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, answer, 0, 1), RET(at + 12), RET(0)));
	MUST(send(fd, request, sizeof request, 0));
	sleep_ms(10);
	T(comes(fd));
	T(comes(fd));
	close(fd);
}

static void netlink(void)
{
	int fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	/* A request that is not known, whose answer is an error with the request in it. */
	struct { struct nlmsghdr head; char body[16]; } request = { { sizeof request, 200, NLM_F_REQUEST, 5, 0 }, { 0 } };
	struct { const char *what; struct sock_filter load; } tests[] = {
		{ "all", A(1) }, { "type", LOAD(BPF_H, 4) }, { "none", A(0) }, { "network", LOAD(BPF_B, SKF_NET_OFF + 8) },
		{ "link", LOAD(BPF_B, SKF_LL_OFF) }, { "device", TOLD(SKF_AD_IFINDEX) }, { "protocol", TOLD(SKF_AD_PROTOCOL) },
	};
	SAY("-- netlink");
	for (size_t i = 0; i < LEN(tests); i++) {
		MUST(ATTACH(fd, tests[i].load, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), RET(-1), RET(0)));
		long sent = send(fd, &request, sizeof request, 0);
		SAY("%s: %ld sent, %d came", tests[i].what, sent, comes(fd));
	}
	MUST(ATTACH(fd, RET(18)));
	T(send(fd, &request, sizeof request, 0));
	T(comes(fd));
	close(fd);
}

/* Attributes, which any message may have. */
static void attributes(void)
{
	struct pair p = local(SOCK_DGRAM);
	/* Type 3 with types 1 and 0x8002 inside, then 5. */
	static const uint8_t bytes[] = { 9, 9, 9, 9, 20, 0, 3, 0, 5, 0, 1, 0, 7, 0, 0, 0, 8, 0, 2, 0x80, 1, 2, 3, 4, 4, 0, 5, 0 };
	static const uint32_t tests[][3] = { { 0, 4, 3 }, { 0, 4, 5 }, { 0, 4, 2 }, { 1, 4, 1 }, { 1, 4, 2 }, { 1, 4, 5 }, { 0, 24, 5 }, { 0, 25, 5 },
		{ 0, 0, 3 }, { 1, 0, 3 }, { 0, 16, 2 }, { 0, 8, 5 }, { 0, 0xffffffff, 5 }, { 1, 24, 5 } };
	for (size_t i = 0; i < LEN(tests); i++) {
		uint32_t what = tests[i][0] ? SKF_AD_NLATTR_NEST : SKF_AD_NLATTR;
		int found = -1;
		for (int at = 0; at < 29; at++) {
			MUST(ATTACH(p.to, X(tests[i][2]), A(tests[i][1]), TOLD((int)what), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)at, 0, 1), RET(-1), RET(0)));
			MUST(send(p.from, bytes, sizeof bytes, 0));
			if (comes(p.to) > 0)
				found = at;
		}
		SAY("attribute %u from %x, nested %u: %d", tests[i][2], tests[i][1], tests[i][0], found);
	}
	end(p);
}

int main(void)
{
	net_up();
	static const int families[] = { AF_INET, AF_INET6 };
	for (size_t i = 0; i < LEN(families); i++) {
		SAY("-- udp %d", families[i]);
		struct pair p = udp(families[i]);
		loads(p, 1);
		headers(p, families[i] == AF_INET6);
		facts(p);
		VALUE(p, LOAD(BPF_H, 0));
		VALUE(p, LOAD(BPF_H, 2));
		VALUE(p, LOAD(BPF_H, 4));
		verdicts(p);
		end(p);
		echo(families[i], SOCK_RAW);
	}
	counted();
	static const int kinds[] = { SOCK_DGRAM, SOCK_SEQPACKET };
	for (size_t i = 0; i < LEN(kinds); i++) {
		SAY("-- local %d", kinds[i]);
		struct pair p = local(kinds[i]);
		loads(p, 0);
		VALUE(p, LOAD(BPF_W, SKF_NET_OFF));
		VALUE(p, LOAD(BPF_W, SKF_NET_OFF + 96));
		VALUE(p, LOAD(BPF_W, SKF_NET_OFF + 97));
		VALUE(p, LOAD(BPF_W, SKF_LL_OFF));
		facts(p);
		verdicts(p);
		end(p);
	}
	struct pair p = local(SOCK_STREAM);
	MUST(ATTACH(p.to, RET(0)));
	T(send(p.from, numbers(), 100, 0));
	T(comes(p.to));
	end(p);
	attributes();
	netlink();
	return 0;
}
