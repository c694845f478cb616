/* connect to AF_UNSPEC of a connection that both ends have ended: no error is left, and the peer sees none. What of its settings stays. */
#include "net.h"

int main(void)
{
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int error = 0, offset = 0;
	socklen_t len = sizeof error;
	char bytes[8] = "";
	setbuf(stdout, NULL);
	net_up();
	int l = listener4(5), port = port_of(l);
	for (int first = 0; first < 2; first++) {
		int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
		MUST(connect(fd, NAME4("127.0.0.1", port)));
		int peer = (int)MUST(accept(l, NULL, NULL));
		MUST(send(fd, "abc", 3, 0));
		MUST(shutdown(first ? fd : peer, SHUT_WR));
		sleep_ms(20);
		MUST(shutdown(first ? peer : fd, SHUT_WR));
		sleep_ms(20);
		T(connect(fd, &nowhere, sizeof nowhere));
		T(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
		SAY("own error %d", error);
		T(getsockopt(peer, SOL_SOCKET, SO_ERROR, &error, &len));
		SAY("peer's error %d", error);
		T(recv(peer, bytes, 8, MSG_DONTWAIT));
		close(fd);
		close(peer);
	}
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(fd, NAME4("127.0.0.1", port)));
	int peer = (int)MUST(accept(l, NULL, NULL));
	MUST(send(peer, "abcdef", 6, 0));
	T(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset));
	T(recv(fd, bytes, 4, MSG_PEEK));
	T(connect(fd, &nowhere, sizeof nowhere));
	T(getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, &len));
	SAY("offset %d", offset);
	T(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	SAY("own error %d", error);
	return 0;
}
