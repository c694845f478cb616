/*
 * A thread reads a TCP socket while another one ends its connection (connect to AF_UNSPEC) and begins a new one: the read ends, what came
 * over the old connection is gone, and the new one brings its own bytes only.
 */
#include "net.h"
#include <pthread.h>

#define MUCH (320 * 1024)

static int fd;
static volatile int begun;
static int flags;
static char *room;

static void *reader(void *arg)
{
	(void)arg;
	begun = 1;
	ssize_t n = recv(fd, room, MUCH, flags | MSG_DONTWAIT);
	(void)n;
	return NULL;
}

static void fill(int from)
{
	static char bytes[16384];
	memset(bytes, 'o', sizeof bytes);
	while (send(from, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
}

int main(void)
{
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	int old = 0;
	net_up();
	room = pages(MUCH / PAGE);
	int l = listener4(5), port = port_of(l);
	for (int at = 0; at < 200; at++) {
		pthread_t thread;
		char first = 'n';
		fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
		MUST(connect(fd, NAME4("127.0.0.1", port)));
		int peer = (int)MUST(accept(l, NULL, NULL));
		fill(peer);
		madvise(room, MUCH, MADV_DONTNEED);
		flags = at % 2 ? MSG_PEEK : 0;
		begun = 0;
		pthread_create(&thread, NULL, reader, NULL);
		while (!begun)
			;
		for (volatile int spin = at * 37 % 4000; spin > 0; spin--)
			;
		connect(fd, &nowhere, sizeof nowhere);
		pthread_join(thread, NULL);
		close(peer);
		if (connect(fd, NAME4("127.0.0.1", port)) == 0) {
			peer = (int)MUST(accept(l, NULL, NULL));
			send(peer, "n", 1, 0);
			if (recv(fd, &first, 1, 0) == 1 && first != 'n')
				old++;
			close(peer);
		}
		close(fd);
	}
	SAY("bytes of an old connection: %d", old);
	return 0;
}
