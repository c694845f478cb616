/* ioctl on sockets: about interfaces, about bytes that wait, about ownership; wrong names, sizes, pointers and users. */
#include "net.h"
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <sys/un.h>

static int udp, tcp_a, tcp_b, sv[2];

static struct ifreq named(const char *name)
{
	struct ifreq r;
	memset(&r, 0x5a, sizeof r);
	memset(r.ifr_name, 0, sizeof r.ifr_name);
	strncpy(r.ifr_name, name, sizeof r.ifr_name);
	return r;
}

static void hex(const char *what, const void *data, size_t n)
{
	printf("%s:", what);
	for (size_t i = 0; i < n; i++)
		printf(" %02x", ((const unsigned char *)data)[i]);
	putchar('\n');
}

#define ASK(name, request) do { struct ifreq r = named(name); if (T(ioctl(udp, request, &r)) == 0) \
				hex(#request, (char *)&r + 16, sizeof r - 16); } while (0)

static void interfaces(void)
{
	ASK("lo", SIOCGIFFLAGS);
	ASK("lo", SIOCGIFADDR);
	ASK("lo", SIOCGIFNETMASK);
	ASK("lo", SIOCGIFBRDADDR);
	ASK("lo", SIOCGIFDSTADDR);
	ASK("lo", SIOCGIFMTU);
	ASK("lo", SIOCGIFMETRIC);
	ASK("lo", SIOCGIFINDEX);
	ASK("lo", SIOCGIFHWADDR);
	ASK("lo", SIOCGIFTXQLEN);
	ASK("lo", SIOCGIFMEM);
	ASK("lo", SIOCGIFSLAVE);
	ASK("lo", SIOCGIFENCAP);
	ASK("lo", SIOCGIFPFLAGS);
	ASK("none", SIOCGIFFLAGS);
	ASK("none", SIOCGIFADDR);
	ASK("none", SIOCGIFINDEX);
	ASK("", SIOCGIFFLAGS);
	ASK("lo:1", SIOCGIFFLAGS);
	ASK("lo:1", SIOCGIFADDR);
	ASK("sixteen bytes...", SIOCGIFFLAGS);
	struct ifreq r = named("");
	r.ifr_ifindex = 1;
	T(ioctl(udp, SIOCGIFNAME, &r));
	SAY("name %s", r.ifr_name);
	r.ifr_ifindex = 99;
	T(ioctl(udp, SIOCGIFNAME, &r));
	r.ifr_ifindex = 0;
	T(ioctl(udp, SIOCGIFNAME, &r));
	T(ioctl(udp, SIOCGIFNAME, NULL));
	T(ioctl(udp, SIOCGIFFLAGS, NULL));
	T(ioctl(udp, SIOCGIFCONF, NULL));
	char room[200];
	for (int size = -1; size < 120; size += 20) {
		struct ifconf conf = { .ifc_len = size, .ifc_buf = room };
		int result = ioctl(udp, SIOCGIFCONF, &conf);
		SAY("conf with %d: %d, %d", size, result, conf.ifc_len);
	}
	struct ifconf conf = { .ifc_len = 0, .ifc_buf = NULL };
	T(ioctl(udp, SIOCGIFCONF, &conf));
	SAY("size %d", conf.ifc_len);
	conf.ifc_len = 100;
	conf.ifc_buf = KERNEL_ADDRESS;
	T(ioctl(udp, SIOCGIFCONF, &conf));
	T(ioctl(udp, SIOCETHTOOL, NULL));
	T(ioctl(udp, SIOCGIFBR, NULL));
	T(ioctl(udp, 0x89ff, NULL));
	T(ioctl(udp, 0x5401, NULL));
	T(ioctl(tcp_a, SIOCGIFMTU, (r = named("lo"), &r)));
	T(ioctl(sv[0], SIOCGIFMTU, (r = named("lo"), &r)));
	T(ioctl(sv[0], SIOCGIFADDR, (r = named("lo"), &r)));
	int six = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	T(ioctl(six, SIOCGIFMTU, (r = named("lo"), &r)));
	T(ioctl(six, SIOCGIFADDR, (r = named("lo"), &r)));
	close(six);
}

static void changes(void)
{
	struct ifreq r = named("none");
	T(ioctl(udp, SIOCSIFFLAGS, &r));
	r = named("none");
	T(ioctl(udp, SIOCSIFMTU, &r));
	r = named("lo");
	r.ifr_mtu = 65536;
	T(ioctl(udp, SIOCSIFMTU, &r));
	T(ioctl(udp, SIOCADDRT, NULL));
	T(ioctl(udp, SIOCDARP, NULL));
	T(ioctl(udp, SIOCGARP, NULL));
	T(ioctl(udp, SIOCDRARP, NULL));
}

static int count(int fd, unsigned long request)
{
	int value = -77;
	if (ioctl(fd, request, &value) != 0)
		return -errno;
	return value;
}

static void say_counts(const char *what, int fd)
{
	int in = count(fd, FIONREAD), out = count(fd, TIOCOUTQ), mark = count(fd, SIOCATMARK);
	SAY("%s: in %d, out %d, mark %d", what, in, out > 0 ? 1 : out, mark);
}

static void bytes(void)
{
	int nl = (int)MUST(socket(AF_NETLINK, SOCK_RAW, 0)), l = listener4(1), lu = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	int receiver = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), fresh = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(receiver, NAME4("127.0.0.1", 0)));
	MUST(bind(lu, &(struct sockaddr){ .sa_family = AF_UNIX }, 2));
	MUST(listen(lu, 1));
	say_counts("listener", l);
	say_counts("unix listener", lu);
	say_counts("netlink", nl);
	say_counts("fresh tcp", fresh);
	say_counts("udp", receiver);
	MUST(sendto(udp, "12345", 5, 0, NAME4("127.0.0.1", port_of(receiver))));
	MUST(sendto(udp, "678", 3, 0, NAME4("127.0.0.1", port_of(receiver))));
	await(receiver, POLLIN);
	say_counts("udp with two", receiver);
	MUST(send(tcp_a, "hello", 5, 0));
	await(tcp_b, POLLIN);
	say_counts("tcp with five", tcp_b);
	MUST(write(sv[0], "hello", 5));
	MUST(write(sv[0], "hello", 5));
	say_counts("unix", sv[1]);
	T(ioctl(tcp_b, FIONREAD, NULL));
	T(ioctl(sv[1], FIONREAD, KERNEL_ADDRESS));
	struct timeval tv;
	T(ioctl(sv[1], SIOCGSTAMP, &tv));
	T(ioctl(udp, SIOCGSTAMP, &tv));
	int own[] = { 0 };
	T(ioctl(tcp_a, FIOGETOWN, own));
	SAY("owner %d", own[0]);
	own[0] = getpid();
	T(ioctl(tcp_a, FIOSETOWN, own));
	T(ioctl(tcp_a, SIOCGPGRP, own));
	IS(own[0] == getpid());
	own[0] = -getpgrp();
	T(ioctl(tcp_a, SIOCSPGRP, own));
	T(fcntl(tcp_a, F_GETOWN) == own[0]);
	own[0] = 0x7fffffff;
	T(ioctl(tcp_a, SIOCSPGRP, own));
	own[0] = 1;
	T(ioctl(tcp_a, FIONBIO, own));
	T(fcntl(tcp_a, F_GETFL) & O_NONBLOCK);
	T(ioctl(tcp_a, FIONBIO, NULL));
	T(ioctl(tcp_a, FIOASYNC, own));
	T(fcntl(tcp_a, F_GETFL) & O_ASYNC);
	T(ioctl(tcp_a, FIOCLEX));
	T(fcntl(tcp_a, F_GETFD));
	T(ioctl(sv[0], FIOQSIZE, own));
	close(nl), close(l), close(lu), close(receiver), close(fresh);
}

int main(void)
{
	net_up();
	udp = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	connection(&tcp_a, &tcp_b);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	interfaces();
	changes();
	CHILD("without privilege") {
		MUST(setuid(1000));
		struct ifreq r = named("lo");
		T(ioctl(udp, SIOCSIFFLAGS, &r));
		T(ioctl(udp, SIOCSIFADDR, &r));
		T(ioctl(udp, SIOCSIFMTU, &r));
		T(ioctl(udp, SIOCADDRT, NULL));
		T(ioctl(udp, SIOCSARP, NULL));
	} END;
	bytes();
	return 0;
}
