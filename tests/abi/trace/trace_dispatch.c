/*
 * System-call user dispatch: what PR_SET_SYSCALL_USER_DISPATCH takes, which calls become SIGSYS and what a handler sees, who
 * inherits it, what ends the process, and what a tracer sets and reads.
 */
#include "dispatch.h"
#include <pthread.h>

static volatile char selector;
static volatile int signals;

/* A call that is made here, and nowhere else. */
static long call(long number)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
	return result;
}

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *user = context;
	greg_t *regs = user->uc_mcontext.gregs;
	selector = 0;
	signals++;
	printf("SIG%s code %d errno %d arch %#x syscall %d, rax %lld, at the call: %s\n", sig_name(sig), info->si_code,
	       info->si_errno, info->si_arch, info->si_syscall, regs[REG_RAX],
	       (greg_t)info->si_call_addr == regs[REG_RIP] ? "yes" : "no");
	regs[REG_RAX] = 77;
}

static void handle(void)
{
	catch_sigsys(handler, 0);
}

static void arguments(void)
{
	T(dispatch(0, 0, 0, 0));
	T(dispatch(0, 1, 0, 0));
	T(dispatch(0, 0, 1, 0));
	T(dispatch(0, 0, 0, &selector));
	T(dispatch(2, 0, 0, 0));
	T(dispatch(-1, 0, 0, 0));
	T(dispatch(1, 1, 0, &selector));
	T(dispatch(1, -1ul, 1, &selector));
	T(dispatch(1, 1, -1ul, &selector));
	T(dispatch(1, 0, 1, (char *)-1));
	T(dispatch(1, 0, 0, &selector));
	T(dispatch(1, 0, -1ul, NULL));
	T(dispatch(0, 0, 0, 0));
}

static void *thread(void *unused)
{
	selector = 1;
	long result = call(SYS_getppid);
	selector = 0;
	(void)unused;
	return (void *)(long)(result > 0);
}

static void inherited(void)
{
	handle();
	T(dispatch(1, 0, 0, &selector));
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		selector = 1;
		long result = call(SYS_getppid);
		selector = 0;
		SAY("a child: %s", result > 0 && signals == 0 ? "not dispatched" : "dispatched");
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	pthread_t other;
	pthread_create(&other, NULL, thread, NULL);
	void *result;
	pthread_join(other, &result);
	SAY("a thread: %ld, %d signals", (long)result, signals);
	selector = 1;
	long own = call(SYS_getppid);
	SAY("the thread itself: %ld, %d signals", own, signals);
	T(dispatch(0, 0, 0, 0));
	selector = 1;
	IS(call(SYS_getppid) > 0);
}

static void ends(void)
{
	CHILD("no handler") { dispatch(1, 0, 0, &selector); selector = 1; call(SYS_getppid); } END;
	CHILD("ignored") { signal(SIGSYS, SIG_IGN); dispatch(1, 0, 0, &selector); selector = 1; call(SYS_getppid); } END;
	CHILD("neither") { handle(); dispatch(1, 0, 0, &selector); selector = 2; call(SYS_getppid); } END;
	CHILD("no byte any more") {
		handle();
		char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		signal(SIGSEGV, SIG_IGN);
		dispatch(1, 0, 0, page);
		munmap(page, 4096);
		call(SYS_getppid);
	} END;
	CHILD("all but none") { handle(); dispatch(1, 0, 0, NULL); call(SYS_getppid); } END;
	CHILD("from within the range") {
		handle();
		dispatch(1, 1, -2ul, NULL);
		IS(call(SYS_getppid) > 0);
		fflush(stdout);
	} END;
	CHILD("after an exec") {
		dispatch(1, 1, -2ul, &selector);
		execl("/bin/sh", "sh", "-c", "echo runs", NULL);
	} END;
	CHILD("what is no call") {
		handle();
		dispatch(1, 0, 0, &selector);
		selector = 1;
		SAY("%ld", call(-1));
		selector = 1;
		SAY("%ld", call(100000));
		fflush(stdout);
	} END;
}

static void traced(void)
{
	TRACED(pid, handle(); call(SYS_getppid); dispatch(1, 3, 5, &selector); raise(SIGSTOP); selector = 1; call(SYS_getppid););
	struct config config = { 1, (unsigned long)&selector, 0, 0 };
	shown(pid, "at first", &selector);
	T(ptrace(GET_CONFIG, pid, 8, &config));
	T(ptrace(GET_CONFIG, pid, sizeof(config), 0));
	T(ptrace(SET_CONFIG, pid, 33, &config));
	T(ptrace(SET_CONFIG, pid, sizeof(config), 8));
	config.mode = 7;
	T(ptrace(SET_CONFIG, pid, sizeof(config), &config));
	config = (struct config){ 0, 0, 1, 0 };
	T(ptrace(SET_CONFIG, pid, sizeof(config), &config));
	config = (struct config){ 1, (unsigned long)&selector, 0, 0 };
	T(ptrace(SET_CONFIG, pid, sizeof(config), &config));
	shown(pid, "set", &selector);
	config = (struct config){ 0, 0, 0, 0 };
	T(ptrace(SET_CONFIG, pid, sizeof(config), &config));
	shown(pid, "off", &selector);
	go(pid, "it goes on");
	shown(pid, "its own", &selector);
	/* Such a call is none to the tracer. */
	MUST(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD));
	MUST(ptrace(PTRACE_SYSCALL, pid, 0, 0));
	stop_of("the rest of its call", pid);
	for (int stops = 0; stops < 2; stops++) {
		MUST(ptrace(PTRACE_SYSCALL, pid, 0, 0));
		stop_of("next", pid);
	}
	kill(pid, SIGKILL);
	stop_of("killed", pid);
	T(ptrace(GET_CONFIG, pid, sizeof(config), &config));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOFBF, 65536);
	arguments();
	CHILD("inherited") { inherited(); fflush(stdout); } END;
	ends();
	traced();
	return 0;
}
