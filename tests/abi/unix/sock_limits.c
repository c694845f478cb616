/*
 * sock_limits.c: SO_RCVTIMEO and SO_SNDTIMEO in every family. When time runs out a call gives EAGAIN; a signal ends
 * it with EINTR under a limit even if its handler has SA_RESTART, and is not seen without one.
 */
#include "check.h"
#include "net.h"
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

static char byte[1] = "x";
static volatile int ticks, helper = -1;

/* The third signal helps: it writes what the interrupted call waits for. */
static void on_alarm(int sig UNUSED)
{
	if (++ticks == 3 && helper >= 0 && write(helper, byte, 1) != 1)
		_exit(9);
}

/* Signals until stopped, so that one comes during the wait however late that begins. */
static void signals(int on)
{
	struct itimerval every = { 0 };
	every.it_interval.tv_usec = every.it_value.tv_usec = on ? 20000 : 0;
	ticks = 0;
	MUST(setitimer(ITIMER_REAL, &every, NULL));
}

static void limit(int fd, int which, long seconds, long micros)
{
	struct timeval to = { seconds, micros };
	MUST(setsockopt(fd, SOL_SOCKET, which, &to, sizeof to));
}

/* `call` in three ways; `help` gets it done when signals come without a limit. */
#define WAITS(name, fd, which, call, help) do { \
	printf("%s: ", name); \
	limit(fd, which, 0, 30000); \
	T(call); \
	limit(fd, which, 1000, 0); \
	helper = -1; \
	signals(1); \
	T(call); \
	signals(0); \
	if ((help) >= 0) { \
		limit(fd, which, 0, 0); \
		helper = (help); \
		signals(1); \
		T(call); \
		signals(0); \
	} \
} while (0)

static void fill(int fd)
{
	while (send(fd, byte, 1, MSG_DONTWAIT) == 1)
		;
}

static struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "limits" };

static void unix_sockets(void)
{
	int sv[2], s, c;
	char got[8];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	WAITS("unix stream", sv[0], SO_RCVTIMEO, read(sv[0], got, 1), sv[1]);
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	WAITS("unix datagram", sv[0], SO_RCVTIMEO, recv(sv[0], got, 8, 0), sv[1]);
	fill(sv[0]);
	WAITS("unix datagram, full", sv[0], SO_SNDTIMEO, send(sv[0], byte, 1, 0), -1);
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	fill(sv[0]);
	WAITS("unix seqpacket, full", sv[0], SO_SNDTIMEO, send(sv[0], byte, 1, 0), -1);
	s = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(bind(s, NAME(name)));
	MUST(listen(s, 0));
	WAITS("unix accept", s, SO_RCVTIMEO, accept(s, NULL, NULL), -1);
	c = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(connect(c, NAME(name)));
	c = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	WAITS("unix connect", c, SO_SNDTIMEO, connect(c, NAME(name)), -1);
}

static void inet(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof at;
	char got[8];
	int u = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), s, c, d;
	MUST(bind(u, (struct sockaddr *)&at, len));
	MUST(getsockname(u, (struct sockaddr *)&at, &len));
	c = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(connect(c, (struct sockaddr *)&at, len));
	WAITS("udp", u, SO_RCVTIMEO, recv(u, got, 8, 0), c);
	s = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(s, (struct sockaddr *)&at, len));
	MUST(listen(s, 4));
	WAITS("tcp accept", s, SO_RCVTIMEO, accept(s, NULL, NULL), -1);
	c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(c, (struct sockaddr *)&at, len));
	d = (int)MUST(accept(s, NULL, NULL));
	WAITS("tcp", d, SO_RCVTIMEO, recv(d, got, 1, 0), c);
	/* No row for a full TCP: Linux makes room in a full connection some time later. */
}

int main(void)
{
	scratch();
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	MUST(sigaction(SIGALRM, &act, NULL));
	unix_sockets();
	net_up();
	inet();
	char got[64];
	int n = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	WAITS("netlink", n, SO_RCVTIMEO, recv(n, got, sizeof got, 0), -1);
	return 0;
}
