/*
 * timer_edges.c: timers at their ends: numbers that are given again, times as large as numbers get, overruns beyond an int, clocks of
 * CPU time of others who end, threads that end before their timers, RLIMIT_CPU beside timers, exec with timers that are armed.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timerfd.h>

#define OF_PROCESS(pid, which) (~(clockid_t)(pid) * 8 + (which))
#define OF_THREAD(tid, which) (~(clockid_t)(tid) * 8 + 4 + (which))

static int create(clockid_t clock, struct sigevent *event, int *id)
{
	return (int)syscall(SYS_timer_create, clock, event, id);
}

static int settime(int id, int flags, long sec, long nsec, long every, long every_ns, struct itimerspec *old)
{
	struct itimerspec t = { { every, every_ns }, { sec, nsec } };
	return (int)syscall(SYS_timer_settime, id, flags, &t, old);
}

static int gettime(int id, struct itimerspec *t)
{
	return (int)syscall(SYS_timer_gettime, id, t);
}

static int overrun(int id)
{
	return (int)syscall(SYS_timer_getoverrun, id);
}

static int drop(int id)
{
	return (int)syscall(SYS_timer_delete, id);
}

static struct sigevent none = { .sigev_notify = SIGEV_NONE }, usr1 = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };

static void numbers(void)
{
	SAY("-- numbers");
	int first, second, third;
	MUST(create(CLOCK_MONOTONIC, &none, &first));
	MUST(create(CLOCK_MONOTONIC, &none, &second));
	SAY("%d", second - first);
	MUST(drop(first));
	MUST(create(CLOCK_MONOTONIC, &none, &third));
	SAY("%d", third - first);
	MUST(drop(second));
	MUST(drop(third));
	T(drop(third));
	MUST(create(CLOCK_MONOTONIC, &none, &second));
	SAY("%d", second - first);
	MUST(drop(second));
	T(create(CLOCK_MONOTONIC, &none, NULL));
	MUST(create(CLOCK_MONOTONIC, &none, &third));
	SAY("%d", third - first);
	MUST(drop(third));
	CHILD("a child's numbers") {
		int own;
		MUST(create(CLOCK_MONOTONIC, &none, &own));
		SAY("%d", own);
		fflush(stdout);
	} END;
}

static void large(clockid_t clock, const char *name)
{
	struct itimerspec t;
	int id;
	SAY("-- large, %s", name);
	MUST(create(clock, &none, &id));
	static const long secs[] = { LONG_MAX, LONG_MAX / 1000000000, LONG_MAX / 1000000000 - 1, LONG_MAX / 1000000000 + 1, 1L << 33 };
	for (int n = 0; n < 5; n++)
		for (int absolute = 0; absolute < 2; absolute++) {
			T(settime(id, absolute ? TIMER_ABSTIME : 0, secs[n], 999999999, secs[n], 999999999, NULL));
			MUST(gettime(id, &t));
			SAY("about %ld, every %ld.%09ld", t.it_value.tv_sec / 10000000, t.it_interval.tv_sec, t.it_interval.tv_nsec);
		}
	T(settime(id, 0, -1, 0, 0, 0, NULL));
	T(settime(id, 0, 0, 0, -1, 0, NULL));
	T(settime(id, 0, 0, 0, 0, 1000000000, NULL));
	T(settime(id, 0, 0, 0, 5, 0, &t));
	MUST(gettime(id, &t));
	SAY("off: every %ld", t.it_interval.tv_sec);
	T(settime(id, 0, 5000, 0, 7, 0, NULL));
	T(settime(id, 6, 5000, 0, 7, 0, &t));
	SAY("flags: %ld, every %ld", (t.it_value.tv_sec + 100) / 1000, t.it_interval.tv_sec);
	MUST(drop(id));
}

static void overruns(clockid_t clock, const char *name)
{
	sigset_t set;
	siginfo_t info;
	int id;
	SAY("-- overruns, %s", name);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	MUST(create(clock, &usr1, &id));
	T(settime(id, TIMER_ABSTIME, 0, 1, 0, 1, NULL));
	IS(sigwaitinfo(&set, &info) == SIGUSR1);
	SAY("%d, sum %d", info.si_code == SI_TIMER, info.si_overrun);
	SAY("%d", overrun(id));
	T(settime(id, 0, 0, 0, 0, 0, NULL));
	sigtimedwait(&set, &info, &(struct timespec){ 0, 0 });
	SAY("%d", overrun(id));
	T(settime(id, TIMER_ABSTIME, 0, 1, 0, 0, NULL));
	IS(sigwaitinfo(&set, &info) == SIGUSR1);
	SAY("once: %d, %d", info.si_overrun, overrun(id));
	/* Long past and longer than the time that there has been: no overrun. */
	T(settime(id, TIMER_ABSTIME, 0, 1, 1L << 33, 0, NULL));
	IS(sigwaitinfo(&set, &info) == SIGUSR1);
	SAY("seldom: %d, %d", info.si_overrun, overrun(id));
	T(settime(id, TIMER_ABSTIME, 1, 0, 1L << 30, 0, NULL));
	IS(sigwaitinfo(&set, &info) == SIGUSR1);
	SAY("since 1970: %d, %d", info.si_overrun, overrun(id));
	MUST(drop(id));
	/* Deleted with its signal queued. */
	MUST(create(clock, &usr1, &id));
	T(settime(id, TIMER_ABSTIME, 0, 1, 0, 0, NULL));
	sleep_ms(20);
	MUST(drop(id));
	IS(sigtimedwait(&set, &info, &(struct timespec){ 0, 0 }) == SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* A descriptor of a timer that was due long ago. */
static void descriptor(void)
{
	struct itimerspec t = { { 1L << 30, 0 }, { 1, 0 } };
	uint64_t count = 0;
	SAY("-- a descriptor");
	int fd = (int)MUST(timerfd_create(CLOCK_REALTIME, 0));
	T(timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL));
	T(read(fd, &count, sizeof count));
	SAY("%d", (int)count);
	MUST(timerfd_gettime(fd, &t));
	IS(t.it_value.tv_sec > 0 && t.it_value.tv_sec < 1L << 30);
	t = (struct itimerspec){ { 0, 1 }, { 0, 1 } };
	T(timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL));
	T(read(fd, &count, sizeof count));
	IS(count > 1000000000UL * 1000000000);
	t = (struct itimerspec){ { LONG_MAX, 0 }, { LONG_MAX, 999999999 } };
	T(timerfd_settime(fd, 0, &t, NULL));
	MUST(timerfd_gettime(fd, &t));
	SAY("about %ld, every %ld.%09ld", t.it_value.tv_sec / 10000000, t.it_interval.tv_sec, t.it_interval.tv_nsec);
	close(fd);
}

static volatile int stop;

static void *spins(void *tid)
{
	*(volatile int *)tid = (int)syscall(SYS_gettid);
	while (!stop)
		;
	return NULL;
}

static void others(void)
{
	struct itimerspec t;
	struct timespec now;
	int id, id2, status;
	SAY("-- others who end");
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		for (;;)
			;
	T(create(OF_PROCESS(pid, 2), &usr1, &id));
	T(create(OF_PROCESS(pid, 2), &none, &id2));
	T(settime(id, 0, 1000, 0, 1000, 0, NULL));
	T(settime(id2, 0, 1000, 0, 1000, 0, NULL));
	kill(pid, SIGKILL);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	T(syscall(SYS_clock_gettime, OF_PROCESS(pid, 2), &now));
	T(gettime(id2, &t));
	SAY("of a zombie: %ld, every %ld", (t.it_value.tv_sec + 50) / 100, t.it_interval.tv_sec);
	T(create(OF_PROCESS(pid, 2), &none, &status));
	status = reap(pid);
	T(syscall(SYS_clock_gettime, OF_PROCESS(pid, 2), &now));
	T(gettime(id2, &t));
	SAY("of nobody: %ld.%ld, every %ld", t.it_value.tv_sec, t.it_value.tv_nsec, t.it_interval.tv_sec);
	T(gettime(id, &t));
	SAY("of nobody: %ld.%ld, every %ld", t.it_value.tv_sec, t.it_value.tv_nsec, t.it_interval.tv_sec);
	T(settime(id, 0, 1, 0, 0, 0, &t));
	T(settime(id2, 0, 0, 0, 0, 0, &t));
	T(create(OF_PROCESS(pid, 2), &none, &status));
	T(syscall(SYS_clock_nanosleep, OF_PROCESS(pid, 2), 0, &(struct timespec){ 0, 1000 }, NULL));
	T(overrun(id));
	T(drop(id));
	T(drop(id2));

	pthread_t thread;
	static volatile int tid;
	MUST(pthread_create(&thread, NULL, spins, (void *)&tid));
	while (!tid)
		sched_yield();
	T(create(OF_THREAD(tid, 2), &none, &id));
	T(settime(id, 0, 1000, 0, 1000, 0, NULL));
	T(syscall(SYS_clock_nanosleep, OF_THREAD(tid, 2), 0, &(struct timespec){ 0, 1000000 }, NULL));
	stop = 1;
	pthread_join(thread, NULL);
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		sched_yield();
	T(gettime(id, &t));
	SAY("of a thread that ended: %ld.%ld, every %ld", t.it_value.tv_sec, t.it_value.tv_nsec, t.it_interval.tv_sec);
	T(settime(id, 0, 1, 0, 0, 0, NULL));
	T(syscall(SYS_clock_nanosleep, OF_THREAD(tid, 2), 0, &(struct timespec){ 0, 1000000 }, NULL));
	T(drop(id));
	stop = 0;
}

/* Who sleeps on the clock of a process that is killed meanwhile. */
static void sleeping(void)
{
	SAY("-- asleep on the clock of who dies");
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		pause();
		_exit(0);
	}
	CHILD("asleep") {
		pid_t killer = fork();
		if (killer == 0) {
			wait_state(getppid(), "S");
			kill(pid, SIGKILL);
			_exit(0);
		}
		alarm(2);
		T(syscall(SYS_clock_nanosleep, OF_PROCESS(pid, 2), 0, &(struct timespec){ 1000, 0 }, NULL));
		fflush(stdout);
	} END;
	reap(pid);
}

static void *short_life(void *id)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2 };
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	MUST(create(CLOCK_MONOTONIC, &event, id));
	MUST(settime(*(int *)id, 0, 0, 1000000, 0, 1000000, NULL));
	return NULL;
}

static void threads(void)
{
	SAY("-- a thread that ends before its timer");
	pthread_t thread;
	struct itimerspec t;
	int id;
	signal(SIGUSR2, SIG_IGN);
	MUST(pthread_create(&thread, NULL, short_life, &id));
	pthread_join(thread, NULL);
	sleep_ms(30);
	MUST(gettime(id, &t));
	SAY("every %ld", t.it_interval.tv_nsec);
	T(drop(id));
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2 };
	event._sigev_un._tid = 1;
	T(create(CLOCK_MONOTONIC, &event, &id));
	event._sigev_un._tid = 0;
	T(create(CLOCK_MONOTONIC, &event, &id));
	event._sigev_un._tid = -1;
	T(create(CLOCK_MONOTONIC, &event, &id));
	event._sigev_un._tid = getpid();
	event.sigev_signo = 65;
	T(create(CLOCK_MONOTONIC, &event, &id));
	event.sigev_signo = 0;
	T(create(CLOCK_MONOTONIC, &event, &id));
	event.sigev_notify = 3;
	event.sigev_signo = SIGUSR1;
	T(create(CLOCK_MONOTONIC, &event, &id));
	event.sigev_notify = SIGEV_THREAD_ID | SIGEV_NONE;
	T(create(CLOCK_MONOTONIC, &event, &id));
	event.sigev_notify = SIGEV_THREAD;
	T(create(CLOCK_MONOTONIC, &event, &id));
	if (id >= 0)
		drop(id);
}

static volatile int xcpu, prof, virt;

static void counts(int sig)
{
	if (sig == SIGXCPU)
		xcpu++;
	if (sig == SIGPROF)
		prof++;
	if (sig == SIGVTALRM)
		virt++;
}

static void limits(void)
{
	SAY("-- RLIMIT_CPU beside timers");
	CHILD("all of them") {
		struct rlimit limit = { 1, 2 };
		struct itimerval every = { { 0, 10000 }, { 0, 10000 } };
		signal(SIGXCPU, counts);
		signal(SIGPROF, counts);
		signal(SIGVTALRM, counts);
		MUST(setitimer(ITIMER_PROF, &every, NULL));
		MUST(setitimer(ITIMER_VIRTUAL, &every, NULL));
		MUST(setrlimit(RLIMIT_CPU, &limit));
		while (!xcpu)
			;
		getrlimit(RLIMIT_CPU, &limit);
		SAY("XCPU, soft %ld hard %ld", (long)limit.rlim_cur, (long)limit.rlim_max);
		IS(prof > 10 && virt > 10);
		fflush(stdout);
		for (;;)
			;
	} END;
	CHILD("a limit that is past") {
		struct rlimit limit = { 0, 100 };
		signal(SIGXCPU, counts);
		MUST(setrlimit(RLIMIT_CPU, &limit));
		getrlimit(RLIMIT_CPU, &limit);
		IS(limit.rlim_cur <= 1);
		struct timespec from;
		clock_gettime(CLOCK_MONOTONIC, &from);
		while (!xcpu && elapsed_ms(&from) < 10000)
			;
		IS(xcpu == 1);
		fflush(stdout);
	} END;
}

static void bad(void)
{
	struct itimerval t;
	SAY("-- setitimer");
	struct itimerval tv[] = { { { 0, 0 }, { 0, 1000000 } }, { { 0, -1 }, { 0, 0 } }, { { 0, 0 }, { -1, 0 } }, { { 0, 1000000 }, { 0, 0 } },
				  { { LONG_MAX, 999999 }, { LONG_MAX, 999999 } }, { { 0, 0 }, { 0, 0 } } };
	for (int which = 0; which < 3; which++)
		for (unsigned n = 0; n < sizeof tv / sizeof *tv; n++) {
			/* What is left of one of CPU time is less than nothing on Linux. */
			if (which != ITIMER_REAL && tv[n].it_value.tv_sec == LONG_MAX)
				continue;
			T(setitimer(which, &tv[n], &t));
			MUST(getitimer(which, &t));
			SAY("about %ld, every %ld.%06ld", t.it_value.tv_sec / 10000000, t.it_interval.tv_sec, t.it_interval.tv_usec);
		}
	T(setitimer(3, &tv[0], NULL));
	T(getitimer(ITIMER_REAL, NULL));
	T(syscall(SYS_setitimer, ITIMER_REAL, NULL, &t));
}

static void *executes(void *arg)
{
	char *const args[] = { "/proc/self/exe", "over", NULL };
	int id;
	(void)arg;
	MUST(create(CLOCK_THREAD_CPUTIME_ID, &usr1, &id));
	MUST(settime(id, 0, 0, 1000, 0, 1000, NULL));
	execv(args[0], args);
	return NULL;
}

static void over_exec(void)
{
	SAY("-- exec");
	CHILD("with timers") {
		pthread_t thread;
		int id;
		signal(SIGUSR1, SIG_IGN);
		struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
		signal(SIGALRM, SIG_IGN);
		MUST(setitimer(ITIMER_REAL, &every, NULL));
		MUST(create(CLOCK_PROCESS_CPUTIME_ID, &usr1, &id));
		MUST(settime(id, 0, 0, 1000, 0, 1000, NULL));
		for (int n = 0; n < 100; n++)
			MUST(create(CLOCK_MONOTONIC, &usr1, &id)), MUST(settime(id, 0, 0, 1, 0, 1, NULL));
		MUST(pthread_create(&thread, NULL, executes, NULL));
		for (;;)
			;
	} END;
}

static int after_exec(void)
{
	struct itimerval t;
	int id = -1;
	T(drop(0));
	T(overrun(1));
	getitimer(ITIMER_REAL, &t);
	SAY("every %ld", t.it_interval.tv_usec);
	MUST(create(CLOCK_MONOTONIC, &none, &id));
	SAY("the next number: %d", id);
	return 0;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return after_exec();
	numbers();
	large(CLOCK_MONOTONIC, "monotonic");
	large(CLOCK_PROCESS_CPUTIME_ID, "CPU time");
	overruns(CLOCK_REALTIME, "real time");
	descriptor();
	others();
	sleeping();
	threads();
	bad();
	limits();
	over_exec();
	return 0;
}
