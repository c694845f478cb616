/*
 * randomthreads: draws 16 bytes at a time in one thread, then in several at once, and compares the rates; then
 * looks for any eight bytes that were drawn twice.
 *
 * usage: randomthreads THREADS DRAWS. Prints `rate 1 PER_SECOND`, `rate THREADS PER_SECOND`, `scaling RATIO` and
 * `duplicates N of DRAWS`. Two equal values among ten million honest ones have a probability below 1e-5.
 * cflags: -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct share {
	uint64_t *values;
	long draws;
};

static pthread_barrier_t start;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *draw(void *arg)
{
	struct share *share = arg;
	uint64_t two[2];
	pthread_barrier_wait(&start);
	for (long i = 0; i < share->draws; i++) {
		/* The system call, whatever the C library does in user space. */
		if (syscall(SYS_getrandom, two, sizeof two, 0) != sizeof two)
			exit(1);
		share->values[i] = two[0];
	}
	return NULL;
}

/* Draws in `threads` threads: draws a second. */
static double run(int threads, uint64_t *values, long draws)
{
	pthread_t ids[64];
	struct share shares[64];
	pthread_barrier_init(&start, NULL, (unsigned)threads + 1);
	long each = draws / threads;
	for (int i = 0; i < threads; i++) {
		shares[i] = (struct share){ values + i * each, each };
		if (pthread_create(&ids[i], NULL, draw, &shares[i]) != 0)
			exit(1);
	}
	pthread_barrier_wait(&start);
	double from = now();
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return (double)(each * threads) / (now() - from);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	long draws = argc > 2 ? atol(argv[2]) : 1000000;
	if (threads < 1 || threads > 64 || draws < threads)
		return 2;
	draws -= draws % threads;
	uint64_t *values = calloc((size_t)draws, sizeof *values);
	if (!values)
		return 1;
	double one = run(1, values, draws / 4 + 1), all = run(threads, values, draws);
	printf("rate 1 %.0f\nrate %d %.0f\nscaling %.2f\n", one, threads, all, all / one);
	qsort(values, (size_t)draws, sizeof *values, by_value);
	long duplicates = 0;
	for (long i = 1; i < draws; i++)
		duplicates += values[i] == values[i - 1];
	printf("duplicates %ld of %ld\n", duplicates, draws);
	return duplicates != 0;
}
