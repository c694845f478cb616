/*
 * Unix sockets as shells and daemons use them: socketpair (stream, datagram, seqpacket), bind and connect by path,
 * shutdown, end of file, SIGPIPE, passing descriptors and credentials, and the usual errors.
 */
#include "rights.h"
#include <poll.h>
#include <sys/un.h>

static int sv[2];
static char buf[256];

int main(void)
{
	scratch();
	T(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	T(fcntl(sv[0], F_GETFD));
	T(write(sv[0], "hello", 5));
	T(send(sv[0], "again", 5, 0));
	T(recv(sv[1], buf, 3, MSG_PEEK));
	T(recv(sv[1], buf, 100, 0));
	T(recv(sv[1], buf, 100, MSG_DONTWAIT));
	T(shutdown(sv[0], SHUT_WR));
	T(read(sv[1], buf, 10));
	T(write(sv[1], "back", 4));
	T(read(sv[0], buf, 10));
	T(send(sv[0], "x", 1, MSG_NOSIGNAL));
	struct pollfd p = { sv[1], POLLIN | POLLOUT | POLLRDHUP, 0 };
	T(poll(&p, 1, 0));
	SAY("revents %#x", p.revents);
	close(sv[0]);
	T(poll(&p, 1, 0));
	SAY("revents %#x", p.revents);
	CHILD("write to a closed peer") {
		write(sv[1], "x", 1);
	} END;
	close(sv[1]);
	T(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	write(sv[0], "one", 3);
	write(sv[0], "second", 6);
	T(read(sv[1], buf, 2));
	T(read(sv[1], buf, 100));
	close(sv[0]);
	close(sv[1]);
	T(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	write(sv[0], "packet", 6);
	T(read(sv[1], buf, 100));
	/* a descriptor passes over */
	int pipes[2];
	MUST(pipe(pipes));
	struct iovec iov = { "f", 1 };
	RIGHTS_ROOM(control, 1);
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	carry(&msg, control, &pipes[1], 1);
	T(sendmsg(sv[0], &msg, 0));
	close(pipes[1]);
	iov.iov_base = buf;
	memset(control, 0, sizeof control);
	T(recvmsg(sv[1], &msg, 0));
	int passed = -1;
	memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	T(write(passed, "through", 7));
	T(read(pipes[0], buf, 100));
	close(sv[0]);
	close(sv[1]);
	/* by name */
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "sock" };
	int s = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0)), k;
	T(connect(s, (struct sockaddr *)&addr, sizeof addr));
	T(bind(s, (struct sockaddr *)&addr, sizeof addr));
	struct stat st;
	stat("sock", &st);
	SAY("mode %o", st.st_mode);
	k = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	T(connect(k, (struct sockaddr *)&addr, sizeof addr));
	T(bind(k, (struct sockaddr *)&addr, sizeof addr));
	T(listen(s, 1));
	T(connect(k, (struct sockaddr *)&addr, sizeof addr));
	int conn = (int)T(accept4(s, NULL, NULL, SOCK_NONBLOCK) >= 0);
	T(accept4(s, NULL, NULL, 1));
	fcntl(s, F_SETFL, O_NONBLOCK);
	T(accept(s, NULL, NULL));
	T(write(k, "to server", 9));
	T(getpeername(99, NULL, NULL));
	T(connect(conn, (struct sockaddr *)&addr, 1));
	T(socket(99, SOCK_STREAM, 0));
	T(socket(AF_UNIX, 99, 0));
	T(socket(AF_UNIX, SOCK_STREAM, 7));
	T(send(1, "x", 1, 0));
	int type = 0;
	socklen_t len = sizeof type;
	T(getsockopt(k, SOL_SOCKET, SO_TYPE, &type, &len));
	SAY("type %d", type);
	struct ucred cred = { 0 };
	len = sizeof cred;
	T(getsockopt(k, SOL_SOCKET, SO_PEERCRED, &cred, &len));
	SAY("peer is me %d uid %d", cred.pid == getpid(), cred.uid);
	return 0;
}
