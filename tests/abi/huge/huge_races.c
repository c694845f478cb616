/*
 * Huge pages while other threads write to them: none of their writes is lost when a page is opened, collapsed, forked or dropped
 * elsewhere, and none is seen by a child that was forked before.
 */
#include "huge.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { WRITERS = 3, ROUNDS = 40 };

static char *at;
static atomic_int stop;
static long lost[WRITERS];

/* Counts each of its pages up, and looks whether anybody else has written there. */
static void *writer(void *arg)
{
	long me = (long)arg, value = 0;
	while (!atomic_load(&stop)) {
		for (int i = (int)me; i < PAGES; i += WRITERS + 1) {
			volatile long *word = (volatile long *)(at + i * PAGE) + me;
			lost[me] += *word != value;
			*word = value + 1;
		}
		value++;
		sched_yield();
	}
	return NULL;
}

/* The last pages are nobody's but the main thread's. */
static void disturb(int round)
{
	char *mine = at + (PAGES - 1) * PAGE;
	switch (round % 5) {
	case 0:
		MUST(mprotect(mine, PAGE, PROT_READ));
		MUST(mprotect(mine, PAGE, RW));
		break;
	case 1:
		MUST(madvise(mine, PAGE, MADV_DONTNEED));
		break;
	case 2:
	case 3: {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			/* Whatever it sees stays so. */
			long before = 0, after = 0;
			for (int i = 0; i < PAGES; i++)
				before += ((volatile long *)(at + i * PAGE))[i % (WRITERS + 1) % WRITERS];
			usleep(1000);
			for (int i = 0; i < PAGES; i++)
				after += ((volatile long *)(at + i * PAGE))[i % (WRITERS + 1) % WRITERS];
			at[0]++;
			_exit(before != after);
		}
		int how;
		MUST(waitpid(pid, &how, 0));
		if (how != 0)
			printf("a child saw what was written after the fork\n");
		break;
	}
	case 4:
		usleep(500);
		break;
	}
	madvise(at, HUGE, MADV_COLLAPSE);
}

int main(void)
{
	pthread_t threads[WRITERS];
	enabled("always");
	at = aligned(1, RW);
	for (long i = 0; i < WRITERS; i++)
		MUST(pthread_create(&threads[i], NULL, writer, (void *)i));
	for (int round = 0; round < ROUNDS; round++)
		disturb(round);
	atomic_store(&stop, 1);
	for (int i = 0; i < WRITERS; i++)
		MUST(pthread_join(threads[i], NULL));
	for (int i = 0; i < WRITERS; i++)
		printf("writer %d: %ld lost\n", i, lost[i]);
	IS(huge(at) == 2048 || huge(at) == 0);
	return 0;
}
