/*
 * net.ipv6.conf.NAME.disable_ipv6: the interface has no IPv6 address then, so that nothing can be bound to one, nor sent to one;
 * IPv4 goes on, on IPv6's sockets too. `all` changes every interface, and the default of those to come.
 */
#include "net.h"
#include <ifaddrs.h>

static const char *const files[] = { "all", "default", "lo" };

static void values(void)
{
	for (int i = 0; i < 3; i++) {
		char path[64];
		snprintf(path, sizeof path, "net/ipv6/conf/%s/disable_ipv6", files[i]);
		printf("%s: %s", path, get_setting(path));
	}
	const char *shown = read_file("/proc/net/if_inet6");
	printf("if_inet6: %s", *shown ? shown : "empty\n");
	IS(strstr(read_file("/proc/net/ipv6_route"), "00000000000000000000000000000001 80 ") != NULL);
	struct ifaddrs *all, *one;
	MUST(getifaddrs(&all));
	for (one = all; one; one = one->ifa_next)
		if (one->ifa_addr)
			SAY("  %s has an address of family %d", one->ifa_name, one->ifa_addr->sa_family);
	freeifaddrs(all);
}

static int make(int family, int type)
{
	return (int)MUST(socket(family, type, 0));
}

static int make_listener(const char *addr)
{
	int fd = make(AF_INET6, SOCK_STREAM);
	MUST(bind(fd, NAME6(addr, 0)));
	MUST(listen(fd, 8));
	return fd;
}

static void bindings(void)
{
	static const char *const addrs[] = { "::", "::1", "::ffff:127.0.0.1", "fe80::1", "ff02::1", "2001:db8::1" };
	for (unsigned i = 0; i < sizeof addrs / sizeof *addrs; i++) {
		for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
			int fd = make(AF_INET6, type);
			int got = bind(fd, NAME6(addrs[i], 0));
			SAY("  bind %s, %s: %s", type == SOCK_STREAM ? "TCP" : "UDP", addrs[i], got == 0 ? "ok" : err_name(errno));
			close(fd);
		}
	}
}

static void connections(int listener)
{
	static const char *const addrs[] = { "::", "::1", "::ffff:127.0.0.1", "fe80::1", "ff02::1", "2001:db8::1" };
	int port = port_of(listener);
	for (unsigned i = 0; i < sizeof addrs / sizeof *addrs; i++) {
		int tcp = make(AF_INET6, SOCK_STREAM), udp = make(AF_INET6, SOCK_DGRAM), fresh = make(AF_INET6, SOCK_DGRAM);
		int got = connect(tcp, NAME6(addrs[i], port));
		SAY("  connect TCP, %s: %s", addrs[i], got == 0 ? "ok" : err_name(errno));
		if (got == 0)
			close((int)MUST(accept(listener, NULL, NULL)));
		got = connect(udp, NAME6(addrs[i], 9));
		SAY("  connect UDP, %s: %s", addrs[i], got == 0 ? "ok" : err_name(errno));
		if (got == 0)
			say_names("  connected", udp, -1, 9);
		got = (int)sendto(fresh, "x", 1, 0, NAME6(addrs[i], 9));
		SAY("  sendto, %s: %s", addrs[i], got == 1 ? "ok" : err_name(errno));
		close(tcp);
		close(udp);
		close(fresh);
	}
	int v4 = make(AF_INET, SOCK_STREAM);
	if (T(connect(v4, NAME4("127.0.0.1", port))) == 0)
		close((int)MUST(accept(listener, NULL, NULL)));
	close(v4);
	int ping = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
	T(bind(ping, NAME6("::1", 0)));
	unsigned char echo[8] = { 128 };
	T(sendto(ping, echo, sizeof echo, 0, NAME6("::1", 0)));
	close(ping);
}

static void write_to(const char *file, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "net/ipv6/conf/%s/disable_ipv6", file);
	SAY("-- %s %s", file, text);
	T(put_setting(path, text));
	values();
}

int main(void)
{
	net_up();
	values();
	int listener = make_listener("::"), local = make_listener("::1");
	int talking = make(AF_INET6, SOCK_STREAM), bound = make(AF_INET6, SOCK_DGRAM), to = make(AF_INET6, SOCK_DGRAM);
	MUST(connect(talking, NAME6("::1", port_of(local))));
	int answering = (int)MUST(accept(local, NULL, NULL));
	MUST(bind(bound, NAME6("::1", 0)));
	MUST(connect(to, NAME6("::1", port_of(bound))));
	bindings();
	connections(listener);

	write_to("all", "1");
	bindings();
	connections(listener);
	T(send(to, "x", 1, 0));
	T(recv(bound, (char[4]){ 0 }, 4, MSG_DONTWAIT));
	write_to("all", "0");
	T(send(talking, "y", 1, 0));
	T(recv(answering, (char[4]){ 0 }, 4, 0));
	connections(local);
	T(send(to, "x", 1, 0));
	T(recv(bound, (char[4]){ 0 }, 4, MSG_DONTWAIT));

	write_to("lo", "1");
	T(bind(make(AF_INET6, SOCK_STREAM), NAME6("::1", 0)));
	write_to("lo", "7");
	write_to("default", "1");
	write_to("lo", "0");
	T(bind(make(AF_INET6, SOCK_STREAM), NAME6("::1", 0)));
	write_to("default", "-3");
	write_to("all", "x");
	write_to("all", "4294967296");
	write_to("all", "0");
	/* A number is read and written at the beginning only. */
	int fd = (int)MUST(open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", O_RDWR));
	T(pwrite(fd, "1", 1, 1));
	T(pread(fd, (char[4]){ 0 }, 1, 1));
	values();
	return 0;
}
