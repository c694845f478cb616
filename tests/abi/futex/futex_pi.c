/*
 * Futexes that lend priority: the owner's number in the word, EDEADLK along chains, hand-over, owners
 * that die, requeueing from a condition variable, and what mixes badly.
 */
#include "futex_pi.h"

static volatile int word, other, cond;
static volatile int tids[8], results[8], order[8], entered;
static volatile int go;

static void *locker(void *arg)
{
	long n = (long)arg;
	tids[n] = tid();
	results[n] = LOCK(&word) == 0 ? 0 : errno;
	order[entered++] = (int)n;
	if (results[n] == 0)
		UNLOCK(&word);
	return NULL;
}

static pthread_t start(void *(*fn)(void *), long n)
{
	pthread_t t;
	tids[n] = 0;
	pthread_create(&t, NULL, fn, (void *)n);
	for (int i = 0; i < LONG_MS && !tids[n]; i++)
		sleep_ms(1);
	await_sleep(tids[n]);
	return t;
}

static void alone(void)
{
	struct timespec past = { 0, 0 }, bad = { 0, -1 }, mono;
	word = 0;
	T(LOCK(&word));
	IS(word == tid());
	T(LOCK(&word));
	T(TRY(&word));
	T(futex(&word, FUTEX_LOCK_PI2 | P, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_LOCK_PI2 | P | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_LOCK_PI | P | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_TRYLOCK_PI | P | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAIT | P | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0));
	T(UNLOCK(&word));
	IS(word == 0);
	T(UNLOCK(&word));
	T(TRY(&word));
	IS(word == tid());
	T(futex(&word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_LOCK_PI2 | P, 0, &past, NULL, 0));
	T(UNLOCK(&word));
	T(futex(&word, FUTEX_LOCK_PI | P, 0, &bad, NULL, 0));
	T(futex(&word, FUTEX_LOCK_PI2 | P, 0, &bad, NULL, 0));
	/* Numbers of nobody, of a zombie, of a kernel thread. */
	word = 0x3ffffffe;
	T(LOCK(&word));
	T(TRY(&word));
	say_word("bogus owner", &word, 0x3ffffffe);
	word = 2;
	T(LOCK(&word));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit(0);
	siginfo_t si;
	MUST(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT));
	word = pid;
	T(LOCK(&word));
	say_word("zombie's", &word, pid);
	reap(pid);
	word = pid;
	T(LOCK(&word));
	/* The words of dead owners. */
	word = FUTEX_OWNER_DIED;
	T(LOCK(&word));
	say_word("died", &word, tid());
	T(UNLOCK(&word));
	say_word("unlocked", &word, tid());
	word = (int)FUTEX_WAITERS;
	T(LOCK(&word));
	say_word("waiters only", &word, tid());
	word = (int)(FUTEX_WAITERS | FUTEX_OWNER_DIED);
	T(TRY(&word));
	say_word("both", &word, tid());
	T(UNLOCK(&word));
	/* Owned by a process that lives: time runs out, the word is marked. */
	word = getppid();
	clock_gettime(CLOCK_MONOTONIC, &mono);
	mono.tv_nsec += 20000000;
	if (mono.tv_nsec >= 1000000000) {
		mono.tv_sec++;
		mono.tv_nsec -= 1000000000;
	}
	T(futex(&word, FUTEX_LOCK_PI2 | P, 0, &mono, NULL, 0));
	say_word("marked", &word, getppid());
	T(futex(&word, FUTEX_LOCK_PI | P, 0, &past, NULL, 0));
	T(TRY(&word));
	T(UNLOCK(&word));
	/* Bad memory. */
	T(LOCK((volatile int *)((char *)&word + 1)));
	T(UNLOCK((volatile int *)((char *)&word + 2)));
	T(LOCK((volatile int *)NULL));
	T(UNLOCK((volatile int *)NULL));
	T(LOCK((volatile int *)KERNEL_ADDRESS));
	volatile int *ro = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(LOCK(ro));
	T(TRY(ro));
	T(futex(ro, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	T(UNLOCK(ro));
	word = 0;
}

static void contended(void)
{
	T(LOCK(&word));
	entered = 0;
	pthread_t a = start(locker, 0);
	await_word(&word, (int)FUTEX_WAITERS);
	pthread_t b = start(locker, 1);
	pthread_t c = start(locker, 2);
	say_word("three wait", &word, tid());
	T(futex(&word, FUTEX_WAKE | P, 1, NULL, NULL, 0));
	T(futex(&word, FUTEX_REQUEUE | P, 1, (void *)1, &other, 0));
	T(futex(&word, FUTEX_CMP_REQUEUE | P, 0, (void *)1, &other, word));
	T(UNLOCK(&word));
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	pthread_join(c, NULL);
	SAY("order %d %d %d, results %d %d %d", order[0], order[1], order[2], results[0], results[1], results[2]);
	IS(word == 0);
	/* A word that the program has spoilt. */
	T(LOCK(&word));
	a = start(locker, 0);
	int good = word;
	word = 0;
	T(UNLOCK(&word));
	word = getppid();
	T(LOCK(&word));
	T(TRY(&word));
	word = good;
	T(UNLOCK(&word));
	pthread_join(a, NULL);
	SAY("result %d", results[0]);
	word = 0;
}

static void *plain_waiter(void *arg)
{
	long n = (long)arg;
	tids[n] = tid();
	results[n] = futex(&word, FUTEX_WAIT | P, 77, NULL, NULL, 0) == 0 ? 0 : errno;
	return NULL;
}

static void mixed(void)
{
	word = 77;
	pthread_t a = start(plain_waiter, 0);
	int was = word;
	word = 0;
	T(LOCK(&word));
	T(TRY(&word));
	word = tid();
	T(UNLOCK(&word));
	word = was;
	T(futex(&word, FUTEX_WAKE | P, 1, NULL, NULL, 0));
	pthread_join(a, NULL);
	word = 0;
}

static void *cross(void *arg)
{
	tids[0] = tid();
	LOCK(&other);
	results[0] = LOCK(&word) == 0 ? 0 : errno;
	if (results[0] == 0)
		UNLOCK(&word);
	UNLOCK(&other);
	return arg;
}

static void deadlock(void)
{
	other = 0;
	T(LOCK(&word));
	pthread_t a = start(cross, 0);
	await_word(&word, (int)FUTEX_WAITERS);
	T(LOCK(&other));
	say_word("theirs", &other, tids[0]);
	T(UNLOCK(&word));
	pthread_join(a, NULL);
	SAY("result %d", results[0]);
	IS(word == 0);
	T(LOCK(&other));
	T(UNLOCK(&other));
}

static void *dies(void *arg)
{
	tids[0] = tid();
	LOCK(&word);
	go = 1;
	while (go != 2)
		sleep_ms(1);
	return arg;
}

static void *locks_after_death(void *arg)
{
	tids[1] = tid();
	results[1] = LOCK(&word) == 0 ? 0 : errno;
	say_word("inherited", &word, tid());
	T(UNLOCK(&word));
	return arg;
}

static void death(void)
{
	pthread_t a, b;
	go = 0;
	pthread_create(&a, NULL, dies, NULL);
	while (go != 1)
		sleep_ms(1);
	b = start(locks_after_death, 1);
	await_word(&word, (int)FUTEX_WAITERS);
	go = 2;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	SAY("result %d", results[1]);
	say_word("after all", &word, 0);
	/* With a robust list, through glibc. */
	pthread_mutexattr_t attr;
	static pthread_mutex_t *m;
	m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	IS(pthread_mutex_init(m, &attr) == 0);
	CHILD("owner") {
		IS(pthread_mutex_lock(m) == 0);
		fflush(stdout);
		_exit(0);
	} END;
	SAY("lock: %s", err_name(pthread_mutex_lock(m)));
	IS(pthread_mutex_consistent(m) == 0);
	IS(pthread_mutex_unlock(m) == 0);
	/* While another process waits. */
	int p[2];
	MUST(pipe(p));
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		pthread_mutex_lock(m);
		MUST(write(p[1], "x", 1));
		for (;;)
			pause();
	}
	char c;
	MUST(read(p[0], &c, 1));
	pid_t killer = (pid_t)MUST(fork());
	if (killer == 0) {
		wait_state(getppid(), "S");
		kill(pid, SIGKILL);
		_exit(0);
	}
	SAY("waited: %s", err_name(pthread_mutex_lock(m)));
	IS(pthread_mutex_consistent(m) == 0);
	IS(pthread_mutex_unlock(m) == 0);
	say_status("owner", reap(pid));
	say_status("killer", reap(killer));
	word = 0;
}

static void *cond_waiter(void *arg)
{
	long n = (long)arg;
	tids[n] = tid();
	results[n] = futex(&cond, FUTEX_WAIT_REQUEUE_PI | P, 5, NULL, &word, 0) == 0 ? 0 : errno;
	if (results[n] == 0) {
		results[n] = (word & FUTEX_TID_MASK) == tid() ? 0 : -1;
		UNLOCK(&word);
	}
	return NULL;
}

static void condition(void)
{
	struct timespec soon, past = { 0, 0 };
	cond = 5;
	word = 0;
	T(futex(&cond, FUTEX_WAIT_REQUEUE_PI | P, 4, NULL, &word, 0));
	T(futex(&cond, FUTEX_WAIT_REQUEUE_PI | P, 5, NULL, &cond, 0));
	T(futex(&cond, FUTEX_WAIT_REQUEUE_PI | P, 5, &past, &word, 0));
	T(futex(&cond, FUTEX_WAIT_REQUEUE_PI | P, 5, NULL, (int *)((char *)&word + 1), 0));
	clock_gettime(CLOCK_REALTIME, &soon);
	T(futex(&cond, FUTEX_WAIT_REQUEUE_PI | P | FUTEX_CLOCK_REALTIME, 5, &soon, &word, 0));
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)1, &word, 4));
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)1, &word, 5));
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 0, (void *)1, &word, 5));
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 2, (void *)1, &word, 5));
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)-1L, &word, 5));
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)1, &cond, 5));
	pthread_t t[3];
	for (long i = 0; i < 3; i++)
		t[i] = start(cond_waiter, i);
	T(futex(&cond, FUTEX_WAKE | P, 1, NULL, NULL, 0));
	T(futex(&cond, FUTEX_REQUEUE | P, 0, (void *)1, &word, 0));
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)1, &other, 5));
	/* The lock is free: the first gets it at once, the others queue. */
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)(long)INT_MAX, &word, 5));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	SAY("results %d %d %d", results[0], results[1], results[2]);
	IS(word == 0);
	/* The lock is the caller's. */
	T(LOCK(&word));
	for (long i = 0; i < 3; i++)
		t[i] = start(cond_waiter, i);
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)0, &word, 5));
	say_word("one queued", &word, tid());
	T(futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)(long)INT_MAX, &word, 5));
	T(UNLOCK(&word));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	SAY("results %d %d %d", results[0], results[1], results[2]);
	IS(word == 0);
}

static volatile int handled;

static void on_alarm(int sig)
{
	(void)sig;
	handled++;
	/* The owner's word is given back from here: the interrupted call goes on and gets it. */
	if (handled == 1)
		word = 0;
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	sigaction(SIGALRM, &sa, NULL);
	word = getppid();
	struct itimerval it = { { 0, 0 }, { 0, 50000 } };
	setitimer(ITIMER_REAL, &it, NULL);
	T(LOCK(&word));
	IS(handled == 1);
	IS((word & FUTEX_TID_MASK) == tid());
	T(UNLOCK(&word));
}

static volatile long shared_count;
static void *counter(void *arg)
{
	pthread_mutex_t *m = arg;
	for (int i = 0; i < 3000; i++) {
		pthread_mutex_lock(m);
		shared_count = shared_count + 1;
		pthread_mutex_unlock(m);
	}
	return NULL;
}

static void stress(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	IS(pthread_mutex_init(&m, &attr) == 0);
	pthread_t t[6];
	for (int i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, counter, &m);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	SAY("counted %ld", shared_count);
	/* Owners and waiters that are killed in the middle. */
	for (int round = 0; round < 20; round++) {
		fflush(stdout);
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			for (int i = 0; i < 6; i++)
				pthread_create(&t[i], NULL, counter, &m);
			sleep_ms(round % 5);
			_exit(0);
		}
		reap(pid);
	}
	SAY("still here");
}

/* The most urgent waiter is first; equals keep their order. */
static void *urgent(void *arg)
{
	struct sched_param p = { .sched_priority = (int)(long)arg * 10 };
	MUST(sched_setscheduler(0, SCHED_FIFO, &p));
	return locker(arg);
}

static void priorities(void)
{
	T(LOCK(&word));
	entered = 0;
	pthread_t t[4];
	t[0] = start(locker, 0);
	t[1] = start(urgent, 1);
	t[2] = start(urgent, 3);
	t[3] = start(urgent, 2);
	T(UNLOCK(&word));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	SAY("order %d %d %d %d", order[0], order[1], order[2], order[3]);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	alone();
	contended();
	mixed();
	deadlock();
	death();
	condition();
	interrupted();
	stress();
	priorities();
	return 0;
}
