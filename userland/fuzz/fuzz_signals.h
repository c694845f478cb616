/*
 * fuzz_signals.h: signals that cannot be delivered or queued as they should, and real-time tasks. Frames on alternate stacks that
 * are read-only, vanish, move, or are too small for the next one; limits of pending signals down to 0, with kill, sigqueue, tgkill
 * and timers beside them; SCHED_FIFO and SCHED_RR tasks that yield, spin, and change each other's policy.
 */
#ifndef ALEA_FUZZ_SIGNALS_H
#define ALEA_FUZZ_SIGNALS_H

#include "fuzz_calls.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#define STACK_PAGES 8UL

static char *frame_stack;

static int any_signal(void)
{
	static const int common[] = { SIGUSR1, SIGUSR2, SIGHUP, SIGALRM, SIGCHLD, SIGSEGV, SIGBUS, SIGURG };
	return one_in(2) ? PICK(common) : SIGRTMIN + (int)below(4);
}

/* Makes some of the stack what no frame can be written to, or all of it what it was. */
static void spoil_stack(void)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_EXEC };
	char *at = frame_stack + below(STACK_PAGES) * PAGE;
	size_t len = (1 + below(STACK_PAGES)) * PAGE;
	switch (below(6)) {
	case 0: munmap(at, len); break;
	case 1: madvise(at, len, MADV_DONTNEED); break;
	case 2: mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); break;
	default: mprotect(at, len, PICK(prots)); break;
	}
}

static void change_stack(void)
{
	stack_t ss = { .ss_sp = frame_stack + below(4) * PAGE + below(64) * 16, .ss_size = below(STACK_PAGES) * PAGE + below(PAGE) };
	static const unsigned flags[] = { 0, 0, 0, SS_DISABLE, 1u << 31, SS_ONSTACK };
	ss.ss_flags = (int)PICK(flags);
	sigaltstack(&ss, NULL);
}

static void change_limit(void)
{
	static const rlim_t most[] = { 0, 0, 1, 2, 10, 1000, RLIM_INFINITY };
	struct rlimit rl = { PICK(most), RLIM_INFINITY };
	getrlimit(RLIMIT_SIGPENDING, &rl);
	rl.rlim_cur = PICK(most);
	setrlimit(RLIMIT_SIGPENDING, &rl);
}

static void send_one(pid_t to)
{
	int sig = any_signal();
	siginfo_t info;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig };
	struct itimerspec soon = { .it_value.tv_nsec = (long)below(100000), .it_interval.tv_nsec = one_in(2) ? 200000 : 0 };
	timer_t timer;
	switch (below(7)) {
	case 0: case 1: kill(to, sig); break;
	case 2: sigqueue(to, sig, (union sigval) { .sival_int = (int)draw() }); break;
	case 3: syscall(SYS_tgkill, to, to, sig); break;
	case 4:
		memset(&info, 0, sizeof info);
		info.si_code = -(int)below(8);
		info.si_pid = (pid_t)below(4);
		syscall(SYS_rt_sigqueueinfo, to, sig, &info);
		break;
	case 5:
		if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
			timer = (timer_t)below(4);
		timer_settime(timer, 0, &soon, NULL);
		break;
	default: timer_delete((timer_t)below(8)); break;
	}
}

static void frame_step(void);
static int depth;

static void on_frame(int sig)
{
	if (++depth < 6)
		for (u64 n = below(3); n > 0; n--)
			frame_step();
	depth--;
	if (sig == SIGSEGV && one_in(8))
		_exit(1);
}

static void change_action(void)
{
	static const int flags[] = { SA_ONSTACK, SA_ONSTACK | SA_NODEFER, SA_ONSTACK | SA_RESETHAND, SA_SIGINFO | SA_ONSTACK, SA_RESTART, 0 };
	struct sigaction sa = { .sa_handler = one_in(6) ? SIG_IGN : on_frame, .sa_flags = PICK(flags) };
	u64 mask = one_in(3) ? draw() : 0;
	memcpy(&sa.sa_mask, &mask, sizeof mask);
	sigaction(any_signal(), &sa, NULL);
}

static void change_mask(void)
{
	sigset_t set;
	u64 mask = draw() & draw();
	sigemptyset(&set);
	memcpy(&set, &mask, sizeof mask);
	sigprocmask((int)below(3), &set, NULL);
}

static void frame_step(void)
{
	static const struct timespec soon = { 0, 100000 };
	sigset_t all;
	switch (below(12)) {
	case 0: spoil_stack(); break;
	case 1: change_stack(); break;
	case 2: change_limit(); break;
	case 3: change_action(); break;
	case 4: change_mask(); break;
	case 5:
		sigfillset(&all);
		sigtimedwait(&all, NULL, &soon);
		break;
	case 6:
		/* One is under way, so that it ends. */
		sigemptyset(&all);
		kill(getpid(), SIGUSR1);
		if (one_in(4))
			sigsuspend(&all);
		break;
	default: send_one(one_in(3) ? getppid() : getpid()); break;
	}
}

/* Lives of some steps each: most end by a frame that could not be written. The parent only blocks what they send it. */
static void frames(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int life = 0; life < 40; life++) {
		u64 seed = draw();
		change_limit();
		pid_t pid = fork();
		if (pid == 0) {
			state = seed;
			TELL("[%d] frames of state %#lx\n", getpid(), seed);
			frame_stack = mmap(NULL, STACK_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			sigemptyset(&all);
			sigprocmask(SIG_SETMASK, &all, NULL);
			alarm(1);
			for (int i = 0; i < 6; i++)
				change_action();
			change_stack();
			for (int i = 0; i < 300; i++)
				frame_step();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* ---- real-time tasks ---- */

static void spin_for(u64 us)
{
	struct timespec from, now;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((u64)((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000) < us);
}

static void urgent_step(pid_t *pids, unsigned count)
{
	static const int policies[] = { SCHED_FIFO, SCHED_FIFO, SCHED_RR, SCHED_OTHER, SCHED_BATCH, SCHED_IDLE };
	struct sched_param param = { (int)below(4) };
	pid_t who = one_in(2) ? 0 : pids[below(count)];
	cpu_set_t cpus;
	int policy = PICK(policies);
	switch (below(8)) {
	case 0: case 1: case 2: sched_yield(); break;
	case 3: sched_setscheduler(who, policy | (one_in(8) ? 0x40000000 : 0), &param); break;
	case 4: sched_setparam(who, &param); break;
	case 5: spin_for(below(one_in(20) ? 100000 : 500)); break;
	case 6:
		CPU_ZERO(&cpus);
		CPU_SET(below(4), &cpus);
		if (one_in(2))
			CPU_SET(0, &cpus);
		sched_setaffinity(who, sizeof cpus, &cpus);
		break;
	default: usleep((useconds_t)below(300)); break;
	}
}

/* Equals and others that all may run at once, on few CPUs; everything else of the machine must go on beside them. */
static void urgent(void)
{
	pid_t pids[6] = { 0 };
	for (unsigned i = 0; i < COUNT(pids); i++) {
		u64 seed = draw();
		pids[i] = fork();
		if (pids[i] == 0) {
			state = seed;
			TELL("[%d] urgent steps of state %#lx\n", getpid(), seed);
			for (int step = 0; step < 2000; step++)
				urgent_step(pids, i + 1);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < COUNT(pids); i++)
		waitpid(pids[i], NULL, 0);
}

#endif
