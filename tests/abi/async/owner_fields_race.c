/*
 * F_SETSIG and F_SETOWN of two threads at once on one open file: each sets its own part, and none takes back what the other has set.
 */
#include "check.h"
#include <pthread.h>

static int p[2];
static volatile int over;

static void *names(void *arg)
{
	while (!over)
		MUST(fcntl(p[0], F_SETOWN, getpid()));
	return arg;
}

int main(void)
{
	pthread_t thread;
	int lost = 0;
	MUST(pipe(p));
	pthread_create(&thread, NULL, names, NULL);
	for (int at = 0; at < 100000; at++) {
		int wanted = SIGRTMIN + at % 8;
		MUST(fcntl(p[0], F_SETSIG, wanted));
		lost += fcntl(p[0], F_GETSIG) != wanted;
	}
	over = 1;
	pthread_join(thread, NULL);
	SAY("signals that another thread's F_SETOWN took back: %d", lost);
	return 0;
}
