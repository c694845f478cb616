/*
 * entry_edges: whatever way a program goes into the kernel and comes out of it, its registers and its GS are what they were: calls, breakpoints, faults
 * that are mended and such that a handler steps over, and a return that the CPU refuses. Two programs take turns on the last CPU.
 *
 * usage: entry_edges [NMIS]      with a number, the first CPU meanwhile has the others take an NMI, so often (sysrq's letter l)
 */
#include "../check.h"
#include <asm/prctl.h>
#include <sched.h>
#include <sys/mman.h>
#include <ucontext.h>

#define ROUNDS 100

/* rax rbx rcx rdx rsi rdi rbp r8 to r15, before and after. */
unsigned long in[15], out[15];
static unsigned long at;
static struct shared {
	volatile int stop;
	volatile long rounds[2];
} *shared;

#define MOVE_IN "mov in+0(%%rip),%%rax; mov in+8(%%rip),%%rbx; mov in+16(%%rip),%%rcx; mov in+24(%%rip),%%rdx; mov in+32(%%rip),%%rsi;" \
	"mov in+40(%%rip),%%rdi; mov in+48(%%rip),%%rbp; mov in+56(%%rip),%%r8; mov in+64(%%rip),%%r9; mov in+72(%%rip),%%r10;" \
	"mov in+80(%%rip),%%r11; mov in+88(%%rip),%%r12; mov in+96(%%rip),%%r13; mov in+104(%%rip),%%r14; mov in+112(%%rip),%%r15;"
#define MOVE_OUT "mov %%rax,out+0(%%rip); mov %%rbx,out+8(%%rip); mov %%rcx,out+16(%%rip); mov %%rdx,out+24(%%rip); mov %%rsi,out+32(%%rip);" \
	"mov %%rdi,out+40(%%rip); mov %%rbp,out+48(%%rip); mov %%r8,out+56(%%rip); mov %%r9,out+64(%%rip); mov %%r10,out+72(%%rip);" \
	"mov %%r11,out+80(%%rip); mov %%r12,out+88(%%rip); mov %%r13,out+96(%%rip); mov %%r14,out+104(%%rip); mov %%r15,out+112(%%rip);"

/* Below the red zone, with all registers but rsp in use. */
#define DO(text) __asm__ volatile("lea -128(%%rsp),%%rsp; push %%rbp;" MOVE_IN text "; " MOVE_OUT "pop %%rbp; lea 128(%%rsp),%%rsp" \
	::: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc")

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11 };

static void fill(unsigned long seed)
{
	for (unsigned long n = 0; n < 15; n++)
		in[n] = (seed + n) * 0x9e3779b97f4a7c15;
}

static void kept(const char *what, int is_call)
{
	unsigned long gs;
	__asm__ volatile("mov %%gs:0,%0" : "=r"(gs));
	for (int n = 0; n < 15; n++)
		if (in[n] != out[n] && !(is_call && (n == RAX || n == RCX || n == R11))) {
			SAY("%s: register %d was %#lx and is %#lx", what, n, in[n], out[n]);
			_exit(1);
		}
	if (gs != at) {
		SAY("%s: GS leads to %#lx in place of %#lx", what, gs, at);
		_exit(1);
	}
}

/* ud2 goes on behind itself, by way of an address that no IRET takes if r15 is odd. */
static unsigned long refused;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	(void)info;
	if (signal == SIGSEGV)
		*rip = (greg_t)refused;
	else if (signal == SIGILL) {
		refused = (unsigned long)*rip + 2;
		*rip = in[14] & 1 ? (greg_t)NON_CANONICAL : (greg_t)refused;
	}
}

static _Noreturn void victim(int who, long rounds)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	for (int n = 0; n < 3; n++)
		sigaction((int[]){ SIGTRAP, SIGILL, SIGSEGV }[n], &action, NULL);
	at = (unsigned long)getpid();
	MUST(syscall(SYS_arch_prctl, ARCH_SET_GS, &at));
	char *page = pages(1);
	for (long round = 0; rounds ? round < rounds : !shared->stop; round++) {
		unsigned long seed = (unsigned long)(round * 100 + who * 50);
		for (unsigned long n = 0; n < 8; n++) {
			fill(seed + n);
			in[RAX] = n == 0 ? SYS_sched_yield : SYS_getppid;
			DO("syscall");
			kept("a call", 1);
			if (n != 0 && out[RAX] != (unsigned long)getppid())
				_exit(2);
		}
		fill(seed + 10);
		DO("int3");
		kept("a breakpoint", 0);
		madvise(page, PAGE, MADV_DONTNEED);
		fill(seed + 11);
		in[RDI] = (unsigned long)page;
		DO("movb $1,(%%rdi)");
		kept("a page fault", 0);
		for (unsigned long odd = 0; odd < 2; odd++) {
			fill(seed + 12 + odd);
			in[14] = in[14] / 2 * 2 + odd;
			DO("ud2");
			kept(odd ? "a refused return" : "a stepped-over fault", 0);
		}
		shared->rounds[who]++;
	}
	_exit(0);
}

static void on_cpu(long cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(sched_setaffinity(0, sizeof set, &set));
}

int main(int argc, char **argv)
{
	long nmis = argc > 1 ? atol(argv[1]) : 0;
	pid_t pids[2];
	shared = (struct shared *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	for (int who = 0; who < 2; who++) {
		pids[who] = (pid_t)MUST(fork());
		if (pids[who] == 0) {
			on_cpu(sysconf(_SC_NPROCESSORS_ONLN) - 1);
			victim(who, nmis ? 0 : ROUNDS);
		}
	}
	if (nmis) {
		on_cpu(0);
		while (!shared->rounds[0] || !shared->rounds[1])
			usleep(1000);
		int fd = (int)MUST(open("/proc/sysrq-trigger", O_WRONLY));
		for (long n = 0; n < nmis; n++)
			MUST(write(fd, "l", 1));
		shared->stop = 1;
	}
	for (int who = 0; who < 2; who++)
		say_status("all was kept", reap(pids[who]));
	IS(shared->rounds[0] > 0 && shared->rounds[1] > 0);
	return 0;
}
