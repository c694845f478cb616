/*
 * TCP: what cannot be stored in the reader's memory stays, and comes once; who polls for room while a reader makes some is told.
 */
#include "net.h"
#include <pthread.h>

enum { SIZE = 2 * PAGE, ROUNDS = 400 };

static int left, right;

static void connected(void)
{
	int l = listener4(1);
	left = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(left, NAME4("127.0.0.1", port_of(l))));
	right = (int)MUST(accept(l, NULL, NULL));
	close(l);
}

static void partly(void)
{
	static unsigned char out[SIZE], in[SIZE];
	char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(mprotect(at + PAGE, PAGE, PROT_NONE));
	for (int i = 0; i < SIZE; i++)
		out[i] = (unsigned char)(i * 7 + i / 256);
	T(send(left, out, SIZE, 0));
	T(recv(right, at, SIZE, 0));
	T(recv(right, in, SIZE, MSG_WAITALL));
	IS(memcmp(in, out, SIZE) == 0);
	T(recv(right, in, SIZE, MSG_DONTWAIT));
}

static void *drain(void *arg)
{
	static char into[1 << 20];
	ssize_t got;
	while ((got = recv(right, into, sizeof into, 0)) > 0)
		;
	return arg;
}

/* Fills, polls for room, again and again; a poll of five seconds that ends without room was not told. */
static void told(void)
{
	static char piece[1 << 18];
	pthread_t reader;
	int missed = 0;
	MUST(fcntl(left, F_SETFL, O_NONBLOCK));
	pthread_create(&reader, NULL, drain, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		while (send(left, piece, sizeof piece, MSG_NOSIGNAL) > 0)
			;
		struct pollfd polled = { .fd = left, .events = POLLOUT };
		missed += poll(&polled, 1, 5000) != 1;
	}
	IS(missed == 0);
	shutdown(left, SHUT_WR);
	pthread_join(reader, NULL);
}

int main(void)
{
	net_up();
	connected();
	partly();
	told();
	return 0;
}
