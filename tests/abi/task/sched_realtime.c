/*
 * SCHED_FIFO and SCHED_RR on one CPU: sched_yield lets an equal go first and nobody below; who is preempted stays the
 * first of its equals; only SCHED_RR has a slice; a changed priority acts at once; and however long real-time tasks
 * run, the others get a little.
 */
#include "check.h"
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

struct shared {
	atomic_int used;
	char order[256];
	atomic_int flag, stop;
	atomic_int last, changes;
};
static struct shared *s;

static void mark(char c)
{
	s->order[atomic_fetch_add(&s->used, 1) % 256] = c;
}

static void clear(void)
{
	memset((void *)s, 0, sizeof *s);
}

static void policy(pid_t pid, int number, int priority)
{
	struct sched_param param = { priority };
	MUST(sched_setscheduler(pid, number, &param));
}

/*
 * A child that does something under a policy. It inherits the parent's priority 90 until it has set its own, and who
 * is lowered is before its equals: so the last of equals runs first.
 */
#define TASK(number, priority, ...) ({ \
	pid_t task_ = (pid_t)MUST(fork()); \
	if (task_ == 0) { policy(0, number, priority); __VA_ARGS__; _exit(0); } \
	task_; })

static void wait_all(void)
{
	while (wait(NULL) > 0)
		;
}

static long cpu_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void rounds(char c, int yields)
{
	for (int i = 0; i < 5; i++) {
		mark(c);
		if (yields)
			sched_yield();
	}
}

static void yielding(int number, const char *name, int yields)
{
	clear();
	TASK(number, 50, rounds('a', yields));
	TASK(number, 50, rounds('b', yields));
	TASK(number, 40, rounds('-', yields));
	wait_all();
	SAY("%s, %s: %s", name, yields ? "yielding" : "not yielding", s->order);
}

/* Runs for so much CPU time and counts how often the one who runs changes. */
static void spin(int who, long ms)
{
	while (cpu_ms() < ms)
		if (atomic_exchange(&s->last, who) != who)
			atomic_fetch_add(&s->changes, 1);
}

static void slices(void)
{
	clear();
	TASK(SCHED_FIFO, 50, spin(1, 400));
	TASK(SCHED_FIFO, 50, spin(2, 400));
	wait_all();
	SAY("SCHED_FIFO: %d turns", s->changes);
	clear();
	TASK(SCHED_RR, 50, spin(1, 500));
	TASK(SCHED_RR, 50, spin(2, 500));
	wait_all();
	SAY("SCHED_RR: more turns %d, but not one each millisecond %d", s->changes > 3, s->changes < 100);
	struct timespec slice;
	pid_t rr = TASK(SCHED_RR, 50, pause()), fifo = TASK(SCHED_FIFO, 50, pause());
	wait_state(rr, "S");
	wait_state(fifo, "S");
	T(sched_rr_get_interval(rr, &slice));
	SAY("slice of SCHED_RR %ld ms", (long)slice.tv_nsec / 1000000);
	T(sched_rr_get_interval(fifo, &slice));
	SAY("slice of SCHED_FIFO %ld ms", (long)slice.tv_nsec / 1000000);
	kill(rr, SIGKILL);
	kill(fifo, SIGKILL);
	wait_all();
}

/* Somebody more urgent comes and goes while a runs and b waits. */
static void preempted(void)
{
	clear();
	TASK(SCHED_FIFO, 60, for (int i = 0; i < 10; i++) { sleep_ms(2); atomic_fetch_add(&s->flag, 1); });
	TASK(SCHED_FIFO, 50, mark('b'));
	TASK(SCHED_FIFO, 50, while (atomic_load(&s->flag) < 10) ; mark('a'));
	wait_all();
	SAY("SCHED_FIFO preempted: %s", s->order);
}

static void changed(void)
{
	clear();
	SAY("-- the one who runs goes below one that waits");
	TASK(SCHED_FIFO, 50, mark('a'); policy(0, SCHED_FIFO, 30); mark('A'));
	TASK(SCHED_FIFO, 40, mark('b'));
	wait_all();
	SAY("%s", s->order);
	clear();
	SAY("-- one that waits is raised");
	pid_t low = TASK(SCHED_FIFO, 20, mark('b'));
	TASK(SCHED_FIFO, 50, mark('a'); policy(low, SCHED_FIFO, 60); mark('A'));
	wait_all();
	SAY("%s", s->order);
	clear();
	SAY("-- lowered to an equal's priority, it is before that");
	TASK(SCHED_FIFO, 50, mark('a'); policy(0, SCHED_FIFO, 40); mark('A'));
	TASK(SCHED_FIFO, 40, mark('b'));
	wait_all();
	SAY("%s", s->order);
	clear();
	SAY("-- raised to an equal's, behind it");
	pid_t late = TASK(SCHED_FIFO, 30, mark('c'));
	TASK(SCHED_FIFO, 50, mark('a'); policy(late, SCHED_FIFO, 40); mark('A'));
	TASK(SCHED_FIFO, 40, mark('b'));
	wait_all();
	SAY("%s", s->order);
}

/* sched_yield with nobody equal: whoever is below does not run. */
static void alone(void)
{
	clear();
	TASK(SCHED_FIFO, 40, mark('b'));
	TASK(SCHED_OTHER, 0, mark('c'));
	TASK(SCHED_FIFO, 50, for (int i = 0; i < 100; i++) sched_yield(); mark('a'));
	wait_all();
	SAY("alone: %s", s->order);
}

/* Real-time tasks that never sleep: the rest gets a little, yields or not. */
static void starving(const char *what, int tasks, int yields)
{
	clear();
	pid_t normal = TASK(SCHED_OTHER, 0, while (cpu_ms() < 100) ; atomic_store(&s->stop, 1));
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < tasks; i++)
		TASK(SCHED_FIFO, 50,
		     while (!atomic_load(&s->stop) && elapsed_ms(&from) < LONG_MS) if (yields) sched_yield());
	int status = reap(normal);
	wait_all();
	SAY("%s: the normal task ran %d, status %d", what, s->stop, status);
}

int main(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	MUST(sched_setaffinity(0, sizeof one, &one));
	s = (struct shared *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	/* The parent runs until it waits: all its children begin together. */
	policy(0, SCHED_FIFO, 90);
	yielding(SCHED_FIFO, "SCHED_FIFO", 1);
	yielding(SCHED_FIFO, "SCHED_FIFO", 0);
	yielding(SCHED_RR, "SCHED_RR", 1);
	yielding(SCHED_RR, "SCHED_RR", 0);
	alone();
	slices();
	preempted();
	changed();
	starving("one that spins", 1, 0);
	starving("two that yield", 2, 1);
	return 0;
}
