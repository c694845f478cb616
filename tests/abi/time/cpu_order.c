/*
 * cpu_order.c: clocks of CPU time that another thread reads while the measured one is switched to and away from, and while
 * threads end: they never go back, and never run faster than the real time.
 */
#include "check.h"
#include <pthread.h>
#include <sys/resource.h>

#define FOR_MS 700

static volatile int stop;
static int there[2], back[2];

static long now(clockid_t id)
{
	struct timespec t;
	MUST(clock_gettime(id, &t));
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static long used(void)
{
	struct rusage usage;
	MUST(getrusage(RUSAGE_SELF, &usage));
	return ((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
	       * 1000;
}

/* Sleeps and wakes as fast as its partner answers. */
static void *answers(void *arg UNUSED)
{
	char c;
	while (read(there[0], &c, 1) == 1)
		write(back[1], &c, 1);
	return NULL;
}

static void *asks(void *arg UNUSED)
{
	char c = 0;
	while (!stop && write(there[1], &c, 1) == 1)
		read(back[0], &c, 1);
	close(there[1]);
	return NULL;
}

static void *ends(void *arg UNUSED) { return NULL; }

static void *makes(void *arg UNUSED)
{
	pthread_t thread;
	while (!stop) {
		MUST(pthread_create(&thread, NULL, ends, NULL) ? -1 : 0);
		pthread_join(thread, NULL);
	}
	return NULL;
}

/* Reads the clock (0: what getrusage says) for a while: how often it went back, by how much, and whether it ran ahead. */
static void watch(const char *what, clockid_t id, int threads)
{
	long begin = now(CLOCK_MONOTONIC), first = id ? now(id) : used(), last = first, went_back = 0, ahead = 0;
	long real = begin;
	for (long reads = 0; real - begin < FOR_MS * 1000000l; reads++) {
		long got = id ? now(id) : used();
		if (got < last)
			went_back++;
		last = got;
		real = now(CLOCK_MONOTONIC);
		/* microseconds of getrusage are rounded */
		if (got - first > (real - begin) * threads + 2000)
			ahead++;
	}
	printf("%s: goes back: %s, runs ahead: %s, runs: %s\n", what, went_back ? "yes" : "no", ahead ? "yes" : "no",
	       last > first ? "yes" : "no");
	if (went_back || ahead)
		printf("# back %ld times, ahead %ld times\n", went_back, ahead);
}

static void during(void *(*other)(void *), const char *what, clockid_t id)
{
	pthread_t thread;
	stop = 0;
	MUST(pthread_create(&thread, NULL, other, NULL) ? -1 : 0);
	watch(what, id, 3);
	stop = 1;
	pthread_join(thread, NULL);
}

int main(void)
{
	pthread_t thread, partner;
	clockid_t clock;
	MUST(pipe(there));
	MUST(pipe(back));
	MUST(pthread_create(&thread, NULL, answers, NULL) ? -1 : 0);
	MUST(pthread_getcpuclockid(thread, &clock) ? -1 : 0);
	MUST(pthread_create(&partner, NULL, asks, NULL) ? -1 : 0);
	watch("a thread that sleeps and wakes", clock, 1);
	watch("the process meanwhile", CLOCK_PROCESS_CPUTIME_ID, 3);
	stop = 1;
	pthread_join(thread, NULL);
	pthread_join(partner, NULL);
	during(makes, "the process while threads end", CLOCK_PROCESS_CPUTIME_ID);
	during(makes, "its usage while threads end", 0);
	return 0;
}
