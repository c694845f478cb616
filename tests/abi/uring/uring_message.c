/*
 * uring_message.c: RECVMSG into provided buffers, once or again and again with a header before each message: names and control
 * data in their rooms, messages that are cut, the end of a stream, buffers that are too small or run out, and what is refused.
 */
#include "uring.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define LEN 256
#define COUNT 6
#define GROUP 3

struct out { unsigned name, control, payload, flags; };

static struct ring r;
static char area[COUNT * LEN];
static struct msghdr header;
static struct iovec iov;
static int sv[2];

static void provide(int count, unsigned len)
{
	memset(area, '.', sizeof area);
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_PROVIDE_BUFFERS, 90, count, area, len);
	sqe->buf_group = GROUP;
	go(&r, 1, 1);
}

static void take_back(void)
{
	struct io_uring_sqe *sqe = next(&r, IORING_OP_REMOVE_BUFFERS, 91);
	sqe->fd = COUNT;
	sqe->buf_group = GROUP;
	go(&r, 1, 1);
}

static struct io_uring_sqe *receives(unsigned long data, int fd, unsigned how, unsigned flags)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_RECVMSG, data, fd, &header, 1);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->ioprio = (unsigned short)how;
	sqe->msg_flags = flags;
	return sqe;
}

static void rooms(unsigned name, unsigned control)
{
	memset(&header, 0, sizeof header);
	header.msg_namelen = name;
	header.msg_controllen = control;
}

static void show(int at, unsigned name, unsigned control)
{
	struct out *out = (void *)(area + at * LEN);
	SAY("%d: name %u control %u payload %u flags %#x: %.6s", at, out->name, out->control, out->payload, out->flags,
	    (char *)(out + 1) + name + control);
}

static void once(void)
{
	SAY("-- once");
	char name[128];
	provide(COUNT, LEN);
	memset(&header, 0, sizeof header);
	header.msg_iov = &iov;
	header.msg_iovlen = 1;
	MUST(write(sv[0], "first", 5));
	receives(1, sv[1], 0, 0);
	go(&r, 1, 1);
	SAY("%.8s flags %#x", area, header.msg_flags);
	/* As much as the header wants; the rest of a message is lost. */
	iov.iov_len = 3;
	MUST(write(sv[0], "second", 6));
	receives(2, sv[1], 0, 0);
	go(&r, 1, 1);
	SAY("%.8s flags %#x", area + LEN, header.msg_flags);
	header.msg_iovlen = 0;
	header.msg_name = name;
	header.msg_namelen = sizeof name;
	MUST(write(sv[0], "third", 5));
	receives(3, sv[1], 0, 0);
	go(&r, 1, 1);
	SAY("%.8s name %u", area + 2 * LEN, header.msg_namelen);
	header.msg_iovlen = 2;
	receives(4, sv[1], 0, 0);
	go(&r, 1, 1);
	header.msg_iovlen = 1;
	header.msg_iov = KERNEL_ADDRESS;
	receives(5, sv[1], 0, 0);
	go(&r, 1, 1);
	receives(6, sv[1], 0, 0)->addr = (unsigned long)KERNEL_ADDRESS;
	go(&r, 1, 1);
	header.msg_iov = &iov;
	receives(7, sv[1], 0, MSG_DONTWAIT);
	go(&r, 1, 1);
	receives(8, 1, 0, 0);
	go(&r, 1, 1);
	receives(9, sv[1], 0, 0)->buf_group = 99;
	MUST(write(sv[0], "fourth", 6));
	go(&r, 1, 1);
	/* One that waits. */
	iov.iov_len = 0;
	receives(10, sv[1], 0, 0);
	go(&r, 1, 1);
	receives(11, sv[1], 0, 0);
	go(&r, 1, 0);
	MUST(write(sv[0], "fifth", 5));
	go(&r, 0, 1);
	SAY("%.8s", area + 4 * LEN);
	take_back();
}

static void many(void)
{
	SAY("-- many");
	provide(4, LEN);
	rooms(20, 40);
	receives(1, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 0);
	MUST(write(sv[0], "one", 3));
	MUST(write(sv[0], "two", 3));
	go(&r, 0, 2);
	show(0, 20, 40);
	show(1, 20, 40);
	/* What the header says later does not matter. */
	rooms(1, 1);
	char long_one[300];
	memset(long_one, 'l', sizeof long_one);
	MUST(write(sv[0], long_one, sizeof long_one));
	go(&r, 0, 1);
	show(2, 20, 40);
	/* The last buffer: there are no more. */
	MUST(write(sv[0], "four", 4));
	go(&r, 0, 2);
	MUST(write(sv[0], "five", 4));
	provide(1, LEN);
	rooms(0, 0);
	receives(2, sv[1], IORING_RECV_MULTISHOT, MSG_TRUNC);
	go(&r, 1, 2);
	show(0, 0, 0);
	/* Too small for the header, and for all but that. */
	provide(1, 79);
	rooms(40, 24);
	receives(3, sv[1], IORING_RECV_MULTISHOT, 0);
	MUST(write(sv[0], "six", 3));
	go(&r, 1, 1);
	take_back();
	provide(1, 80);
	receives(4, sv[1], IORING_RECV_MULTISHOT, MSG_TRUNC);
	go(&r, 1, 1);
	show(0, 40, 24);
	take(&r);
	take_back();
	/* An empty message ends it as the end of a stream does. */
	provide(3, LEN);
	receives(5, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 0);
	MUST(send(sv[0], "", 0, 0));
	go(&r, 0, 1);
	receives(6, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 0);
	struct io_uring_sqe *sqe = next(&r, IORING_OP_ASYNC_CANCEL, 7);
	sqe->addr = 6;
	go(&r, 1, 2);
	take_back();
}

static void refused(void)
{
	SAY("-- refused");
	provide(1, LEN);
	rooms(0x80000000u, 0);
	receives(1, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 1);
	header.msg_name = area;
	receives(2, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 1);
	rooms(0x7fffffffu, 0);
	receives(3, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 1);
	rooms(0, 0x7ffffff0u);
	receives(4, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 1);
	rooms(0, 0);
	receives(5, sv[1], IORING_RECV_MULTISHOT, MSG_WAITALL);
	go(&r, 1, 1);
	receives(6, sv[1], IORING_RECV_MULTISHOT, 0)->flags = 0;
	go(&r, 1, 1);
	receives(7, sv[1], IORING_RECV_MULTISHOT, 0)->off = 1;
	go(&r, 1, 1);
	receives(8, sv[1], 0, 0)->off = 1;
	go(&r, 1, 1);
	receives(9, sv[1], IORING_RECV_MULTISHOT, 0)->file_index = 1;
	go(&r, 1, 1);
	receives(10, sv[1], 0x80, 0);
	go(&r, 1, 1);
	header.msg_iovlen = 2;
	receives(11, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 1);
	receives(12, sv[1], IORING_RECV_MULTISHOT, 0)->addr = (unsigned long)KERNEL_ADDRESS;
	go(&r, 1, 1);
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_RECV, 13, sv[1], area, 4);
	sqe->off = 1;
	go(&r, 1, 1);
	take_back();
	/* A buffer that is no memory. */
	sqe = rw(&r, IORING_OP_PROVIDE_BUFFERS, 14, 1, (void *)4096, LEN);
	sqe->buf_group = GROUP;
	go(&r, 1, 1);
	rooms(0, 0);
	MUST(write(sv[0], "lost", 4));
	receives(15, sv[1], IORING_RECV_MULTISHOT, 0);
	go(&r, 1, 1);
	take_back();
	while (recv(sv[1], area, 4, MSG_DONTWAIT) >= 0)
		;
}

static void names(void)
{
	SAY("-- names");
	struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof to;
	int rx = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), tx = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), on = 1;
	MUST(ioctl(rx, SIOCSIFFLAGS, &up));
	MUST(bind(rx, (struct sockaddr *)&to, sizeof to));
	MUST(getsockname(rx, (struct sockaddr *)&to, &len));
	MUST(setsockopt(rx, IPPROTO_IP, IP_PKTINFO, &on, sizeof on));
	provide(COUNT, LEN);
	static const struct { unsigned name, control; } sizes[] = { { 16, 64 }, { 8, 20 }, { 0, 0 }, { 128, 8 } };
	for (int i = 0; i < 4; i++) {
		rooms(sizes[i].name, sizes[i].control);
		MUST(sendto(tx, "datagram", 8, 0, (struct sockaddr *)&to, sizeof to));
		receives((unsigned)i, rx, IORING_RECV_MULTISHOT, 0);
		go(&r, 1, 1);
		show(i, sizes[i].name, sizes[i].control);
		struct io_uring_sqe *sqe = next(&r, IORING_OP_ASYNC_CANCEL, 50);
		sqe->addr = (unsigned)i;
		go(&r, 1, 2);
		if (sizes[i].name >= 16) {
			struct sockaddr_in *from = (void *)(area + i * LEN + sizeof(struct out));
			SAY("family %d %#x", from->sin_family, ntohl(from->sin_addr.s_addr));
		}
	}
	close(rx), close(tx);
	take_back();
}

int main(void)
{
	scratch();
	r = ring(16);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	once();
	many();
	refused();
	names();
	return 0;
}
