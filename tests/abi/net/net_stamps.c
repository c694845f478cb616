/*
 * When a message came: SO_TIMESTAMP and its other forms on sockets of networks, of which one is on at a time, and SIOCGSTAMP,
 * which tells the time of the last message that was read.
 */
#include "net.h"
#include <linux/sockios.h>
#include "stamps.h"

static long long now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void receive(int s, long long sent, int flags)
{
	char bytes[16], control[256];
	struct iovec iov = { bytes, sizeof bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	T(recvmsg(s, &msg, flags));
	long long now = now_us();
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		long long part[2];
		SAY("level %d, kind %d, %zu bytes", c->cmsg_level, c->cmsg_type, c->cmsg_len);
		if (c->cmsg_len < CMSG_LEN(sizeof part))
			continue;
		memcpy(part, CMSG_DATA(c), sizeof part);
		int fine = c->cmsg_type == OLD_NS || c->cmsg_type == SO_TIMESTAMPNS_NEW;
		long long at = part[0] * 1000000 + (fine ? part[1] / 1000 : part[1]);
		IS(at >= sent && at <= now);
	}
}

static long long give(int s)
{
	long long now = now_us();
	MUST(send(s, "hello", 5, 0));
	return now;
}

/* What the ioctls say; a time is said to be right if it lies between two readings of the clock. */
static long long stamp(int s, long long from, long long to)
{
	long long us[2] = { 0 }, ns[2] = { 0 }, at;
	int r = (int)T(ioctl(s, SIOCGSTAMP_OLD, us));
	T(ioctl(s, SIOCGSTAMPNS_OLD, ns));
	if (r)
		return 0;
	at = us[0] * 1000000 + us[1];
	IS(at == ns[0] * 1000000 + ns[1] / 1000);
	IS(at >= from && at <= to);
	T(ioctl(s, SIOCGSTAMP_NEW, us));
	T(ioctl(s, SIOCGSTAMPNS_NEW, ns));
	IS(at == us[0] * 1000000 + us[1]);
	IS(at == ns[0] * 1000000 + ns[1] / 1000);
	return at;
}

#define FOREVER 0x7fffffffffffffffLL

static void last(int to, int from)
{
	SAY("SIOCGSTAMP before anything was read");
	stamp(to, 0, FOREVER);
	long long sent = give(from);
	stamp(to, 0, FOREVER);
	receive(to, sent, 0);
	SAY("after that, the time when the message came, from now on");
	stamp(to, sent, FOREVER);
	long long at = stamp(to, sent, FOREVER);
	sent = give(from);
	long long sent_too = now_us();
	sleep_ms(20);
	IS(stamp(to, sent - FOREVER, FOREVER) == at);
	receive(to, sent, MSG_PEEK);
	stamp(to, sent, sent_too);
	receive(to, sent, 0);
	stamp(to, sent, sent_too);
	T(ioctl(to, SIOCGSTAMP_OLD, NON_CANONICAL));
}

static void pair(int *to, int *from)
{
	*to = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	*from = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(*to, NAME4("127.0.0.1", 0)));
	MUST(connect(*from, NAME4("127.0.0.1", port_of(*to))));
}

int main(void)
{
	int to, from, on = 1;
	net_up();
	pair(&to, &from);
	T(setsockopt(to, SOL_SOCKET, SO_TIMESTAMP_NEW, &on, 2));
	settings(to);
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
		set(to, forms[i].option, 1);
		settings(to);
		receive(to, give(from), 0);
	}
	set(to, OLD_US, 1);
	long long sent = give(from);
	receive(to, sent, MSG_PEEK);
	receive(to, sent, 0);
	stamp(to, 0, FOREVER);
	set(to, SO_TIMESTAMPNS_NEW, 0);
	settings(to);
	receive(to, give(from), 0);
	close(to);
	close(from);
	pair(&to, &from);
	last(to, from);
	SAY("a stream has no such time");
	int client, server;
	connection(&client, &server);
	stamp(server, 0, FOREVER);
	give(client);
	receive(server, 0, 0);
	stamp(server, 0, FOREVER);
	int sv[2];
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	T(ioctl(sv[0], SIOCGSTAMP_OLD, &on));
	T(ioctl(sv[0], SIOCGSTAMP_NEW, &on));
	return 0;
}
