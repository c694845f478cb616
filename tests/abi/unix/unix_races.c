/*
 * Two at the same AF_UNIX socket: of two connects, or a connect and a listen, one wins; of two binds one gives the name, and
 * nothing is left of the other.
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct sockaddr_un named(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	strcpy(name.sun_path, path);
	return name;
}

static long at(int fd, const char *path, int (*call)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un name = named(path);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
	/* An abstract name begins with a zero byte. */
	if (*path == '@') {
		name.sun_path[0] = 0;
		len--;
	}
	return call(fd, (struct sockaddr *)&name, len);
}

static int one;

struct done { long result; int error; };

static void *connects(void *out)
{
	struct done *done = out;
	done->result = at(one, "listens", connect);
	done->error = errno;
	return NULL;
}

static void say(const char *who, struct done done)
{
	SAY("%s: %ld %s", who, done.result, done.result ? err_name(done.error) : "");
}

static int full_listener(int waiting[2])
{
	int fd = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	unlink("listens");
	MUST(at(fd, "listens", bind));
	MUST(listen(fd, 1));
	for (int i = 0; i < 2; i++) {
		waiting[i] = (int)MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
		MUST(at(waiting[i], "listens", connect));
	}
	return fd;
}

static void two_connects(void)
{
	int waiting[2], listener = full_listener(waiting), taken = 0, accepted[4];
	struct done a, b;
	pthread_t first, second;
	one = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(pthread_create(&first, NULL, connects, &a) ? -1 : 0);
	MUST(pthread_create(&second, NULL, connects, &b) ? -1 : 0);
	IS(wait_threads(2));
	MUST(fcntl(listener, F_SETFL, O_NONBLOCK));
	while (taken < 2)
		accepted[taken++] = (int)MUST(accept(listener, NULL, NULL));
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	IS((a.result == 0) + (b.result == 0) == 1);
	say("the other", a.result ? a : b);
	while (taken < 4 && (accepted[taken] = accept(listener, NULL, NULL)) >= 0)
		taken++;
	SAY("accepted: %d", taken);
	T(write(one, "x", 1));
	for (int i = 0; i < taken; i++)
		close(accepted[i]);
	close(one);
	close(listener);
	close(waiting[0]);
	close(waiting[1]);
}

/* While it waits to be connected, the socket begins to listen, and somebody connects to it. */
static void connect_and_listen(void)
{
	int waiting[2], listener = full_listener(waiting), client;
	struct done a;
	pthread_t first;
	char byte;
	one = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(at(one, "too", bind));
	MUST(pthread_create(&first, NULL, connects, &a) ? -1 : 0);
	IS(wait_threads(1));
	T(listen(one, 5));
	client = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	T(at(client, "too", connect));
	close(accept(listener, NULL, NULL));
	pthread_join(first, NULL);
	say("connect", a);
	MUST(fcntl(one, F_SETFL, O_NONBLOCK));
	int end = (int)accept(one, NULL, NULL);
	IS(end >= 0);
	T(write(end, "y", 1));
	T(recv(client, &byte, 1, MSG_DONTWAIT));
	close(end);
	close(one);
	close(client);
	close(listener);
	close(waiting[0]);
	close(waiting[1]);
}

static atomic_int ready;
static const char *const names[2][2] = { { "left", "right" }, { "@left", "@right" } };
static int kind;

static void *binds(void *which)
{
	ready++;
	while (ready < 2)
		;
	return (void *)(long)at(one, names[kind][(long)which], bind);
}

static void two_binds(void)
{
	int both = 0, none = 0, left = 0, free_again = 0, rounds = 300;
	for (int i = 0; i < rounds; i++) {
		pthread_t other;
		void *theirs;
		one = (int)MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
		ready = 0;
		MUST(pthread_create(&other, NULL, binds, (void *)1) ? -1 : 0);
		long mine = (long)binds((void *)0);
		pthread_join(other, &theirs);
		both += mine == 0 && theirs == NULL;
		none += mine != 0 && theirs != NULL;
		if (kind == 0)
			left += (access("left", F_OK) == 0) + (access("right", F_OK) == 0) - 1;
		close(one);
		for (int j = 0; j < 2; j++) {
			int again = (int)MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
			unlink(names[0][j]);
			free_again += at(again, names[kind][j], bind) == 0;
			close(again);
			unlink(names[0][j]);
		}
	}
	SAY("both %d, none %d, names too many %d, free again %s", both, none, left, free_again == 2 * rounds ? "all" : "not all");
}

int main(void)
{
	scratch();
	one = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	T(at(one, "here", bind));
	T(at(one, "here", bind));
	T(at(one, "there", bind));
	T(at(one, "@there", bind));
	T(access("there", F_OK));
	close(one);
	two_connects();
	connect_and_listen();
	for (kind = 0; kind < 2; kind++)
		two_binds();
	return 0;
}
