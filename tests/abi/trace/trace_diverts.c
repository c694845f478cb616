/*
 * System-call user dispatch among the rest: a call let pass is to tracers and filters as any other, one that became a signal is
 * nothing to them; calls that are made anew, the numbers that mean "make me anew", the last addresses for the byte, single
 * steps, vfork, and what a tracer still reads after an exec.
 */
#include "dispatch.h"
#include "../seccomp/filters.h"
#include <sched.h>

static volatile char *selector;
static volatile int signals;

static long call3(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *user = context;
	greg_t *regs = user->uc_mcontext.gregs;
	*selector = 0;
	signals++;
	printf("SIG%s code %d, syscall %d, rax %lld, at the call %d, oldmask %llu\n", sig_name(sig), info->si_code, info->si_syscall,
	       regs[REG_RAX], (greg_t)info->si_call_addr == regs[REG_RIP], (unsigned long long)user->uc_sigmask.__val[0]);
	fflush(stdout);
	if (regs[REG_RAX] == (greg_t)info->si_syscall)
		regs[REG_RAX] = 77;
}

static void handle(int flags)
{
	catch_sigsys(handler, flags);
	*selector = 0;
}

static void edges(void)
{
	static const unsigned long at[] = { 0x7fffffffefffUL, 0x7ffffffff001UL, 0x7fffffffffffUL, 0x800000000000UL,
					    1UL << 62, 1UL << 63, -1UL, 1 };
	for (unsigned i = 0; i < LEN(at); i++) {
		printf("%#lx: ", at[i]);
		fflush(stdout);
		CHILD("set") {
			int result = dispatch(1, 1, -2ul, (char *)at[i]);
			SAY("%d", result ? errno : 0);
			fflush(stdout);
		} END;
	}
	CHILD("PROT_NONE") {
		handle(0);
		char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mprotect(page + 4096, 4096, PROT_NONE);
		page[4095] = 1;
		dispatch(1, 0, 0, page + 4095);
		selector = page + 4095;
		SAY("%ld", call3(SYS_getppid, 0, 0, 0));
		dispatch(1, 0, 0, page + 4096);
		call3(SYS_getppid, 0, 0, 0);
	} END;
	CHILD("an old call that is an address") {
		handle(0);
		long (*old_time)(long *) = (void *)0xffffffffff600400UL;
		dispatch(1, 0, 0, selector);
		*selector = 1;
		long now = old_time(NULL);
		*selector = 0;
		SAY("%d, %d signals", now > 0, signals);
		fflush(stdout);
	} END;
	CHILD("beyond a file") {
		int fd = memfd_create("x", 0);
		char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		signal(SIGBUS, SIG_IGN);
		dispatch(1, 0, 0, page);
		call3(SYS_getppid, 0, 0, 0);
	} END;
	CHILD("blocked") {
		handle(0);
		sigset_t set;
		sigemptyset(&set), sigaddset(&set, SIGSYS);
		sigprocmask(SIG_BLOCK, &set, NULL);
		dispatch(1, 0, 0, selector);
		*selector = 1;
		call3(SYS_getppid, 0, 0, 0);
	} END;
}

/* Numbers that look like results. */
static void numbers(void)
{
	static const long number[] = { -512, -513, -514, -516, -515, -4, 1L << 32 | SYS_getppid, 0x40000000 | SYS_getppid, -4096 };
	for (unsigned i = 0; i < LEN(number); i++)
		for (int restart = 0; restart < 2; restart++)
			CHILD("number") {
				handle(restart ? SA_RESTART : 0);
				dispatch(1, 0, 0, selector);
				*selector = 1;
				long result = call3(number[i], 0, 0, 0);
				*selector = 0;
				SAY("%ld: %ld, %d signals", number[i], result, signals);
				fflush(stdout);
			} END;
}

static void caught(int sig UNUSED)
{
	signals += 100;
}

/* While a call waits, another process that has the memory in common turns the selector. */
static void anew(void)
{
	int pipes[2];
	char got;
	for (int what = 0; what < 4; what++) {
		MUST(pipe(pipes));
		SAY("-- made anew %d", what);
		fflush(stdout);
		*selector = 0;
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			handle(0);
			struct sigaction act = { .sa_handler = caught, .sa_flags = what == 0 ? SA_RESTART : 0 };
			sigaction(SIGUSR1, &act, NULL);
			dispatch(1, 0, 0, selector);
			struct timespec t = { 1000, 0 };
			long result = what < 2 ? call3(SYS_read, pipes[0], (long)&got, 1) : call3(SYS_nanosleep, (long)&t, (long)&t, 0);
			*selector = 0;
			SAY("result %ld, %d signals", result, signals);
			fflush(stdout);
			_exit(0);
		}
		wait_state(pid, "S");
		/* Stopped first, so that it cannot go on between. */
		kill(pid, SIGSTOP);
		wait_state(pid, "T");
		*selector = what == 3 ? 0 : 1;
		if (what == 1) {
			/* A handler in between: its return is a call, too. */
			kill(pid, SIGUSR1);
			*selector = 0;
			MUST(write(pipes[1], "x", 1));
		} else if (what == 0) {
			MUST(write(pipes[1], "x", 1));
		}
		kill(pid, SIGCONT);
		if (what == 3) {
			wait_state(pid, "S");
			kill(pid, SIGUSR1);
		}
		say_status("it", reap(pid));
		close(pipes[0]), close(pipes[1]);
	}
}

static long regs_of(pid_t pid, const char *what)
{
	struct user_regs_struct regs;
	MUST(ptrace(PTRACE_GETREGS, pid, 0, &regs));
	SAY("%s: rax %lld, orig_rax %lld", what, (long long)regs.rax == getpid() ? 1 : (long long)regs.rax, (long long)regs.orig_rax);
	return 0;
}

static void traced(void)
{
	SAY("-- let pass, with a tracer");
	fflush(stdout);
	TRACED(pid, handle(0); dispatch(1, 0, 0, selector); raise(SIGSTOP); *selector = 0;
	       long a = call3(SYS_getppid, 0, 0, 0), b = call3(SYS_getppid, 0, 0, 0), c = call3(99999, 0, 0, 0);
	       *selector = 0; SAY("%d %d %ld", a > 0, b == a, c); fflush(stdout));
	go(pid, "on");
	MUST(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	for (int i = 0; i < 6; i++) {
		MUST(ptrace(PTRACE_SYSCALL, pid, 0, 0));
		stop_of("call", pid);
		if (i & 1)
			SAY("ends");
		else
			regs_of(pid, "begins");
		/* The second is skipped. */
		if (i == 4)
			MUST(ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, orig_rax), -1));
	}
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_of("end", pid);
	SAY("-- emulated");
	fflush(stdout);
	TRACED(emu, handle(0); dispatch(1, 0, 0, selector); raise(SIGSTOP); *selector = 1; long a = call3(SYS_getppid, 0, 0, 0);
	       *selector = 0; SAY("%ld", a); long b = call3(SYS_getpid, 0, 0, 0); SAY("%ld", b); fflush(stdout));
	go(emu, "on");
	MUST(ptrace(PTRACE_SYSEMU, emu, 0, 0));
	stop_of("first", emu);
	regs_of(emu, "there");
	MUST(ptrace(PTRACE_SYSEMU, emu, 0, 0));
	stop_of("second", emu);
	kill(emu, SIGKILL);
	stop_of("end", emu);
}

static void stepped(void)
{
	SAY("-- single steps");
	fflush(stdout);
	TRACED(pid, handle(0); dispatch(1, 0, 0, selector); *selector = 1; __asm__ volatile("int3; syscall; nop; nop" :: "a"(SYS_getppid) : "rcx", "r11"););
	go(pid, "on");
	for (int i = 0; i < 3; i++) {
		int status, sig = 0;
		siginfo_t info;
		MUST(ptrace(PTRACE_SINGLESTEP, pid, 0, sig));
		waitpid(pid, &status, 0);
		if (!WIFSTOPPED(status))
			break;
		MUST(ptrace(PTRACE_GETSIGINFO, pid, 0, &info));
		SAY("SIG%s code %d", sig_name(WSTOPSIG(status)), info.si_code);
		regs_of(pid, "step");
	}
	MUST(ptrace(PTRACE_SINGLESTEP, pid, 0, SIGSYS));
	stop_of("into the handler", pid);
	kill(pid, SIGKILL);
	stop_of("end", pid);
}

/* The call that a filter answers is made twice, with these bytes. */
static void filtered(const char *name, unsigned action, const char bytes[2])
{
	CHILD(name) {
		no_new_privs();
		handle(0);
		answer_with(0, SYS_getppid, action);
		dispatch(1, 0, 0, selector);
		for (int i = 0; i < 2; i++) {
			*selector = bytes[i];
			SAY("%ld", call3(SYS_getppid, 0, 0, 0));
			fflush(stdout);
		}
	} END;
}

static void remembered(const char *self)
{
	SAY("-- remembered");
	fflush(stdout);
	TRACED(pid, dispatch(1, 1, -2ul, selector); execl(self, self, "again", NULL));
	go(pid, "exec");
	shown(pid, "executed", selector);
	kill(pid, SIGKILL);
	stop_of("end", pid);
	CHILD("vfork") {
		handle(0);
		dispatch(1, 0, 0, selector);
		pid_t child = vfork();
		if (child == 0) {
			*selector = 1;
			long r = call3(SYS_getppid, 0, 0, 0);
			*selector = 0;
			SAY("%d", r > 0);
			fflush(stdout);
			_exit(0);
		}
		reap(child);
		*selector = 1;
		SAY("%ld", call3(SYS_getppid, 0, 0, 0));
		fflush(stdout);
	} END;
}

int main(int argc, char **argv)

{
	if (argc > 1 && argv[1])
		return 0;
	setvbuf(stdout, NULL, _IOFBF, 65536);
	selector = (void *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	edges();
	numbers();
	anew();
	traced();
	stepped();
	SAY("-- with filters");
	filtered("errno", SECCOMP_RET_ERRNO | 5, (char[]){ 1, 0 });
	filtered("trap", SECCOMP_RET_TRAP | 5, (char[]){ 0, 1 });
	filtered("kill", SECCOMP_RET_KILL_PROCESS, (char[]){ 1, 0 });
	remembered("/proc/self/exe");
	return 0;
}
