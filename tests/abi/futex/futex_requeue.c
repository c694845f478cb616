/*
 * Waits with a time limit at words whose waiters another thread moves about all the while, and whom nobody
 * ever wakes: each wait ends by its limit, and no waiter stays behind to swallow a wake-up that is meant for
 * another. Then the same with wake-ups: as many waits succeed as wake-ups were counted. On one CPU the two hardly meet.
 */
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>

#define WORDS 16
#define WAITS 12000

/* Far enough from each other to lie in different queues, whatever the hash. */
static int words[WORDS * 1024];
static volatile int stop, wakes;
static long woken;

static long futex(int *p, int op, int val, const void *timeout, int *p2, int val3)
{
	return syscall(SYS_futex, p, op | FUTEX_PRIVATE_FLAG, val, timeout, p2, val3);
}

static int *word(int i)
{
	return &words[i % WORDS * 1024];
}

/* Moves all waiters of each word to another one, up and down. */
static void *moves(void *arg)
{
	unsigned seed = 1;
	while (!stop) {
		seed = seed * 1664525 + 1013904223;
		int from = (int)(seed >> 16), to = (int)(seed >> 24) + 1;
		if (wakes && from % 8 == 0)
			woken += futex(word(from), FUTEX_WAKE, 1, NULL, NULL, 0);
		else if (from % WORDS != to % WORDS)
			futex(word(from), FUTEX_REQUEUE, 0, (void *)100L, word(to), 0);
	}
	return NULL;
}

struct outcome {
	long ended, succeeded, other;
};

static void *waits(void *arg)
{
	struct outcome *o = arg;
	struct timespec limit = { 0, 20000 };
	for (int i = 0; i < WAITS; i++) {
		if (futex(word(i), FUTEX_WAIT, 0, &limit, NULL, 0) == 0)
			o->succeeded++;
		else if (errno == ETIMEDOUT)
			o->ended++;
		else
			o->other++;
	}
	return NULL;
}

static int ghosts(void)
{
	int count = 0;
	for (int i = 0; i < WORDS; i++)
		count += (int)futex(word(i), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return count;
}

static void run(const char *name)
{
	pthread_t mover, waiter[2];
	struct outcome o[2] = { { 0 } };
	stop = 0;
	woken = 0;
	MUST(-pthread_create(&mover, NULL, moves, NULL));
	for (int i = 0; i < 2; i++)
		MUST(-pthread_create(&waiter[i], NULL, waits, &o[i]));
	for (int i = 0; i < 2; i++)
		pthread_join(waiter[i], NULL);
	stop = 1;
	pthread_join(mover, NULL);
	SAY("%s:", name);
	IS(o[0].ended + o[1].ended + o[0].succeeded + o[1].succeeded == 2 * WAITS);
	SAY("waits that ended well without a wake-up: %ld", o[0].succeeded + o[1].succeeded - woken);
	SAY("waiters left behind: %d", ghosts());
}

int main(void)
{
	run("nobody wakes");
	wakes = 1;
	run("some are woken");
	return 0;
}
