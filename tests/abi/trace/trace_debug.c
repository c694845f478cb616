/*
 * trace_debug: breakpoints and watchpoints in debug registers: set by POKEUSER, checked, hit, told by the code of the
 * SIGTRAP and by DR6; a program's own and nobody else's, gone with exec and not inherited.
 */
#include "trace.h"

static volatile long watched, other;
static volatile char bytes[16] __attribute__((aligned(16)));

__attribute__((noipa)) static void target(void)
{
	other++;
}

static long dr(pid_t pid, int n)
{
	errno = 0;
	long value = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg) + 8 * n, 0);
	return errno ? -errno : value;
}

#define SET(pid, n, value) ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg) + 8 * (n), (long)(value))
/* DR7 for place n: kind 0 executes, 1 writes, 3 reads or writes; length 0, 1, 3 or 2 for 1, 2, 4 or 8 bytes. */
#define ON(n, kind, length) (1L << (2 * (n)) | (long)(kind) << (16 + 4 * (n)) | (long)(length) << (18 + 4 * (n)))

static void hit(pid_t pid, const char *what)
{
	siginfo_t info;
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_of(what, pid);
	if (ptrace(PTRACE_GETSIGINFO, pid, 0, &info) == 0)
		SAY("code %d, DR6 %#lx", info.si_code, dr(pid, 6) & 0x400f);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		target();
		return 7;
	}
	SAY("-- a watchpoint for writes");
	TRACED(a, { other = watched; watched = 1; watched = 2; other = 3; (void)watched; _exit(1); });
	T(SET(a, 0, &watched));
	T(SET(a, 7, ON(0, 1, 2)));
	IS(dr(a, 0) == (long)&watched && dr(a, 7) == ON(0, 1, 2));
	hit(a, "written");
	SAY("%ld", ptrace(PTRACE_PEEKDATA, a, &watched, 0));
	hit(a, "written again");
	SAY("%ld", ptrace(PTRACE_PEEKDATA, a, &watched, 0));
	hit(a, "the end");

	SAY("-- one for reads, another place, a shorter length");
	TRACED(b, { bytes[3] = 1; bytes[4] = 1; other = bytes[5]; bytes[6] = 1; _exit(2); });
	T(SET(b, 2, bytes + 4));
	T(SET(b, 7, ON(2, 3, 1)));
	hit(b, "written");
	hit(b, "read");
	hit(b, "the end");

	SAY("-- a breakpoint");
	TRACED(c, { target(); target(); target(); _exit(3); });
	T(SET(c, 1, target));
	T(SET(c, 7, ON(1, 0, 0)));
	hit(c, "reached");
	struct user_regs_struct regs;
	MUST(ptrace(PTRACE_GETREGS, c, 0, &regs));
	IS(regs.rip == (unsigned long)target);
	hit(c, "the next call");
	SAY("%ld", ptrace(PTRACE_PEEKDATA, c, &other, 0));
	T(SET(c, 7, 0));
	hit(c, "the end");

	SAY("-- the kernel's own accesses are not told");
	TRACED(d, { int fds[2]; pipe(fds); write(fds[1], "x", 1); read(fds[0], (void *)&watched, 1); _exit(4); });
	MUST(SET(d, 0, &watched));
	MUST(SET(d, 7, ON(0, 1, 2)));
	hit(d, "the end");

	SAY("-- with a step");
	TRACED(e, { target(); _exit(5); });
	MUST(SET(e, 0, target));
	MUST(SET(e, 7, ON(0, 0, 0)));
	hit(e, "reached");
	MUST(SET(e, 7, 0));
	MUST(ptrace(PTRACE_SINGLESTEP, e, 0, 0));
	stop_of("a step", e);
	SAY("DR6 %#lx", dr(e, 6) & 0x400f);
	hit(e, "the end");

	SAY("-- not inherited, gone with exec");
	TRACED(f, { if (fork() == 0) { watched = 5; _exit(0); } wait(NULL); execl("/proc/self/exe", "trace_debug", "x", NULL); });
	MUST(SET(f, 0, &watched));
	MUST(SET(f, 7, ON(0, 1, 2)));
	hit(f, "SIGCHLD");
	hit(f, "exec");
	SAY("%#lx %#lx", dr(f, 0), dr(f, 7));
	hit(f, "the end");

	SAY("-- other tasks beside it");
	pid_t busy = (pid_t)MUST(fork());
	if (busy == 0)
		for (;;)
			watched++;
	TRACED(g, { for (int n = 0; n < 3; n++) { sleep_ms(5); watched = n; } _exit(6); });
	MUST(SET(g, 3, &watched));
	MUST(SET(g, 7, ON(3, 1, 2)));
	hit(g, "one");
	hit(g, "two");
	hit(g, "three");
	hit(g, "the end");
	kill(busy, SIGKILL);
	say_status("the other", reap(busy));

	SAY("-- what is refused");
	TRACED(h, pause());
	T(SET(h, 0, 0xffffffff81000000));
	T(SET(h, 0, 0x800000000000));
	T(SET(h, 4, 1));
	T(SET(h, 5, 1));
	T(SET(h, 0, (char *)&watched + 1));
	T(SET(h, 7, ON(0, 1, 2)));
	T(SET(h, 7, ON(0, 2, 0)));
	T(SET(h, 7, ON(0, 0, 2)));
	T(SET(h, 7, 0x2000));
	T(SET(h, 0, &watched));
	T(SET(h, 7, ON(0, 1, 2)));
	T(SET(h, 0, (char *)&watched + 1));
	IS(dr(h, 0) == (long)&watched);
	SAY("%ld %ld", dr(h, 4), dr(h, 5));
	kill(h, SIGKILL);
	stop_of("the end", h);
	return 0;
}
