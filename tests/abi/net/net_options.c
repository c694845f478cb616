/* Options of TCP and UDP sockets: defaults, limits, wrong lengths and levels, strings, what accept inherits. */
#include "net.h"
#include <netinet/udp.h>

static void get(const char *what, int fd, int level, int option)
{
	int value = -1;
	socklen_t len = sizeof value;
	if (getsockopt(fd, level, option, &value, &len) != 0)
		SAY("%s: %s", what, err_name(errno));
	else
		SAY("%s: %d, %d bytes", what, value, (int)len);
}

static void set(const char *what, int fd, int level, int option, int value)
{
	int result = setsockopt(fd, level, option, &value, sizeof value);
	SAY("set %s %d: %s", what, value, result == 0 ? "ok" : err_name(errno));
	if (result == 0)
		get(what, fd, level, option);
}

#define GET(fd, level, option) get(#option, fd, level, option)
#define SET(fd, level, option, value) set(#option, fd, level, option, value)

static void common(int fd)
{
	GET(fd, SOL_SOCKET, SO_TYPE);
	GET(fd, SOL_SOCKET, SO_DOMAIN);
	GET(fd, SOL_SOCKET, SO_PROTOCOL);
	GET(fd, SOL_SOCKET, SO_ERROR);
	GET(fd, SOL_SOCKET, SO_ACCEPTCONN);
	GET(fd, SOL_SOCKET, SO_REUSEADDR);
	GET(fd, SOL_SOCKET, SO_SNDBUF);
	GET(fd, SOL_SOCKET, SO_RCVBUF);
	GET(fd, SOL_SOCKET, SO_RCVLOWAT);
	GET(fd, SOL_SOCKET, SO_SNDLOWAT);
	GET(fd, SOL_SOCKET, SO_PRIORITY);
	SET(fd, SOL_SOCKET, SO_REUSEADDR, 5);
	SET(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	SET(fd, SOL_SOCKET, SO_BROADCAST, 1);
	SET(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	SET(fd, SOL_SOCKET, SO_OOBINLINE, 1);
	SET(fd, SOL_SOCKET, SO_DONTROUTE, 1);
	SET(fd, SOL_SOCKET, SO_SNDBUF, 20000);
	SET(fd, SOL_SOCKET, SO_SNDBUF, 1);
	SET(fd, SOL_SOCKET, SO_RCVBUF, 1);
	SET(fd, SOL_SOCKET, SO_RCVBUF, 1000000000);
	SET(fd, SOL_SOCKET, SO_RCVLOWAT, 0);
	SET(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	SET(fd, SOL_SOCKET, SO_TYPE, 1);
	SET(fd, SOL_SOCKET, SO_ERROR, 1);
	SET(fd, SOL_SOCKET, 12345, 1);
	GET(fd, SOL_SOCKET, 12345);
	SET(fd, SOL_SOCKET, SO_TIMESTAMP, 1);
	struct linger linger = { 1, 5 };
	T(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
	T(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, 4));
	socklen_t len = sizeof linger;
	T(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len));
	SAY("linger %d %d, %d bytes", linger.l_onoff, linger.l_linger, (int)len);
	struct timeval limit = { 1, 250000 };
	T(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	limit.tv_usec = 1000000;
	T(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	T(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, 8));
	len = sizeof limit;
	T(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &len));
	SAY("limit %ld.%06ld, %d bytes", (long)limit.tv_sec, (long)limit.tv_usec, (int)len);
	int value = 1;
	T(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, 3));
	T(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, 0));
	T(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, -1));
	T(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, NULL, 4));
	T(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, 100));
	len = 2;
	T(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len));
	SAY("%d bytes", (int)len);
	len = (socklen_t)-1;
	T(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len));
	T(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, NULL));
	len = 4;
	T(getsockopt(fd, SOL_SOCKET, SO_TYPE, NON_CANONICAL, &len));
	T(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	T(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "eth7", 5));
	T(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "", 0));
	SET(fd, 9999, 1, 1);
	GET(fd, 9999, 1);
}

static void ip(int fd)
{
	GET(fd, IPPROTO_IP, IP_TTL);
	GET(fd, IPPROTO_IP, IP_TOS);
	SET(fd, IPPROTO_IP, IP_TTL, 0);
	SET(fd, IPPROTO_IP, IP_TTL, 256);
	SET(fd, IPPROTO_IP, IP_TTL, 255);
	SET(fd, IPPROTO_IP, IP_TTL, -1);
	SET(fd, IPPROTO_IP, IP_PKTINFO, 7);
	SET(fd, IPPROTO_IP, IP_RECVERR, 1);
	SET(fd, IPPROTO_IP, IP_MTU_DISCOVER, 9);
	SET(fd, IPPROTO_IP, IP_FREEBIND, 1);
	SET(fd, IPPROTO_IP, 250, 1);
	GET(fd, IPPROTO_IP, IP_MTU);
	unsigned char byte = 33;
	T(setsockopt(fd, IPPROTO_IP, IP_TTL, &byte, 1));
	socklen_t len = 1;
	T(getsockopt(fd, IPPROTO_IP, IP_TTL, &byte, &len));
	SAY("%d, %d bytes", byte, (int)len);
}

static void tcp(int fd)
{
	GET(fd, IPPROTO_TCP, TCP_NODELAY);
	SET(fd, IPPROTO_TCP, TCP_NODELAY, 3);
	SET(fd, IPPROTO_TCP, TCP_CORK, 1);
	GET(fd, IPPROTO_TCP, TCP_MAXSEG);
	SET(fd, IPPROTO_TCP, TCP_MAXSEG, 40000);
	SET(fd, IPPROTO_TCP, TCP_KEEPIDLE, 0);
	SET(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
	SET(fd, IPPROTO_TCP, TCP_KEEPINTVL, 40000);
	SET(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
	SET(fd, IPPROTO_TCP, TCP_KEEPCNT, 128);
	SET(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
	SET(fd, IPPROTO_TCP, TCP_SYNCNT, 2);
	SET(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000);
	SET(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, -1);
	SET(fd, IPPROTO_TCP, TCP_QUICKACK, 1);
	SET(fd, IPPROTO_TCP, 200, 1);
	GET(fd, IPPROTO_TCP, 200);
	char name[16] = "?";
	socklen_t len = sizeof name;
	T(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	SAY("%.16s, %d bytes", name, (int)len);
	T(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "nonsense", 8));
	T(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	struct tcp_info info;
	len = sizeof info;
	T(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	SAY("state %d, %d bytes", info.tcpi_state, (int)len);
	len = 1;
	T(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	SAY("%d bytes", (int)len);
}

static void six(int fd)
{
	GET(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	SET(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	GET(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS);
	SET(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 300);
	SET(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 5);
	SET(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, -1);
	SET(fd, IPPROTO_IPV6, IPV6_TCLASS, 256);
	SET(fd, IPPROTO_IPV6, IPV6_TCLASS, 7);
	SET(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	GET(fd, IPPROTO_IPV6, IPV6_MTU);
	SET(fd, IPPROTO_IPV6, 240, 1);
	char byte = 1;
	T(setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &byte, 1));
}

int main(void)
{
	net_up();
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	common(fd);
	ip(fd);
	tcp(fd);
	SET(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	SET(fd, IPPROTO_UDP, UDP_CORK, 1);
	close(fd);
	fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	common(fd);
	ip(fd);
	SET(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	SET(fd, IPPROTO_UDP, UDP_CORK, 1);
	close(fd);
	fd = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0));
	six(fd);
	GET(fd, IPPROTO_IP, IP_TTL);
	SET(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	close(fd);
	fd = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	six(fd);
	GET(fd, SOL_SOCKET, SO_DOMAIN);
	close(fd);
	int l = listener4(5), on = 1;
	MUST(setsockopt(l, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
	MUST(setsockopt(l, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
	fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(fd, NAME4("127.0.0.1", port_of(l))));
	int s = (int)MUST(accept(l, NULL, NULL));
	GET(s, SOL_SOCKET, SO_KEEPALIVE);
	GET(s, IPPROTO_TCP, TCP_NODELAY);
	GET(s, SOL_SOCKET, SO_ACCEPTCONN);
	GET(l, SOL_SOCKET, SO_ACCEPTCONN);
	GET(s, IPPROTO_IP, IP_MTU);
	return 0;
}
