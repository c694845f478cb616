/*
 * duplicates: eight threads draw ten million times between them; no two draws may be equal.
 *
 * The first eight of each draw's bytes are kept in a table. Ten million perfect draws have two equal ones
 * with a probability of 3 in a million. Prints one line and powers off.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 8
#define DRAWS 1250000
#define SLOTS (1u << 24)

static uint64_t drawn[THREADS][DRAWS];
static long failures[THREADS];

static void *draw(void *arg)
{
	long me = (long)arg;
	uint64_t pair[2];
	for (long i = 0; i < DRAWS; i++) {
		failures[me] += syscall(SYS_getrandom, pair, sizeof pair, 0) != sizeof pair;
		drawn[me][i] = pair[0];
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	uint64_t *table = mmap(NULL, SLOTS * sizeof *table, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long equal = 0, failed = 0;
	for (long i = 0; i < THREADS; i++)
		if (table == MAP_FAILED || pthread_create(&threads[i], NULL, draw, (void *)i) != 0)
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int t = 0; t < THREADS; t++) {
		failed += failures[t];
		for (long i = 0; i < DRAWS; i++) {
			uint64_t word = drawn[t][i];
			uint32_t at = word % SLOTS;
			while (table[at] != 0 && table[at] != word)
				at = (at + 1) % SLOTS;
			equal += table[at] == word;
			table[at] = word;
		}
	}
	printf("duplicates: %d draws, %ld equal, %ld failed\n", THREADS * DRAWS, equal, failed);
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
