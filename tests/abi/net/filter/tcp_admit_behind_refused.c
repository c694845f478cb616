/*
 * A connection that the listener's filter refuses does not keep those out that ask after it: once there is room in the backlog they
 * connect.
 */
#include "net.h"
#include <linux/filter.h>

static int asking(int port, int own)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	if (own)
		MUST(bind(fd, NAME4("127.0.0.1", own)));
	T(connect(fd, NAME4("127.0.0.1", port)));
	return fd;
}

int main(void)
{
	setbuf(stdout, NULL);
	net_up();
	int l = listener4(0), port = port_of(l), unwanted = 34567;
	/* What comes from the port is dropped: the data begin with the header of TCP. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)unwanted, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, 0x40000),
	};
	struct sock_fprog program = { 4, code };
	T(setsockopt(l, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
	int first = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(first, NAME4("127.0.0.1", port)));
	int refused = asking(port, unwanted), behind = asking(port, 0);
	int got = (int)MUST(accept(l, NULL, NULL));
	struct pollfd is_there = { behind, POLLOUT, 0 }, comes = { l, POLLIN, 0 };
	SAY("who asked behind it is connected: %d", poll(&is_there, 1, 10000));
	SAY("there is somebody to accept: %d", poll(&comes, 1, 5000));
	is_there.fd = refused;
	SAY("who is refused: %d", poll(&is_there, 1, 0));
	close(got);
	return 0;
}
