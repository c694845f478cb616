/*
 * trace_leaves: a call that was not watched when it began, and in which its caller stops for an event: what the tracer says there
 * acts at the end of the same call, be it PTRACE_SYSCALL or PTRACE_SINGLESTEP.
 */
#include "trace.h"
#include <linux/ptrace.h>

static void on(pid_t pid, enum __ptrace_request how, const char *what)
{
	MUST(ptrace(how, pid, 0, 0));
	stop_of(what, pid);
}

/* The call that it stands in, and whether its result is the number of the child. */
static void place(pid_t pid, pid_t child)
{
	struct user_regs_struct regs;
	struct ptrace_syscall_info info;
	memset(&info, 0, sizeof info);
	MUST(ptrace(PTRACE_GETREGS, pid, 0, &regs));
	MUST(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info));
	SAY("call %lld, result %lld, as told %d", (long long)regs.orig_rax, child > 0 && (pid_t)regs.rax == child ? 1LL : (long long)regs.rax,
	    info.op);
	SAY("behind the instruction: %d", (ptrace(PTRACE_PEEKTEXT, pid, regs.rip - 2, 0) & 0xffff) == 0x50f);
}

static void end(pid_t pid)
{
	int status;
	for (;;) {
		MUST(ptrace(PTRACE_CONT, pid, 0, 0));
		MUST(waitpid(pid, &status, __WALL));
		if (!WIFSTOPPED(status))
			break;
	}
	say_status("the end", status);
}

static void forks(enum __ptrace_request how)
{
	TRACED(a, { pid_t child = (pid_t)syscall(SYS_fork); if (child == 0) _exit(3); _exit(0); });
	MUST(ptrace(PTRACE_SETOPTIONS, a, 0, PTRACE_O_TRACEFORK | PTRACE_O_TRACESYSGOOD));
	on(a, PTRACE_CONT, "fork");
	pid_t child = (pid_t)message_of(a);
	stop_of("the child", child);
	on(a, how, "at its end");
	place(a, child);
	MUST(ptrace(PTRACE_DETACH, child, 0, 0));
	end(a);
}

static void vforks(enum __ptrace_request first, enum __ptrace_request then)
{
	TRACED(b, { pid_t child = vfork(); if (child == 0) _exit(4); _exit(0); });
	MUST(ptrace(PTRACE_SETOPTIONS, b, 0, PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACESYSGOOD));
	on(b, PTRACE_CONT, "vfork");
	pid_t child = (pid_t)message_of(b);
	stop_of("the child", child);
	MUST(ptrace(PTRACE_DETACH, child, 0, 0));
	on(b, first, "done");
	on(b, then, "then");
	place(b, child);
	end(b);
}

static void execs(enum __ptrace_request how, char *self)
{
	TRACED(c, { execl(self, "trace_leaves", "x", NULL); _exit(99); });
	MUST(ptrace(PTRACE_SETOPTIONS, c, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD));
	on(c, PTRACE_CONT, "exec");
	on(c, how, "at its end");
	struct user_regs_struct regs;
	MUST(ptrace(PTRACE_GETREGS, c, 0, &regs));
	SAY("call %lld, result %lld", (long long)regs.orig_rax, (long long)regs.rax);
	end(c);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 33;
	signal(SIGCHLD, SIG_DFL);
	SAY("-- fork, then to its end");
	forks(PTRACE_SYSCALL);
	SAY("-- fork, then one step");
	forks(PTRACE_SINGLESTEP);
	SAY("-- vfork, then to its end");
	vforks(PTRACE_SYSCALL, PTRACE_SYSCALL);
	vforks(PTRACE_CONT, PTRACE_SYSCALL);
	vforks(PTRACE_CONT, PTRACE_SINGLESTEP);
	SAY("-- exec, then to its end");
	execs(PTRACE_SYSCALL, "/proc/self/exe");
	SAY("-- exec, then one step");
	execs(PTRACE_SINGLESTEP, "/proc/self/exe");
	return 0;
}
