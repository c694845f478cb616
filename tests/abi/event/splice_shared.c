/*
 * Several that take bytes out of one pipe, by splice and by read, at the same time: each byte goes to one of them, also while
 * one of them waits for room where it splices to, and none of them sees the end of file before it has come. What a
 * splice has taken from a socket is not lost when the pipe has been filled meanwhile.
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

enum { TOKENS = 20000, TAKERS = 4 };

static int from[2], socks[2];
static char buf[1 << 16];

static void *to_socket(void *unused)
{
	(void)unused;
	return (void *)(long)splice(from[0], NULL, socks[0], NULL, 8, 0);
}

static void *reads(void *into)
{
	return (void *)(long)read(from[0], into, 8);
}

/* A splice into a full socket has its bytes, whoever reads meanwhile. */
static void one_waits(void)
{
	pthread_t splicer, reader;
	void *moved, *got;
	char mine[9] = "", rest[9] = "", sent[16] = "";
	ssize_t n;
	size_t all = 0;
	MUST(pipe(from));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	size_t filled = 0;
	while ((n = send(socks[0], buf, 4096, MSG_DONTWAIT)) > 0)
		filled += (size_t)n;
	MUST(write(from[1], "01234567abcdefghABCDEFGH", 24));
	MUST(pthread_create(&splicer, NULL, to_socket, NULL) ? -1 : 0);
	sleep_ms(50);
	MUST(pthread_create(&reader, NULL, reads, mine) ? -1 : 0);
	sleep_ms(50);
	while (all < filled && (n = read(socks[1], buf, filled - all < sizeof buf ? filled - all : sizeof buf)) > 0)
		all += (size_t)n;
	pthread_join(splicer, &moved);
	pthread_join(reader, &got);
	SAY("spliced %ld, read %ld", (long)moved, (long)got);
	T(recv(socks[1], sent, 8, MSG_DONTWAIT));
	MUST(fcntl(from[0], F_SETFL, O_NONBLOCK));
	T(read(from[0], rest, 8));
	T(read(from[0], buf, 8));
	SAY("socket %s, reader %s, left %s", sent, mine, rest);
	close(from[0]);
	close(from[1]);
	close(socks[0]);
	close(socks[1]);
}

static int early_ends, taken[TOKENS], pipes[TAKERS][2], files[TAKERS];
static volatile int over;

static void count(const unsigned *token, ssize_t bytes)
{
	for (ssize_t i = 0; i < bytes / 4; i++)
		if (token[i] < TOKENS)
			__atomic_fetch_add(&taken[token[i]], 1, __ATOMIC_RELAXED);
}

/* Taker 0 reads, 1 splices into a file, the others into pipes that they empty. */
static void *takes(void *number)
{
	long who = (long)number;
	unsigned tokens[1024];
	ssize_t n, got;
	for (;;) {
		if (who == 0)
			n = read(from[0], tokens, 400);
		else
			n = splice(from[0], NULL, who == 1 ? files[1] : pipes[who][1], NULL, 400, 0);
		if (n <= 0) {
			if (!over)
				__atomic_fetch_add(&early_ends, 1, __ATOMIC_RELAXED);
			if (n < 0 || over)
				break;
			continue;
		}
		if (who == 0)
			count(tokens, n);
		for (; who > 1 && n > 0; n -= got) {
			got = read(pipes[who][0], tokens, (size_t)n);
			if (got <= 0)
				break;
			count(tokens, got);
		}
	}
	return NULL;
}

static void all_at_once(void)
{
	pthread_t threads[TAKERS];
	unsigned tokens[1024];
	ssize_t n;
	MUST(pipe(from));
	files[1] = (int)MUST(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600));
	for (long i = 0; i < TAKERS; i++) {
		MUST(pipe(pipes[i]));
		MUST(pthread_create(&threads[i], NULL, takes, (void *)i) ? -1 : 0);
	}
	for (unsigned i = 0; i < TOKENS; i += 20) {
		for (unsigned j = 0; j < 20; j++)
			tokens[j] = i + j;
		MUST(write(from[1], tokens, 80));
	}
	over = 1;
	close(from[1]);
	for (long i = 0; i < TAKERS; i++)
		pthread_join(threads[i], NULL);
	lseek(files[1], 0, SEEK_SET);
	while ((n = read(files[1], tokens, sizeof tokens)) > 0)
		count(tokens, n);
	int lost = 0, twice = 0;
	for (int i = 0; i < TOKENS; i++) {
		lost += taken[i] == 0;
		twice += taken[i] > 1;
	}
	SAY("lost %d, twice %d, early ends %d", lost, twice, early_ends);
}

static void nothing(int sig)
{
	(void)sig;
}

static void *from_socket(void *unused)
{
	(void)unused;
	return (void *)(long)splice(socks[1], NULL, from[1], NULL, 8, 0);
}

static void *fills(void *unused)
{
	(void)unused;
	return (void *)(long)write(from[1], buf, sizeof buf);
}

/* A splice has waited for bytes while another fills the pipe: a signal does not make it lose them. */
static void a_signal(void)
{
	pthread_t splicer, filler;
	void *moved, *filled;
	struct sigaction act = { .sa_handler = nothing };
	static char all[2 * sizeof buf];
	size_t got = 0, digits = 0;
	ssize_t n;
	sigaction(SIGUSR1, &act, NULL);
	memset(buf, '.', sizeof buf);
	MUST(pipe(from));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	MUST(pthread_create(&splicer, NULL, from_socket, NULL) ? -1 : 0);
	sleep_ms(50);
	MUST(pthread_create(&filler, NULL, fills, NULL) ? -1 : 0);
	sleep_ms(50);
	MUST(send(socks[0], "01234567", 8, 0));
	sleep_ms(50);
	pthread_kill(splicer, SIGUSR1);
	sleep_ms(50);
	/* Not to wait for ever for bytes that are lost. */
	struct pollfd p = { .fd = from[0], .events = POLLIN };
	while (got < sizeof buf + 8 && poll(&p, 1, 5000) > 0 && (n = read(from[0], all + got, sizeof all - got)) > 0)
		got += (size_t)n;
	pthread_join(splicer, &moved);
	pthread_join(filler, &filled);
	for (size_t i = 0; i < got; i++)
		digits += all[i] != '.';
	SAY("spliced %ld, written %ld, digits %zu", (long)moved, (long)filled, digits);
}

int main(void)
{
	scratch();
	one_waits();
	a_signal();
	all_at_once();
	return 0;
}
