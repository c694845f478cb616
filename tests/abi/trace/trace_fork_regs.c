/*
 * trace_fork_regs: a tracer may set the registers of a task that is about to fork; its child begins with them, as far as a
 * program may have them: no privileged flag, and an address that is none is the child's own fault. That its parent is stepped
 * is no matter to it.
 */
#include "trace.h"

/* forks by the bare call; the child's exit status has its I/O privilege, and whether interrupts are off. */
static void forks(void)
{
	long pid;
	unsigned long flags;
	__asm__ volatile("syscall" : "=a"(pid) : "a"((long)SYS_fork) : "rcx", "r11", "memory");
	if (pid == 0) {
		__asm__ volatile("pushfq\n\tpop %0" : "=r"(flags));
		syscall(SYS_exit_group, (int)((flags >> 12 & 3) << 4 | (flags >> 18 & 1) << 1 | !(flags & 0x200)));
	}
	int status = 0;
	waitpid((pid_t)pid, &status, 0);
	_exit(WIFSIGNALED(status) ? 0x80 | WTERMSIG(status) : WEXITSTATUS(status));
}

/* Lets it run until it stops where it calls fork. */
static void reach_fork(pid_t pid)
{
	struct user_regs_struct regs;
	do {
		MUST(ptrace(PTRACE_SYSCALL, pid, 0, 0));
		int status;
		MUST(waitpid(pid, &status, __WALL));
		MUST(ptrace(PTRACE_GETREGS, pid, 0, &regs));
	} while (regs.orig_rax != SYS_fork);
}

static void poke(const char *what, size_t reg, unsigned long value, int detaches)
{
	SAY("-- %s", what);
	TRACED(pid, forks());
	reach_fork(pid);
	OK(ptrace(PTRACE_POKEUSER, pid, reg, value));
	if (detaches) {
		T(ptrace(PTRACE_DETACH, pid, 0, 0));
		say_status("the child's", reap(pid));
		return;
	}
	T(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_of("its parent", pid);
	T(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_of("the child's", pid);
}

/* The parent is stepped over its fork: its child is not. */
static void steps(void)
{
	SAY("-- a step over the call");
	TRACED(pid, forks());
	reach_fork(pid);
	MUST(ptrace(PTRACE_SINGLESTEP, pid, 0, 0));
	stop_of("its parent", pid);
	int status = 0;
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	say_status("the child's", status);
}

int main(void)
{
	steps();
	size_t r11 = offsetof(struct user_regs_struct, r11), rcx = offsetof(struct user_regs_struct, rcx);
	for (int detaches = 0; detaches < 2; detaches++) {
		poke("privilege in r11", r11, 0x43202, detaches);
		poke("no interrupts in r11", r11, 2, detaches);
		poke("no address in rcx", rcx, 0x8000000000000000, detaches);
		poke("an address of the kernel in rcx", rcx, 0xffffffff81000000, detaches);
	}
	return 0;
}
