/*
 * A reader and a writer that wait while another thread ends their connection (connect to AF_UNSPEC), and perhaps begins a new one, wait no
 * longer, and neither gets or gives a byte of the new one.
 */
#include "net.h"
#include <pthread.h>

#define MUCH (16 * 1024 * 1024)

static int fd;
static char *much;

static void *reads(void *arg)
{
	char bytes[8];
	(void)arg;
	T(recv(fd, bytes, sizeof bytes, 0));
	return NULL;
}

static void *writes(void *arg)
{
	(void)arg;
	ssize_t n = send(fd, much, MUCH, MSG_NOSIGNAL);
	SAY("sent a part: %s", n > 0 && n < MUCH ? "yes" : "no");
	return NULL;
}

/* With the connection full already. The reset is told, unless the new connection has begun by then. */
static void *writes_more(void *arg)
{
	(void)arg;
	ssize_t n = send(fd, much, 1, MSG_NOSIGNAL);
	SAY("sent nothing: %s", n < 0 && (errno == ECONNRESET || errno == EPIPE) ? "yes" : "no");
	return NULL;
}

static void fill(void)
{
	while (send(fd, much, 65536, MSG_DONTWAIT) > 0)
		;
	while (send(fd, much, 1, MSG_DONTWAIT) > 0)
		;
}

static void one(const char *what, void *(*run)(void *), int again)
{
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	pthread_t thread;
	char bytes[8] = "";
	SAY("%s, %s", what, again ? "and a new connection" : "alone");
	int l = listener4(5), port = port_of(l);
	fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(fd, NAME4("127.0.0.1", port)));
	int peer = (int)MUST(accept(l, NULL, NULL)), next = -1;
	if (run == writes_more)
		fill();
	pthread_create(&thread, NULL, run, NULL);
	wait_threads(1);
	MUST(connect(fd, &nowhere, sizeof nowhere));
	if (again) {
		MUST(connect(fd, NAME4("127.0.0.1", port)));
		next = (int)MUST(accept(l, NULL, NULL));
	}
	pthread_join(thread, NULL);
	if (again) {
		T(recv(next, bytes, sizeof bytes, MSG_DONTWAIT));
		MUST(send(next, "new", 3, 0));
		T(recv(fd, bytes, sizeof bytes, 0));
		close(next);
	}
	close(peer);
	close(fd);
	close(l);
}

int main(void)
{
	net_up();
	much = pages(MUCH / PAGE);
	for (int again = 0; again < 2; again++) {
		one("a reader", reads, again);
		one("a writer of much", writes, again);
		one("a writer", writes_more, again);
	}
	return 0;
}
