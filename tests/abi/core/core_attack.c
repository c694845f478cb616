/*
 * Contract: a core is whole, or there is none, whatever else the process does: threads that die at once, a leader that is gone,
 * memory that another process unmaps, exec in another thread, SIGKILL at any moment, thousands of mappings, a child of vfork,
 * a tracer.
 */
#include "core.h"
#include <sched.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ptrace.h>

static pthread_barrier_t all;

static int count_notes(struct core *core, unsigned kind)
{
	int count = 0;
	while (core_find(core, kind, count) != NULL)
		count++;
	return count;
}

static void *die_with_others(void *unused)
{
	pthread_barrier_wait(&all);
	*(volatile int *)8 = 1;
	return unused;
}

static void many_threads(void)
{
	enum { THREADS = 40 };
	for (int round = 0; round < 3; round++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			pthread_t thread;
			pthread_barrier_init(&all, NULL, THREADS);
			for (int n = 0; n < THREADS; n++)
				pthread_create(&thread, NULL, die_with_others, NULL);
			for (;;)
				pause();
		}
		say_end("threads that die at once", pid);
		struct core core;
		if (core_open(&core, "core") == 0) {
			SAY("  registers of %d, signal of %d", count_notes(&core, NT_PRSTATUS), count_notes(&core, NT_SIGINFO));
			core_close(&core);
		}
		unlink("core");
	}
}

static void *die_alone(void *unused)
{
	while (state_in("/proc/self/stat") != 'Z')
		sleep_ms(1);
	*(volatile int *)8 = 1;
	return unused;
}

static void no_leader(void)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		pthread_t thread;
		pthread_create(&thread, NULL, die_alone, NULL);
		pthread_exit(NULL);
	}
	say_end("a leader that is gone", pid);
	struct core core;
	if (core_open(&core, "core") == 0) {
		prstatus_t *status = core_desc(core_find(&core, NT_PRSTATUS, 0));
		prpsinfo_t *names = core_desc(core_find(&core, NT_PRPSINFO, 0));
		SAY("  registers of %d, of the leader: %d, state %d %c %d name %.16s", count_notes(&core, NT_PRSTATUS), status->pr_pid == pid,
		    names->pr_state, names->pr_sname, names->pr_zomb, names->pr_fname);
		core_close(&core);
	}
	unlink("core");
}

static void *execute(void *unused)
{
	pthread_barrier_wait(&all);
	execl("/proc/self/exe", "core_attack", "nothing", NULL);
	return unused;
}

static void exec_meanwhile(void)
{
	int good = 1;
	for (int round = 0; round < 30; round++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			pthread_t thread;
			pthread_barrier_init(&all, NULL, 2);
			pthread_create(&thread, NULL, execute, NULL);
			pthread_barrier_wait(&all);
			for (volatile int n = 0; n < round * 3000; n++)
				;
			*(volatile int *)8 = 1;
		}
		int status = reap(pid);
		good &= WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGKILL;
	}
	SAY("exec meanwhile: %s", good ? "one or the other" : "something else");
	unlink("core");
}

static void killed_meanwhile(void)
{
	int good = 1;
	for (int round = 0; round < 20; round++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			pthread_t thread;
			char *memory = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			memset(memory, 'x', 16 << 20);
			pthread_barrier_init(&all, NULL, 2);
			pthread_create(&thread, NULL, die_with_others, NULL);
			pthread_barrier_wait(&all);
			for (;;)
				pause();
		}
		char path[64];
		struct stat st;
		snprintf(path, sizeof path, "/proc/%d/status", pid);
		if (round % 2 == 0)
			while (stat("core", &st) != 0)
				sched_yield();
		else
			sleep_ms(round);
		kill(pid, SIGKILL);
		int status = reap(pid);
		good &= WIFSIGNALED(status) && (WCOREDUMP(status) ? WTERMSIG(status) == SIGSEGV : WTERMSIG(status) == SIGKILL);
		unlink("core");
	}
	SAY("killed meanwhile: %s", good ? "killed or dumped" : "something else");
}

static char *shared_memory;

static int unmap_all(void *unused)
{
	(void)unused;
	for (int n = 0; n < 2000; n++) {
		munmap(shared_memory + n % 64 * 16 * PAGE, 8 * PAGE);
		mmap(shared_memory + n % 64 * 16 * PAGE, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		shared_memory[n % 64 * 16 * PAGE] = 1;
	}
	return 0;
}

static void unmapped_meanwhile(void)
{
	static char stack[65536];
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		shared_memory = mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(shared_memory, 'x', 1024 * PAGE);
		MUST(clone(unmap_all, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL));
		raise(SIGSEGV);
	}
	say_end("unmapped meanwhile", pid);
	struct core core;
	IS(core_open(&core, "core") == 0 && core.head->e_type == ET_CORE);
	core_close(&core);
	unlink("core");
}

static void many_mappings(void)
{
	enum { COUNT = 4000 };
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char *at = (char *)0x200000000000;
		for (int n = 0; n < COUNT; n++, at += 2 * PAGE)
			if (mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
				MUST(-1);
		raise(SIGSEGV);
	}
	say_end("many mappings", pid);
	struct core core;
	IS(core_open(&core, "core") == 0 && core.head->e_phnum > COUNT && core.head->e_phnum < COUNT + 100);
	core_close(&core);
	unlink("core");
}

static void of_vfork(void)
{
	volatile int status = 0;
	pid_t pid = vfork();
	if (pid == 0) {
		*(volatile int *)8 = 1;
		_exit(0);
	}
	status = reap(pid);
	say_status("a child of vfork", status);
	struct core core;
	if (core_open(&core, "core") == 0) {
		SAY("  registers of %d", count_notes(&core, NT_PRSTATUS));
		core_close(&core);
	}
	unlink("core");
}

static void traced(void)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(ptrace(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		*(volatile int *)8 = 1;
	}
	int status;
	MUST(waitpid(pid, &status, 0));
	MUST(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT));
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	MUST(waitpid(pid, &status, 0));
	say_status("traced", status);
	MUST(ptrace(PTRACE_CONT, pid, 0, SIGSEGV));
	MUST(waitpid(pid, &status, 0));
	unsigned long message = 0;
	MUST(ptrace(PTRACE_GETEVENTMSG, pid, 0, &message));
	SAY("  event %d, message %#lx, core %d", status >> 16, message, access("core", F_OK) == 0);
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	say_end("  its end", pid);
	unlink("core");
}

/* Shared memory that nobody has touched is a hole where nothing has to be read to know. */
static void shared_holes(void)
{
	size_t size = access("/proc/alea", F_OK) == 0 ? 1UL << 40 : 1UL << 22;
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			MUST(-1);
		at[size / 2] = 'm';
		raise(SIGSEGV);
	}
	say_end("shared holes", pid);
	struct stat st;
	IS(stat("core", &st) == 0 && (size_t)st.st_size > size);
	unlink("core");
}

/* A filter that ends the process leaves a core, of the call that it refused. */
static void filtered(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 4, program };
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
		syscall(SYS_getppid);
	}
	say_end("a filter", pid);
	struct core core;
	if (core_open(&core, "core") == 0) {
		prstatus_t *status = core_desc(core_find(&core, NT_PRSTATUS, 0));
		siginfo_t *info = core_desc(core_find(&core, NT_SIGINFO, 0));
		struct user_regs_struct *regs = (void *)&status->pr_reg;
		SAY("  signal %d code %d call %d, rax of it %d", info->si_signo, info->si_code, info->si_syscall, regs->rax == SYS_getppid);
		core_close(&core);
	}
	unlink("core");
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 0;
	own_folder();
	core_limit(RLIM_INFINITY);
	many_threads();
	no_leader();
	exec_meanwhile();
	killed_meanwhile();
	unmapped_meanwhile();
	many_mappings();
	of_vfork();
	traced();
	shared_holes();
	filtered();
	no_folder();
	return 0;
}
