/*
 * What an accept or a receive has to give and cannot, for want of memory, it does not take: connections, messages with all
 * that comes with them, errors that are told once. Here nothing fails; `cargo xtask abi taken --fail-alloc 0` makes each
 * allocation of each call fail in turn.
 */
#include "failing.h"
#include "net.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/ip_icmp.h>
#include <sys/uio.h>
#include <sys/un.h>

static int listener, client = -1, a, b;
static union {
	struct sockaddr any;
	struct sockaddr_un un;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage room;
} own, other, from;
static socklen_t own_len, other_len, from_len;
static char bytes[4096], control[512];
static struct msghdr header;
static struct iovec part;

static void on(int fd, int level, int option)
{
	int yes = 1;
	MUST(setsockopt(fd, level, option, &yes, sizeof yes));
}

/* A message of one byte. */
static int one_byte(int fd)
{
	char c = 0;
	return recv(fd, &c, 1, MSG_DONTWAIT) == 1 && c == 'x';
}

/* --- accept --- */

static void connect_named(void)
{
	if (client >= 0)
		close(client);
	client = (int)MUST(socket(own.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (own.any.sa_family == AF_UNIX)
		MUST(bind(client, &other.any, other_len));
	MUST(connect(client, &own.any, own_len));
	MUST(send(client, "x", 1, 0));
}

static long accept_now(void)
{
	from_len = sizeof from;
	return accept4(listener, &from.any, &from_len, SOCK_CLOEXEC);
}

static int is_connection(long fd)
{
	int whole = fcntl((int)fd, F_GETFD) == FD_CLOEXEC && one_byte((int)fd);
	if (own.any.sa_family == AF_UNIX)
		whole &= from_len == other_len && memcmp(&from, &other, other_len) == 0;
	else
		whole &= from_len == own_len && from.any.sa_family == own.any.sa_family;
	close((int)fd);
	return whole;
}

static void listen_at(int family)
{
	memset(&own, 0, sizeof own);
	own.any.sa_family = (sa_family_t)family;
	own_len = family == AF_INET ? sizeof own.in : sizeof own.in6;
	if (family == AF_UNIX) {
		own_len = sizeof(sa_family_t) + 9;
		memcpy(own.un.sun_path, "\0listener", 9);
		other.un.sun_family = AF_UNIX;
		other_len = sizeof(sa_family_t) + 7;
		memcpy(other.un.sun_path, "\0client", 7);
	} else if (family == AF_INET) {
		own.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else {
		own.in6.sin6_addr = in6addr_loopback;
	}
	listener = (int)MUST(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	MUST(bind(listener, &own.any, own_len));
	MUST(listen(listener, 1));
	if (family != AF_UNIX)
		MUST(getsockname(listener, &own.any, &own_len));
}

static void accepts(void)
{
	static const struct { int family; const char *name; } kinds[] = {
		{ AF_UNIX, "accept, AF_UNIX" },
		{ AF_INET, "accept, AF_INET" },
		{ AF_INET6, "accept, AF_INET6" },
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		listen_at(kinds[i].family);
		struct call call = { kinds[i].name, connect_named, accept_now, NULL, is_connection };
		fail_each(&call);
		close(client);
		client = -1;
		close(listener);
	}
}

/* --- recvmsg --- */

static int receive_flags;

static long receive(void)
{
	memset(&from, 0, sizeof from);
	memset(control, 0, sizeof control);
	part = (struct iovec){ bytes, sizeof bytes };
	header = (struct msghdr){ &from, sizeof from, &part, 1, control, sizeof control, 0 };
	return recvmsg(b, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | receive_flags);
}

/* How many messages of control there are; the files among them are the pipe's, and are closed. */
static int controls(void)
{
	int count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		count++;
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		int fd;
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
		count += c->cmsg_len == CMSG_LEN(sizeof fd) && fcntl(fd, F_GETFD) == FD_CLOEXEC;
		close(fd);
	}
	return header.msg_flags & MSG_CTRUNC ? -1 : count;
}

static int wanted_controls;

static int is_message(long size)
{
	return controls() == wanted_controls && size == 1 && bytes[0] == 'x' && header.msg_namelen == other_len &&
	       memcmp(&from, &other, other_len) == 0;
}

static void send_with_file(void)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} rights = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	int in[2];
	MUST(pipe(in));
	memcpy(CMSG_DATA(&rights.header), in, sizeof *in);
	struct iovec one = { "x", 1 };
	struct msghdr message = { NULL, 0, &one, 1, &rights, sizeof rights, 0 };
	MUST(sendmsg(a, &message, 0));
	close(in[0]);
	close(in[1]);
}

static void send_one(void)
{
	MUST(sendto(a, "x", 1, 0, own_len ? &own.any : NULL, own_len));
}

static void of_unix(void)
{
	static const struct { int type; const char *name; } kinds[] = {
		{ SOCK_DGRAM, "recvmsg, AF_UNIX datagram" },
		{ SOCK_SEQPACKET, "recvmsg, AF_UNIX packet" },
		{ SOCK_STREAM, "recvmsg, AF_UNIX stream" },
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		int ends[2];
		MUST(socketpair(AF_UNIX, kinds[i].type | SOCK_CLOEXEC, 0, ends));
		a = ends[0], b = ends[1];
		memset(&other, 0, sizeof other);
		other.un.sun_family = AF_UNIX;
		other_len = sizeof(sa_family_t) + 7;
		memcpy(other.un.sun_path, "\0sender", 7);
		MUST(bind(a, &other.any, other_len));
		on(b, SOL_SOCKET, SO_PASSCRED);
		if (kinds[i].type != SOCK_STREAM)
			on(b, SOL_SOCKET, SO_TIMESTAMP);
		/* Credentials, a file (counted twice), and a time. */
		wanted_controls = kinds[i].type == SOCK_STREAM ? 3 : 4;
		struct call call = { kinds[i].name, send_with_file, receive, NULL, is_message };
		fail_each(&call);
		close(a);
		close(b);
	}
}

/* Two datagram sockets of a network: `a` sends to `own`, `b` receives from `other`. */
static void two(int family, int type, int protocol)
{
	memset(&own, 0, sizeof own);
	own.any.sa_family = (sa_family_t)family;
	own_len = family == AF_INET ? sizeof own.in : sizeof own.in6;
	if (family == AF_INET)
		own.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		own.in6.sin6_addr = in6addr_loopback;
	other = own;
	a = (int)MUST(socket(family, type | SOCK_CLOEXEC, protocol));
	b = (int)MUST(socket(family, type | SOCK_CLOEXEC, protocol));
	MUST(bind(a, &other.any, own_len));
	MUST(bind(b, &own.any, own_len));
	other_len = own_len;
	MUST(getsockname(a, &other.any, &other_len));
	MUST(getsockname(b, &own.any, &own_len));
	on(b, SOL_SOCKET, SO_TIMESTAMPNS);
}

static void of_udp(void)
{
	two(AF_INET, SOCK_DGRAM, 0);
	on(b, IPPROTO_IP, IP_PKTINFO);
	on(b, IPPROTO_IP, IP_RECVTTL);
	on(b, IPPROTO_IP, IP_RECVTOS);
	on(b, IPPROTO_IP, IP_RECVORIGDSTADDR);
	wanted_controls = 5;
	struct call v4 = { "recvmsg, UDP over IPv4", send_one, receive, NULL, is_message };
	fail_each(&v4);
	close(a);
	close(b);
	two(AF_INET6, SOCK_DGRAM, 0);
	on(b, IPPROTO_IPV6, IPV6_RECVPKTINFO);
	on(b, IPPROTO_IPV6, IPV6_RECVHOPLIMIT);
	on(b, IPPROTO_IPV6, IPV6_RECVTCLASS);
	wanted_controls = 4;
	struct call v6 = { "recvmsg, UDP over IPv6", send_one, receive, NULL, is_message };
	fail_each(&v6);
	close(a);
	close(b);
}

/* A datagram to a port that nobody has; `b` sends and asks why. */
static void send_refused(void)
{
	MUST(sendto(b, "x", 1, 0, &other.any, other_len));
	/* The error itself is told once. */
	int error;
	socklen_t size = sizeof error;
	MUST(getsockopt(b, SOL_SOCKET, SO_ERROR, &error, &size));
}

static void of_errors(void)
{
	two(AF_INET, SOCK_DGRAM, 0);
	on(b, IPPROTO_IP, IP_RECVERR);
	on(b, IPPROTO_IP, IP_RECVTTL);
	close(a);
	receive_flags = MSG_ERRQUEUE;
	wanted_controls = 3;
	struct call call = { "recvmsg, a report of an error", send_refused, receive, NULL, is_message };
	fail_each(&call);
	receive_flags = 0;
	close(b);
}

static void be_refused(void)
{
	MUST(send(b, "x", 1, 0));
}

static long why_refused(void)
{
	int error = 0;
	socklen_t size = sizeof error;
	return getsockopt(b, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : -1;
}

static int is_refused(long error)
{
	return error == ECONNREFUSED && why_refused() == 0;
}

static void of_refusals(void)
{
	two(AF_INET, SOCK_DGRAM, 0);
	MUST(connect(b, &other.any, other_len));
	close(a);
	struct call call = { "getsockopt, SO_ERROR", be_refused, why_refused, NULL, is_refused };
	fail_each(&call);
	close(b);
}

/* An echo request, which is seen, and answered. */
static void send_echo(void)
{
	struct icmphdr request = { .type = ICMP_ECHO };
	request.checksum = htons(0xf7ff);
	MUST(sendto(a, &request, sizeof request, 0, &own.any, own_len));
}

static int is_echo(long size)
{
	int whole = size == 28 && bytes[20] == ICMP_ECHO && controls() == wanted_controls &&
		    header.msg_namelen == sizeof own.in;
	whole &= receive() == 28 && bytes[20] == ICMP_ECHOREPLY;
	while (recv(a, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	return whole;
}

static void of_raw(void)
{
	two(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	on(b, IPPROTO_IP, IP_PKTINFO);
	on(b, IPPROTO_IP, IP_RECVTTL);
	wanted_controls = 3;
	struct call call = { "recvmsg, raw", send_echo, receive, NULL, is_echo };
	fail_each(&call);
	close(a);
	close(b);
}

static void ask_for_links(void)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
	} ask = { { sizeof ask, RTM_GETLINK, NLM_F_REQUEST, 7, 0 }, { .ifi_index = 1 } };
	MUST(send(b, &ask, sizeof ask, 0));
}

static int is_link(long size)
{
	struct nlmsghdr *answer = (void *)bytes;
	return size > 16 && answer->nlmsg_type == RTM_NEWLINK && answer->nlmsg_seq == 7 && controls() == 1 &&
	       header.msg_namelen == sizeof(struct sockaddr_nl);
}

static void of_netlink(void)
{
	b = (int)MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	on(b, SOL_SOCKET, SO_PASSCRED);
	struct call call = { "recvmsg, netlink", ask_for_links, receive, NULL, is_link };
	fail_each(&call);
	close(b);
}

/* --- files in sockets that end: `watched` shows whether they were closed --- */

static int ends[2], spare, watched, looker;

static void send_over(int over, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec one = { "x", 1 };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof fd);
	MUST(sendmsg(over, &message, 0));
}

/* A pipe whose only writer is in the queue of `ends[0]`. */
static void put_writer_in(void)
{
	int pair[2];
	close(watched);
	MUST(pipe(pair));
	watched = pair[0];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	send_over(ends[1], pair[1]);
	close(pair[1]);
}

/* The same in a socket that is reached by itself only, once it is closed. */
static void put_writer_in_circle(void)
{
	put_writer_in();
	send_over(ends[1], ends[0]);
	close(ends[1]);
	spare = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
}

static long close_it(void)
{
	return close(ends[0]);
}

/* Alea looks when it is told to, Linux whenever a socket is closed. */
static void look_for_circles(void)
{
	if (looker >= 0)
		write(looker, "1", 1);
}

/* The last way to it is closed, and another socket. */
static long close_circle(void)
{
	int failed = close(ends[0]) != 0 || close(spare) != 0;
	look_for_circles();
	return failed ? -1 : 0;
}

static int is_hung_up(void)
{
	struct pollfd pipe_end = { .fd = watched, .events = POLLIN };
	return poll(&pipe_end, 1, LONG_MS) == 1 && pipe_end.revents == POLLHUP;
}

static int is_closed(long result)
{
	close(ends[1]);
	return result == 0 && is_hung_up();
}

/* A look that found no memory has taken nothing: the next one finds it. */
static int is_collected(long result)
{
	look_for_circles();
	return result == 0 && is_hung_up();
}

static void of_ends(void)
{
	watched = -1;
	looker = open("/proc/alea/objects", O_WRONLY | O_CLOEXEC);
	struct call plain = { "close, with a file in its queue", put_writer_in, close_it, NULL, is_closed };
	fail_each(&plain);
	struct call circle = { "close, of a circle", put_writer_in_circle, close_circle, NULL, is_collected };
	fail_each(&circle);
	close(watched);
	close(looker);
}

int main(void)
{
	scratch();
	net_up();
	failing_begin();
	accepts();
	of_unix();
	of_udp();
	of_errors();
	of_refusals();
	of_raw();
	of_netlink();
	of_ends();
	return 0;
}
