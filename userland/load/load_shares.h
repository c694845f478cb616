/*
 * load: many more tasks than CPUs: what it costs to pass the CPU on, and whether each gets its share. Told: nanoseconds for a
 * step, and by how much in a hundred the shares are off.
 */
#include "load.h"

/* --- a token that goes around --- */

#define MOST_IN_RING 1024
static struct place { _Atomic uint32_t has; struct place *next; char apart[48]; } ring[MOST_IN_RING];
static _Atomic uint64_t passed;

static void *pass_on(void *of)
{
	struct place *self = of;
	wait_for_go();
	for (;;) {
		while (!atomic_load(&self->has))
			futex(&self->has, FUTEX_WAIT_PRIVATE, 0);
		atomic_store(&self->has, 0);
		int stops = atomic_load(&shared->stop) != 0;
		atomic_fetch_add_explicit(&passed, 1, memory_order_relaxed);
		struct place *next = self->next;
		atomic_store(&next->has, 1);
		futex(&next->has, FUTEX_WAKE_PRIVATE, 1);
		if (stops)
			return NULL;
	}
}

static void token(const char *kind, int count)
{
	static pthread_t threads[MOST_IN_RING];
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	begin();
	memset(ring, 0, sizeof ring);
	passed = 0;
	for (int i = 0; i < count; i++) {
		ring[i].next = &ring[(i + 1) % count];
		if (pthread_create(&threads[i], &small, pass_on, &ring[i]) != 0)
			failed("pthread_create");
	}
	let_go((uint32_t)count);
	nap(50 * MS);
	uint64_t start = now_ns();
	atomic_store(&ring[0].has, 1);
	futex(&ring[0].has, FUTEX_WAKE_PRIVATE, 1);
	nap(length);
	uint64_t done = passed, took = now_ns() - start;
	atomic_store(&shared->stop, 1);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	if (done == 0)
		failed(kind);
	tell(kind, "pass", (double)took / (double)done);
}

static void token_2(void) { token("token_2_threads", 2); }
static void token_1000(void) { token("token_1000_threads", 1000); }

/* --- who yields --- */

static void yielder(int number)
{
	wait_for_go();
	while (!atomic_load_explicit(&shared->stop, memory_order_relaxed)) {
		sched_yield();
		atomic_fetch_add_explicit(&shared->work[number], 1, memory_order_relaxed);
	}
}

/* Lets `count` children do `job` for a while: how long that was. */
static uint64_t for_a_while(void (*job)(int), int count)
{
	begin();
	for (int i = 0; i < count; i++)
		child(job, i);
	uint64_t start = let_go((uint32_t)count);
	nap(length);
	uint64_t took = now_ns() - start;
	atomic_store(&shared->stop, 1);
	return took;
}

static void yields(void)
{
	int count = 50 * cpus;
	uint64_t took = for_a_while(yielder, count);
	uint64_t done = work_of(0, count);
	reap();
	tell("yield_50_per_cpu", "yield", (double)took * cpus / (double)done);
}

/* --- short programs --- */

static void forker(int number)
{
	wait_for_go();
	while (!atomic_load_explicit(&shared->stop, memory_order_relaxed)) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0)
			_exit(0);
		MUST(waitpid(pid, NULL, 0));
		atomic_fetch_add_explicit(&shared->work[number], 1, memory_order_relaxed);
	}
}

static void forks(void)
{
	int count = 4 * cpus;
	uint64_t took = for_a_while(forker, count);
	uint64_t done = work_of(0, count);
	reap();
	tell("fork_4_per_cpu", "fork", (double)took * cpus / (double)done);
}

/* --- shares --- */

/* By how much in a hundred the worst of `count` is off from its share of the work done, by `weights` or equal ones. */
static double worst_off(int count, const double *weights)
{
	double work = (double)work_of(0, count), all = 0, worst = 0;
	for (int i = 0; i < count; i++)
		all += weights ? weights[i] : 1;
	for (int i = 0; i < count; i++) {
		double off = (double)shared->work[i] / (work * (weights ? weights[i] : 1) / all) - 1;
		off = off < 0 ? -off : off;
		worst = off > worst ? off : worst;
	}
	return 100 * worst;
}

static void shares(void)
{
	int count = 3 * cpus;
	for_a_while(spinner, count);
	double off = worst_off(count, NULL);
	reap();
	tell("shares_of_equals", "off", off);
}

/* All that follows happens on the last CPU, which has the least else to do. */
static void on_one_cpu(void (*job)(void))
{
	cpu_set_t all, one;
	MUST(sched_getaffinity(0, sizeof all, &all));
	CPU_ZERO(&one);
	CPU_SET(cpus - 1, &one);
	MUST(sched_setaffinity(0, sizeof one, &one));
	job();
	MUST(sched_setaffinity(0, sizeof all, &all));
}

/* One computes alone; then another wakes up, or is made, and computes too. From then on each has a half. */
static int is_forked;

static void alone_at_first(int number)
{
	wait_for_go();
	if (number == 1)
		nap(length);
	for (uint64_t start = now_ns(); is_forked && now_ns() - start < length;)
		work_a_bit();
	if (is_forked)
		number = MUST(fork()) == 0;
	shared->work[number] = 0;
	while (!atomic_load_explicit(&shared->stop, memory_order_relaxed)) {
		work_a_bit();
		atomic_fetch_add_explicit(&shared->work[number], 1, memory_order_relaxed);
		if (number == 1 && shared->work[1] == 1)
			shared->work[0] = 0;
	}
	if (is_forked && number == 0)
		MUST(waitpid(-1, NULL, 0));
}

static void after_alone(const char *kind, int forked)
{
	is_forked = forked;
	begin();
	for (int i = 0; i < 2 - forked; i++)
		child(alone_at_first, i);
	let_go((uint32_t)(2 - forked));
	nap(2 * length);
	double off = worst_off(2, NULL);
	atomic_store(&shared->stop, 1);
	reap();
	tell(kind, "off", off);
}

static void woken_after_alone(void) { after_alone("shares_of_a_woken_one", 0); }
static void forked_after_alone(void) { after_alone("shares_of_a_forked_one", 1); }
static void shares_when_woken(void) { on_one_cpu(woken_after_alone); }
static void shares_when_forked(void) { on_one_cpu(forked_after_alone); }

static void as_somebody(int number)
{
	uid_t uid = number == 0 ? 1001 : 1000;
	MUST(setgroups(0, NULL));
	MUST(setgid(uid));
	MUST(setuid(uid));
	spinner(number);
}

/* One process of a user beside a hundred of another's: each process has its share, since nobody asked for groups. */
static void shares_of_users(void)
{
	for_a_while(as_somebody, 101);
	double each = (double)work_of(0, 101) / 101, off = (double)shared->work[0] / each - 1;
	reap();
	tell("share_of_1_beside_100", "off", 100 * (off < 0 ? -off : off));
}

static const int nices[] = { -5, 0, 5, 10 };

static void niced(int number)
{
	MUST(setpriority(PRIO_PROCESS, 0, nices[number]));
	spinner(number);
}

/* Weights of Linux. */
static void by_nice(void)
{
	static const double weights[] = { 3121, 1024, 335, 110 };
	for_a_while(niced, 4);
	double off = worst_off(4, weights);
	reap();
	tell("shares_by_nice", "off", off);
}

static void shares_of_nice(void) { on_one_cpu(by_nice); }
