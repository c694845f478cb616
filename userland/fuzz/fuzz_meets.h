/*
 * fuzz_meets.h: attacks of fuzz.c on what must not happen at once, or must: waits with a limit at words whose waiters are
 * moved, and families whose members end while others come.
 */
#ifndef ALEA_FUZZ_MEETS_H
#define ALEA_FUZZ_MEETS_H

#include "fuzz_calls.h"
#include <linux/futex.h>
#include <sys/prctl.h>

/* ---- waiters that are moved ---- */

#define MEET_WORDS 8

/* Far enough from each other to lie in different queues. */
static int meet_words[MEET_WORDS][1024];
static long meet_woken, meet_succeeded;
static volatile int meet_ended;

static long meet(int from, int op, long count, const void *arg, int to, int bits)
{
	return syscall(SYS_futex, meet_words[from], op | FUTEX_PRIVATE_FLAG, count, arg, meet_words[to], bits);
}

/* One call; what it woke is counted, and how often it was woken itself. */
static void meet_step(int waits)
{
	int from = (int)below(MEET_WORDS), to = (int)below(MEET_WORDS), bits = one_in(2) ? -1 : 1 << below(3);
	struct timespec soon = { 0, (long)below(one_in(4) ? 400000 : 30000) }, at;
	long result = 0;
	if (waits) {
		clock_gettime(CLOCK_MONOTONIC, &at);
		at.tv_nsec += soon.tv_nsec;
		if (at.tv_nsec >= 1000000000) {
			at.tv_nsec -= 1000000000;
			at.tv_sec++;
		}
		result = one_in(2) ? meet(from, FUTEX_WAIT, 0, &soon, 0, 0) : meet(from, FUTEX_WAIT_BITSET, 0, &at, 0, bits);
		if (result == 0)
			__atomic_add_fetch(&meet_succeeded, 1, __ATOMIC_SEQ_CST);
		return;
	}
	switch (below(10)) {
	case 0: result = meet(from, FUTEX_WAKE, (long)below(3) + 1, NULL, 0, 0); break;
	case 1: result = meet(from, FUTEX_WAKE_BITSET, 1, NULL, 0, bits); break;
	case 2: result = meet(from, FUTEX_WAKE_OP, 1, (void *)1L, to, 0); break;
	default: meet(from, one_in(2) ? FUTEX_REQUEUE : FUTEX_CMP_REQUEUE, 0, (void *)(long)below(4), to, 0);
	}
	if (result > 0)
		__atomic_add_fetch(&meet_woken, result, __ATOMIC_SEQ_CST);
}

static void *meet_waiter(void *seed)
{
	state = (u64)seed;
	for (u64 i = 200 + below(600); i > 0; i--)
		meet_step(1);
	__atomic_add_fetch(&meet_ended, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *meet_mover(void *seed)
{
	state = (u64)seed;
	while (!meet_ended || one_in(2))
		meet_step(0);
	return NULL;
}

/* As many waits succeed as wake-ups were spent, and nobody is left in a queue. */
static void movers(void)
{
	pthread_t t[5];
	long ghosts = 0;
	unsigned waiters = 1 + (unsigned)below(3), all = waiters + 1 + (unsigned)below(2), made = 0;
	while (made < all && pthread_create(&t[made], NULL, made < waiters ? meet_waiter : meet_mover, (void *)draw()) == 0)
		made++;
	if (made <= waiters)
		return;
	for (unsigned i = 0; i < made; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < MEET_WORDS; i++)
		ghosts += meet(i, FUTEX_WAKE, 1000, NULL, 0, 0);
	if (meet_woken != meet_succeeded || ghosts != 0)
		say("fuzz: FAILED: %ld waits ended well, %ld wake-ups were spent, %ld waiters are left\n", meet_succeeded, meet_woken, ghosts);
}

/* ---- families ---- */

static char kin_stacks[32][8192] __attribute__((aligned(16)));

static int kin_ends(void *arg)
{
	for (u64 i = (u64)arg; i > 0; i--)
		syscall(SYS_sched_yield);
	syscall((u64)arg == 2 ? SYS_exit_group : SYS_exit, 3);
	return 0;
}

static void dawdle(void)
{
	for (volatile u64 i = below(one_in(3) ? 20000 : 500); i > 0; i--)
		;
	if (one_in(4))
		sched_yield();
}

/* A member: has children, siblings and threads, adopts or does not, waits or does not, and ends at some moment. */
static void member(int depth)
{
	if (one_in(3))
		prctl(PR_SET_CHILD_SUBREAPER, below(2));
	if (one_in(4))
		prctl(PR_SET_PDEATHSIG, one_in(2) ? SIGUSR1 : SIGKILL);
	if (one_in(4))
		signal(SIGCHLD, one_in(2) ? SIG_IGN : SIG_DFL);
	for (u64 i = 2 + below(10); i > 0; i--) {
		char *stack = kin_stacks[below(COUNT(kin_stacks) - 1) + 1];
		void *how = (void *)below(3);
		int end = one_in(3) ? (int)below(40) : SIGCHLD;
		dawdle();
		switch (below(8)) {
		case 0: case 1:
			if (depth > 0 && fork() == 0) {
				state = draw() + (u64)getpid();
				member(depth - 1);
			}
			break;
		case 2: case 3: clone(kin_ends, stack, CLONE_VM | CLONE_PARENT | end, how); break;
		case 4: clone(kin_ends, stack, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FS | CLONE_FILES, how); break;
		case 5: clone(kin_ends, stack, CLONE_VM | (one_in(2) ? CLONE_VFORK : 0) | end, how); break;
		case 6:
			if (depth > 0 && syscall(SYS_clone, (long)(CLONE_PARENT | end), 0, 0, 0, 0) == 0) {
				state = draw() + (u64)getpid();
				member(depth - 1);
			}
			break;
		default: waitpid(-1, NULL, WNOHANG | (int)(one_in(2) ? 0x40000000 : 0));
		}
	}
	if (one_in(8))
		kill(getppid() > 1 ? getppid() : 0, SIGTERM);
	syscall(one_in(2) ? SYS_exit_group : SYS_exit, 1);
}

/* Parents, subreapers and siblings that end while others come. Init finds out if somebody is left whom nobody can wait for. */
static void families(void)
{
	for (int i = 0; i < 12; i++) {
		if (fork() == 0) {
			state = draw() + (u64)getpid();
			member(3);
		}
		dawdle();
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

#endif
