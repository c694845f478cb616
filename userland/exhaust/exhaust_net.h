/*
 * exhaust_net.h: kinds of objects of networks, each as a function that makes one more, as exhaust_files.h has them.
 */
#ifndef ALEA_EXHAUST_NET_H
#define ALEA_EXHAUST_NET_H

#include "exhaust_held.h"
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

static const int BIG = 1 << 20;

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static void enlarge(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &BIG, sizeof BIG);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &BIG, sizeof BIG);
}

/* A socket that listens, of which `held` keeps the address by its descriptor. */
static long listen_once(void)
{
	struct sockaddr_in at = loopback();
	if (held.fd != 0)
		return 0;
	held.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	return bind(held.fd, (void *)&at, sizeof at) != 0 ? -1 : listen(held.fd, 4096);
}

static int connect_once(void)
{
	struct sockaddr_in to;
	socklen_t length = sizeof to;
	if (listen_once() != 0 || getsockname(held.fd, (void *)&to, &length) != 0)
		return -1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (void *)&to, sizeof to) != 0 && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Connections: those nobody accepted among them. */
static long tcp_connects(void)
{
	int fd = connect_once();
	if (held.count++ % 2 == 0)
		accept4(held.fd, NULL, NULL, SOCK_NONBLOCK);
	return fd;
}

static long tcp_data(void)
{
	int fd = connect_once();
	if (fd < 0)
		return -1;
	int peer = accept4(held.fd, NULL, NULL, SOCK_NONBLOCK);
	enlarge(fd);
	fill(fd);
	return peer < 0 ? -1 : fill(peer);
}

static long udp_data(void)
{
	struct sockaddr_in at = loopback();
	socklen_t length = sizeof at;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (void *)&at, sizeof at) != 0)
		return -1;
	enlarge(fd);
	getsockname(fd, (void *)&at, &length);
	for (int i = 0; i < 64; i++)
		if (sendto(fd, filler, 8000, 0, (void *)&at, length) < 0)
			return i > 0 ? 0 : -1;
	return 0;
}

static long unix_data(int type)
{
	int pair[2];
	if (socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, pair) != 0)
		return -1;
	enlarge(pair[0]);
	enlarge(pair[1]);
	fill(pair[0]);
	return fill(pair[1]);
}

static long unix_streams(void) { return unix_data(SOCK_STREAM); }

/* One byte each: what stands around it is the larger part. */
static long unix_datagrams(void)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) != 0)
		return -1;
	enlarge(pair[0]);
	while (write(pair[0], "x", 1) == 1)
		;
	return 0;
}

static long unix_names(void)
{
	struct sockaddr_un { sa_family_t family; char path[108]; } at = { AF_UNIX, "" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		return -1;
	snprintf(at.path + 1, sizeof at.path - 1, "%0100d-%ld", getpid(), held.count++);
	return bind(fd, (void *)&at, sizeof at) != 0 ? -1 : listen(fd, 128);
}

/* Both ends of a pair, each sent to the other, and closed: only the collector of such circles finds them. */
static long sent_in_circles(void)
{
	int pair[2], sent;
	char byte = 0, control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
		return -1;
	*rights = (struct cmsghdr){ CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(rights), pair, sizeof pair);
	sent = sendmsg(pair[0], &message, 0) == 1 && sendmsg(pair[1], &message, 0) == 1;
	close(pair[0]);
	close(pair[1]);
	return sent ? 0 : -1;
}

/* Descriptors that a socket holds, which keeps them from whoever counts open files. */
static long sent_files(void)
{
	int fds[64];
	char byte = 0, control[CMSG_SPACE(sizeof fds)] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	int pair[2];
	if (held.peer == 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0)
			return -1;
		held.fd = pair[0];
		held.peer = pair[1];
	}
	for (unsigned i = 0; i < 64; i++)
		fds[i] = dup(held.fd);
	*rights = (struct cmsghdr){ CMSG_LEN(sizeof fds), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(rights), fds, sizeof fds);
	long sent = sendmsg(held.peer, &message, 0);
	for (unsigned i = 0; i < 64; i++)
		close(fds[i]);
	if (sent < 0 && errno == EAGAIN)
		held.peer = 0;
	return sent < 0 && errno != EAGAIN ? -1 : 0;
}

static long netlinks(void)
{
	struct sockaddr_nl at = { .nl_family = AF_NETLINK, .nl_groups = ~0U };
	struct { struct nlmsghdr head; char body[32]; } dump = { .head = { 20, 18, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 } };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd < 0)
		return -1;
	enlarge(fd);
	bind(fd, (void *)&at, sizeof at);
	for (int i = 0; i < 64; i++)
		if (send(fd, &dump, 20, 0) < 0)
			return i > 0 ? 0 : -1;
	return 0;
}

#endif
