/*
 * trace_events: fork, vfork, clone, exec, exit and the end of a vfork stop a tracee whose tracer asked for it, and
 * children are traced from their first instruction on; without asking, exec is a SIGTRAP.
 */
#include "trace.h"
#include <sched.h>

static int nothing(void *argument)
{
	return (int)(long)argument;
}

static char stack[65536] __attribute__((aligned(16)));

int main(int argc, char **argv)
{
	siginfo_t info;
	if (argc > 1)
		return 30 + argc + (argv[1][0] == 'x');
	char *self = "/proc/self/exe";

	SAY("-- fork");
	TRACED(a, { pid_t child = fork(); if (child == 0) _exit(3); int status; waitpid(child, &status, 0); _exit(WEXITSTATUS(status)); });
	T(ptrace(PTRACE_SETOPTIONS, a, 0, PTRACE_O_TRACEFORK));
	go(a, "fork");
	pid_t child = (pid_t)message_of(a);
	IS(child > 0 && child != a);
	MUST(ptrace(PTRACE_GETSIGINFO, a, 0, &info));
	SAY("signal %d, code %#x", info.si_signo, info.si_code);
	stop_of("the new one", child);
	MUST(ptrace(PTRACE_GETSIGINFO, child, 0, &info));
	SAY("signal %d, code %d", info.si_signo, info.si_code);
	go(child, "its end");
	stop_of("SIGCHLD to its parent", (MUST(ptrace(PTRACE_CONT, a, 0, 0)), a));
	MUST(ptrace(PTRACE_CONT, a, 0, SIGCHLD));
	stop_of("the parent's end", a);

	SAY("-- a child that is killed with its parent's tracer looking on");
	TRACED(b, { pid_t child = fork(); if (child == 0) pause(); int status; waitpid(child, &status, 0); _exit(WTERMSIG(status)); });
	MUST(ptrace(PTRACE_SETOPTIONS, b, 0, PTRACE_O_TRACEFORK));
	go(b, "fork");
	child = (pid_t)message_of(b);
	stop_of("the new one", child);
	MUST(ptrace(PTRACE_CONT, b, 0, 0));
	kill(child, SIGKILL);
	stop_of("killed", child);
	stop_of("SIGCHLD to its parent", b);
	MUST(ptrace(PTRACE_CONT, b, 0, SIGCHLD));
	stop_of("the parent's end", b);

	SAY("-- vfork");
	TRACED(c, { pid_t child = vfork(); if (child == 0) _exit(4); int status; waitpid(child, &status, 0); _exit(WEXITSTATUS(status)); });
	T(ptrace(PTRACE_SETOPTIONS, c, 0, PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE));
	go(c, "vfork");
	child = (pid_t)message_of(c);
	stop_of("the new one", child);
	MUST(ptrace(PTRACE_CONT, c, 0, 0));
	T(waitpid(c, NULL, WNOHANG | __WALL));
	go(child, "its end");
	int status = stop_of("the vfork is done", c);
	IS(status >> 16 == PTRACE_EVENT_VFORK_DONE && message_of(c) == (unsigned long)child);
	MUST(ptrace(PTRACE_CONT, c, 0, 0));
	for (;;) {
		waitpid(c, &status, __WALL);
		if (!WIFSTOPPED(status))
			break;
		MUST(ptrace(PTRACE_CONT, c, 0, WSTOPSIG(status)));
	}
	say_status("the parent's end", status);

	SAY("-- clone");
	TRACED(d, { int flags = CLONE_VM | CLONE_FILES; pid_t child = clone(nothing, stack + sizeof stack, flags, (void *)6L);
		    int status; waitpid(child, &status, __WALL); _exit(WEXITSTATUS(status)); });
	T(ptrace(PTRACE_SETOPTIONS, d, 0, PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE));
	go(d, "clone");
	child = (pid_t)message_of(d);
	stop_of("the new one", child);
	go(child, "its end");
	go(d, "the parent's end");

	SAY("-- nobody is told");
	TRACED(e, { pid_t child = (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0); if (child == 0) _exit(3);
		    int status; waitpid(child, &status, 0); _exit(WEXITSTATUS(status)); });
	MUST(ptrace(PTRACE_SETOPTIONS, e, 0, PTRACE_O_TRACEFORK));
	go(e, "SIGCHLD of one it does not trace");
	MUST(ptrace(PTRACE_CONT, e, 0, 0));
	stop_of("its end", e);

	SAY("-- exec");
	TRACED(f, { execl(self, "trace_events", "x", NULL); _exit(99); });
	go(f, "exec without the option");
	MUST(ptrace(PTRACE_GETSIGINFO, f, 0, &info));
	SAY("signal %d, code %d", info.si_signo, info.si_code);
	go(f, "its end");
	TRACED(g, { execl("/nonexistent", "no", NULL); execl(self, "trace_events", "x", NULL); _exit(99); });
	T(ptrace(PTRACE_SETOPTIONS, g, 0, PTRACE_O_TRACEEXEC));
	go(g, "exec");
	IS(message_of(g) == (unsigned long)g);
	struct user_regs_struct regs;
	MUST(ptrace(PTRACE_GETREGS, g, 0, &regs));
	IS(regs.orig_rax == SYS_execve);
	IS(regs.rbx == 0 && regs.r12 == 0 && regs.rdi == 0);
	SAY("result %ld", (long)regs.rax);
	go(g, "its end");

	SAY("-- exit");
	TRACED(h, _exit(7));
	T(ptrace(PTRACE_SETOPTIONS, h, 0, PTRACE_O_TRACEEXIT));
	go(h, "exit");
	SAY("message %#lx", message_of(h));
	MUST(ptrace(PTRACE_GETREGS, h, 0, &regs));
	IS(regs.orig_rax == SYS_exit_group && (int)regs.rdi == 7);
	go(h, "its end");
	TRACED(i, raise(SIGTERM));
	MUST(ptrace(PTRACE_SETOPTIONS, i, 0, PTRACE_O_TRACEEXIT));
	go(i, "raise");
	MUST(ptrace(PTRACE_CONT, i, 0, SIGTERM));
	stop_of("exit", i);
	SAY("message %#lx", message_of(i));
	go(i, "its end");

	SAY("-- options that are none");
	TRACED(j, pause());
	T(ptrace(PTRACE_SETOPTIONS, j, 0, 0x400L));
	T(ptrace(PTRACE_SETOPTIONS, j, 0, -1L));
	T(ptrace((enum __ptrace_request)0x4299, j, 0, 0));
	T(ptrace(PTRACE_CONT, j, 0, 65L));
	T(ptrace(PTRACE_CONT, j, 0, -1L));
	T(ptrace(PTRACE_KILL, j, 0, 0));
	stop_of("its end", j);
	return 0;
}
