/*
 * time_cpu.c: clocks of CPU time: their names, who may read which, timers on them, and sleeping on them while another
 * thread works.
 */
#include "check.h"
#include <pthread.h>

/* Clock ids as the kernel makes them: 0 user and system by tick, 1 user by tick, 2 exact, 3 no CPU clock. */
#define OF_PROCESS(pid, which) ((clockid_t)(~(unsigned)(pid) << 3 | (which)))
#define OF_THREAD(tid, which) (OF_PROCESS(tid, which) | 4)

static volatile int fired, stop;
static volatile long fired_in;

static int gettime(clockid_t id, struct timespec *t) { return (int)syscall(SYS_clock_gettime, id, t); }
static int getres(clockid_t id, struct timespec *t) { return (int)syscall(SYS_clock_getres, id, t); }
static int settime(clockid_t id, struct timespec *t) { return (int)syscall(SYS_clock_settime, id, t); }
static int nap(clockid_t id, int flags, const struct timespec *t, struct timespec *left)
{
	return (int)syscall(SYS_clock_nanosleep, id, flags, t, left);
}

static long nanos(struct timespec t) { return t.tv_sec * 1000000000 + t.tv_nsec; }

static long cpu(clockid_t id)
{
	struct timespec t = { -1, 0 };
	gettime(id, &t);
	return nanos(t);
}

static void on_timer(int sig UNUSED)
{
	fired++;
	fired_in = syscall(SYS_gettid);
}

static void *work(void *arg UNUSED)
{
	while (!stop)
		;
	return NULL;
}

static void names(void)
{
	struct timespec t;
	pid_t me = getpid(), child = fork();
	if (child == 0)
		for (;;)
			pause();
	for (int which = 0; which < 4; which++) {
		SAY("time %d", which);
		T(gettime(OF_PROCESS(0, which), &t));
		T(gettime(OF_THREAD(0, which), &t));
		T(gettime(OF_PROCESS(me, which), &t));
		T(gettime(OF_THREAD(me, which), &t));
		T(gettime(OF_PROCESS(child, which), &t));
		T(gettime(OF_THREAD(child, which), &t));
		T(gettime(OF_PROCESS(1 << 25, which), &t));
		T(settime(OF_PROCESS(0, which), &t));
		if (getres(OF_PROCESS(0, which), &t) == 0)
			SAY("step %ld", nanos(t));
	}
	T(settime(CLOCK_PROCESS_CPUTIME_ID, &t));
	T(settime(CLOCK_THREAD_CPUTIME_ID, &t));
	kill(child, SIGKILL);
	reap(child);
	T(gettime(OF_PROCESS(child, 2), &t));
	T(gettime(OF_PROCESS(0, 2), NON_CANONICAL));
	IS(cpu(CLOCK_PROCESS_CPUTIME_ID) <= cpu(OF_PROCESS(0, 2)));
	IS(cpu(CLOCK_THREAD_CPUTIME_ID) <= cpu(OF_THREAD(0, 2)));
}

/* Works until the signal has come `times` times; yields what it took in CPU time. */
static long work_until(int times)
{
	long from = cpu(CLOCK_PROCESS_CPUTIME_ID);
	while (fired < times)
		;
	return cpu(CLOCK_PROCESS_CPUTIME_ID) - from;
}

static void timers(void)
{
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec set = { { 0, 0 }, { 0, 30000000 } }, now;
	clockid_t clocks[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, OF_PROCESS(getpid(), 0), OF_THREAD(0, 1) };
	for (int i = 0; i < 4; i++) {
		fired = 0;
		SAY("clock %d", i);
		T(timer_create(clocks[i], &event, &timer));
		T(timer_settime(timer, 0, &set, NULL));
		T(timer_gettime(timer, &now));
		IS(now.it_value.tv_nsec > 0 && now.it_value.tv_nsec <= 40000000);
		IS(work_until(1) > 15000000);
		T(timer_gettime(timer, &now));
		SAY("left %ld", nanos(now.it_value));
		T(timer_delete(timer));
	}
	/* What is not used does not count. */
	fired = 0;
	MUST(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer));
	MUST(timer_settime(timer, 0, &set, NULL));
	struct timespec tick = { 0, 100000000 };
	T(nanosleep(&tick, NULL));
	SAY("fired %d", fired);
	/* Again and again; a time that is over. */
	set.it_interval.tv_nsec = 10000000;
	MUST(timer_settime(timer, 0, &set, NULL));
	IS(work_until(4) > 30000000);
	set.it_interval.tv_nsec = 0;
	set.it_value.tv_nsec = 1;
	fired = 0;
	MUST(timer_settime(timer, TIMER_ABSTIME, &set, NULL));
	IS(work_until(1) < 1000000000);
	SAY("fired %d", fired);
	T(timer_delete(timer));
	/* To one thread. */
	event.sigev_notify = SIGEV_THREAD_ID;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	set.it_value.tv_nsec = 20000000;
	fired = 0;
	T(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer));
	T(timer_settime(timer, 0, &set, NULL));
	work_until(1);
	IS(fired_in == syscall(SYS_gettid));
	T(timer_create(CLOCK_MONOTONIC_RAW, &event, &timer));
	T(timer_create(OF_PROCESS(1 << 25, 2), &event, &timer));
	T(timer_create(OF_PROCESS(0, 3), &event, &timer));
}

static void sleeping(void)
{
	struct timespec short_time = { 0, 40000000 }, left = { 7, 7 }, at;
	T(nap(CLOCK_THREAD_CPUTIME_ID, 0, &short_time, NULL));
	T(nap(OF_THREAD(0, 2), 0, &short_time, NULL));
	T(nap(OF_THREAD(getpid(), 2), 0, &short_time, NULL));
	T(nap(OF_PROCESS(1 << 25, 2), 0, &short_time, NULL));
	T(nap(CLOCK_PROCESS_CPUTIME_ID, 0, &(struct timespec){ 0, -1 }, NULL));
	T(nap(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &(struct timespec){ 0, 1 }, NULL));
	pthread_t worker;
	pthread_create(&worker, NULL, work, NULL);
	long from = cpu(CLOCK_PROCESS_CPUTIME_ID);
	T(nap(CLOCK_PROCESS_CPUTIME_ID, 0, &short_time, &left));
	IS(cpu(CLOCK_PROCESS_CPUTIME_ID) - from >= 40000000);
	gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	at.tv_sec++;
	T(nap(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &at, NULL));
	IS(cpu(CLOCK_PROCESS_CPUTIME_ID) >= nanos(at));
	stop = 1;
	pthread_join(worker, NULL);
	/* A signal ends it; nothing runs meanwhile. */
	struct sigaction act = { .sa_handler = on_timer };
	sigaction(SIGALRM, &act, NULL);
	alarm(1);
	short_time.tv_sec = 100;
	T(nap(CLOCK_PROCESS_CPUTIME_ID, 0, &short_time, &left));
	IS(left.tv_sec >= 90 && left.tv_sec <= 100);
	alarm(1);
	at.tv_sec += 100;
	T(nap(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &at, &left));
}

int main(void)
{
	struct sigaction act = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
	sigaction(SIGUSR1, &act, NULL);
	names();
	timers();
	sleeping();
	return 0;
}
