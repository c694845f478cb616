/*
 * fuzz_tasks.h: attacks of fuzz.c on what a process has for itself: its calls, threads, memory, signals, and the programs it executes.
 */
#ifndef ALEA_FUZZ_TASKS_H
#define ALEA_FUZZ_TASKS_H

#include "fuzz_calls.h"

static void calls(void)
{
	descriptors();
	for (int i = 0; i < 300; i++) {
		if (one_in(24))
			stir();
		if (one_in(40)) {
			pid_t pid = fork();
			if (pid == 0) {
				for (int j = 0; j < 20; j++)
					one_call();
				_exit(0);
			}
			kids[below(COUNT(kids))] = pid > 0 ? pid : 0;
		}
		one_call();
	}
}

static void *caller(void *seed)
{
	state = (u64)seed;
	for (int i = 0; i < 150; i++)
		one_call();
	return NULL;
}

/* Several threads share memory, descriptors and everything else. */
static void threads(void)
{
	pthread_t t[3];
	descriptors();
	for (unsigned i = 0; i < COUNT(t); i++)
		if (pthread_create(&t[i], NULL, caller, (void *)draw()) != 0)
			return;
	caller((void *)draw());
	struct timespec second = { 1, 0 };
	nanosleep(&second, NULL);
}

static __thread sigjmp_buf fault_landing;

static void faulted(int signal)
{
	(void)signal;
	siglongjmp(fault_landing, 1);
}

static void catch_faults(void)
{
	struct sigaction action = { .sa_handler = faulted, .sa_flags = SA_NODEFER };
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

/* One change or use of the memory at the arena. */
static void memory_step(int file)
{
	char *at = arena + below(ARENA_PAGES) * PAGE;
	unsigned long n = (1 + below(12)) * PAGE;
	int protection = (int)below(4) | (one_in(8) ? PROT_EXEC : 0);
	volatile char *byte = at + below(n);
	TELL("[%d] memory at arena+%#lx, %#lx\n", getpid(), (u64)(at - arena), n);
	switch (below(16)) {
	case 0: mmap(at, n, protection, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | (one_in(4) ? MAP_POPULATE : 0), -1, 0); break;
	case 1: mmap(at, n, protection, MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0); break;
	case 2: mmap(at, n, protection, MAP_FIXED | (one_in(2) ? MAP_SHARED : MAP_PRIVATE), file, (off_t)(below(10) * PAGE)); break;
	case 3: munmap(at, n); break;
	case 4: mprotect(at, n, protection); break;
	case 5: mremap(at, n, (1 + below(16)) * PAGE, below(2)); break;
	case 6: mremap(at, n, (1 + below(16)) * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | (one_in(3) ? MREMAP_DONTUNMAP : 0), arena + below(ARENA_PAGES) * PAGE); break;
	case 7: madvise(at, n, PICK(ADVICE)); break;
	case 8: madvise(at, n, MADV_DONTNEED); break;
	case 9: ftruncate(file, (off_t)(below(14) * 3000)); break;
	case 10: fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(below(8) * 2000), (off_t)(1 + below(9000))); break;
	case 11: syscall(one_in(2) ? SYS_mlock : SYS_munlock, at, n); break;
	case 12: pread(file, at, n, (off_t)below(30000)); break;
	case 13: pwrite(file, at, n, (off_t)below(30000)); break;
	default:
		if (sigsetjmp(fault_landing, 0) == 0) {
			for (unsigned i = 0; i < 6; i++) {
				byte = arena + below(ARENA_PAGES * PAGE);
				if (one_in(2))
					*byte = (char)i;
				else
					(void)*byte;
			}
		}
	}
}

static int storm_file;

static void *memory_thread(void *seed)
{
	state = (u64)seed;
	for (int i = 0; i < 300; i++)
		memory_step(storm_file);
	return NULL;
}

/* mmap, mprotect, munmap, mremap, madvise in overlapping ranges, with faults, truncation and forks. */
static void mappings(void)
{
	pthread_t t;
	catch_faults();
	storm_file = open("a", O_RDWR | O_CREAT, 0666);
	ftruncate(storm_file, 30000);
	if (one_in(2))
		pthread_create(&t, NULL, memory_thread, (void *)draw());
	for (int i = 0; i < 600; i++) {
		memory_step(storm_file);
		if (one_in(30) && fork() == 0) {
			for (int j = 0; j < 40; j++)
				memory_step(storm_file);
			_exit(0);
		}
		if (one_in(10))
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
	}
}

static int clone_child(void *arg)
{
	(void)arg;
	for (u64 i = below(4); i > 0; i--)
		syscall(SYS_sched_yield);
	syscall(one_in(4) ? SYS_exit_group : SYS_exit, 7);
	return 0;
}

/* Mixtures of clone flags, on stacks of their own; exits of threads and groups, waits, signals between them. */
static void clones(void)
{
	static char stacks[16][16384] __attribute__((aligned(16)));
	static int ids[16];
	for (int i = 0; i < 60; i++) {
		unsigned k = (unsigned)below(16);
		long f = (one_in(2) ? PICK(CLONES) : 0) | (one_in(2) ? PICK(CLONES) : 0) | (one_in(3) ? PICK(CLONES) : 0) | (one_in(5) ? (long)below(65) : SIGCHLD);
		if (one_in(3))
			f |= CLONE_VM;
		if (one_in(4))
			f |= CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FS | CLONE_FILES;
		f &= ~(long)(CLONE_VFORK | (one_in(2) ? 0 : CLONE_SETTLS));
		TELL("[%d] clone(%#lx)\n", getpid(), f);
		errno = 0;
		int pid = clone(clone_child, stacks[k] + sizeof stacks[k], (int)f, NULL, &ids[k], arena, &ids[k]);
		if (pid > 0)
			kids[below(COUNT(kids))] = pid;
		switch (below(8)) {
		case 0: waitpid(-1, NULL, WNOHANG | (int)(one_in(2) ? 0x80000000 : 0)); break;
		case 1: syscall(SYS_tgkill, getpid(), kids[below(COUNT(kids))], one_in(4) ? SIGKILL : SIGUSR1); break;
		case 2: kill(kids[below(COUNT(kids))] ?: getpid(), one_in(2) ? SIGSTOP : SIGCONT); break;
		case 3: setpgid(kids[below(COUNT(kids))], one_in(2) ? 0 : getpid()); break;
		case 4: if (one_in(10)) execl("/exe", "exe", NULL); break;
		default: break;
		}
	}
	for (int i = 0; i < 40; i++)
		waitpid(-1, NULL, WNOHANG | (int)0x40000000);
}

/* A handler that spoils the context it returns to. */
static void spoil(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	(void)signal;
	(void)info;
	if (one_in(4))
		return;
	for (u64 n = 1 + below(3); n > 0; n--)
		switch (below(10)) {
		case 0: uc->uc_mcontext.gregs[below(23)] = one_in(2) ? wild() : pointer(); break;
		case 1: uc->uc_mcontext.gregs[REG_EFL] = (long)draw(); break;
		case 2: uc->uc_mcontext.gregs[REG_CSGSFS] = (long)draw(); break;
		case 3: uc->uc_mcontext.gregs[REG_RIP] = wild(); break;
		case 4: uc->uc_mcontext.gregs[REG_RSP] = wild(); break;
		case 5: uc->uc_mcontext.fpregs = (void *)(one_in(2) ? pointer() : wild()); break;
		case 6:
			if (uc->uc_mcontext.fpregs)
				for (int i = 0; i < 4; i++)
					((unsigned char *)uc->uc_mcontext.fpregs)[below(600)] = (unsigned char)draw();
			break;
		case 7:
			if (uc->uc_mcontext.fpregs) {
				u64 *header = (u64 *)((char *)uc->uc_mcontext.fpregs + 512);
				header[below(8)] = one_in(2) ? (u64)wild() : draw();
			}
			break;
		case 8:
			if (uc->uc_mcontext.fpregs)
				((uint32_t *)uc->uc_mcontext.fpregs)[one_in(2) ? 6 : 116 + below(12)] = (uint32_t)draw();
			break;
		default: uc->uc_stack.ss_sp = (void *)wild(); uc->uc_stack.ss_size = (size_t)wild(); uc->uc_stack.ss_flags = (int)draw(); break;
		}
}

static void signal_victim(void)
{
	const int loud[] = { SIGUSR1, SIGUSR2, SIGRTMIN, SIGRTMAX, SIGSEGV, SIGFPE, SIGCHLD, SIGTRAP, SIGILL, SIGBUS };
	struct sigaction action = { .sa_sigaction = spoil };
	for (unsigned i = 0; i < COUNT(loud); i++) {
		action.sa_flags = SA_SIGINFO | (one_in(2) ? SA_ONSTACK : 0) | (one_in(3) ? SA_NODEFER : 0) | (one_in(3) ? SA_RESTART : 0) | (one_in(8) ? (int)SA_RESETHAND : 0);
		sigaction(loud[i], &action, NULL);
	}
	stack_t stack = { .ss_sp = one_in(4) ? (void *)pointer() : arena + 32 * PAGE, .ss_size = one_in(4) ? (size_t)length() : 8 * PAGE, .ss_flags = one_in(6) ? (int)0x80000000 : 0 };
	sigaltstack(&stack, NULL);
	for (int i = 0; i < 30; i++)
		switch (below(9)) {
		case 0: raise(PICK(loud)); break;
		case 1: sigqueue(getpid(), PICK(loud), (union sigval) { .sival_ptr = arena }); break;
		case 2: *(volatile char *)pointer() = 1; break;
		case 3: __asm__ volatile("int3"); break;
		case 4: __asm__ volatile("ud2"); break;
		case 5: __asm__ volatile("pushf; orl $0x100, (%%rsp); popf; nop; nop" ::: "memory", "cc"); break;
		case 6: __asm__ volatile("mov %0, %%rsp; int3" :: "r"(one_in(2) ? pointer() : wild()) : "memory"); break;
		case 7: __asm__ volatile("mov %0, %%rsp; syscall" :: "r"(pointer()), "a"((long)SYS_rt_sigreturn) : "memory", "rcx", "r11"); break;
		default: __asm__ volatile("mov %w0, %%ds; mov %w0, %%es" :: "r"((int)below(80))); break;
		}
}

static void signals(void)
{
	for (int i = 0; i < 25; i++) {
		u64 seed = draw();
		pid_t pid = fork();
		if (pid == 0) {
			state = seed;
			TELL("[%d] signals of state %#lx\n", getpid(), seed);
			signal_victim();
			_exit(0);
		}
		for (int j = 0; j < 20 && waitpid(pid, NULL, WNOHANG) == 0; j++) {
			kill(pid, j < 10 ? SIGUSR1 : j < 15 ? SIGSTOP : SIGCONT);
			usleep(200);
		}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

/* The smallest program: exit(0). */
static const unsigned char TINY[] = {
	0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0, 0xb0, 0, 0x40, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 64, 0, 56, 0, 2, 0, 64, 0, 0, 0, 0, 0,
	1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,
	0x51, 0xe5, 0x74, 0x64, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0,
	0x31, 0xff, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b, 0, 0, 0, 0, 0,
};

static size_t malformed(unsigned char *file, size_t room)
{
	static const char *const scripts[] = { "#!", "#!\n", "#! \n", "#!/exe", "#!/exe x y z\n", "#!script\n", "#!/proc/self/exe\n", "#!a\n", "#!\t /exe\t\tone two \t\n", "#!/exe\r\n",
		"#!/dev/null\n", "#!/proc\n", "#!/nothing\n", "#!\0/exe\n", "", "x", "\x7f" "ELF" };
	memset(file, 0, room);
	if (one_in(4)) {
		const char *s = PICK(scripts);
		size_t n = strlen(s);
		memcpy(file, s, n);
		if (one_in(4)) {
			memset(file + 2, one_in(2) ? ' ' : 'x', 300);
			n = 250 + below(12);
		}
		return n;
	}
	memcpy(file, TINY, sizeof TINY);
	u64 *words = (u64 *)file;
	for (u64 i = 1 + below(3); i > 0; i--)
		switch (below(5)) {
		case 0: file[4 + below(172)] = (unsigned char)draw(); break;
		case 1: words[8 + below(7)] = (u64)wild(); break;
		case 2: words[8 + 2 + below(5)] = below(0x2000); break;
		case 3: words[15] = 3 | below(8) << 32; words[16] = below(300); words[19] = below(300); break;
		default: words[3 + below(5)] = one_in(2) ? (u64)wild() : below(4096); break;
		}
	if (one_in(3)) {
		/* a second LOAD, over or beside the first */
		memcpy(file + 120, file + 64, 56);
		words[17] = 0x400000 + below(6) * 0x800;
		words[19] = below(0x3000);
		words[20] = one_in(3) ? (u64)wild() : below(0x10000);
		words[16] = words[17] & 0xfff;
		file[124] = (unsigned char)below(8);
	}
	return one_in(5) ? below(sizeof TINY) : one_in(3) ? room : sizeof TINY;
}

/* execve of files that are nearly programs. */
static void execs(void)
{
	static unsigned char file[12288];
	for (int i = 0; i < 40; i++) {
		size_t n = malformed(file, sizeof file);
		char name[32];
		snprintf(name, sizeof name, "x%d-%d", getpid(), i % 4);
		unlink(name);
		int fd = one_in(2) ? open(name, O_RDWR | O_CREAT | O_TRUNC, 0777) : memfd_create("x", 0);
		write(fd, file, n);
		if (verbose) {
			say("[%d] exec of %zu bytes:", getpid(), n);
			for (size_t k = 0; k < 22; k++)
				say(" %lx", ((u64 *)file)[k]);
			say("\n");
		}
		char *many[] = { name, "x", one_in(3) ? (char *)pointer() : NULL, NULL };
		pid_t pid = fork();
		if (pid == 0) {
			alarm(1);
			if (one_in(2))
				close(fd);
			if (one_in(10))
				syscall(SYS_execve, path(), iovec(), pointer());
			syscall(SYS_execveat, one_in(2) ? fd : AT_FDCWD, one_in(2) ? "" : name, many, one_in(2) ? many : NULL, AT_EMPTY_PATH);
			execve(name, many, NULL);
			_exit(1);
		}
		if (one_in(8))
			ftruncate(fd, 0);
		close(fd);
		for (int j = 0; j < 20 && waitpid(pid, NULL, WNOHANG) == 0; j++)
			usleep(500);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		unlink(name);
	}
}

#endif
