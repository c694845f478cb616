/*
 * What filters of sockets cut or hold back: a message of the kernel that is cut counts against its receiver as if it were whole; what
 * is held comes whole however much it is, but not after a reset; a byte out of band waits for the filter with the others; who waited
 * for a listener and asks another one now is not connected to the first.
 */
#include "socket_filter.h"
#include <linux/netlink.h>

/* A filter that holds what carries data and no reset. */
#define HOLDS_DATA LOAD(BPF_B, 13), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 1, 0), RET(0), RET(-1)

static char big[100000];

static void cut(void)
{
	SAY("-- cut");
	int fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, 0));
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	MUST(bind(fd, (void *)&own, sizeof own));
	MUST(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 200000 }, sizeof(int)));
	T(ATTACH(fd, RET(1)));
	/* No request has this number, and each is sent back with the error. */
	struct nlmsghdr head = { sizeof big, 999, NLM_F_REQUEST | NLM_F_ACK, 1, 0 };
	memcpy(big, &head, sizeof head);
	int sent = 0;
	for (int i = 0; i < 40; i++)
		sent += send(fd, big, sizeof big, 0) == sizeof big;
	SAY("%d sent", sent);
	T(recv(fd, big, sizeof big, MSG_DONTWAIT));
	int came = 0;
	while (recv(fd, big, sizeof big, MSG_DONTWAIT) == 1)
		came++;
	SAY("%s came", came > 8 ? "many" : came > 0 ? "few" : "none");
	close(fd);
	/* Datagrams too. */
	int to = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), from = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(to, NAME4("127.0.0.1", 4200)));
	MUST(connect(from, NAME4("127.0.0.1", 4200)));
	T(ATTACH(to, RET(9)));
	for (int i = 0; i < 60; i++)
		MUST(send(from, big, 60000, 0));
	came = 0;
	while (recv(to, big, sizeof big, MSG_DONTWAIT) == 1)
		came++;
	SAY("%s came", came > 8 ? "many" : came > 0 ? "few" : "none");
	close(to);
	close(from);
}

static int listener(int port)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)));
	MUST(bind(fd, NAME4("127.0.0.1", port)));
	MUST(listen(fd, 5));
	return fd;
}

static void join(int port, int *client, int *server)
{
	int l = listener(port);
	*client = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(*client, NAME4("127.0.0.1", port)));
	*server = (int)MUST(accept(l, NULL, NULL));
	close(l);
}

static void reset(void)
{
	SAY("-- reset");
	int c, s;
	char to[20] = { 0 };
	join(4201, &c, &s);
	T(ATTACH(s, HOLDS_DATA));
	T(send(c, "held", 4, 0));
	T(at_once(s, POLLIN));
	MUST(setsockopt(c, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger)));
	T(close(c));
	T(in_time(s, POLLERR));
	T(recv(s, to, sizeof to, MSG_DONTWAIT));
	T(DETACH(s));
	T(recv(s, to, sizeof to, MSG_DONTWAIT));
	SAY("%s", to);
	close(s);
}

/* More than one call looks at. */
static void much(void)
{
	SAY("-- much");
	static char all[350000];
	int c, s;
	join(4207, &c, &s);
	T(ATTACH(s, RET(0)));
	for (int i = 0; i < 140; i++)
		MUST(send(c, big, 2500, MSG_DONTWAIT));
	T(at_once(s, POLLIN));
	T(DETACH(s));
	T(in_time(s, POLLIN) != 0);
	T(recv(s, all, sizeof all, MSG_WAITALL));
	close(c);
	close(s);
}

static void urgent(void)
{
	SAY("-- out of band");
	int c, s;
	char to[20] = { 0 };
	join(4202, &c, &s);
	T(ATTACH(s, RET(0)));
	T(send(c, "abc!", 4, MSG_OOB));
	T(at_once(s, POLLPRI | POLLIN));
	T(recv(s, to, 1, MSG_OOB | MSG_DONTWAIT));
	T(DETACH(s));
	T(in_time(s, POLLPRI) != 0);
	T(in_time(s, POLLIN) != 0);
	T(recv(s, to, 1, MSG_OOB | MSG_DONTWAIT));
	SAY("%s", to);
	memset(to, 0, sizeof to);
	T(recv(s, to, sizeof to - 1, MSG_DONTWAIT));
	SAY("%s", to);
	/* With one that lets it pass. */
	T(ATTACH(s, RET(-1)));
	T(send(c, "!", 1, MSG_OOB));
	T(in_time(s, POLLPRI) != 0);
	close(c);
	close(s);
	/* Among the others, for who wants it there. */
	join(4203, &c, &s);
	MUST(setsockopt(s, SOL_SOCKET, SO_OOBINLINE, &(int){ 1 }, sizeof(int)));
	T(ATTACH(s, RET(0)));
	T(send(c, "abc!", 4, MSG_OOB));
	T(at_once(s, POLLIN));
	T(DETACH(s));
	T(in_time(s, POLLIN) != 0);
	memset(to, 0, sizeof to);
	T(recv(s, to, 3, MSG_DONTWAIT));
	SAY("%s", to);
	close(c);
	close(s);
}

static void elsewhere(void)
{
	SAY("-- elsewhere");
	int first = listener(4204), second = listener(4205), third = listener(4206);
	T(ATTACH(first, RET(0)));
	T(ATTACH(second, RET(0)));
	int s = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect(s, NAME4("127.0.0.1", 4204)));
	struct sockaddr none = { AF_UNSPEC, { 0 } };
	T(connect(s, &none, sizeof none));
	T(connect(s, NAME4("127.0.0.1", 4205)));
	T(DETACH(first));
	T(at_once(s, POLLOUT));
	T(at_once(first, POLLIN));
	T(DETACH(second));
	T(in_time(s, POLLOUT) != 0);
	T(in_time(second, POLLIN) != 0);
	T(at_once(first, POLLIN));
	close(s);
	/* A listener that closes breaks off who asks it, and nobody else. */
	T(ATTACH(first, RET(0)));
	s = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect(s, NAME4("127.0.0.1", 4204)));
	T(connect(s, &none, sizeof none));
	T(ATTACH(third, RET(0)));
	T(connect(s, NAME4("127.0.0.1", 4206)));
	T(close(first));
	T(at_once(s, POLLOUT));
	T(DETACH(third));
	T(in_time(s, POLLOUT));
	close(s);
	close(second);
	close(third);
}

int main(void)
{
	net_up();
	cut();
	reset();
	much();
	urgent();
	elsewhere();
	return 0;
}
