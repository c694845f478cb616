/*
 * A socket whose connection was reset is still that connection's: it can neither connect nor listen until it is disconnected, and what
 * had come can be read until then. An attempt that nobody has asked about is over with its error, told by the next connect.
 */
#include "net.h"

static void reset(int fd)
{
	struct linger at_once = { 1, 0 };
	MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
	close(fd);
}

int main(void)
{
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	char bytes[8];
	net_up();
	int l = listener4(5), port = port_of(l);
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(fd, NAME4("127.0.0.1", port)));
	int peer = (int)MUST(accept(l, NULL, NULL));
	MUST(send(peer, "abc", 3, 0));
	reset(peer);
	await(fd, POLLERR);
	T(connect(fd, NAME4("127.0.0.1", port)));
	T(listen(fd, 5));
	T(recv(fd, bytes, 8, MSG_DONTWAIT));
	T(recv(fd, bytes, 8, MSG_DONTWAIT));
	T(connect(fd, NAME4("127.0.0.1", port)));
	T(listen(fd, 5));
	T(connect(fd, &nowhere, sizeof nowhere));
	T(connect(fd, NAME4("127.0.0.1", port)));
	T(recv(fd, bytes, 8, MSG_DONTWAIT));
	peer = (int)MUST(accept(l, NULL, NULL));
	reset(fd);
	await(peer, POLLERR);
	T(connect(peer, NAME4("127.0.0.1", port)));
	SAY("error %s", so_error(peer));
	T(connect(peer, NAME4("127.0.0.1", port)));
	T(connect(peer, &nowhere, sizeof nowhere));
	T(connect(peer, NAME4("127.0.0.1", port)));
	close((int)MUST(accept(l, NULL, NULL)));

	int asks = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect(asks, NAME4("127.0.0.1", port)));
	peer = (int)MUST(accept(l, NULL, NULL));
	MUST(send(peer, "old", 3, 0));
	reset(peer);
	await(asks, POLLERR);
	T(connect(asks, NAME4("127.0.0.1", port)));
	T(connect(asks, NAME4("127.0.0.1", port)));
	await(asks, POLLOUT);
	T(recv(asks, bytes, 8, MSG_DONTWAIT));
	return 0;
}
