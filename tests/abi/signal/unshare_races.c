/*
 * A process of one thread shares neither its memory nor its signal actions, whoever looks at them or sends it signals meanwhile:
 * unshare(2) of both never fails. Nor does it share them with a child that it has waited for. On one CPU little can happen.
 */
#include "check.h"
#include <sched.h>

#define ROUNDS 30000

static pid_t start(void (*work)(pid_t), pid_t whom)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		for (;;)
			work(whom);
	return pid;
}

static void kill_it(pid_t whom)
{
	kill(whom, SIGURG);
	kill(whom, SIGCONT);
}

static void look_at_it(pid_t whom)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/maps", whom);
	read_file(path);
	snprintf(path, sizeof path, "/proc/%d/cmdline", whom);
	read_file(path);
}

static void unshare_beside(const char *what, void (*work)(pid_t), int flags)
{
	pid_t other = start(work, getpid());
	long failed = 0;
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < ROUNDS && elapsed_ms(&start) < 3000; i++)
		failed += unshare(flags) != 0;
	kill(other, SIGKILL);
	reap(other);
	SAY("%s: %s", what, failed == 0 ? "never fails" : "fails now and then");
}

static int leave(void *unused)
{
	(void)unused;
	_exit(0);
}

/* A child with the same memory and actions is a zombie, then only known by its pidfd. */
static void unshare_after_child(void)
{
	int pidfd;
	siginfo_t info;
	char *stack = pages(16);
	pid_t child = (pid_t)MUST(clone(leave, stack + 16 * PAGE, CLONE_VM | CLONE_SIGHAND | CLONE_PIDFD | SIGCHLD, NULL, &pidfd));
	MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	T(unshare(CLONE_VM));
	T(unshare(CLONE_SIGHAND));
	reap(child);
	T(unshare(CLONE_VM));
	T(unshare(CLONE_SIGHAND));
	close(pidfd);
}

int main(void)
{
	unshare_after_child();
	unshare_beside("memory beside readers", look_at_it, CLONE_VM);
	unshare_beside("actions beside signals", kill_it, CLONE_SIGHAND);
	return 0;
}
