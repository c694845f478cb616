/* splice loses nothing: what a full socket does not take stays in the pipe, and a full pipe takes nothing from a socket. */
#include "check.h"
#include <sys/socket.h>

static char buf[70000];

int main(void)
{
	int sv[2], p[2], n;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv));
	MUST(pipe2(p, O_NONBLOCK));
	while (write(sv[0], buf, 4096) > 0)
		;
	MUST(write(p[1], "kept", 4));
	T(splice(p[0], NULL, sv[0], NULL, 4, SPLICE_F_NONBLOCK));
	T(read(p[0], buf, 10));
	SAY("%.4s", buf);
	while (read(sv[1], buf, sizeof buf) > 0)
		;
	MUST(write(p[1], "moved", 5));
	T(splice(p[0], NULL, sv[0], NULL, 100, SPLICE_F_NONBLOCK));
	T(read(sv[1], buf, 10));
	SAY("%.5s", buf);
	while (write(p[1], buf, 4096) > 0)
		;
	MUST(write(sv[0], "stays", 5));
	T(splice(sv[1], NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK));
	T(recv(sv[1], buf, 10, 0));
	SAY("%.5s", buf);
	while ((n = (int)read(p[0], buf, sizeof buf)) > 0)
		;
	MUST(write(sv[0], "in", 2));
	T(splice(sv[1], NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK));
	T(read(p[0], buf, 10));
	T(splice(sv[1], NULL, p[1], NULL, 100, SPLICE_F_NONBLOCK));
	return 0;
}
