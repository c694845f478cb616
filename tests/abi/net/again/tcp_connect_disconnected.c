/* A connect that waits while another thread ends the attempt (connect to AF_UNSPEC), and perhaps makes a connection of its own. */
#include "net.h"
#include <pthread.h>

static int fd, port;

static void *connects(void *arg)
{
	(void)arg;
	T(connect(fd, NAME4("127.0.0.1", port)));
	return NULL;
}

static void *sends(void *arg)
{
	(void)arg;
	T(send(fd, "x", 1, MSG_NOSIGNAL));
	return NULL;
}

static void one(void *(*run)(void *), int again)
{
	struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	pthread_t thread;
	SAY("again %d", again);
	int full = listener4(0), other = listener4(5), error = 0;
	socklen_t len = sizeof error;
	port = port_of(full);
	int first = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(first, NAME4("127.0.0.1", port)));
	fd = (int)MUST(socket(AF_INET, SOCK_STREAM | (run == sends ? SOCK_NONBLOCK : 0), 0));
	if (run == sends) {
		T(connect(fd, NAME4("127.0.0.1", port)));
		MUST(fcntl(fd, F_SETFL, 0));
	}
	pthread_create(&thread, NULL, run, NULL);
	wait_threads(1);
	MUST(connect(fd, &nowhere, sizeof nowhere));
	if (again)
		MUST(connect(fd, NAME4("127.0.0.1", port_of(other))));
	pthread_join(thread, NULL);
	if (again) {
		int got = (int)MUST(accept(other, NULL, NULL));
		char bytes[4] = "";
		T(send(fd, "y", 1, MSG_NOSIGNAL));
		sleep_ms(20);
		T(recv(got, bytes, 4, MSG_DONTWAIT));
		SAY("got %s", bytes);
		close(got);
	}
	T(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	SAY("error %d", error);
	close(fd); close(first); close(full); close(other);
}

int main(void)
{
	setbuf(stdout, NULL);
	net_up();
	for (int again = 0; again < 2; again++) {
		puts("a connect");
		one(connects, again);
		puts("a send");
		/* What it says once there is another connection is chance. */
		if (!again)
			one(sends, again);
	}
	return 0;
}
