/*
 * O_ASYNC while several threads write: one turns it on and off, names owners, opens and closes: nothing is lost once it stays on, and
 * nobody is told after the end.
 */
#include "told.h"
#include <pthread.h>
#include <sys/socket.h>

static int fds[3][2];
static volatile int over;

static void *writer(void *arg)
{
	long nth = (long)arg;
	char c[64];
	while (!over) {
		if (write(fds[nth][1], c, sizeof c) < 0 || nth % 2 == 0)
			while (read(fds[nth][0], c, sizeof c) > 0)
				;
	}
	return NULL;
}

static void *changer(void *arg)
{
	long nth = (long)arg;
	int on = 1, off = 0;
	while (!over) {
		int copy = dup(fds[nth][0]);
		ioctl(copy, FIOASYNC, &on);
		fcntl(copy, F_SETOWN, getpid());
		fcntl(copy, F_SETSIG, nth ? told : 0);
		ioctl(fds[nth][0], FIOASYNC, &off);
		close(copy);
		char path[64];
		snprintf(path, sizeof path, "/proc/self/fd/%d", fds[nth][0]);
		int other = open(path, O_RDONLY | O_NONBLOCK);
		if (other >= 0) {
			fcntl(other, F_SETOWN, getpid());
			fcntl(other, F_SETFL, O_ASYNC | O_NONBLOCK);
			close(other);
		}
		siginfo_t info;
		for (int at = 0; at < 50 && told_take(&info, 0) > 0; at++)
			;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[6];
	siginfo_t info;
	char c[64];
	told_begin();
	signal(SIGPIPE, SIG_IGN);
	MUST(pipe2(fds[0], O_NONBLOCK));
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds[1]));
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds[2]));
	for (long at = 0; at < 6; at++)
		pthread_create(&threads[at], NULL, at < 3 ? writer : changer, (void *)(at % 3));
	sleep_ms(1500);
	over = 1;
	for (int at = 0; at < 6; at++)
		pthread_join(threads[at], NULL);
	for (int nth = 0; nth < 3; nth++) {
		asks(fds[nth][0]);
		while (read(fds[nth][0], c, sizeof c) > 0)
			;
		while (told_take(&info, 0) > 0)
			;
		MUST(write(fds[nth][1], c, sizeof c));
		told_within("asked at last", fds[nth][0], 0);
		close(fds[nth][0]);
		close(fds[nth][1]);
	}
	told_within("closed", 0, 0);
	return 0;
}
