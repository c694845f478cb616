/*
 * An empty datagram that MSG_PEEK has seen counts as seen for SO_PEEK_OFF, whether an offset was set when it was looked at or not.
 */
#include "peek.h"

static void looks_first(int from, int to, const char *what)
{
	SAY("%s", what);
	put(from, "");
	put(from, "xy");
	peeks(to, 8);
	T(set_offset(to, 0));
	peeks(to, 8);
	peeks(to, 8);
	reads(to, 8);
	reads(to, 8);
}

int main(void)
{
	int s[2];
	setbuf(stdout, NULL);
	net_up();
	int to = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), from = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(to, NAME4("127.0.0.1", 0)));
	MUST(connect(from, NAME4("127.0.0.1", port_of(to))));
	looks_first(from, to, "UDP");
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	looks_first(s[0], s[1], "local datagrams");
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	looks_first(s[0], s[1], "local packets");
	return 0;
}
