/* A datagram put together with MSG_ZEROCOPY that an error loses: its calls are told of all the same, and keep their numbers. */
#include "net.h"
#include <linux/errqueue.h>
#include <netinet/udp.h>

static int next(int fd)
{
	char control[256];
	struct msghdr m = { .msg_control = control, .msg_controllen = sizeof control };
	if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
		SAY("  %s", err_name(errno));
		return 0;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		struct sock_extended_err e;
		memcpy(&e, CMSG_DATA(c), sizeof e);
		SAY("  origin %d code %d, %u to %u", e.ee_origin, e.ee_code, e.ee_info, e.ee_data);
	}
	return 1;
}

int main(void)
{
	int on = 1;
	static char bytes[65000];
	setbuf(stdout, NULL);
	net_up();
	int to = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(to, NAME4("127.0.0.1", 0)));
	MUST(connect(fd, NAME4("127.0.0.1", port_of(to))));
	MUST(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
	T(send(fd, bytes, 2000, MSG_ZEROCOPY | MSG_MORE));
	T(send(fd, bytes, 2000, MSG_ZEROCOPY | MSG_MORE));
	next(fd);
	T(send(fd, bytes, 65000, MSG_ZEROCOPY | MSG_MORE));
	next(fd);
	T(send(fd, bytes, 100, MSG_ZEROCOPY));
	next(fd);
	puts("a fault");
	T(send(fd, bytes, 2000, MSG_ZEROCOPY | MSG_MORE));
	T(send(fd, (char *)1, 2000, MSG_ZEROCOPY));
	next(fd);
	T(send(fd, bytes, 100, MSG_ZEROCOPY));
	next(fd);
	return 0;
}
