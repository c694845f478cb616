/*
 * time_set_races.c: the wall clock is set forth and back while timers for a time of it go off on another CPU: each of them goes off
 * sooner or later. A timer that can be cancelled is by a clock that is set, and not by another count of leap seconds.
 */
#include "check.h"
#include "meet.h"
#include <poll.h>
#include <pthread.h>
#include <sys/timerfd.h>
#include <sys/timex.h>

#define ROUNDS 400
#define TIMERS 48

static struct timespec now;

static void on_cpu(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	alone |= sched_setaffinity(0, sizeof set, &set) != 0;
}

static void set(long sec)
{
	struct timespec t = { now.tv_sec + sec, now.tv_nsec };
	MUST(clock_settime(CLOCK_REALTIME, &t));
}

static void *sets(void *unused)
{
	on_cpu(0);
	for (int round = 1; round <= ROUNDS; round++) {
		meet(0, 2 * round - 1);
		set(200);
		set(0);
		meet(0, 2 * round);
	}
	return unused;
}

static void races(void)
{
	int fds[TIMERS], lost = 0;
	pthread_t other;
	for (int i = 0; i < TIMERS; i++)
		fds[i] = (int)MUST(timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK));
	on_cpu(1);
	MUST(-!!pthread_create(&other, NULL, sets, NULL));
	struct itimerspec at = { { 0, 0 }, { now.tv_sec + 100, 0 } };
	for (int round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < TIMERS; i++)
			MUST(timerfd_settime(fds[i], TFD_TIMER_ABSTIME, &at, NULL));
		meet(1, 2 * round - 1);
		meet(1, 2 * round);
		set(200);
		for (int i = 0; i < TIMERS; i++) {
			struct pollfd p = { fds[i], POLLIN, 0 };
			lost += lost < 3 && poll(&p, 1, 5000) != 1;
		}
		set(0);
	}
	pthread_join(other, NULL);
	SAY("%d timers lost", lost);
	for (int i = 0; i < TIMERS; i++)
		close(fds[i]);
}

static void leap_seconds(void)
{
	struct timex tx = { .modes = 0 };
	uint64_t n;
	int fd = (int)MUST(timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK));
	struct itimerspec at = { { 0, 0 }, { now.tv_sec + 1000, 0 } };
	MUST(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL));
	MUST(adjtimex(&tx));
	int tai = tx.tai;
	tx = (struct timex){ .modes = ADJ_TAI, .constant = tai + 7 };
	MUST(adjtimex(&tx));
	T(read(fd, &n, sizeof n));
	tx = (struct timex){ .modes = ADJ_TAI, .constant = tai };
	MUST(adjtimex(&tx));
	T(read(fd, &n, sizeof n));
	set(5);
	T(read(fd, &n, sizeof n));
	set(0);
	T(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL));
	T(read(fd, &n, sizeof n));
	close(fd);
}

int main(void)
{
	alone = sysconf(_SC_NPROCESSORS_ONLN) < 2;
	MUST(clock_gettime(CLOCK_REALTIME, &now));
	races();
	leap_seconds();
	return 0;
}
