/*
 * Wild control messages, lengths and names: sendmsg and recvmsg on unix, TCP, UDP and netlink sockets with control data too
 * short, too long, misaligned, unmapped, of wrong levels; iovecs out of range; sockets send and receive as before after it.
 */
#include "net.h"
#include <sys/un.h>

static char area[8192] __attribute__((aligned(16)));
static int stream[2], dgram[2], udp, udp6, tcp_a, tcp_b;

static long send_control(int fd, const void *control, size_t len)
{
	struct iovec iov = { (char *)"x", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = (void *)control, .msg_controllen = len };
	struct sockaddr_in to = in4("127.0.0.1", 9);
	struct sockaddr_in6 to6 = in6("::1", 9);
	if (fd == udp)
		m.msg_name = &to, m.msg_namelen = sizeof to;
	if (fd == udp6)
		m.msg_name = &to6, m.msg_namelen = sizeof to6;
	return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void one(const char *what, size_t cmsg_len, int level, int type, const void *data, size_t size, size_t total)
{
	struct cmsghdr *c = (struct cmsghdr *)area;
	memset(area, 0, sizeof area);
	c->cmsg_len = cmsg_len;
	c->cmsg_level = level;
	c->cmsg_type = type;
	memcpy(CMSG_DATA(c), data, size);
	const int fds[] = { stream[0], dgram[0], tcp_a, udp, udp6 };
	printf("%s:", what);
	for (int i = 0; i < 5; i++) {
		long r = send_control(fds[i], area, total);
		printf(" %s", r < 0 ? err_name(errno) : "ok");
	}
	putchar('\n');
}

#define ONE(level, type, data) one(#level " " #type, CMSG_LEN(sizeof(data)), level, type, &(data), sizeof(data), CMSG_SPACE(sizeof(data)))

static void drain(void)
{
	const int fds[] = { stream[1], dgram[1], tcp_b, udp, udp6 };
	for (int i = 0; i < 5; i++)
		while (recv(fds[i], area, sizeof area, MSG_DONTWAIT) > 0)
			;
}

static void lengths(void)
{
	int fd = 0;
	one("no length", 0, SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_SPACE(4));
	one("header only", CMSG_LEN(0), SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_SPACE(4));
	one("a byte less", CMSG_LEN(0) - 1, SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_SPACE(4));
	one("half a descriptor", CMSG_LEN(2), SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_SPACE(4));
	one("one and a half", CMSG_LEN(6), SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_SPACE(8));
	one("longer than all", CMSG_LEN(400), SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_SPACE(4));
	one("longest", (size_t)-1, SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_SPACE(4));
	one("wraps", (size_t)-8, SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_SPACE(4));
	one("total too short for a header", CMSG_LEN(4), SOL_SOCKET, SCM_RIGHTS, &fd, 4, 8);
	one("total without padding", CMSG_LEN(4), SOL_SOCKET, SCM_RIGHTS, &fd, 4, CMSG_LEN(4));
	static const size_t totals[] = { 0, 1, 4096, 65536, 200000, INT_MAX, (size_t)INT_MAX + 1, (size_t)-1 };
	for (unsigned i = 0; i < 8; i++) {
		printf("%zu bytes nowhere:", totals[i]);
		const int fds[] = { stream[0], dgram[0], tcp_a, udp };
		for (int k = 0; k < 4; k++)
			printf(" %s", send_control(fds[k], KERNEL_ADDRESS, totals[i]) < 0 ? err_name(errno) : "ok");
		putchar('\n');
	}
	drain();
}

static void kinds(void)
{
	int bad = -1, high = 9999, zero = 0, hop = 64, hop_bad = 256, minus = -1, minus2 = -2;
	struct ucred other = { 1, 0, 0 }, nobody = { getpid(), 99, 99 }, gone = { 0x7ffffff0, 0, 0 }, self = { getpid(), 0, 0 };
	struct in_pktinfo info = { 0 }, info_bad = { .ipi_ifindex = 77 };
	struct in6_pktinfo info6 = { 0 };
	struct timeval tv = { 0 };
	ONE(SOL_SOCKET, SCM_RIGHTS, bad);
	ONE(SOL_SOCKET, SCM_RIGHTS, high);
	ONE(SOL_SOCKET, SCM_RIGHTS, zero);
	ONE(SOL_SOCKET, SCM_CREDENTIALS, self);
	ONE(SOL_SOCKET, SCM_CREDENTIALS, other);
	ONE(SOL_SOCKET, SCM_CREDENTIALS, nobody);
	ONE(SOL_SOCKET, SCM_CREDENTIALS, gone);
	ONE(SOL_SOCKET, SCM_CREDENTIALS, zero);
	ONE(SOL_SOCKET, SCM_TIMESTAMP, tv);
	ONE(SOL_SOCKET, 99, zero);
	ONE(SOL_SOCKET, SO_MARK, zero);
	ONE(IPPROTO_IP, IP_TTL, hop);
	ONE(IPPROTO_IP, IP_TTL, hop_bad);
	ONE(IPPROTO_IP, IP_TTL, zero);
	ONE(IPPROTO_IP, IP_TTL, minus);
	ONE(IPPROTO_IP, IP_TOS, hop);
	ONE(IPPROTO_IP, IP_TOS, hop_bad);
	ONE(IPPROTO_IP, IP_PKTINFO, info);
	ONE(IPPROTO_IP, IP_PKTINFO, info_bad);
	ONE(IPPROTO_IP, IP_PKTINFO, zero);
	ONE(IPPROTO_IP, 99, zero);
	ONE(IPPROTO_IPV6, IPV6_HOPLIMIT, hop);
	ONE(IPPROTO_IPV6, IPV6_HOPLIMIT, hop_bad);
	ONE(IPPROTO_IPV6, IPV6_HOPLIMIT, minus);
	ONE(IPPROTO_IPV6, IPV6_HOPLIMIT, minus2);
	ONE(IPPROTO_IPV6, IPV6_TCLASS, hop);
	ONE(IPPROTO_IPV6, IPV6_PKTINFO, info6);
	ONE(IPPROTO_IPV6, IPV6_PKTINFO, zero);
	ONE(IPPROTO_IPV6, 99, zero);
	ONE(IPPROTO_UDP, 99, zero);
	ONE(77, 1, zero);
	ONE(-1, -1, zero);
	drain();
}

/* 253 descriptors are the most, and a second message of the same kind is one too many. */
static void many(void)
{
	struct cmsghdr *c = (struct cmsghdr *)area;
	for (int n = 252; n < 256; n++) {
		memset(area, 0, sizeof area);
		c->cmsg_len = CMSG_LEN((size_t)n * 4);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		long r = send_control(stream[0], area, CMSG_SPACE((size_t)n * 4));
		SAY("%d descriptors: %s", n, r < 0 ? err_name(errno) : "ok");
	}
	drain();
	memset(area, 0, sizeof area);
	for (int i = 0; i < 2; i++) {
		struct cmsghdr *at = (struct cmsghdr *)(area + (size_t)i * CMSG_SPACE(4));
		at->cmsg_len = CMSG_LEN(4);
		at->cmsg_level = SOL_SOCKET;
		at->cmsg_type = SCM_RIGHTS;
	}
	SAY("two messages: %s", send_control(stream[0], area, 2 * CMSG_SPACE(4)) < 0 ? err_name(errno) : "ok");
	struct iovec iov = { area, 100 };
	char control[200];
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	T(recvmsg(stream[1], &m, MSG_DONTWAIT));
	struct cmsghdr *first = CMSG_FIRSTHDR(&m);
	SAY("arrived: %d bytes of control, one of %d", (int)m.msg_controllen, first ? (int)first->cmsg_len : 0);
	if (first)
		for (size_t i = 0; i < (first->cmsg_len - CMSG_LEN(0)) / 4; i++)
			close(((int *)CMSG_DATA(first))[i]);
}

/* Where a receiver has no room for what comes. */
static void rooms(void)
{
	int on = 1, fds[3] = { 0, 1, 2 };
	MUST(setsockopt(dgram[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	for (size_t room = 0; room <= CMSG_SPACE(12) + CMSG_SPACE(sizeof(struct ucred)); room += 6) {
		struct cmsghdr *c = (struct cmsghdr *)area;
		memset(area, 0, sizeof area);
		c->cmsg_len = CMSG_LEN(12);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(c), fds, 12);
		MUST(send_control(dgram[0], area, CMSG_SPACE(12)));
		char control[256] = { 0 };
		struct iovec iov = { area, 1 };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room };
		long r = recvmsg(dgram[1], &m, MSG_DONTWAIT);
		printf("room %zu: %ld, flags %x, used %zu:", room, r, m.msg_flags, (size_t)m.msg_controllen);
		for (struct cmsghdr *at = CMSG_FIRSTHDR(&m); at && r >= 0; at = CMSG_NXTHDR(&m, at)) {
			printf(" type %d len %zu", at->cmsg_type, (size_t)at->cmsg_len);
			if (at->cmsg_type == SCM_RIGHTS)
				for (size_t i = 0; i < (at->cmsg_len - CMSG_LEN(0)) / 4; i++)
					close(((int *)CMSG_DATA(at))[i]);
		}
		putchar('\n');
	}
	struct iovec iov = { area, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = KERNEL_ADDRESS, .msg_controllen = 100 };
	MUST(send(dgram[0], "y", 1, 0));
	T(recvmsg(dgram[1], &m, MSG_DONTWAIT));
	T(recv(dgram[1], area, 1, MSG_DONTWAIT));
}

static void headers(void)
{
	struct iovec iov[2] = { { (char *)"x", 1 }, { (char *)"y", 1 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	T(sendmsg(stream[0], NULL, 0));
	T(sendmsg(stream[0], (void *)KERNEL_ADDRESS, 0));
	T(recvmsg(stream[1], NULL, MSG_DONTWAIT));
	m.msg_iovlen = 1025;
	T(sendmsg(stream[0], &m, 0));
	T(recvmsg(stream[1], &m, MSG_DONTWAIT));
	m.msg_iovlen = (size_t)-1;
	T(sendmsg(stream[0], &m, 0));
	m.msg_iovlen = 2;
	iov[0].iov_len = (size_t)-1;
	T(sendmsg(stream[0], &m, 0));
	iov[0].iov_len = SSIZE_MAX;
	T(sendmsg(stream[0], &m, MSG_DONTWAIT));
	iov[0].iov_len = 1;
	iov[0].iov_base = KERNEL_ADDRESS;
	T(sendmsg(stream[0], &m, 0));
	T(sendmsg(dgram[0], &m, 0));
	iov[0].iov_base = NULL;
	T(sendmsg(stream[0], &m, 0));
	m.msg_iovlen = 0;
	T(sendmsg(stream[0], &m, 0));
	T(sendmsg(dgram[0], &m, 0));
	T(recvmsg(dgram[1], &m, MSG_DONTWAIT));
	m = (struct msghdr){ .msg_iov = (struct iovec[]){ { (char *)"x", 1 } }, .msg_iovlen = 1, .msg_name = area, .msg_namelen = 128 };
	T(sendmsg(udp, &m, 0));
	m.msg_namelen = 129;
	T(sendmsg(udp, &m, 0));
	m.msg_namelen = (socklen_t)-1;
	T(sendmsg(udp, &m, 0));
	m.msg_namelen = 1;
	T(sendmsg(udp, &m, 0));
	m.msg_name = KERNEL_ADDRESS;
	m.msg_namelen = 16;
	T(sendmsg(udp, &m, 0));
	T(sendmsg(stream[0], &m, 0));
	m.msg_name = NULL;
	T(sendmsg(udp, &m, 0));
	m.msg_namelen = (socklen_t)-1;
	T(recvmsg(udp, &m, MSG_DONTWAIT));
	T(sendmsg(stream[0], &(struct msghdr){ .msg_flags = -1, .msg_iov = m.msg_iov, .msg_iovlen = 1 }, 0));
	T(send(stream[0], "x", 1, -1 & ~(MSG_NOSIGNAL | MSG_OOB)));
	T(recv(stream[1], area, 1, ~MSG_OOB));
	T(send(stream[0], "x", 1, 0x10000));
	struct mmsghdr mm[2] = { { .msg_hdr = { .msg_iov = m.msg_iov, .msg_iovlen = 1 } } };
	T(sendmmsg(stream[0], mm, 2, 0));
	T(sendmmsg(stream[0], mm, 0, 0));
	T(sendmmsg(stream[0], NULL, 1, 0));
	T(sendmmsg(-1, mm, 1, 0));
	T(recvmmsg(stream[1], mm, 0, 0, NULL));
	struct timespec ts = { 0, 2000000000 };
	T(recvmmsg(stream[1], mm, 1, MSG_DONTWAIT, &ts));
	ts.tv_nsec = -1;
	T(recvmmsg(stream[1], mm, 1, MSG_DONTWAIT, &ts));
	drain();
}

int main(void)
{
	net_up();
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, dgram));
	udp = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	udp6 = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	connection(&tcp_a, &tcp_b);
	lengths();
	kinds();
	many();
	headers();
	rooms();
	T(write(stream[0], "still", 5));
	T(recv(stream[1], area, 5, MSG_WAITALL));
	T(send(tcp_a, "works", 5, 0));
	T(recv(tcp_b, area, 5, MSG_WAITALL));
	IS(memcmp(area, "works", 5) == 0);
	return 0;
}
