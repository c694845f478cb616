/*
 * rseq: registration and its errors, numbers that stay true, sequences that are aborted by signals,
 * preemption and membarrier, and everything that must end in SIGSEGV.
 */
#include "check.h"
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/auxv.h>

struct area {
	volatile uint32_t cpu_id_start, cpu_id;
	volatile uint64_t rseq_cs;
	volatile uint32_t flags, node_id, mm_cid;
} __attribute__((aligned(32)));

struct cs {
	uint32_t version, flags;
	uint64_t start, len, abort;
} __attribute__((aligned(32)));

extern const ptrdiff_t __rseq_offset;
extern const unsigned __rseq_size;

#define SIG 0x53053053
static struct area mine __attribute__((aligned(64)));

static long rseq(volatile void *p, unsigned len, int flags, unsigned sig)
{
	return syscall(334, p, len, flags, sig);
}

static struct area *theirs(void)
{
	return (struct area *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/*
 * Spins inside a sequence until it is aborted (1), or until *stop is set (0). The descriptor is written
 * first, as the protocol demands.
 */
static struct cs spin_cs;
__attribute__((noinline)) static int spin(struct area *area, volatile int *stop, struct cs *cs)
{
	int result;
	__asm__ volatile(
		"	lea 1f(%%rip), %%rax\n"
		"	mov %%rax, 8(%[cs])\n"
		"	lea 2f(%%rip), %%rcx\n"
		"	sub %%rax, %%rcx\n"
		"	mov %%rcx, 16(%[cs])\n"
		"	lea 4f(%%rip), %%rax\n"
		"	mov %%rax, 24(%[cs])\n"
		"	mov %[cs], 8(%[area])\n"
		"1:	cmpl $0, (%[stop])\n"
		"	je 1b\n"
		"2:	movq $0, 8(%[area])\n"
		"	mov $0, %[result]\n"
		"	jmp 5f\n"
		"	.byte 0x0f, 0xb9, 0x3d\n"
		"	.long 0x53053053\n"
		"4:	mov $1, %[result]\n"
		"5:\n"
		: [result] "=&r"(result)
		: [area] "r"(area), [stop] "r"(stop), [cs] "r"(cs)
		: "rax", "rcx", "memory", "cc");
	return result;
}

static volatile int stop, handled;
static void on_signal(int sig, siginfo_t *si, void *uc)
{
	(void)sig, (void)si, (void)uc;
	handled++;
}

static void registration(void)
{
	IS(__rseq_size >= 20);
	IS(theirs()->cpu_id_start == theirs()->cpu_id);
	IS((int)theirs()->cpu_id == sched_getcpu());
	IS(getauxval(27) >= 28);
	IS(getauxval(28) == 32);
	T(rseq(theirs(), 32, 0, SIG));
	T(rseq(theirs(), 32, 0, 1));
	T(rseq(theirs(), 64, 0, SIG));
	T(rseq(&mine, 32, 0, SIG));
	T(rseq(theirs(), 32, 2, SIG));
	T(rseq(theirs(), 32, 3, SIG));
	T(rseq(theirs(), 32, -1, SIG));
	T(rseq(&mine, 32, 1, SIG));
	T(rseq(NULL, 32, 1, SIG));
	T(rseq(theirs(), 33, 1, SIG));
	T(rseq(theirs(), 32, 1, 7));
	T(rseq(theirs(), 32, 1, SIG));
	SAY("cpu_id %d start %u", (int)theirs()->cpu_id, theirs()->cpu_id_start);
	T(rseq(theirs(), 32, 1, SIG));
	T(rseq(&mine, 31, 0, SIG));
	T(rseq(&mine, 0, 0, SIG));
	T(rseq((char *)&mine + 16, 32, 0, SIG));
	T(rseq((char *)&mine + 16, 40, 0, SIG));
	T(rseq(KERNEL_ADDRESS, 32, 0, SIG));
	T(rseq(NON_CANONICAL, 32, 0, SIG));
	T(rseq(&mine, 64, 0, 9));
	T(rseq(&mine, 64, 1, 9));
	T(rseq(&mine, 32, 0, SIG));
	IS((int)mine.cpu_id == sched_getcpu());
	IS(mine.cpu_id_start == mine.cpu_id);
	IS(mine.node_id == 0);
	CHILD("forked") {
		T(rseq(&mine, 32, 0, SIG));
		IS((int)mine.cpu_id >= 0);
	} END;
	CHILD("NULL") {
		T(rseq(&mine, 32, 1, SIG));
		T(rseq(NULL, 32, 0, SIG));
		T(rseq(&mine, 32, 0, SIG));
	} END;
	CHILD("read-only") {
		char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		T(rseq(&mine, 32, 1, SIG));
		rseq(p, 32, 0, SIG);
		SAY("not reached");
	} END;
	CHILD("goes away") {
		char *p = pages(1);
		T(rseq(&mine, 32, 1, SIG));
		T(rseq(p, 32, 0, SIG));
		munmap(p, 4096);
		struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
		sigaction(SIGUSR1, &sa, NULL);
		raise(SIGUSR1);
		SAY("not reached");
	} END;
}

static void alarm_in(long us)
{
	struct itimerval it = { { 0, 0 }, { 0, us } };
	setitimer(ITIMER_REAL, &it, NULL);
}

static void by_signal(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	sigaction(SIGALRM, &sa, NULL);
	handled = 0;
	stop = 0;
	alarm_in(20000);
	int aborted = 1;
	/* Preemption may come before the signal. */
	while (!handled)
		aborted &= spin(&mine, &stop, &spin_cs);
	SAY("aborted: %d, handled %d", aborted, handled);
	IS(mine.rseq_cs == 0);
	stop = 1;
	for (int i = 0; i < 100 && aborted; i++)
		aborted = spin(&mine, &stop, &spin_cs);
	SAY("not interrupted: %d", aborted);
	/* A descriptor of a sequence that we are not in is only forgotten. */
	mine.rseq_cs = (uintptr_t)&spin_cs;
	raise(SIGALRM);
	IS(mine.rseq_cs == 0);
	IS(handled == 2);
}

static void *spinner(void *arg)
{
	struct area own __attribute__((aligned(32)));
	struct cs cs;
	memset(&own, 0, sizeof own);
	memset(&cs, 0, sizeof cs);
	rseq(theirs(), 32, 1, SIG);
	if (rseq(&own, 32, 0, SIG) != 0)
		return (void *)99;
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
	long result = spin(&own, &stop, &cs);
	rseq(&own, 32, 1, SIG);
	return (void *)result;
}

static volatile int quiet;
static void *noise(void *arg)
{
	while (!quiet)
		;
	return arg;
}

static void by_preemption(void)
{
	/* All on one CPU, with somebody who always wants it: each is preempted in its sequence. */
	int ready = 0;
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	MUST(sched_setaffinity(0, sizeof one, &one));
	pthread_t t[4], loud;
	stop = 0;
	pthread_create(&loud, NULL, noise, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, spinner, &ready);
	long aborted = 0;
	for (int i = 0; i < 4; i++) {
		void *r;
		pthread_join(t[i], &r);
		aborted += (long)r;
	}
	quiet = 1;
	pthread_join(loud, NULL);
	SAY("%ld of 4 aborted", aborted);
}

static void by_membarrier(void)
{
	long all = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	IS((all & (128 | 256)) == (128 | 256));
	T(syscall(SYS_membarrier, 128, 0, 0));
	T(syscall(SYS_membarrier, 256, 1, 0));
	T(syscall(SYS_membarrier, 256, 0, 0));
	T(syscall(SYS_membarrier, 256, 0, 0));
	T(syscall(SYS_membarrier, 128, 0, 0));
	T(syscall(SYS_membarrier, 128, 1, 0));
	T(syscall(SYS_membarrier, 128, 2, 0));
	T(syscall(SYS_membarrier, 8, 1, 0));
}

static void broken(const char *what, void (*spoil)(struct cs *))
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		struct cs cs;
		memset(&cs, 0, sizeof cs);
		cs.start = (uintptr_t)&broken;
		cs.len = 64;
		cs.abort = (uintptr_t)&broken + 128;
		spoil(&cs);
		if (!mine.rseq_cs)
			mine.rseq_cs = (uintptr_t)&cs;
		raise(SIGALRM);
		_exit(0);
	}
	say_status(what, reap(pid));
}

static uint32_t good[2] __attribute__((aligned(8))) = { 0, SIG };
static void s_none(struct cs *cs) { cs->abort = (uintptr_t)&good[2]; }
static void s_signature(struct cs *cs) { cs->abort = (uintptr_t)&good[1]; }
static void s_version(struct cs *cs) { cs->abort = (uintptr_t)&good[2]; cs->version = 1; }
static void s_inside(struct cs *cs) { cs->abort = (uintptr_t)&good[2]; cs->start = cs->abort - 8; }
static void s_kernel(struct cs *cs) { cs->abort = 0xffffffff81000000; }
static void s_start(struct cs *cs) { cs->abort = (uintptr_t)&good[2]; cs->start = 0xffffffff81000000; }
static void s_wraps(struct cs *cs) { cs->abort = (uintptr_t)&good[2]; cs->len = -1UL; }
static void s_unmapped(struct cs *cs) { (void)cs; mine.rseq_cs = 4096; }
static void s_pointer(struct cs *cs) { (void)cs; mine.rseq_cs = 0xffffffff81000000; }
static void s_abort(struct cs *cs) { cs->abort = 4096; }
static void s_flags(struct cs *cs) { cs->abort = (uintptr_t)&good[2]; cs->flags = 8; }

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	registration();
	by_signal();
	broken("fine", s_none);
	broken("signature", s_signature);
	broken("version", s_version);
	broken("abort inside", s_inside);
	broken("abort in the kernel", s_kernel);
	broken("start in the kernel", s_start);
	broken("wraps", s_wraps);
	broken("descriptor unmapped", s_unmapped);
	broken("descriptor in the kernel", s_pointer);
	broken("abort unmapped", s_abort);
	broken("flags outside", s_flags);
	CHILD("flags inside") {
		static struct cs cs = { .flags = 8 };
		stop = 0;
		alarm_in(20000);
		SAY("spin: %d", spin(&mine, &stop, &cs));
	} END;
	by_membarrier();
	by_preemption();
	return 0;
}
