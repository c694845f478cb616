/*
 * Notices of MSG_ZEROCOPY: those of a datagram that is still put together come when it is sent; they stand in one queue with reports of
 * errors.
 */
#include "net.h"
#include <linux/errqueue.h>
#include <netinet/udp.h>

static int next(int fd)
{
	char control[256], bytes[64];
	struct iovec part = { bytes, sizeof bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
	if (n < 0) {
		SAY("  %s", err_name(errno));
		return 0;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		struct sock_extended_err e;
		memcpy(&e, CMSG_DATA(c), sizeof e);
		SAY("  %d bytes, level %d type %d: origin %d code %d errno %d, %u to %u", (int)n, c->cmsg_level, c->cmsg_type, e.ee_origin, e.ee_code, e.ee_errno, e.ee_info, e.ee_data);
	}
	return 1;
}

int main(void)
{
	int on = 1, off = 0;
	setbuf(stdout, NULL);
	net_up();
	int to = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(to, NAME4("127.0.0.1", 0)));
	int port = port_of(to);
	MUST(connect(fd, NAME4("127.0.0.1", port)));
	T(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
	static char bytes[4096];
	puts("put together");
	T(send(fd, bytes, 2000, MSG_ZEROCOPY | MSG_MORE));
	SAY("events %#x", (unsigned)(events(fd) & POLLERR));
	next(fd);
	T(send(fd, bytes, 2000, MSG_ZEROCOPY | MSG_MORE));
	next(fd);
	T(send(fd, bytes, 10, 0));
	next(fd);
	next(fd);
	puts("by UDP_CORK");
	T(setsockopt(fd, IPPROTO_UDP, UDP_CORK, &on, sizeof on));
	T(send(fd, bytes, 2000, MSG_ZEROCOPY));
	next(fd);
	T(setsockopt(fd, IPPROTO_UDP, UDP_CORK, &off, sizeof off));
	next(fd);
	next(fd);
	puts("with a refusal");
	T(setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on));
	T(send(fd, bytes, 2000, MSG_ZEROCOPY));
	close(to);
	T(send(fd, bytes, 2000, MSG_ZEROCOPY));
	while (next(fd))
		;
	return 0;
}
