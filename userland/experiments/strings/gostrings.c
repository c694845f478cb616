/*
 * gostrings: runs the Go program of this folder, with a vDSO and without one, and counts its calls of getrandom.
 *
 * The article "Syscalls in Go" found with strace that its program spends its time in getrandom. Today's Go draws in user space where the
 * kernel has a vDSO; a program that this one hides the vDSO from behaves as in the article.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "experiments/experiment.h"

#define PROGRAM "/experiments/strings"

static char *const environment[] = { "GOMAXPROCS=1", NULL };

/* Forks a child that waits for its tracer at the start of the program. */
static pid_t start(char *const argv[])
{
	int status;
	pid_t pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execve(PROGRAM, argv, environment);
		_exit(127);
	}
	must(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP, "the start of " PROGRAM);
	return pid;
}

static unsigned long peek(pid_t pid, unsigned long at)
{
	errno = 0;
	unsigned long word = (unsigned long)ptrace(PTRACE_PEEKDATA, pid, at, NULL);
	must(errno == 0, "PTRACE_PEEKDATA");
	return word;
}

/* Above the stack pointer lie argc, argv, NULL, envp, NULL and the auxiliary vector. */
static void hide_vdso(pid_t pid)
{
	struct user_regs_struct regs;
	must(ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0, "PTRACE_GETREGS");
	unsigned long at = regs.rsp + 8 * (peek(pid, regs.rsp) + 2);
	while (peek(pid, at) != 0)
		at += 8;
	for (at += 8; peek(pid, at) != AT_NULL; at += 16)
		if (peek(pid, at) == AT_SYSINFO_EHDR)
			must(ptrace(PTRACE_POKEDATA, pid, at, AT_IGNORE) == 0, "PTRACE_POKEDATA");
}

static void ends_well(pid_t pid)
{
	int status;
	must(waitpid(pid, &status, 0) == pid && status == 0, PROGRAM);
}

/* Counts the calls of all threads until the program ends. */
static long count_getrandom(pid_t pid)
{
	long calls = 0;
	int status;
	must(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE) == 0, "PTRACE_SETOPTIONS");
	must(ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0, "PTRACE_SYSCALL");
	for (;;) {
		struct user_regs_struct regs;
		unsigned long sig = 0;
		pid_t thread = waitpid(-1, &status, __WALL);
		must(thread > 0, "waitpid");
		if (!WIFSTOPPED(status)) {
			if (thread != pid)
				continue;
			must(status == 0, PROGRAM);
			return calls;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			must(ptrace(PTRACE_GETREGS, thread, NULL, &regs) == 0, "PTRACE_GETREGS");
			/* On the way in no result stands there yet. */
			calls += regs.orig_rax == SYS_getrandom && (long)regs.rax == -ENOSYS;
		} else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
			sig = (unsigned long)WSTOPSIG(status);
		}
		/* A thread may have ended with the program meanwhile. */
		must(ptrace(PTRACE_SYSCALL, thread, NULL, sig) == 0 || errno == ESRCH, "PTRACE_SYSCALL");
	}
}

static void measure(char *how, int with_vdso)
{
	char name[64], count[32];
	char *argv[] = { PROGRAM, how, count, name, NULL };
	snprintf(name, sizeof name, "%s%s", how, with_vdso ? "" : "-without-vdso");
	long strings = calls(1000000);
	snprintf(count, sizeof count, "%ld", strings);
	pid_t pid = start(argv);
	if (!with_vdso)
		hide_vdso(pid);
	must(ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0, "PTRACE_DETACH");
	ends_well(pid);

	/* What strace would say, of a thousandth of them. */
	strings = calls(1000);
	snprintf(count, sizeof count, "%ld", strings);
	argv[3] = NULL;
	pid = start(argv);
	if (!with_vdso)
		hide_vdso(pid);
	printf("count %s %ld %ld\n", name, strings, count_getrandom(pid));
}

int main(int argc, char **argv)
{
	static char *const hows[] = { "by-character", "by-string", "unbiased" };
	static char *const bias[] = { PROGRAM, "bias", NULL };
	experiment_begin(argc, argv);
	for (int with_vdso = 0; with_vdso <= 1; with_vdso++)
		for (int i = 0; i < 3; i++)
			measure(hows[i], with_vdso);
	pid_t pid = start(bias);
	must(ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0, "PTRACE_DETACH");
	ends_well(pid);
	experiment_end();
	return 0;
}
