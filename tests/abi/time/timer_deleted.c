/*
 * timer_deleted.c: a timer is set by one thread while another deletes it: whoever comes second, nothing of it is left.
 */
#include "check.h"
#include "meet.h"
#include <pthread.h>

#define ROUNDS 6000

static int id;

static long queued(void)
{
	const char *at = strstr(read_file("/proc/self/status"), "SigQ:");
	return at ? strtol(at + 5, NULL, 10) : -1;
}

static int make(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	return (int)syscall(SYS_timer_create, CLOCK_REALTIME, &event, &id);
}

static void *deletes(void *unused)
{
	for (int round = 1; round <= ROUNDS; round++) {
		meet(0, 2 * round - 1);
		for (volatile int i = 0; i < round % 64 * 4; i++)
			;
		syscall(SYS_timer_delete, id);
		meet(0, 2 * round);
	}
	return unused;
}

int main(void)
{
	pthread_t other;
	struct itimerspec at = { { 0, 0 }, { 1L << 33, 0 } };
	int wrong = 0, failed = 0;
	alone = sysconf(_SC_NPROCESSORS_ONLN) < 2;
	signal(SIGRTMIN, SIG_IGN);
	long before = queued();
	MUST(-!!pthread_create(&other, NULL, deletes, NULL));
	for (int round = 1; round <= ROUNDS; round++) {
		failed += make() != 0;
		meet(1, 2 * round - 1);
		for (volatile int i = 0; i < (round / 64) % 64 * 4; i++)
			;
		long r = syscall(SYS_timer_settime, id, TIMER_ABSTIME, &at, NULL);
		wrong += r != 0 && errno != EINVAL;
		meet(1, 2 * round);
	}
	pthread_join(other, NULL);
	SAY("%d failed, %d wrong", failed, wrong);
	SAY("%ld are left", queued() - before);
	return 0;
}
