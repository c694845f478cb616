/*
 * Sockets whose own filter drops the answer of a listener do not keep those out that ask after them.
 */
#include "net.h"
#include <linux/filter.h>

static int asking(int port, int deaf)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &nothing };
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	if (deaf)
		MUST(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
	if (connect(fd, NAME4("127.0.0.1", port)) == 0 || errno != EINPROGRESS)
		SAY("SETUP connect: %s", err_name(errno));
	return fd;
}

int main(void)
{
	setbuf(stdout, NULL);
	net_up();
	int l = listener4(1), port = port_of(l);
	for (int at = 0; at < 8; at++)
		asking(port, 1);
	asking(port, 0);
	asking(port, 0);
	int behind = asking(port, 0);
	for (int at = 0; at < 2; at++)
		close((int)MUST(accept(l, NULL, NULL)));
	struct pollfd comes = { l, POLLIN, 0 }, is_there = { behind, POLLOUT, 0 };
	SAY("there is somebody to accept: %d", poll(&comes, 1, 10000));
	SAY("who asked last is connected: %d", poll(&is_there, 1, 10000));
	return 0;
}
