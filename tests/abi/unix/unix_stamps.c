/*
 * Times and labels of messages between sockets of AF_UNIX, as journald and rsyslog ask for them: SO_TIMESTAMP and its
 * other forms, of which one is on at a time, and SO_PASSSEC.
 */
#define MORE_FORMS { "SO_PASSSEC", SO_PASSSEC },
#include "stamps.h"
#include <sys/un.h>

/* What came beside the bytes; a time is said to be right if it lies between two readings of the clock. */
static void receive(int s, struct timespec sent, unsigned room, int flags)
{
	char bytes[16], control[256];
	struct iovec iov = { bytes, sizeof bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room };
	T(recvmsg(s, &msg, flags));
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		long long part[2];
		SAY("level %d, kind %d, %zu bytes", c->cmsg_level, c->cmsg_type, c->cmsg_len);
		if (c->cmsg_type == SCM_CREDENTIALS || c->cmsg_len < CMSG_LEN(sizeof part))
			continue;
		memcpy(part, CMSG_DATA(c), sizeof part);
		int fine = c->cmsg_type == OLD_NS || c->cmsg_type == SO_TIMESTAMPNS_NEW;
		long long at = part[0] * 1000000 + (fine ? part[1] / 1000 : part[1]);
		IS(at >= sent.tv_sec * 1000000LL + sent.tv_nsec / 1000);
		IS(at <= now.tv_sec * 1000000LL + now.tv_nsec / 1000);
	}
	SAY("cut: %s", msg.msg_flags & MSG_CTRUNC ? "yes" : "no");
}

static struct timespec give(int s)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	MUST(send(s, "hello", 5, 0));
	return now;
}

static void kind(int type)
{
	int s[2];
	MUST(socketpair(AF_UNIX, type, 0, s));
	SAY("type %d", type);
	settings(s[1]);
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
		set(s[1], forms[i].option, 1);
		settings(s[1]);
		receive(s[1], give(s[0]), 256, 0);
	}
	/* With who sent it; looked at first; and without room for it. */
	set(s[1], OLD_US, 1);
	set(s[1], SO_PASSCRED, 1);
	struct timespec sent = give(s[0]);
	receive(s[1], sent, 256, MSG_PEEK);
	receive(s[1], sent, 256, 0);
	receive(s[1], give(s[0]), 20, 0);
	receive(s[1], give(s[0]), 0, 0);
	/* Any of them ends what is on. */
	set(s[1], SO_TIMESTAMPNS_NEW, 0);
	settings(s[1]);
	receive(s[1], give(s[0]), 256, 0);
	/* Asked for when the message was there already. */
	give(s[0]);
	set(s[1], OLD_NS, 1);
	sent = (struct timespec){ 0 };
	receive(s[1], sent, 256, 0);
	close(s[0]);
	close(s[1]);
}

int main(void)
{
	int on = 1, s = (int)MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
	T(setsockopt(s, SOL_SOCKET, SO_TIMESTAMP, &on, 2));
	T(setsockopt(s, SOL_SOCKET, SO_PASSSEC, &on, 3));
	kind(SOCK_DGRAM);
	kind(SOCK_SEQPACKET);
	kind(SOCK_STREAM);
	return 0;
}
