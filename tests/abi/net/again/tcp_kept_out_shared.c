/*
 * Two listeners share a port. Who is kept out by a filter of his own gets in once that is gone, whichever of the two he had asked.
 */
#include "net.h"
#include <linux/filter.h>

static struct sock_filter none[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
static struct sock_fprog nothing = { 1, none };

static int shared(int port)
{
	int on = 1, fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on));
	MUST(bind(fd, NAME4("127.0.0.1", port)));
	MUST(listen(fd, 100));
	return fd;
}

int main(void)
{
	int off = 0, in = 0;
	setbuf(stdout, NULL);
	net_up();
	int a = shared(0), port = port_of(a), b = shared(port);
	for (int i = 0; i < 12; i++) {
		int fd = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		MUST(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &nothing, sizeof nothing));
		if (connect(fd, NAME4("127.0.0.1", port)) != -1 || errno != EINPROGRESS)
			SAY("connect: %s", err_name(errno));
		MUST(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof off));
		struct pollfd p = { fd, POLLOUT, 0 };
		in += poll(&p, 1, 4000);
		close(fd);
	}
	SAY("of 12 connected: %d", in);
	return 0;
}
