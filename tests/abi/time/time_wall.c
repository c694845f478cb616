/*
 * time_wall.c: the wall clock is set while somebody waits for it: timers and sleeps until a time of it end when it shows that time,
 * those for a while and those of other clocks stay, and TFD_TIMER_CANCEL_ON_SET tells of it.
 */
#include "check.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

static struct timespec after(clockid_t clock, long ms)
{
	struct timespec t;
	clock_gettime(clock, &t);
	long ns = t.tv_nsec + ms % 1000 * 1000000;
	return (struct timespec){ t.tv_sec + ms / 1000 + ns / 1000000000, ns % 1000000000 };
}

static void step(long sec)
{
	struct timespec t = after(CLOCK_REALTIME, sec * 1000);
	MUST(clock_settime(CLOCK_REALTIME, &t));
}

static int arm(int fd, int flags, struct timespec at, long every)
{
	return timerfd_settime(fd, flags, &(struct itimerspec){ { every, 0 }, at }, NULL);
}

/* What is left, rounded. */
static long left(int fd)
{
	struct itimerspec t;
	timerfd_gettime(fd, &t);
	return (t.it_value.tv_sec * 10 + t.it_value.tv_nsec / 100000000 + 5) / 10;
}

static int ready(int fd, int ms)
{
	struct pollfd p = { fd, POLLIN, 0 };
	return poll(&p, 1, ms) == 1 ? p.revents : 0;
}

static void take(const char *what, int fd)
{
	uint64_t n = 0;
	errno = 0;
	long r = read(fd, &n, 8);
	SAY("%s: read %ld %s, %lu", what, r, r < 0 ? err_name(errno) : "ok", (unsigned long)n);
}

static void timers(void)
{
	int wall = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK), steady = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	SAY("-- timerfd");
	MUST(arm(wall, TFD_TIMER_ABSTIME, after(CLOCK_REALTIME, 3600000), 0));
	SAY("ready %d", ready(wall, 0));
	step(3700);
	SAY("ready %d", ready(wall, 2000));
	take("past", wall);
	step(-3700);
	SAY("back: ready %d", ready(wall, 0));

	MUST(arm(wall, 0, (struct timespec){ 3600, 0 }, 0));
	MUST(arm(steady, TFD_TIMER_ABSTIME, after(CLOCK_MONOTONIC, 3600000), 0));
	step(3700);
	SAY("others: %d %d, left %ld %ld", ready(wall, 50), ready(steady, 0), left(wall), left(steady));
	step(-3700);

	MUST(arm(wall, TFD_TIMER_ABSTIME, after(CLOCK_REALTIME, 300), 0));
	step(-100);
	SAY("later: ready %d, left %ld", ready(wall, 600), left(wall));
	step(100);
	SAY("ready %d", ready(wall, 2000));

	MUST(arm(wall, TFD_TIMER_ABSTIME, after(CLOCK_REALTIME, 10000), 10));
	step(105);
	SAY("again and again: ready %d", ready(wall, 2000));
	take("missed", wall);
	SAY("left %ld", left(wall));
	step(-105);
	SAY("left %ld", left(wall));
	close(wall);
	close(steady);
}

static void *reads(void *fd)
{
	take("who sleeps", *(int *)fd);
	return NULL;
}

#define CANCELS (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)

static void cancels(void)
{
	struct timespec far = after(CLOCK_REALTIME, 3600000), never = { 0, 0 };
	struct timeval tv;
	int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK), steady = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	int ep = epoll_create1(0), sleeps = timerfd_create(CLOCK_REALTIME, 0);
	struct epoll_event e = { EPOLLIN };
	pthread_t thread;
	SAY("-- cancelled");
	MUST(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
	MUST(arm(fd, CANCELS, far, 0));
	take("not set", fd);
	step(10);
	SAY("ready %d, epoll %d, left %ld", ready(fd, 0), epoll_wait(ep, &e, 1, 0), left(fd));
	take("set", fd);
	take("told", fd);
	SAY("ready %d, left %ld", ready(fd, 0), left(fd));
	gettimeofday(&tv, NULL);
	tv.tv_sec -= 10;
	MUST(settimeofday(&tv, NULL));
	take("settimeofday", fd);
	MUST(adjtimex(&(struct timex){ .modes = ADJ_SETOFFSET, .time = { 5, 0 } }));
	take("ADJ_SETOFFSET", fd);
	step(-5);
	step(5);
	take("forth and back", fd);
	step(1);
	T(arm(fd, CANCELS, far, 0));
	take("armed all the same", fd);
	SAY("left %d", left(fd) > 3500);
	step(1);
	T(arm(fd, TFD_TIMER_ABSTIME, far, 0));
	take("not any more", fd);
	T(arm(fd, CANCELS, far, 0));
	take("told late", fd);
	MUST(arm(fd, CANCELS, never, 0));
	step(1);
	SAY("disarmed: ready %d", ready(fd, 0));
	take("disarmed", fd);
	MUST(arm(fd, TFD_TIMER_CANCEL_ON_SET, (struct timespec){ 3600, 0 }, 0));
	MUST(arm(steady, CANCELS, after(CLOCK_MONOTONIC, 3600000), 0));
	step(1);
	take("for a while", fd);
	take("monotonic", steady);
	MUST(arm(fd, TFD_TIMER_ABSTIME, far, 0));
	step(-1);
	take("not asked for", fd);
	MUST(arm(sleeps, CANCELS, far, 0));
	MUST(pthread_create(&thread, NULL, reads, &sleeps));
	usleep(100000);
	step(-4);
	struct timespec limit = after(CLOCK_REALTIME, 2000);
	if (pthread_timedjoin_np(thread, NULL, &limit))
		SAY("still sleeps");
	close(fd);
	close(steady);
	close(ep);
}

static void signals(void)
{
	sigset_t set;
	timer_t wall, while_, silent;
	struct itimerspec t = { .it_value = after(CLOCK_REALTIME, 3600000) };
	struct timespec soon = { 2, 0 }, now = { 0, 50000000 };
	SAY("-- timer_settime");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	MUST(timer_create(CLOCK_REALTIME, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 }, &wall));
	MUST(timer_create(CLOCK_REALTIME, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 }, &while_));
	MUST(timer_create(CLOCK_REALTIME, &(struct sigevent){ .sigev_notify = SIGEV_NONE }, &silent));
	MUST(timer_settime(wall, TIMER_ABSTIME, &t, NULL));
	MUST(timer_settime(silent, TIMER_ABSTIME, &t, NULL));
	MUST(timer_settime(while_, 0, &(struct itimerspec){ .it_value = { 3600, 0 } }, NULL));
	step(1800);
	SAY("half: %d", sigtimedwait(&set, NULL, &now));
	timer_gettime(wall, &t);
	SAY("left %ld", (t.it_value.tv_sec + 30) / 60);
	timer_gettime(silent, &t);
	SAY("left %ld", (t.it_value.tv_sec + 30) / 60);
	step(1900);
	int signal = sigtimedwait(&set, NULL, &soon);
	SAY("%s", signal == SIGUSR1 ? "SIGUSR1" : signal == SIGUSR2 ? "SIGUSR2" : "none");
	SAY("others: %d", sigtimedwait(&set, NULL, &now));
	timer_gettime(while_, &t);
	SAY("left %ld", (t.it_value.tv_sec + 30) / 60);
	timer_gettime(silent, &t);
	SAY("past %ld %ld", t.it_value.tv_sec, t.it_value.tv_nsec);
	step(-3700);
	timer_delete(wall);
	timer_delete(while_);
	timer_delete(silent);
}

static uint32_t word, target, owned;
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static long patience;

static int futex(uint32_t *at, int op, uint32_t value, const struct timespec *t, uint32_t *other)
{
	return syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, value, t, other, FUTEX_BITSET_MATCH_ANY) < 0 ? errno : 0;
}

enum { SLEEP, BITSET, LOCK, LOCK2, REQUEUE, SEM, COND, MEANWHILE, STEADY, KINDS };
static const char *const names[] = { "clock_nanosleep", "FUTEX_WAIT_BITSET", "FUTEX_LOCK_PI", "FUTEX_LOCK_PI2",
	"FUTEX_WAIT_REQUEUE_PI", "sem_timedwait", "pthread_cond_timedwait", "FUTEX_WAIT", "FUTEX_WAIT_BITSET of CLOCK_MONOTONIC" };
static int ended[KINDS], outcome[KINDS];

static int wait_as(int kind)
{
	struct timespec wall = after(CLOCK_REALTIME, patience), steady = after(CLOCK_MONOTONIC, patience);
	struct timespec while_ = { patience / 1000, patience % 1000 * 1000000 };
	switch (kind) {
	case SLEEP: return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &wall, NULL);
	case BITSET: return futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &wall, NULL);
	case LOCK: return futex(&owned, FUTEX_LOCK_PI, 0, &wall, NULL);
	case LOCK2: return futex(&owned, FUTEX_LOCK_PI2 | FUTEX_CLOCK_REALTIME, 0, &wall, NULL);
	case REQUEUE: return futex(&target, FUTEX_WAIT_REQUEUE_PI | FUTEX_CLOCK_REALTIME, 0, &wall, &owned);
	case SEM: return sem_timedwait(&sem, &wall) < 0 ? errno : 0;
	case COND:
		pthread_mutex_lock(&mutex);
		int r = pthread_cond_timedwait(&cond, &mutex, &wall);
		pthread_mutex_unlock(&mutex);
		return r;
	case MEANWHILE: return futex(&word, FUTEX_WAIT, 0, &while_, NULL);
	default: return futex(&word, FUTEX_WAIT_BITSET, 0, &steady, NULL);
	}
}

static void *waits(void *kind)
{
	outcome[(long)kind] = wait_as((long)kind);
	__atomic_store_n(&ended[(long)kind], 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void tell(int kinds)
{
	for (int k = 0; k < kinds; k++)
		SAY("%s: %s", names[k], !ended[k] ? "waits" : outcome[k] ? err_name(outcome[k]) : "ok");
}

static void begin(long ms)
{
	pthread_t thread;
	patience = ms;
	for (long k = 0; k < KINDS; k++) {
		ended[k] = 0;
		MUST(pthread_create(&thread, NULL, waits, (void *)k));
		pthread_detach(thread);
	}
}

static void sleeps(void)
{
	sem_init(&sem, 0, 0);
	owned = syscall(SYS_gettid);
	SAY("-- earlier");
	begin(3600000);
	usleep(200000);
	step(1800);
	usleep(100000);
	tell(1);
	step(1900);
	usleep(500000);
	tell(KINDS);
	step(-3700);
	futex(&word, FUTEX_WAKE, 9, NULL, NULL);
	usleep(100000);
	SAY("woken: %d %d", ended[MEANWHILE], ended[STEADY]);
	SAY("-- later");
	begin(400);
	usleep(100000);
	step(-100);
	usleep(700000);
	tell(KINDS);
	step(101);
	usleep(500000);
	tell(KINDS);
}

int main(void)
{
	timers();
	cancels();
	signals();
	sleeps();
	return 0;
}
