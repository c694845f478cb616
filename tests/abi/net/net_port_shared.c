/*
 * A port that many sockets have: whoever asks for it too is told of a conflict with any of them, a message comes to the one
 * whose address it has, a connection to one that listens, and who listens already may change the length of its queue.
 */
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

enum { MANY = 300, PORT = 7321 };

static struct sockaddr_in name(int last)
{
	return (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = { htonl(0x7f010000 + last) } };
}

static int on(int fd, int option)
{
	int yes = 1;
	MUST(setsockopt(fd, SOL_SOCKET, option, &yes, sizeof yes));
	return fd;
}

static int bound(int type, int last, int option)
{
	struct sockaddr_in to = name(last);
	int fd = MUST(socket(AF_INET, type, 0));
	if (option)
		on(fd, option);
	if (bind(fd, (struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int all[MANY];

static void close_all(void)
{
	for (int i = 0; i < MANY; i++)
		close(all[i]);
}

static void addresses(void)
{
	char byte = 0;
	SAY("-- one port of many addresses");
	for (int i = 0; i < MANY; i++)
		all[i] = MUST(bound(SOCK_DGRAM, i + 1, 0));
	T(bound(SOCK_DGRAM, 1, 0));
	T(bound(SOCK_DGRAM, MANY, 0));
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = MUST(socket(AF_INET, SOCK_DGRAM, 0));
	T(bind(fd, (struct sockaddr *)&any, sizeof any));
	for (int last = 1; last <= MANY; last += MANY - 1) {
		struct sockaddr_in to = name(last);
		T(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to));
		T(recv(all[last - 1], &byte, 1, MSG_DONTWAIT));
	}
	/* who is connected to the sender comes before others, wherever it stands */
	struct sockaddr_in own;
	socklen_t len = sizeof own;
	MUST(getsockname(fd, (struct sockaddr *)&own, &len));
	close_all();
	for (int i = 0; i < MANY; i++)
		all[i] = MUST(bound(SOCK_DGRAM, 1, SO_REUSEADDR));
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(connect(all[MANY / 2], (struct sockaddr *)&own, sizeof own));
	struct sockaddr_in to = name(1);
	T(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to));
	T(recv(all[MANY / 2], &byte, 1, MSG_DONTWAIT));
	T(bound(SOCK_DGRAM, 1, 0));
	close_all();
	close(fd);
}

static void listeners(void)
{
	SAY("-- listeners of one port");
	for (int i = 0; i < MANY; i++)
		all[i] = MUST(bound(SOCK_STREAM, 1, SO_REUSEADDR));
	T(listen(all[MANY - 1], 1));
	T(listen(all[0], 1));
	T(listen(all[MANY - 1], 5));
	T(bound(SOCK_STREAM, 1, SO_REUSEADDR));
	struct sockaddr_in to = name(1);
	int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(fd, (struct sockaddr *)&to, sizeof to));
	close(fd);
	close(MUST(accept(all[MANY - 1], NULL, NULL)));
	close_all();
	for (int i = 0; i < MANY; i++) {
		all[i] = MUST(bound(SOCK_STREAM, 2, SO_REUSEPORT));
		MUST(listen(all[i], 1));
		MUST(fcntl(all[i], F_SETFL, O_NONBLOCK));
	}
	to = name(2);
	fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(fd, (struct sockaddr *)&to, sizeof to));
	int came = 0;
	for (int i = 0; i < MANY; i++) {
		int end = accept(all[i], NULL, NULL);
		if (end >= 0)
			came++, close(end);
	}
	IS(came == 1);
	close(fd);
	close_all();
}

/* Two that listen at once on one port that they share by SO_REUSEADDR: one of them is refused, however long the others take to look at. */
static pthread_barrier_t both;

static void *listen_one(void *fd)
{
	pthread_barrier_wait(&both);
	return (void *)(long)(listen((int)(long)fd, 1) == 0 ? 0 : errno);
}

static void at_once(void)
{
	SAY("-- two at once");
	int wrong = 0;
	MUST(pthread_barrier_init(&both, NULL, 2));
	for (int i = 0; i < MANY; i++)
		all[i] = MUST(bound(SOCK_STREAM, 3, SO_REUSEADDR));
	for (int round = 0; round < 30; round++) {
		int pair[2];
		void *results[2];
		pthread_t threads[2];
		for (int i = 0; i < 2; i++) {
			pair[i] = MUST(bound(SOCK_STREAM, 3, SO_REUSEADDR));
			pthread_create(&threads[i], NULL, listen_one, (void *)(long)pair[i]);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], &results[i]);
		wrong += (results[0] == 0) == (results[1] == 0);
		wrong += results[0] && (long)results[0] != EADDRINUSE;
		close(pair[0]);
		close(pair[1]);
	}
	SAY("%d pairs in which not one alone listens", wrong);
	close_all();
}

int main(void)
{
	addresses();
	listeners();
	at_once();
	return 0;
}
