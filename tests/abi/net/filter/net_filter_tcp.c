/*
 * Filters on TCP: what they see of a segment; what is dropped or cut comes again until it passes, so that no byte is lost; a
 * listener's filter sees who connects, and is a connection's from its beginning.
 */
#include "socket_filter.h"

static char buf[1000];

static int comes(int fd)
{
	memset(buf, 0, sizeof buf);
	return (int)recv(fd, buf, sizeof buf - 1, MSG_DONTWAIT);
}

/* Reads until there are so many bytes. */
static void say_all(int fd, int wanted)
{
	char all[1000] = { 0 };
	int has = 0;
	while (has < wanted && in_time(fd, POLLIN)) {
		int n = comes(fd);
		if (n <= 0)
			break;
		memcpy(all + has, buf, (size_t)n);
		has += n;
	}
	SAY("%d bytes: %s", has, all);
}

static int listener(int family, int port)
{
	int fd = (int)MUST(socket(family, SOCK_STREAM, 0));
	MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)));
	if (family == AF_INET)
		MUST(bind(fd, NAME4("127.0.0.1", port)));
	else
		MUST(bind(fd, NAME6("::1", port)));
	MUST(listen(fd, 5));
	return fd;
}

static int client(int family, int port)
{
	int fd = (int)MUST(socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0));
	int r = family == AF_INET ? connect(fd, NAME4("127.0.0.1", port)) : connect(fd, NAME6("::1", port));
	if (r != 0 && errno != EINPROGRESS)
		SAY("connect: %s", err_name(errno));
	return fd;
}

static void data(int family)
{
	SAY("-- data %d", family);
	int l = listener(family, 4100), c = client(family, 4100);
	in_time(l, POLLIN);
	int s = (int)MUST(accept(l, NULL, NULL));
	T(ATTACH(s, RET(0)));
	T(send(c, "first", 5, 0));
	T(at_once(s, POLLIN));
	T(comes(s));
	T(DETACH(s));
	say_all(s, 5);
	/* Cut to four bytes a segment. */
	T(ATTACH(s, RET(36)));
	T(send(c, "abcdefghij", 10, 0));
	say_all(s, 10);
	/* Only segments whose data begin so. */
	T(ATTACH(s, LOAD(BPF_B, 12), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2), BPF_STMT(BPF_MISC | BPF_TAX, 0), LOADX(BPF_B, 0),
		 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'x', 0, 1), RET(-1), RET(0)));
	T(send(c, "xyz", 3, 0));
	say_all(s, 3);
	T(send(c, "zyx", 3, 0));
	T(at_once(s, POLLIN));
	T(DETACH(s));
	say_all(s, 3);
	/* Ports, flags, lengths and addresses. */
	T(ATTACH(s, LOAD(BPF_H, 2), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4100, 0, 7), LOAD(BPF_B, 13), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x18, 0, 5),
		 BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 36, 0, 3), LOAD(BPF_B, SKF_NET_OFF + (family == AF_INET ? 9 : 6)),
		 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 1), RET(-1), RET(0)));
	T(send(c, "four", 4, 0));
	say_all(s, 4);
	T(ATTACH(s, TOLD(SKF_AD_PAY_OFFSET), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 32, 0, 1), RET(-1), RET(0)));
	T(send(c, "more", 4, 0));
	say_all(s, 4);
	/* What is under way when the other end closes, and the end. */
	T(ATTACH(s, RET(0)));
	T(send(c, "last", 4, 0));
	T(close(c));
	T(at_once(s, POLLIN | POLLRDHUP));
	T(DETACH(s));
	say_all(s, 4);
	T(in_time(s, POLLRDHUP) != 0);
	T(comes(s));
	close(s);
	close(l);
}

static void ends(void)
{
	SAY("-- the end alone");
	int l = listener(AF_INET, 4101), c = client(AF_INET, 4101);
	in_time(l, POLLIN);
	int s = (int)MUST(accept(l, NULL, NULL));
	T(ATTACH(s, RET(0)));
	T(shutdown(c, SHUT_WR));
	T(at_once(s, POLLIN | POLLRDHUP));
	T(ATTACH(s, RET(32)));
	T(in_time(s, POLLRDHUP) != 0);
	T(comes(s));
	close(c);
	close(s);
	close(l);
}

static void connections(void)
{
	SAY("-- connections");
	int l = listener(AF_INET, 4102);
	struct sock_filter no_syn[] = { LOAD(BPF_B, 13), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 2, 1, 0), RET(-1), RET(0) };
	T(attach(l, no_syn, LEN(no_syn)));
	int c = client(AF_INET, 4102);
	T(at_once(c, POLLOUT));
	T(at_once(l, POLLIN));
	T(DETACH(l));
	T(in_time(c, POLLOUT) != 0);
	T(in_time(l, POLLIN) != 0);
	close(c);
	close((int)MUST(accept(l, NULL, NULL)));
	/* Of the one that connects. */
	c = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(ATTACH(c, RET(0)));
	T(connect(c, NAME4("127.0.0.1", 4102)));
	T(at_once(c, POLLOUT));
	T(DETACH(c));
	T(in_time(c, POLLOUT) != 0);
	close((int)MUST(accept(l, NULL, NULL)));
	close(c);
	/* A connection has the filter and the lock of its listener. */
	T(ATTACH(l, A(-1), RETA));
	T(setsockopt(l, SOL_SOCKET, SO_LOCK_FILTER, &(int){ 1 }, sizeof(int)));
	c = client(AF_INET, 4102);
	in_time(l, POLLIN);
	int s = (int)MUST(accept(l, NULL, NULL));
	T(get_filter(s, NULL, 0));
	T(DETACH(s));
	T(send(c, "through", 7, 0));
	say_all(s, 7);
	close(c);
	close(s);
	close(l);
}

int main(void)
{
	net_up();
	data(AF_INET);
	data(AF_INET6);
	ends();
	connections();
	return 0;
}
