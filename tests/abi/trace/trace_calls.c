/*
 * trace_calls: PTRACE_SYSCALL stops before and after each system call; the tracer sees and changes number, arguments and
 * result, or prevents the call; PTRACE_SYSEMU makes none.
 */
#include "trace.h"
#include <linux/ptrace.h>

static long reg(pid_t pid, size_t offset)
{
	errno = 0;
	return ptrace(PTRACE_PEEKUSER, pid, offset, 0);
}

#define REG(pid, name) reg(pid, offsetof(struct user_regs_struct, name))
#define SET(pid, name, value) ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, name), value)

static void next(pid_t pid, const char *what)
{
	MUST(ptrace(PTRACE_SYSCALL, pid, 0, 0));
	stop_of(what, pid);
}

static void info_of(pid_t pid)
{
	struct ptrace_syscall_info info;
	memset(&info, 0, sizeof info);
	long size = ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
	printf("info: %ld bytes, op %d, arch %x", size, info.op, info.arch);
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		printf(", call %llu of %d", (unsigned long long)info.entry.nr, (int)info.entry.args[0]);
	if (info.op == PTRACE_SYSCALL_INFO_EXIT)
		printf(", result %lld, error %d", (long long)info.exit.rval, info.exit.is_error);
	printf("\n");
	unsigned long message = 99;
	T(ptrace(PTRACE_GETEVENTMSG, pid, 0, &message));
	SAY("message %lu", message);
}

int main(void)
{
	SAY("-- before and after");
	TRACED(a, { syscall(SYS_dup2, 777, 3); _exit((int)syscall(SYS_getpgid, -5)); });
	next(a, "dup2");
	IS(REG(a, orig_rax) == SYS_dup2 && REG(a, rdi) == 777 && REG(a, rsi) == 3);
	IS(REG(a, rax) == -ENOSYS);
	info_of(a);
	next(a, "after it");
	IS(REG(a, orig_rax) == SYS_dup2 && REG(a, rax) == -EBADF);
	info_of(a);
	MUST(ptrace(PTRACE_SETOPTIONS, a, 0, PTRACE_O_TRACESYSGOOD));
	next(a, "getpgid");
	info_of(a);
	siginfo_t siginfo;
	T(ptrace(PTRACE_GETSIGINFO, a, 0, &siginfo));
	SAY("signal %d, code %#x", siginfo.si_signo, siginfo.si_code);
	next(a, "after it");
	info_of(a);
	T(SET(a, rax, 42));
	next(a, "exit_group");
	IS(REG(a, rdi) == 42 || REG(a, rdi) == (int)-1);
	next(a, "the end");

	SAY("-- another call, other arguments, none");
	TRACED(b, {
		long one = syscall(SYS_getpgid, -5);
		long two = syscall(SYS_getuid);
		long three = syscall(SYS_close, 0);
		_exit(one == -1 && errno == EBADF && two == 4711 && three == 0 ? 1 : 2);
	});
	MUST(ptrace(PTRACE_SETOPTIONS, b, 0, PTRACE_O_TRACESYSGOOD));
	next(b, "getpgid");
	T(SET(b, orig_rax, SYS_dup2));
	T(SET(b, rdi, 999));
	next(b, "after what became dup2");
	IS(REG(b, rax) == -EBADF && REG(b, orig_rax) == SYS_dup2);
	next(b, "getuid");
	T(SET(b, orig_rax, -1L));
	T(SET(b, rax, 4711));
	next(b, "after none");
	IS(REG(b, orig_rax) == -1);
	next(b, "close");
	T(SET(b, rdi, 1000));
	next(b, "after it");
	IS(REG(b, rax) == -EBADF);
	T(SET(b, rax, 0));
	T(ptrace(PTRACE_CONT, b, 0, 0));
	stop_of("the end", b);

	SAY("-- the numbers that are none");
	TRACED(c, { long one = syscall(9999); _exit(one == -1 && errno == ENOSYS); });
	MUST(ptrace(PTRACE_SETOPTIONS, c, 0, PTRACE_O_TRACESYSGOOD));
	next(c, "9999");
	IS(REG(c, orig_rax) == 9999);
	next(c, "after it");
	IS(REG(c, rax) == -ENOSYS);
	T(ptrace(PTRACE_CONT, c, 0, 0));
	stop_of("the end", c);

	SAY("-- a call that a signal interrupts");
	TRACED(d, { signal(SIGUSR1, SIG_IGN); struct timespec t = { 0, 200000000 }; _exit(nanosleep(&t, NULL) == 0); });
	MUST(ptrace(PTRACE_SETOPTIONS, d, 0, PTRACE_O_TRACESYSGOOD));
	do
		next(d, "some call");
	while (REG(d, orig_rax) != SYS_nanosleep && REG(d, orig_rax) != SYS_clock_nanosleep);
	MUST(ptrace(PTRACE_SYSCALL, d, 0, 0));
	sleep_ms(50);
	kill(d, SIGUSR1);
	stop_of("interrupted", d);
	SAY("result %ld", REG(d, rax));
	next(d, "the signal");
	MUST(ptrace(PTRACE_SYSCALL, d, 0, SIGUSR1));
	stop_of("the call again", d);
	SAY("number %ld", REG(d, orig_rax));
	T(ptrace(PTRACE_CONT, d, 0, 0));
	stop_of("the end", d);

	SAY("-- calls that are not made");
	TRACED(e, { long one = syscall(SYS_getuid); _exit(one == 12 ? 5 : 6); });
	MUST(ptrace(PTRACE_SETOPTIONS, e, 0, PTRACE_O_TRACESYSGOOD));
	MUST(ptrace(PTRACE_SYSEMU, e, 0, 0));
	stop_of("getuid", e);
	IS(REG(e, orig_rax) == SYS_getuid && REG(e, rax) == -ENOSYS);
	T(SET(e, rax, 12));
	MUST(ptrace(PTRACE_SYSEMU, e, 0, 0));
	stop_of("exit_group", e);
	IS(REG(e, orig_rax) == SYS_exit_group && REG(e, rdi) == 5);
	T(ptrace(PTRACE_KILL, e, 0, 0));
	stop_of("the end", e);

	SAY("-- exec and a handler's end");
	TRACED(f, {
		signal(SIGUSR1, (void (*)(int))(void *)getppid);
		raise(SIGUSR1);
		execl("/proc/self/exe", "trace_calls", "child", NULL);
		_exit(9);
	});
	MUST(ptrace(PTRACE_SETOPTIONS, f, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC));
	for (int status = 0, seen = 0; seen < 3;) {
		long before = REG(f, orig_rax);
		MUST(ptrace(PTRACE_SYSCALL, f, 0, WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1 ? SIGUSR1 : 0));
		MUST(waitpid(f, &status, __WALL));
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
			SAY("the event of exec, number %ld", REG(f, orig_rax));
			seen++;
		} else if (WSTOPSIG(status) == (SIGTRAP | 0x80) && REG(f, rax) != -ENOSYS
			   && (before == SYS_execve || before == SYS_rt_sigreturn || seen == 1)) {
			SAY("after number %ld: %ld, result %s", before, REG(f, orig_rax),
			    REG(f, rax) == 0 ? "zero" : "something");
			if (seen == 1)
				info_of(f);
			seen++;
		} else if (!WIFSTOPPED(status)) {
			say_status("too early", status);
			break;
		}
	}
	T(ptrace(PTRACE_DETACH, f, 0, SIGKILL));
	stop_of("the end", f);
	return 0;
}
