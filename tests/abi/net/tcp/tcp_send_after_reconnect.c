/*
 * While one end of a connection sends, the other ends the connection (connect to AF_UNSPEC) and connects elsewhere: what was sent over
 * the first connection is not read from the second, whose peer sends nothing, and neither its end.
 */
#include "net.h"
#include <pthread.h>

#define MUCH (64 * 1024)

static int sender;
static volatile int begun;
static char *bytes;
static int how;

static void *sends(void *arg)
{
	(void)arg;
	begun = 1;
	if (how == 2)
		close(sender);
	else if (how == 1)
		shutdown(sender, SHUT_WR);
	else
		while (send(sender, bytes, MUCH, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			madvise(bytes, MUCH, MADV_DONTNEED);
	return NULL;
}

int main(void)
{
	static const char *const names[] = { "bytes", "ends of file", "resets" };
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int wrong[3] = { 0, 0, 0 };
	net_up();
	bytes = pages(MUCH / PAGE);
	int l = listener4(5), other = listener4(5), port = port_of(l), elsewhere = port_of(other);
	for (int at = 0; at < 1200; at++) {
		pthread_t thread;
		char in[16];
		how = at % 6 < 4 ? 0 : at % 6 - 3;
		int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
		MUST(connect(fd, NAME4("127.0.0.1", port)));
		sender = (int)MUST(accept(l, NULL, NULL));
		if (how == 2)
			for (int n = 0; n < 8; n++)
				send(fd, bytes, MUCH, MSG_DONTWAIT);
		madvise(bytes, MUCH, MADV_DONTNEED);
		begun = 0;
		pthread_create(&thread, NULL, sends, NULL);
		while (!begun)
			;
		for (volatile int spin = at * 53 % 3000; spin > 0; spin--)
			;
		connect(fd, &nowhere, sizeof nowhere);
		int r = connect(fd, NAME4("127.0.0.1", elsewhere));
		pthread_join(thread, NULL);
		if (r == 0) {
			int peer = (int)MUST(accept(other, NULL, NULL));
			errno = 0;
			if (recv(fd, in, sizeof in, MSG_DONTWAIT) != -1 || errno != EAGAIN)
				wrong[how]++;
			close(peer);
		}
		if (how != 2)
			close(sender);
		close(fd);
	}
	for (int at = 0; at < 3; at++)
		SAY("%s of another connection: %d", names[at], wrong[at]);
	return 0;
}
