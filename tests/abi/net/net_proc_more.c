/*
 * /proc/net/raw and raw6 list the raw sockets there are, icmp and icmp6 the ping sockets, sockstat counts sockets of all
 * families, snmp tells the default time to live that is set, and TCP_CONGESTION what was chosen.
 */
#include "net.h"

/* The lines that are there now; the inode and what counts time are not printed. */
static void table(const char *path)
{
	char *save, *line = strtok_r((char *)read_file(path), "\n", &save);
	SAY("%s: '%.40s'", path, line ? line : "");
	while ((line = strtok_r(NULL, "\n", &save))) {
		size_t end = strlen(line), whole = end;
		while (end > 0 && line[end - 1] == ' ')
			line[--end] = 0;
		if (whole > end)
			SAY("filled to %zu", whole);
		unsigned slot, uid, inode, ref, drops, timeout;
		char local[64], peer[64], state[8], queues[32], timer[32], retries[16], pointer[32];
		int n = sscanf(line, "%u: %63s %63s %7s %31s %31s %15s %u %u %u %u %31s %u", &slot, local, peer, state, queues, timer, retries,
			       &uid, &timeout, &inode, &ref, pointer, &drops);
		SAY("%d fields, %s %s %s %s %s %s %u %u inode %s, %u, %u, %zu wide", n, local, peer, state, queues, timer, retries,
		    uid, timeout, inode ? "given" : "none", ref, drops, strlen(line) - (size_t)snprintf(NULL, 0, "%u", inode));
	}
}

static void tables(const char *four, const char *six)
{
	table(four);
	table(six);
}

static void raws(void)
{
	tables("/proc/net/raw", "/proc/net/raw6");
	int a = (int)MUST(socket(AF_INET, SOCK_RAW, 253));
	table("/proc/net/raw");
	/* Linux's order is that of a hash: one at a time. */
	int six = (int)MUST(socket(AF_INET6, SOCK_RAW, 253));
	MUST(bind(a, NAME4("127.0.0.1", 0)));
	tables("/proc/net/raw", "/proc/net/raw6");
	MUST(connect(a, NAME4("127.0.0.5", 0)));
	MUST(bind(six, NAME6("::1", 0)));
	tables("/proc/net/raw", "/proc/net/raw6");
	close(a);
	close(six);
	tables("/proc/net/raw", "/proc/net/raw6");
}

/* Ping sockets are there once they have an identifier. */
static void pings(void)
{
	int a = (int)MUST(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP)), six = (int)MUST(socket(AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6));
	tables("/proc/net/icmp", "/proc/net/icmp6");
	MUST(bind(a, NAME4("127.0.0.1", 4660)));
	MUST(bind(six, NAME6("::1", 4661)));
	tables("/proc/net/icmp", "/proc/net/icmp6");
	MUST(connect(a, NAME4("127.0.0.5", 7)));
	MUST(connect(six, NAME6("::1", 8)));
	tables("/proc/net/icmp", "/proc/net/icmp6");
	table("/proc/net/raw");
	close(a);
	close(six);
	tables("/proc/net/icmp", "/proc/net/icmp6");
}

static int used(void)
{
	int n = -1;
	sscanf(read_file("/proc/net/sockstat"), "sockets: used %d", &n);
	return n;
}

static void counts(void)
{
	int before = used(), sv[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	SAY("a pair of AF_UNIX: %d more", used() - before);
	int udp = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), netlink = (int)MUST(socket(AF_NETLINK, SOCK_RAW, 0));
	SAY("UDP and netlink too: %d more", used() - before);
	close(sv[0]);
	close(sv[1]);
	close(udp);
	close(netlink);
	/* Linux counts a UDP socket for a moment longer. */
	for (int i = 0; i < 1000 && used() != before; i++)
		sleep_ms(5);
	SAY("all closed: %d more", used() - before);
}

static void ttl(void)
{
	char was[32];
	int n = -1;
	snprintf(was, sizeof was, "%s", get_setting("net/ipv4/ip_default_ttl"));
	T(put_setting("net/ipv4/ip_default_ttl", "77"));
	char *line = strstr((char *)read_file("/proc/net/snmp"), "\nIp: ");
	if (!line)
		line = (char *)read_file("/proc/net/snmp");
	line = strstr(line + 1, "Ip: ");
	sscanf(line, "Ip: %*d %d", &n);
	SAY("DefaultTTL %d", n);
	put_setting("net/ipv4/ip_default_ttl", was);
}

static void say_congestion(const char *what, int fd)
{
	char name[17] = { 0 };
	socklen_t len = 16;
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len))
		SAY("%s: %s", what, err_name(errno));
	else
		SAY("%s: '%s', %d bytes", what, name, (int)len);
}

static int choose(int fd, const char *name, size_t len)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)len);
}

static void congestion(void)
{
	int l = listener4(5), c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), s;
	say_congestion("new", c);
	T(choose(c, "reno", 4));
	say_congestion("reno", c);
	T(choose(c, "bbr-nonsense", 12));
	T(choose(c, "", 0));
	T(choose(c, "", 1));
	T(choose(c, "reno\0junk", 9));
	T(choose(c, "cubicles", 5));
	say_congestion("still", c);
	T(choose(c, "a name that is longer than any may be", 37));
	char small[4] = "zzz";
	socklen_t len = 3;
	T(choose(c, "reno", 5));
	T(getsockopt(c, IPPROTO_TCP, TCP_CONGESTION, small, &len));
	SAY("%.3s %d", small, (int)len);
	T(choose(l, "reno", 4));
	MUST(connect(c, NAME4("127.0.0.1", port_of(l))));
	s = (int)MUST(accept(l, NULL, NULL));
	say_congestion("accepted, the listener had chosen", s);
	say_congestion("connected", c);
	T(choose(c, "cubic", 5));
	say_congestion("connected", c);
	close(s);
	close(c);
	close(l);
	/* What a socket has that did not choose. */
	char was[64];
	snprintf(was, sizeof was, "%s", get_setting("net/ipv4/tcp_congestion_control"));
	SAY("setting %s", was);
	c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	T(put_setting("net/ipv4/tcp_congestion_control", "reno\n"));
	SAY("setting %s", get_setting("net/ipv4/tcp_congestion_control"));
	say_congestion("made before", c);
	s = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0));
	say_congestion("made after", s);
	close(s);
	l = listener4(5);
	T(choose(l, "cubic", 5));
	MUST(connect(c, NAME4("127.0.0.1", port_of(l))));
	s = (int)MUST(accept(l, NULL, NULL));
	say_congestion("accepted", s);
	close(s);
	close(c);
	close(l);
	l = listener4(5);
	T(put_setting("net/ipv4/tcp_congestion_control", "cubic\n"));
	c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(c, NAME4("127.0.0.1", port_of(l))));
	s = (int)MUST(accept(l, NULL, NULL));
	say_congestion("the listener", l);
	say_congestion("accepted, nobody had chosen", s);
	T(put_setting("net/ipv4/tcp_congestion_control", "nonsense\n"));
	T(put_setting("net/ipv4/tcp_congestion_control", " reno cubic\n"));
	T(put_setting("net/ipv4/tcp_congestion_control", "\n"));
	T(put_setting("net/ipv4/tcp_congestion_control", ""));
	SAY("setting %s", get_setting("net/ipv4/tcp_congestion_control"));
	put_setting("net/ipv4/tcp_congestion_control", was);
	SAY("available %s", get_setting("net/ipv4/tcp_available_congestion_control"));
	T(put_setting("net/ipv4/tcp_available_congestion_control", "reno"));
}

static int size_of(int option)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), n = -1;
	socklen_t len = sizeof n;
	MUST(getsockopt(fd, SOL_SOCKET, option, &n, &len));
	close(fd);
	return n;
}

static void buffers(const char *name, int option)
{
	char was[64];
	snprintf(was, sizeof was, "%s", get_setting(name));
	/* The largest size goes by the machine's memory. */
	int least = 0, first = 0, largest = 0;
	SAY("%s has %d numbers, %d %d", name, sscanf(was, "%d %d %d", &least, &first, &largest), least, first);
	SAY("a new socket has %d", size_of(option));
	T(put_setting(name, "4096 20000 300000\n"));
	SAY("%s is %s", name, get_setting(name));
	SAY("a new socket has %d", size_of(option));
	T(put_setting(name, "4096\t30000"));
	SAY("%s is %s", name, get_setting(name));
	SAY("a new socket has %d", size_of(option));
	T(put_setting(name, "0 1 2"));
	T(put_setting(name, "1 2 x"));
	T(put_setting(name, "-5"));
	T(put_setting(name, "99999999999"));
	T(put_setting(name, ""));
	T(put_setting(name, "5 6 7 8"));
	SAY("%s is %s", name, get_setting(name));
	SAY("a new socket has %d", size_of(option));
	IS(put_setting(name, was) == (ssize_t)strlen(was) && strcmp(get_setting(name), was) == 0);
	int udp = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), n;
	socklen_t len = sizeof n;
	MUST(getsockopt(udp, SOL_SOCKET, option, &n, &len));
	SAY("UDP %d", n);
	close(udp);
}

/* The last byte of what is sent with MSG_OOB stays in the stream if the receiver wants that. */
static void urgent(void)
{
	int client, server, on = 1;
	char bytes[16] = { 0 };
	connection(&client, &server);
	MUST(setsockopt(server, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
	T(send(client, "abc", 3, MSG_OOB));
	T(send(client, "de", 2, 0));
	await(server, POLLIN);
	for (int i = 0; i < 5; i++) {
		if (recv(server, bytes + i, 1, 0) != 1)
			SAY("lost");
	}
	SAY("%s", bytes);
	T(send(client, "f", 1, MSG_OOB));
	T(recv(server, bytes, 16, 0));
	T(recv(server, bytes, 1, MSG_OOB | MSG_DONTWAIT));
	close(client);
	close(server);
}

int main(void)
{
	net_up();
	raws();
	MUST(put_setting("net/ipv4/ping_group_range", "0 0"));
	pings();
	MUST(put_setting("net/ipv4/ping_group_range", "1 0"));
	counts();
	ttl();
	congestion();
	buffers("net/ipv4/tcp_rmem", SO_RCVBUF);
	buffers("net/ipv4/tcp_wmem", SO_SNDBUF);
	urgent();
	return 0;
}
