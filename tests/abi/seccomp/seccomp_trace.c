/*
 * Filters and tracers: the order of their stops, a call that the tracer changes or prevents, what GET_SYSCALL_INFO tells,
 * and what checkpointing tools may read and suspend.
 */
#include "check.h"
#include "filters.h"
#include <sys/ptrace.h>
#include <sys/user.h>

#undef PTRACE_O_SUSPEND_SECCOMP
#define SUSPEND (1 << 21)
#define GET_FILTER 0x420c
#define GET_METADATA 0x420d
#define P(request, pid, addr, data) syscall(SYS_ptrace, (long)(request), (long)(pid), (void *)(long)(addr), (void *)(data))

/* A tracee that has stopped itself, with one call under a filter. */
static pid_t tracee(unsigned action)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(P(PTRACE_TRACEME, 0, 0, 0L));
		raise(SIGSTOP);
		if (action)
			MUST(answer_with(SECCOMP_FILTER_FLAG_LOG, SYS_getppid, action));
		errno = 0;
		long result = syscall(SYS_getppid, 11, 22, 33, 44, 55, 66);
		_exit(result < 0 ? errno : (int)(result & 0x7f));
	}
	int status;
	waitpid(pid, &status, 0);
	return pid;
}

static int stopped(pid_t pid, const char *where)
{
	int status;
	MUST(waitpid(pid, &status, 0));
	if (!WIFSTOPPED(status)) {
		say_status(where, status);
		return 0;
	}
	struct __ptrace_syscall_info info;
	unsigned long message = 0;
	memset(&info, 0, sizeof info);
	long size = P(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, (long)&info);
	P(PTRACE_GETEVENTMSG, pid, 0, (long)&message);
	SAY("%s: stop %#x, op %d of %ld bytes, message %lu", where, status >> 8, info.op, size, message);
	if (info.op == PTRACE_SYSCALL_INFO_SECCOMP)
		SAY("  nr %llu args %llu %llu ret_data %u", (unsigned long long)info.seccomp.nr,
		    (unsigned long long)info.seccomp.args[0], (unsigned long long)info.seccomp.args[5], info.seccomp.ret_data);
	return 1;
}

static void set_number(pid_t pid, long number)
{
	T(P(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), number));
}

static void set_result(pid_t pid, long result)
{
	T(P(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rax), result));
}

static pid_t at_event(unsigned action, long options)
{
	pid_t pid = tracee(action);
	MUST(P(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL | options));
	MUST(P(PTRACE_CONT, pid, 0, 0L));
	return pid;
}

static void events(void)
{
	pid_t pid = at_event(SECCOMP_RET_TRACE | 0x4321, 0);
	stopped(pid, "no option: it ends with ENOSYS");
	pid = at_event(SECCOMP_RET_TRACE | 0x4321, PTRACE_O_TRACESECCOMP);
	stopped(pid, "the event");
	MUST(P(PTRACE_CONT, pid, 0, 0L));
	int status = reap(pid);
	IS(WIFEXITED(status) && WEXITSTATUS(status) == (getpid() & 0x7f));
	pid = at_event(SECCOMP_RET_TRACE, PTRACE_O_TRACESECCOMP);
	stopped(pid, "prevented");
	set_number(pid, -1);
	set_result(pid, 21);
	MUST(P(PTRACE_CONT, pid, 0, 0L));
	say_status("  21", reap(pid));
	pid = at_event(SECCOMP_RET_TRACE, PTRACE_O_TRACESECCOMP);
	stopped(pid, "prevented, no result set");
	set_number(pid, -1);
	MUST(P(PTRACE_CONT, pid, 0, 0L));
	IS(WEXITSTATUS(reap(pid)) == ENOSYS);
	pid = at_event(SECCOMP_RET_TRACE, PTRACE_O_TRACESECCOMP);
	stopped(pid, "another call");
	set_number(pid, SYS_getpid);
	MUST(P(PTRACE_CONT, pid, 0, 0L));
	IS(WEXITSTATUS(reap(pid)) == (pid & 0x7f));
	pid = at_event(SECCOMP_RET_TRACE, PTRACE_O_TRACESECCOMP);
	stopped(pid, "killed there");
	MUST(kill(pid, SIGKILL));
	say_status("  killed", reap(pid));
	pid = at_event(SECCOMP_RET_TRACE, PTRACE_O_TRACESECCOMP);
	stopped(pid, "on to the end of the call");
	MUST(P(PTRACE_SYSCALL, pid, 0, 0L));
	stopped(pid, "  its end");
	MUST(P(PTRACE_CONT, pid, 0, 0L));
	reap(pid);
	pid = at_event(SECCOMP_RET_TRAP | 3, PTRACE_O_TRACESECCOMP);
	stopped(pid, "a trap");
	siginfo_t info;
	MUST(P(PTRACE_GETSIGINFO, pid, 0, (long)&info));
	SAY("  code %d errno %d", info.si_code, info.si_errno);
	MUST(P(PTRACE_CONT, pid, 0, (long)SIGSYS));
	say_status("  given", reap(pid));
	pid = at_event(SECCOMP_RET_KILL_PROCESS, PTRACE_O_TRACESECCOMP);
	stopped(pid, "killed without asking the tracer");
}

/* The tracer's stop at the entry is first, and what it makes of the call is judged. */
static void order(void)
{
	pid_t pid = tracee(SECCOMP_RET_TRACE | 7);
	MUST(P(PTRACE_SETOPTIONS, pid, 0, (long)(PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD)));
	for (int stop = 0; stop < 6; stop++) {
		MUST(P(PTRACE_SYSCALL, pid, 0, 0L));
		stopped(pid, "in order");
	}
	MUST(P(PTRACE_CONT, pid, 0, 0L));
	reap(pid);
	static const long to[] = { -1, SYS_getppid };
	for (int at = 0; at < 2; at++) {
		pid = (pid_t)MUST(fork());
		if (pid == 0) {
			MUST(P(PTRACE_TRACEME, 0, 0, 0L));
			MUST(answer_with(0, to[at], SECCOMP_RET_ERRNO | 45));
			raise(SIGSTOP);
			errno = 0;
			syscall(SYS_getuid);
			_exit(errno);
		}
		int status;
		waitpid(pid, &status, 0);
		do {
			MUST(P(PTRACE_SYSCALL, pid, 0, 0L));
			waitpid(pid, &status, 0);
		} while (P(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, orig_rax), &status) == 0 && status != SYS_getuid);
		set_number(pid, to[at]);
		MUST(P(PTRACE_DETACH, pid, 0, 0L));
		say_status("the filter sees what the tracer made of it", reap(pid));
	}
}

static void checkpoint(void)
{
	struct { uint64_t off, flags; } md = { 0, 99 };
	struct sock_filter filter[16];
	pid_t pid = at_event(SECCOMP_RET_TRACE, PTRACE_O_TRACESECCOMP);
	stopped(pid, "to be read");
	T(P(GET_FILTER, pid, 0, 0L));
	T(P(GET_FILTER, pid, 0, (long)filter));
	SAY("%#x %#x %u %u", filter[1].code, filter[1].k, filter[1].jt, filter[1].jf);
	T(P(GET_FILTER, pid, 1, (long)filter));
	T(P(GET_FILTER, pid, -1, (long)filter));
	T(P(GET_FILTER, pid, 0, (long)KERNEL_ADDRESS));
	T(P(GET_METADATA, pid, sizeof md, (long)&md));
	SAY("%llu %llu", (unsigned long long)md.off, (unsigned long long)md.flags);
	T(P(GET_METADATA, pid, 7, (long)&md));
	T(P(GET_METADATA, pid, 8, (long)&md));
	T(P(GET_METADATA, pid, 1000, (long)&md));
	T(P(GET_METADATA, pid, sizeof md, 0L));
	md.off = 1;
	T(P(GET_METADATA, pid, sizeof md, (long)&md));
	T(P(PTRACE_SETOPTIONS, pid, 0, (long)(PTRACE_O_EXITKILL | SUSPEND)));
	MUST(P(PTRACE_CONT, pid, 0, 0L));
	reap(pid);
	pid = tracee(0);
	T(P(GET_FILTER, pid, 0, 0L));
	T(P(GET_METADATA, pid, sizeof md, (long)&md));
	kill(pid, SIGKILL);
	reap(pid);
	pid = at_event(SECCOMP_RET_KILL_PROCESS, SUSPEND);
	IS(WEXITSTATUS(reap(pid)) == (getpid() & 0x7f));
	CHILD("who has a filter") {
		pid_t other = tracee(SECCOMP_RET_TRACE);
		answer_with(0, SYS_getppid, SECCOMP_RET_ALLOW);
		T(P(GET_FILTER, other, 0, 0L));
		T(P(GET_METADATA, other, 16, (long)&md));
		T(P(PTRACE_SETOPTIONS, other, 0, (long)SUSPEND));
		kill(other, SIGKILL);
		reap(other);
		fflush(stdout);
	} END;
	CHILD("who is not root") {
		MUST(setuid(1000));
		pid_t other = tracee(0);
		T(P(GET_FILTER, other, 0, 0L));
		T(P(PTRACE_SETOPTIONS, other, 0, (long)SUSPEND));
		T(P(PTRACE_SETOPTIONS, other, 0, (long)(1 << 22)));
		kill(other, SIGKILL);
		reap(other);
		other = (pid_t)MUST(fork());
		if (other == 0)
			for (;;)
				pause();
		T(P(PTRACE_SEIZE, other, 0, (long)SUSPEND));
		T(P(PTRACE_SEIZE, other, 0, (long)(1 << 22)));
		kill(other, SIGKILL);
		reap(other);
		fflush(stdout);
	} END;
}

int main(void)
{
	events();
	order();
	checkpoint();
	return 0;
}
