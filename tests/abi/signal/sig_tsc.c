/*
 * PR_SET_TSC: RDTSC and RDTSCP are SIGSEGV in a thread that asked for it, whatever runs on its CPU meanwhile; threads and children have
 * it from who made them, and it outlasts an exec.
 */
#include "check.h"
#include <pthread.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/prctl.h>

static __thread sigjmp_buf back;
static __thread siginfo_t last;

static void on(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	last = *info;
	siglongjmp(back, 1);
}

static uint64_t rdtsc(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static uint64_t rdtscp(void)
{
	uint32_t low, high, id;
	__asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(id));
	return (uint64_t)high << 32 | low;
}

/* Whether it faults; what the signal says of that is printed. */
static int faults(uint64_t (*read)(void))
{
	if (sigsetjmp(back, 1) == 0) {
		read();
		return 0;
	}
	return 1;
}

static void shown(const char *what)
{
	int mode = -1, tsc, tscp;
	MUST(prctl(PR_GET_TSC, &mode));
	tsc = faults(rdtsc);
	tscp = faults(rdtscp);
	SAY("%s: mode %d, rdtsc %s, rdtscp %s", what, mode, tsc ? "faults" : "reads", tscp ? "faults" : "reads");
	if (tsc)
		SAY("%s: %s code %d address %p", what, sig_name(last.si_signo), last.si_code, last.si_addr);
}

static void *in_thread(void *what)
{
	shown(what);
	MUST(prctl(PR_SET_TSC, PR_TSC_ENABLE));
	return NULL;
}

static void *reads(void *end)
{
	long count = 0;
	while (!*(volatile int *)end) {
		count += faults(rdtsc);
		sched_yield();
	}
	return (void *)count;
}

/* One that may and one that may not take turns on one CPU. */
static void turns(void)
{
	pthread_t thread;
	cpu_set_t one;
	int end = 0, wrong = 0;
	void *count;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	MUST(sched_setaffinity(0, sizeof one, &one));
	MUST(prctl(PR_SET_TSC, PR_TSC_ENABLE));
	pthread_create(&thread, NULL, reads, &end);
	MUST(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	for (int at = 0; at < 2000; at++) {
		wrong += !faults(rdtsc);
		sched_yield();
	}
	end = 1;
	pthread_join(thread, &count);
	SAY("in turns: %d reads of one that may not, %ld faults of one that may", wrong, (long)count);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on, .sa_flags = SA_SIGINFO };
	pthread_t thread;
	int mode = 0;
	setbuf(stdout, NULL);
	sigaction(SIGSEGV, &action, NULL);
	if (argc > 1) {
		shown("after exec");
		return 0;
	}
	shown("new");
	T(prctl(PR_SET_TSC, 0));
	T(prctl(PR_SET_TSC, 3));
	T(prctl(PR_SET_TSC, -1L));
	T(prctl(PR_SET_TSC, PR_TSC_SIGSEGV | 1L << 32, 5, 6, 7));
	shown("forbidden");
	T(prctl(PR_GET_TSC, NULL));
	T(prctl(PR_GET_TSC, KERNEL_ADDRESS));
	T(prctl(PR_GET_TSC, &mode, 1, 2, 3));
	pthread_create(&thread, NULL, in_thread, "in a new thread");
	pthread_join(thread, NULL);
	shown("the thread may now");
	CHILD("child") {
		shown("in a child");
	} END;
	CHILD("exec") {
		execl("/proc/self/exe", argv[0], "after", NULL);
	} END;
	T(prctl(PR_SET_TSC, PR_TSC_ENABLE));
	shown("allowed again");
	CHILD("another child") {
		shown("in a child");
		turns();
	} END;
	CHILD("not handled") {
		signal(SIGSEGV, SIG_DFL);
		MUST(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
		rdtsc();
	} END;
	CHILD("strict mode of seccomp") {
		signal(SIGSEGV, SIG_DFL);
		MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
		rdtsc();
		syscall(SYS_exit, 0);
	} END;
	shown("at the end");
	return 0;
}
