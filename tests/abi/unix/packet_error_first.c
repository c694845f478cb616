/* A local packet socket whose peer closed with unread messages: the error comes before the messages that wait. */
#include "net.h"

static void of(int kind, const char *what)
{
	int s[2];
	char bytes[8];
	SAY("%s", what);
	MUST(socketpair(AF_UNIX, kind, 0, s));
	MUST(send(s[0], "unread", 6, 0));
	MUST(send(s[1], "waits", 5, 0));
	close(s[1]);
	T(recv(s[0], bytes, 8, MSG_DONTWAIT));
	T(recv(s[0], bytes, 8, MSG_DONTWAIT));
	T(recv(s[0], bytes, 8, MSG_DONTWAIT));
	close(s[0]);
}

int main(void)
{
	of(SOCK_SEQPACKET, "packets");
	of(SOCK_DGRAM, "datagrams");
	of(SOCK_STREAM, "stream");
	return 0;
}
