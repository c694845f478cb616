/* SO_PEEK_OFF of a local stream with a byte out of band among the others. */
#include "peek.h"

static void one(int offset, int inline_)
{
	int s[2];
	SAY("offset %d, inline %d", offset, inline_);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	T(setsockopt(s[1], SOL_SOCKET, SO_OOBINLINE, &inline_, sizeof inline_));
	put(s[0], "ab");
	MUST(send(s[0], "c", 1, MSG_OOB));
	put(s[0], "de");
	T(set_offset(s[1], offset));
	for (int at = 0; at < 4; at++)
		peeks(s[1], 20);
	for (int at = 0; at < 3; at++)
		reads(s[1], 20);
	close(s[0]);
	close(s[1]);
}

int main(void)
{
	setbuf(stdout, NULL);
	for (int at = 0; at < 10; at++)
		one(at / 2, at % 2);
	return 0;
}
