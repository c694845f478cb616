/*
 * RLIMIT_SIGPENDING: it bounds what is queued for all processes of a user, whoever sends. kill never fails: beyond the
 * limit its details are lost, and of a real-time signal that is pending already the signal itself. sigqueue and tgkill
 * of real-time signals fail with EAGAIN. What was queued counts for the receiver's user of that time until it is taken,
 * forgotten, or the receiver reaped. POSIX timers count too, and have one signal queued each at most.
 */
#include "check.h"
#include <sys/resource.h>

static sigset_t rt, usr;

static void limit(rlim_t most)
{
	struct rlimit rl = { most, most };
	MUST(setrlimit(RLIMIT_SIGPENDING, &rl));
}

/* Takes all of a set; returns how many, and leaves the last one's details. */
static siginfo_t last;
static long drain(const sigset_t *set)
{
	static const struct timespec now;
	long n = 0;
	memset(&last, 0x55, sizeof last);
	while (sigtimedwait(set, &last, &now) > 0)
		n++;
	return n;
}

/* How many signals the user of a process has queued, as /proc tells. */
static long queued(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	const char *at = strstr(read_file(path), "SigQ:\t");
	return at ? atol(at + 6) : -1;
}

static int is_pending(int sig)
{
	sigset_t set;
	sigpending(&set);
	return sigismember(&set, sig);
}

static int queue_to(pid_t pid, int sig, int value)
{
	return sigqueue(pid, sig, (union sigval) { .sival_int = value });
}

/* A process of a user that sleeps with the signals blocked until it is killed. */
static pid_t sleeper(uid_t uid, rlim_t most)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		limit(most);
		MUST(setresuid(uid, uid, uid));
		for (;;)
			pause();
	}
	MUST(wait_state(pid, "S") ? 0 : -1);
	return pid;
}

static void one_process(void)
{
	MUST(setresuid(3000, 3000, 3000));
	limit(10);
	int failed = 0;
	for (int i = 0; i < 1000; i++)
		failed += kill(getpid(), SIGRTMIN + 1) != 0;
	SAY("kill: %d of 1000 failed", failed);
	T(queued(getpid()));
	T(queue_to(getpid(), SIGRTMIN + 1, 1));
	T(queue_to(getpid(), SIGRTMIN + 2, 1));
	T(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGRTMIN + 2));
	T(is_pending(SIGRTMIN + 2));
	SAY("another signal by kill, though ten are queued");
	T(kill(getpid(), SIGRTMIN + 3));
	T(is_pending(SIGRTMIN + 3));
	SAY("standard signals come through");
	T(queue_to(getpid(), SIGUSR1, 7));
	T(kill(getpid(), SIGUSR2));
	T(is_pending(SIGUSR1));
	T(drain(&rt));
	SAY("the last: signal %d code %d, sender told %d", last.si_signo - SIGRTMIN, last.si_code, last.si_pid != 0);
	T(sigtimedwait(&usr, &last, &(struct timespec) { 0 }) - SIGUSR1);
	SAY("sigqueue's: code %d value %d, sender told %d", last.si_code, last.si_value.sival_int, last.si_pid != 0);
	T(sigtimedwait(&usr, &last, &(struct timespec) { 0 }) - SIGUSR2);
	SAY("kill's: code %d, sender told %d", last.si_code, last.si_pid != 0);
	T(queued(getpid()));
	SAY("room again");
	T(queue_to(getpid(), SIGRTMIN + 1, 1));
	T(queued(getpid()));
	signal(SIGRTMIN + 1, SIG_IGN);
	T(queued(getpid()));
}

static void none_at_all(void)
{
	MUST(setresuid(3001, 3001, 3001));
	limit(0);
	T(kill(getpid(), SIGRTMIN));
	T(kill(getpid(), SIGRTMIN));
	T(queue_to(getpid(), SIGRTMIN, 1));
	T(drain(&rt));
	SAY("code %d pid %d uid %d", last.si_code, last.si_pid, last.si_uid);
	T(drain(&rt));
	T(kill(getpid(), SIGUSR1));
	T(drain(&usr));
	SAY("sender told %d", last.si_pid == getpid());
	timer_t timer;
	T(timer_create(CLOCK_MONOTONIC, NULL, &timer));
}

static void two_processes(void)
{
	pid_t a = sleeper(3002, 10), b = sleeper(3002, 10), c = sleeper(3003, 10), d = sleeper(3002, 20);
	int got[4] = { 0 };
	for (int i = 0; i < 6; i++)
		got[0] += queue_to(a, SIGRTMIN, i) == 0;
	for (int i = 0; i < 6; i++)
		got[1] += queue_to(b, SIGRTMIN, i) == 0;
	for (int i = 0; i < 12; i++)
		got[2] += queue_to(c, SIGRTMIN, i) == 0;
	for (int i = 0; i < 12; i++)
		got[3] += queue_to(d, SIGRTMIN, i) == 0;
	SAY("one user, limit 10: %d and %d; another user: %d; the first with limit 20: %d", got[0], got[1], got[2], got[3]);
	SAY("counted: %ld %ld %ld %ld", queued(a), queued(b), queued(c), queued(d));
	kill(a, SIGKILL);
	reap(a);
	SAY("one killed: %ld %ld", queued(b), queued(c));
	kill(b, SIGKILL);
	kill(d, SIGKILL);
	reap(b);
	reap(d);
	pid_t e = sleeper(3002, 10);
	SAY("all killed: %ld", queued(e));
	kill(c, SIGKILL);
	kill(e, SIGKILL);
	reap(c);
	reap(e);
}

static void change_of_user(void)
{
	pid_t other = sleeper(3004, 10);
	limit(10);
	MUST(setresuid(3004, 0, 0));
	for (int i = 0; i < 5; i++)
		queue_to(getpid(), SIGRTMIN, i);
	SAY("before: own %ld, other %ld", queued(getpid()), queued(other));
	MUST(setresuid(3005, 0, 0));
	SAY("as another user: own %ld, other %ld", queued(getpid()), queued(other));
	T(drain(&rt));
	SAY("taken: own %ld, other %ld", queued(getpid()), queued(other));
	kill(other, SIGKILL);
	reap(other);
}

static void timers(void)
{
	MUST(setresuid(3006, 3006, 3006));
	limit(4);
	timer_t timer[5];
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	for (int i = 0; i < 5; i++)
		T(timer_create(CLOCK_MONOTONIC, &event, &timer[i]));
	T(queued(getpid()));
	T(queue_to(getpid(), SIGRTMIN + 1, 0));
	/* Its own room: the signal comes though the limit is reached, and once only, however often it is set. */
	struct itimerspec soon = { .it_value.tv_nsec = 1 }, left;
	for (int i = 0; i < 20; i++) {
		MUST(timer_settime(timer[0], 0, &soon, NULL));
		do {
			MUST(timer_gettime(timer[0], &left));
		} while (left.it_value.tv_nsec > 1);
		while (!is_pending(SIGRTMIN))
			;
		sleep_ms(1);
	}
	T(queued(getpid()));
	T(drain(&rt));
	SAY("code %d, of the first timer %d", last.si_code, last.si_signo == SIGRTMIN);
	/* Set anew while its signal waits, a periodic one goes on afterwards. */
	MUST(timer_settime(timer[0], 0, &soon, NULL));
	while (!is_pending(SIGRTMIN))
		;
	soon.it_interval.tv_nsec = 1000000;
	MUST(timer_settime(timer[0], 0, &soon, NULL));
	sleep_ms(20);
	T(sigwaitinfo(&rt, NULL) - SIGRTMIN);
	T(sigwaitinfo(&rt, NULL) - SIGRTMIN);
	T(sigwaitinfo(&rt, NULL) - SIGRTMIN);
	drain(&rt);
	/* Two that share a standard signal: each has its own pending, and goes on when that is taken. */
	timer_t shared[2];
	MUST(timer_delete(timer[2]));
	MUST(timer_delete(timer[3]));
	event.sigev_signo = SIGUSR1;
	soon.it_interval.tv_nsec = 2000000;
	int seen[2] = { 0 };
	for (int i = 0; i < 2; i++) {
		event.sigev_value.sival_int = i;
		MUST(timer_create(CLOCK_MONOTONIC, &event, &shared[i]));
		MUST(timer_settime(shared[i], 0, &soon, NULL));
	}
	for (int i = 0; i < 200 && (seen[0] < 3 || seen[1] < 3); i++) {
		sleep_ms(3);
		MUST(sigwaitinfo(&usr, &last));
		seen[last.si_value.sival_int & 1]++;
	}
	SAY("both go on: %d", seen[0] >= 3 && seen[1] >= 3);
	MUST(timer_delete(shared[0]));
	MUST(timer_delete(shared[1]));
	drain(&usr);
	/* The periodic one stops: what waits from here on was queued by the timers below. */
	MUST(timer_settime(timer[0], 0, &(struct itimerspec) { 0 }, NULL));
	drain(&rt);
	/* What a deleted timer has queued counts until it is taken, and a new timer of its number is another one. */
	soon.it_interval.tv_nsec = 0;
	for (int i = 0; i < 3; i++) {
		timer_t gone;
		event.sigev_signo = SIGRTMIN + i;
		int made = timer_create(CLOCK_MONOTONIC, &event, &gone);
		SAY("timer %d: %s, counted %ld", i, made ? err_name(errno) : "made", queued(getpid()));
		if (made)
			break;
		MUST(timer_settime(gone, 0, &soon, NULL));
		while (!is_pending(SIGRTMIN + i))
			;
		MUST(timer_delete(gone));
	}
	T(queued(getpid()));
	T(drain(&rt));
	T(queued(getpid()));
	T(timer_delete(timer[0]));
	T(timer_delete(timer[1]));
	drain(&rt);
	T(queued(getpid()));
	T(queue_to(getpid(), SIGRTMIN + 1, 0));
	T(queue_to(getpid(), SIGRTMIN + 1, 0));
	T(queue_to(getpid(), SIGRTMIN + 1, 0));
}

int main(void)
{
	sigemptyset(&rt);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sigaddset(&rt, sig);
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	sigaddset(&usr, SIGUSR2);
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	CHILD("one process") { one_process(); } END;
	CHILD("limit 0") { none_at_all(); } END;
	CHILD("processes") { two_processes(); } END;
	CHILD("change of user") { change_of_user(); } END;
	CHILD("timers") { timers(); } END;
	return 0;
}
