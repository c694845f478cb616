/* What the programs about networks share: a loopback that is up, names, waiting for events. */
#ifndef ALEA_ABI_NET_H
#define ALEA_ABI_NET_H

#include "check.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Linux starts with its loopback down. */
static UNUSED void net_up(void)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	struct ifreq request = { .ifr_name = "lo" };
	MUST(ioctl(fd, SIOCGIFFLAGS, &request));
	if (!(request.ifr_flags & IFF_UP)) {
		request.ifr_flags |= IFF_UP;
		MUST(ioctl(fd, SIOCSIFFLAGS, &request));
		sleep_ms(100);
	}
	close(fd);
}

static UNUSED struct sockaddr_in in4(const char *addr, int port)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	inet_pton(AF_INET, addr, &name.sin_addr);
	return name;
}

static UNUSED struct sockaddr_in6 in6(const char *addr, int port)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	inet_pton(AF_INET6, addr, &name.sin6_addr);
	return name;
}

#define NAME(n) ((struct sockaddr *)&(n)), sizeof(n)
#define NAME4(addr, port) ((struct sockaddr *)&(struct sockaddr_in[]){ in4(addr, port) }), sizeof(struct sockaddr_in)
#define NAME6(addr, port) ((struct sockaddr *)&(struct sockaddr_in6[]){ in6(addr, port) }), sizeof(struct sockaddr_in6)

/* The port a socket has. */
static UNUSED int port_of(int fd)
{
	struct sockaddr_in6 name = { 0 };
	socklen_t len = sizeof name;
	if (getsockname(fd, (struct sockaddr *)&name, &len) != 0)
		return -1;
	return ntohs(name.sin6_port);
}

/* A name in words; ports that the kernel chose are not printed. */
static UNUSED const char *words(const void *name, int port)
{
	static char text[128];
	char addr[64] = "?";
	const struct sockaddr_in *v4 = name;
	const struct sockaddr_in6 *v6 = name;
	if (v4->sin_family == AF_INET)
		inet_ntop(AF_INET, &v4->sin_addr, addr, sizeof addr);
	else if (v4->sin_family == AF_INET6)
		inet_ntop(AF_INET6, &v6->sin6_addr, addr, sizeof addr);
	int has = ntohs(v4->sin_port);
	snprintf(text, sizeof text, "%d %s %s", v4->sin_family, addr, has == 0 ? "none" : has == port ? "expected" : "other");
	return text;
}

static UNUSED void say_names(const char *what, int fd, int own, int peer)
{
	struct sockaddr_in6 name = { 0 };
	socklen_t len = sizeof name;
	if (getsockname(fd, (struct sockaddr *)&name, &len) == 0)
		SAY("%s: own %s, %d bytes", what, words(&name, own), (int)len);
	else
		SAY("%s: own %s", what, err_name(errno));
	memset(&name, 0, sizeof name);
	len = sizeof name;
	if (getpeername(fd, (struct sockaddr *)&name, &len) == 0)
		SAY("%s: peer %s, %d bytes", what, words(&name, peer), (int)len);
	else
		SAY("%s: peer %s", what, err_name(errno));
}

static UNUSED int events(int fd)
{
	struct pollfd p = { fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0 };
	poll(&p, 1, 0);
	return p.revents;
}

/* Waits until an event is there: what one end does may take a moment to be seen at the other. */
static UNUSED int await(int fd, int wanted)
{
	struct pollfd p = { fd, (short)wanted, 0 };
	poll(&p, 1, 5000);
	return events(fd);
}

static UNUSED const char *so_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof error;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		return err_name(errno);
	return error ? err_name(error) : "none";
}

static UNUSED int listener4(int backlog)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(fd, NAME4("127.0.0.1", 0)));
	MUST(listen(fd, backlog));
	return fd;
}

/* A connection: both ends and the listener's port. */
static UNUSED int connection(int *client, int *server)
{
	int l = listener4(5), port = port_of(l);
	*client = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(*client, NAME4("127.0.0.1", port)));
	*server = (int)MUST(accept(l, NULL, NULL));
	close(l);
	return port;
}

#endif
