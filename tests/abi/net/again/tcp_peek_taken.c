/* MSG_PEEK with MSG_WAITALL while another thread reads what it has shown: it goes on from the beginning of what is there. */
#include "net.h"
#include <pthread.h>

static int fd;

static void *looks(void *arg)
{
	char bytes[9] = "";
	(void)arg;
	T(recv(fd, bytes, 8, MSG_PEEK | MSG_WAITALL));
	SAY("saw %s", bytes);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	char bytes[9] = "";
	struct timeval limit = { 5, 0 };
	setbuf(stdout, NULL);
	net_up();
	int l = listener4(5), peer;
	fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(fd, NAME4("127.0.0.1", port_of(l))));
	peer = (int)MUST(accept(l, NULL, NULL));
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	MUST(send(peer, "abcd", 4, 0));
	pthread_create(&thread, NULL, looks, NULL);
	wait_threads(1);
	T(recv(fd, bytes, 4, 0));
	MUST(send(peer, "efgh", 4, 0));
	pthread_join(thread, NULL);
	T(recv(fd, bytes, 8, MSG_DONTWAIT));
	return 0;
}
