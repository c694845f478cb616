/*
 * Several readers of one socket: bytes keep their order from one read to the next, no message is passed by another while
 * somebody looks at it, and no reader sleeps while there is something to read. On one CPU little of this can be seen.
 */
#include "net.h"
#include <pthread.h>
#include <stdatomic.h>

#define READERS 3

static int from, to;
static atomic_int broken, done;
static atomic_uint read_in_all;

/* Sends numbers, some in each message. */
static void send_numbers(unsigned count, unsigned each)
{
	unsigned numbers[1024];
	for (unsigned next = 0; next < count; next += each) {
		for (unsigned i = 0; i < each; i++)
			numbers[i] = next + i;
		if (send(to, numbers, each * sizeof *numbers, 0) != (ssize_t)(each * sizeof *numbers))
			broken = 1;
	}
}

/* Reads some numbers at a time: within a read one follows another, and from read to read of one reader they grow. */
static void *read_in_order(void *size)
{
	unsigned numbers[4096], least = 0;
	for (;;) {
		ssize_t n = recv(from, numbers, (size_t)(intptr_t)size, 0);
		if (n <= 0)
			return NULL;
		if (n % 4)
			broken = 2;
		for (ssize_t i = 0; i < n / 4; i++) {
			if (numbers[i] < least)
				broken = 3;
			least = numbers[i] + 1;
		}
		read_in_all += (unsigned)n / 4;
	}
}

/* Looks at what comes first, and at nothing else. */
static void *peek_on(void *size)
{
	unsigned numbers[4096], least = 0;
	while (!done) {
		ssize_t n = recv(from, numbers, (size_t)(intptr_t)size, MSG_PEEK | MSG_DONTWAIT);
		if (n < 4)
			continue;
		if (numbers[0] < least)
			broken = 4;
		least = numbers[0];
	}
	return NULL;
}

static void start(pthread_t *thread, void *(*what)(void *), long arg)
{
	if (pthread_create(thread, NULL, what, (void *)(intptr_t)arg))
		MUST(-1);
}

static void order(const char *what, unsigned count, unsigned each)
{
	pthread_t readers[READERS], peeker;
	broken = done = 0;
	read_in_all = 0;
	for (int i = 0; i < READERS; i++)
		start(&readers[i], read_in_order, i ? 1200 : 64);
	start(&peeker, peek_on, 400);
	send_numbers(count, each);
	shutdown(to, SHUT_WR);
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	done = 1;
	pthread_join(peeker, NULL);
	SAY("%s: order %d, all %s", what, broken, read_in_all == count ? "read" : "not read");
}

/* Two readers take one half of a message each; who finds nothing yet must hear of the half that is left. */
static void *read_halves(void *rounds)
{
	char half[4];
	for (long i = 0; i < (long)(intptr_t)rounds; i++) {
		if (recv(from, half, sizeof half, 0) != sizeof half)
			broken = 5;
		done++;
	}
	return NULL;
}

static void halves(const char *what, int rounds)
{
	pthread_t readers[2];
	broken = done = 0;
	for (int i = 0; i < 2; i++)
		start(&readers[i], read_halves, rounds);
	/* One reader may be two rounds ahead of the other: what counts is that both halves are read. */
	for (int i = 0; i < rounds && !broken; i++) {
		struct timespec begin;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		if (send(to, "12345678", 8, 0) != 8)
			broken = 6;
		while (done < 2 * (i + 1) && !broken) {
			sched_yield();
			if (elapsed_ms(&begin) > LONG_MS / 4) {
				SAY("%s: a reader sleeps, and there is something to read", what);
				exit(1);
			}
		}
	}
	shutdown(to, SHUT_RDWR);
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	SAY("%s: halves %d", what, broken);
}

/* Datagrams: one reads them all, and two look at the first. */
static void *receive_all(void *count)
{
	unsigned number, wanted = 0;
	while (wanted < (unsigned)(uintptr_t)count) {
		if (recv(from, &number, sizeof number, 0) != sizeof number || number != wanted++)
			broken = 7;
		read_in_all = wanted;
	}
	return NULL;
}

static void datagrams(const char *what, unsigned count)
{
	pthread_t reader, peekers[2];
	broken = done = 0;
	read_in_all = 0;
	for (int i = 0; i < 2; i++)
		start(&peekers[i], peek_on, 400);
	start(&reader, receive_all, (long)count);
	/* No more on the way than every queue has room for. */
	for (unsigned i = 0; i < count; i++) {
		if (send(to, &i, sizeof i, 0) != sizeof i)
			broken = 6;
		while (i > read_in_all + 8)
			sched_yield();
	}
	pthread_join(reader, NULL);
	done = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(peekers[i], NULL);
	SAY("%s: order %d", what, broken);
}

static void unix_pair(int type)
{
	int sv[2];
	MUST(socketpair(AF_UNIX, type, 0, sv));
	from = sv[0];
	to = sv[1];
}

int main(void)
{
	/* A reader that sleeps beside what it waits for is a fault; it does not end by itself. */
	alarm(LONG_MS / 1000);
	net_up();
	unix_pair(SOCK_STREAM);
	order("AF_UNIX stream", 100000, 100);
	unix_pair(SOCK_STREAM);
	halves("AF_UNIX stream", 1000);
	unix_pair(SOCK_DGRAM);
	datagrams("AF_UNIX datagrams", 3000);
	unix_pair(SOCK_SEQPACKET);
	datagrams("AF_UNIX packets", 3000);
	from = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	to = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(from, NAME4("127.0.0.1", 0)));
	MUST(connect(to, NAME4("127.0.0.1", port_of(from))));
	datagrams("UDP", 3000);
	connection(&from, &to);
	order("TCP", 100000, 100);
	connection(&from, &to);
	halves("TCP", 1000);
	return 0;
}
