/* MSG_MORE of a raw socket puts a packet together from several calls, as that of UDP does. */
#include "net.h"

int main(void)
{
	unsigned char in[128];
	setbuf(stdout, NULL);
	net_up();
	int fd = (int)MUST(socket(AF_INET, SOCK_RAW, 253));
	MUST(connect(fd, NAME4("127.0.0.1", 0)));
	T(send(fd, "abcd", 4, MSG_MORE));
	T(recv(fd, in, sizeof in, MSG_DONTWAIT));
	T(send(fd, "efgh", 4, 0));
	T(recv(fd, in, sizeof in, MSG_DONTWAIT));
	T(recv(fd, in, sizeof in, MSG_DONTWAIT));
	int fd6 = (int)MUST(socket(AF_INET6, SOCK_RAW, 253));
	MUST(connect(fd6, NAME6("::1", 0)));
	T(send(fd6, "abcd", 4, MSG_MORE));
	T(recv(fd6, in, sizeof in, MSG_DONTWAIT));
	T(send(fd6, "efgh", 4, 0));
	T(recv(fd6, in, sizeof in, MSG_DONTWAIT));
	T(recv(fd6, in, sizeof in, MSG_DONTWAIT));
	return 0;
}
