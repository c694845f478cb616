/*
 * A signal changes nothing: general registers, flags, SSE and AVX registers, MXCSR and the x87 control word
 * come back as they were although the handler uses them all; a handler that edits the frame is obeyed; the
 * frame's own layout (uc_flags, mask, fpstate magic) and a broken frame's SIGSEGV.
 */
#include "check.h"
#include <cpuid.h>
#include <setjmp.h>
#include <ucontext.h>

static unsigned char in[16][32] __attribute__((aligned(32))), out[16][32] __attribute__((aligned(32)));
static int have_avx;
static volatile int runs;

static void spoil(int s)
{
	unsigned mxcsr = 0x1fbf;
	unsigned short cw = 0x27f;
	runs++;
	__asm__ volatile("ldmxcsr %0; fldcw %1; fld1; std; cld" : : "m"(mxcsr), "m"(cw) : "st");
	if (have_avx)
		__asm__ volatile("vpcmpeqd %%xmm0,%%xmm0,%%xmm0; vinsertf128 $1,%%xmm0,%%ymm0,%%ymm0;"
				 "vmovaps %%ymm0,%%ymm7; vmovaps %%ymm0,%%ymm15; vzeroupper" ::: "xmm0", "xmm7", "xmm15");
	else
		__asm__ volatile("pcmpeqd %%xmm0,%%xmm0; movaps %%xmm0,%%xmm7; movaps %%xmm0,%%xmm15" ::: "xmm0", "xmm7", "xmm15");
	__asm__ volatile("mov $-1,%%rax; mov $-1,%%rbx; mov $-1,%%r12; mov $-1,%%r15" ::: "rax", "rbx", "r12", "r15");
}

unsigned long regs_in[9] = { 11, 22, 33, 44, 55, 66, 77, 88, 99 }, regs_out[9], flags_out;

static void general(void)
{
	/* a signal sent by kill is delivered at the return of the system call, inside this block */
	__asm__ volatile(
		"mov 0+regs_in(%%rip),%%rbx; mov 8+regs_in(%%rip),%%r8; mov 16+regs_in(%%rip),%%r9;"
		"mov 24+regs_in(%%rip),%%r10; mov 32+regs_in(%%rip),%%r12; mov 40+regs_in(%%rip),%%r13;"
		"mov 48+regs_in(%%rip),%%r14; mov 56+regs_in(%%rip),%%r15; mov 64+regs_in(%%rip),%%rdx;"
		"stc; syscall; pushf; popq flags_out(%%rip);"
		"mov %%rbx,0+regs_out(%%rip); mov %%r8,8+regs_out(%%rip); mov %%r9,16+regs_out(%%rip);"
		"mov %%r10,24+regs_out(%%rip); mov %%r12,32+regs_out(%%rip); mov %%r13,40+regs_out(%%rip);"
		"mov %%r14,48+regs_out(%%rip); mov %%r15,56+regs_out(%%rip); mov %%rdx,64+regs_out(%%rip)"
		:
		: "a"(SYS_kill), "D"(getpid()), "S"(SIGUSR1)
		: "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	IS(memcmp(regs_in, regs_out, sizeof regs_in) == 0);
	SAY("carry %lu, handler ran %d", flags_out & 1, runs);
}

static void vectors(void)
{
	for (int r = 0; r < 16; r++)
		for (int b = 0; b < 32; b++)
			in[r][b] = (unsigned char)(r * 16 + b);
	unsigned mxcsr = 0x9fc0, mxcsr_after;
	unsigned short cw = 0x37f, cw_after;
	long pid = getpid();
	/* SIMD moves by name: the compiler must not know */
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "movaps " #n "*32(%[i]),%%xmm" #n ";"
#define STORE(n) "movaps %%xmm" #n "," #n "*32(%[o]);"
#define LOADY(n) "vmovaps " #n "*32(%[i]),%%ymm" #n ";"
#define STOREY(n) "vmovaps %%ymm" #n "," #n "*32(%[o]);"
#define CLOBBERS "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
	"xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
	long ax = SYS_kill;
	if (have_avx)
		__asm__ volatile("fldcw %[c]; ldmxcsr %[m];" EACH(LOADY) "syscall;" EACH(STOREY)
				 "stmxcsr %[n]; fnstcw %[d]; vzeroupper"
				 : "+a"(ax), [n] "=m"(mxcsr_after), [d] "=m"(cw_after)
				 : "D"(pid), "S"((long)SIGUSR1), [i] "r"(in), [o] "r"(out), [m] "m"(mxcsr), [c] "m"(cw)
				 : CLOBBERS);
	else
		__asm__ volatile("fldcw %[c]; ldmxcsr %[m];" EACH(LOAD) "syscall;" EACH(STORE)
				 "stmxcsr %[n]; fnstcw %[d]"
				 : "+a"(ax), [n] "=m"(mxcsr_after), [d] "=m"(cw_after)
				 : "D"(pid), "S"((long)SIGUSR1), [i] "r"(in), [o] "r"(out), [m] "m"(mxcsr), [c] "m"(cw)
				 : CLOBBERS);
	int low = 1, high = 1;
	for (int r = 0; r < 16; r++) {
		low &= memcmp(in[r], out[r], 16) == 0;
		high &= !have_avx || memcmp(in[r] + 16, out[r] + 16, 16) == 0;
	}
	SAY("low halves kept %d, high halves kept %d", low, high);
	SAY("mxcsr %#x, control word %#x", mxcsr_after, cw_after);
}

static void edit(int s, siginfo_t *i, void *ctx)
{
	ucontext_t *uc = ctx;
	greg_t *g = uc->uc_mcontext.gregs;
	if (s == SIGTRAP) {
		SAY("trap: code is SI_KERNEL %d, rip after int3", i->si_code == SI_KERNEL);
		return;
	}
	SAY("ud2: code %d, at rip %d", i->si_code, i->si_addr == (void *)g[REG_RIP]);
	SAY("trapno %lld err %lld, cs %#llx", g[REG_TRAPNO], g[REG_ERR], g[REG_CSGSFS] & 0xffff);
	SAY("mask of the frame: TERM %d", sigismember(&uc->uc_sigmask, SIGTERM));
	SAY("fpstate %d, link %d, uc_flags %#lx", uc->uc_mcontext.fpregs != NULL, uc->uc_link != NULL, uc->uc_flags & ~1ul);
	g[REG_RIP] += 2;
	g[REG_RBX] = 4711;
	sigaddset(&uc->uc_sigmask, SIGUSR2);
	((unsigned char *)uc->uc_mcontext.fpregs->_xmm[3].element)[0] = 0xab;
}

static void edited(void)
{
	struct sigaction sa = { .sa_sigaction = edit, .sa_flags = SA_SIGINFO };
	sigset_t set;
	unsigned long bx = 1;
	unsigned char x[16] = { 0 };
	sigaction(SIGILL, &sa, NULL);
	sigaction(SIGTRAP, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	__asm__ volatile("movups %1,%%xmm3; ud2; movups %%xmm3,%1" : "+b"(bx), "+m"(x) : : "xmm3", "memory");
	SAY("rbx %lu, xmm3 %#x", bx, x[0]);
	sigprocmask(SIG_BLOCK, NULL, &set);
	SAY("USR2 blocked by the handler: %d", sigismember(&set, SIGUSR2));
	__asm__ volatile("int3");
}

static void bad_frame(int s, siginfo_t *i, void *ctx)
{
	ucontext_t *uc = ctx;
	if (s == SIGUSR1)
		uc->uc_mcontext.gregs[REG_RIP] = 0x800000000000;
	else if (s == SIGUSR2)
		uc->uc_mcontext.gregs[REG_EFL] |= 0x3000;	/* IOPL: ignored */
	else
		uc->uc_mcontext.fpregs->mxcsr = 0xffffffff;
}

int main(void)
{
	unsigned a, b, c, d;
	__cpuid(1, a, b, c, d);
	have_avx = (c >> 28) & 1;
	struct sigaction sa = { .sa_handler = spoil };
	sigaction(SIGUSR1, &sa, NULL);
	general();
	vectors();
	edited();
	struct sigaction bad = { .sa_sigaction = bad_frame, .sa_flags = SA_SIGINFO };
	CHILD("non-canonical rip") {
		sigaction(SIGUSR1, &bad, NULL);
		raise(SIGUSR1);
	} END;
	CHILD("IOPL in the flags") {
		sigaction(SIGUSR2, &bad, NULL);
		raise(SIGUSR2);
		unsigned long f;
		__asm__("pushf; pop %0" : "=r"(f));
		SAY("iopl %lu", (f >> 12) & 3);
	} END;
	CHILD("sigreturn without a frame") {
		__asm__ volatile("lea -64(%%rsp),%%rsp; syscall" : : "a"(SYS_rt_sigreturn) : "memory", "rcx", "r11");
	} END;
	CHILD("sigreturn, stack not mapped") {
		__asm__ volatile("mov $0x10000,%%rsp; syscall" : : "a"(SYS_rt_sigreturn) : "memory", "rcx", "r11");
	} END;
	return 0;
}
