/*
 * /proc/net/snmp, netstat, snmp6, sockstat and sockstat6: the names in Linux's order, and counters that count: datagrams sent, read,
 * lost and refused, echo requests, connections made, refused, broken off and closed, backlogs that are full, sockets of each kind.
 */
#include "net.h"
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

static char buf[70000];

/* Only what every Linux 6.12 has: the types of ICMP that were seen come and go. */
static void names(const char *file)
{
	char text[65536];
	int odd = 0;
	strcpy(text, read_file(file));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (!strncmp(line, "IcmpMsg", 7) || strstr(line, "Type"))
			continue;
		else if (strchr(line, ':') && (odd = !odd))
			SAY("%s", line);
		else if (!strchr(line, ':'))
			SAY("%.*s|%zu", (int)strcspn(line, " \t"), line, strcspn(line, "\t"));
}

/* A field: "Udp: InDatagrams", or a name of snmp6, or "TCP: inuse" of sockstat. */
static long field(const char *file, const char *group, const char *name)
{
	char text[65536], *save, *at;
	long value = -1;
	strcpy(text, read_file(file));
	char *head = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t n = strlen(group);
		if (n == 0 && !strncmp(line, name, strlen(name)) && strchr(" \t", line[strlen(name)]))
			return atol(line + strlen(name));
		if (n == 0 || strncmp(line, group, n) || line[n] != ':')
			continue;
		if (strstr(file, "sockstat"))
			return (at = strstr(line, name)) ? atol(at + strlen(name)) : -1;
		if (!head) {
			head = line;
			continue;
		}
		char *s1, *s2;
		char *a = strtok_r(head, " ", &s1), *b = strtok_r(line, " ", &s2);
		for (; a && b; a = strtok_r(NULL, " ", &s1), b = strtok_r(NULL, " ", &s2))
			if (!strcmp(a, name))
				return atol(b);
		head = NULL;
	}
	return value;
}

static const struct which {
	const char *file, *group, *name;
} fields[] = {
	{ "/proc/net/snmp", "Udp", "InDatagrams" }, { "/proc/net/snmp", "Udp", "NoPorts" }, { "/proc/net/snmp", "Udp", "InErrors" },
	{ "/proc/net/snmp", "Udp", "OutDatagrams" }, { "/proc/net/snmp", "Udp", "RcvbufErrors" }, { "/proc/net/snmp", "UdpLite", "OutDatagrams" },
	{ "/proc/net/snmp", "UdpLite", "InDatagrams" }, { "/proc/net/snmp", "Icmp", "InMsgs" }, { "/proc/net/snmp", "Icmp", "OutMsgs" },
	{ "/proc/net/snmp", "Icmp", "InErrors" }, { "/proc/net/snmp", "Icmp", "InCsumErrors" }, { "/proc/net/snmp", "Icmp", "InDestUnreachs" },
	{ "/proc/net/snmp", "Icmp", "OutDestUnreachs" }, { "/proc/net/snmp", "Icmp", "InEchos" }, { "/proc/net/snmp", "Icmp", "OutEchos" },
	{ "/proc/net/snmp", "Icmp", "InEchoReps" }, { "/proc/net/snmp", "Icmp", "OutEchoReps" }, { "/proc/net/snmp", "IcmpMsg", "InType3" },
	{ "/proc/net/snmp", "IcmpMsg", "OutType8" }, { "/proc/net/snmp", "Ip", "OutNoRoutes" }, { "/proc/net/snmp", "Tcp", "ActiveOpens" },
	{ "/proc/net/snmp", "Tcp", "PassiveOpens" }, { "/proc/net/snmp", "Tcp", "AttemptFails" }, { "/proc/net/snmp", "Tcp", "EstabResets" },
	{ "/proc/net/snmp", "Tcp", "CurrEstab" }, { "/proc/net/snmp", "Tcp", "OutRsts" }, { "/proc/net/snmp", "Tcp", "RetransSegs" },
	{ "/proc/net/netstat", "TcpExt", "TCPAbortOnClose" }, { "/proc/net/netstat", "TcpExt", "TCPAbortOnData" },
	{ "/proc/net/snmp6", "", "Udp6InDatagrams" }, { "/proc/net/snmp6", "", "Udp6OutDatagrams" }, { "/proc/net/snmp6", "", "Udp6NoPorts" },
	{ "/proc/net/snmp6", "", "Icmp6InDestUnreachs" }, { "/proc/net/snmp6", "", "Icmp6InEchos" }, { "/proc/net/snmp6", "", "Icmp6OutEchoReplies" },
	{ "/proc/net/snmp6", "", "Icmp6InType1" }, { "/proc/net/snmp6", "", "Ip6OutNoRoutes" },
	{ "/proc/net/sockstat", "TCP", "inuse" }, { "/proc/net/sockstat", "UDP", "inuse" }, { "/proc/net/sockstat", "RAW", "inuse" },
	{ "/proc/net/sockstat6", "TCP6", "inuse" }, { "/proc/net/sockstat6", "UDP6", "inuse" }, { "/proc/net/sockstat6", "RAW6", "inuse" },
};
#define FIELDS (sizeof fields / sizeof fields[0])

/* Packets and octets: of IPv4, and of IPv6. */
static const struct which crossed[] = {
	{ "/proc/net/snmp", "Ip", "InReceives" }, { "/proc/net/snmp", "Ip", "InDelivers" }, { "/proc/net/snmp", "Ip", "OutRequests" },
	{ "/proc/net/snmp", "Ip", "OutTransmits" }, { "/proc/net/netstat", "IpExt", "InOctets" }, { "/proc/net/netstat", "IpExt", "OutOctets" },
	{ "/proc/net/netstat", "IpExt", "InNoECTPkts" }, { "/proc/net/netstat", "IpExt", "InECT0Pkts" }, { "/proc/net/netstat", "IpExt", "InBcastPkts" },
	{ "/proc/net/snmp6", "", "Ip6InReceives" }, { "/proc/net/snmp6", "", "Ip6OutRequests" }, { "/proc/net/snmp6", "", "Ip6InOctets" },
	{ "/proc/net/snmp6", "", "Ip6InNoECTPkts" },
};
#define CROSSED (sizeof crossed / sizeof crossed[0])

static long before[FIELDS], crossed_before[CROSSED];

static long now(const struct which *w)
{
	long value = field(w->file, w->group, w->name);
	/* The line of ICMP's types has only those that were seen. */
	return value < 0 ? 0 : value;
}

static void start(void)
{
	for (unsigned i = 0; i < FIELDS; i++)
		before[i] = now(&fields[i]);
	for (unsigned i = 0; i < CROSSED; i++)
		crossed_before[i] = now(&crossed[i]);
}

static void say(const struct which *which, const long *old, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		long value = now(&which[i]);
		if (value != old[i])
			printf(" %s%s%s %+ld", which[i].group, which[i].group[0] ? "." : "", which[i].name, value - old[i]);
	}
}

/* What changed since `start`; of TCP's packets there may be more or fewer. */
static void told(const char *what, int packets)
{
	printf("%s:", what);
	say(fields, before, FIELDS);
	if (packets)
		say(crossed, crossed_before, CROSSED);
	putchar('\n');
	start();
}

static void datagrams(void)
{
	int a = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), b = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), on = 1;
	MUST(bind(a, NAME4("127.0.0.1", 0)));
	MUST(bind(b, NAME4("127.0.0.1", 0)));
	told("two sockets", 1);
	MUST(sendto(b, "hello", 5, 0, NAME4("127.0.0.1", port_of(a))));
	await(a, POLLIN);
	told("sent", 1);
	MUST(recv(a, buf, 10, MSG_PEEK));
	told("looked at", 1);
	MUST(recv(a, buf, 10, 0));
	told("read", 1);
	int tos = 2;
	MUST(setsockopt(b, IPPROTO_IP, IP_TOS, &tos, sizeof tos));
	MUST(sendto(b, buf, 1000, 0, NAME4("127.0.0.1", port_of(a))));
	told("marked", 1);
	MUST(connect(b, NAME4("127.0.0.1", 9)));
	MUST(send(b, "lost", 4, 0));
	await(b, POLLERR);
	told("no port", 1);
	T(sendto(a, "x", 1, 0, NAME4("10.1.2.3", 5)));
	told("no route", 1);
	MUST(setsockopt(a, SOL_SOCKET, SO_BROADCAST, &on, sizeof on));
	MUST(sendto(a, "x", 1, 0, NAME4("127.255.255.255", 9)));
	sleep_ms(20);
	SAY("to all, nobody: events %#x", events(a));
	told("to all", 1);
	MUST(setsockopt(a, SOL_SOCKET, SO_RCVBUF, &on, sizeof on));
	MUST(recv(a, buf, sizeof buf, 0));
	start();
	int c = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	for (int i = 0; i < 20; i++)
		MUST(sendto(c, buf, 1000, 0, NAME4("127.0.0.1", port_of(a))));
	long lost = now(&fields[4]) - before[4];
	IS(lost > 0 && lost < 20 && now(&fields[2]) - before[2] == lost && now(&fields[3]) - before[3] == 20);
	close(a);
	close(b);
	close(c);
	start();
	a = (int)MUST(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE));
	MUST(bind(a, NAME4("127.0.0.1", 0)));
	MUST(sendto(a, "lite", 4, 0, NAME4("127.0.0.1", port_of(a))));
	await(a, POLLIN);
	MUST(recv(a, buf, 10, 0));
	told("lite", 1);
	close(a);
	a = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	MUST(bind(a, NAME6("::1", 0)));
	MUST(sendto(a, "six", 3, 0, NAME6("::1", port_of(a))));
	await(a, POLLIN);
	MUST(recv(a, buf, 10, 0));
	told("six", 1);
	MUST(sendto(a, "six", 3, 0, NAME6("::1", 9)));
	sleep_ms(20);
	told("six, no port", 1);
	T(sendto(a, "x", 1, 0, NAME6("2001:db8::1", 5)));
	told("six, no route", 1);
	close(a);
	told("closed", 1);
}

static void pings(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	told("raw", 1);
	unsigned char echo[8] = { 8, 0, 0xe5, 0xca, 0x12, 0x34, 0, 1 };
	MUST(sendto(fd, echo, 8, 0, NAME4("127.0.0.1", 0)));
	await(fd, POLLIN);
	sleep_ms(20);
	told("ping", 1);
	echo[2] = 1;
	MUST(sendto(fd, echo, 8, 0, NAME4("127.0.0.1", 0)));
	sleep_ms(20);
	told("wrong sum", 1);
	close(fd);
	fd = (int)MUST(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
	unsigned char six[8] = { 128 };
	MUST(sendto(fd, six, 8, 0, NAME6("::1", 0)));
	await(fd, POLLIN);
	sleep_ms(20);
	told("ping six", 1);
	close(fd);
	start();
}

static void connections(void)
{
	int a, b, off[2] = { 1, 0 };
	long segments = field("/proc/net/snmp", "Tcp", "OutSegs"), data = field("/proc/net/netstat", "TcpExt", "TCPOrigDataSent");
	long octets = field("/proc/net/netstat", "IpExt", "OutOctets");
	connection(&a, &b);
	told("connected", 0);
	MUST(send(a, buf, 10000, 0));
	await(b, POLLIN);
	IS(field("/proc/net/snmp", "Tcp", "OutSegs") - segments >= 4 && field("/proc/net/snmp", "Tcp", "InSegs") >= segments + 4);
	IS(field("/proc/net/netstat", "TcpExt", "TCPOrigDataSent") > data && field("/proc/net/netstat", "IpExt", "OutOctets") - octets >= 10000);
	MUST(recv(b, buf, 10000, MSG_WAITALL));
	close(a);
	await(b, POLLIN);
	/* What is left of the end that closed first still counts as a socket on Linux, until the other end closes. */
	IS(now(&fields[24]) == before[24] - 1);
	close(b);
	sleep_ms(20);
	told("both closed", 0);
	connection(&a, &b);
	MUST(send(a, "unread", 6, 0));
	await(b, POLLIN);
	close(b);
	await(a, POLLHUP);
	told("closed with bytes unread", 0);
	close(a);
	connection(&a, &b);
	MUST(setsockopt(a, SOL_SOCKET, SO_LINGER, off, sizeof off));
	close(a);
	await(b, POLLHUP);
	told("broken off", 0);
	close(b);
	a = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(a, NAME4("127.0.0.1", 9)));
	told("refused", 0);
	close(a);
	int l = listener4(0);
	start();
	long overflows = field("/proc/net/netstat", "TcpExt", "ListenOverflows"), drops = field("/proc/net/netstat", "TcpExt", "ListenDrops");
	a = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	b = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	MUST(connect(a, NAME4("127.0.0.1", port_of(l))));
	T(connect(b, NAME4("127.0.0.1", port_of(l))));
	sleep_ms(20);
	IS(field("/proc/net/netstat", "TcpExt", "ListenOverflows") > overflows && field("/proc/net/netstat", "TcpExt", "ListenDrops") > drops);
	close(b);
	close(l);
	close(a);
}

int main(void)
{
	static const char *const files[] = { "snmp", "netstat", "snmp6", "sockstat", "sockstat6" };
	net_up();
	for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/net/%s", files[i]);
		SAY("== %s", path);
		if (i < 3)
			names(path);
	}
	SAY("%ld %ld %ld %ld", field("/proc/net/snmp", "Ip", "Forwarding"), field("/proc/net/snmp", "Ip", "DefaultTTL"), field("/proc/net/snmp", "Tcp", "RtoMin"),
	    field("/proc/net/snmp", "Tcp", "MaxConn"));
	start();
	datagrams();
	pings();
	connections();
	return 0;
}
