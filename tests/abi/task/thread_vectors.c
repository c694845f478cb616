/*
 * Vector and floating-point registers are a thread's own, however often it is preempted or moved: more threads
 * than CPUs hold patterns in all of them. `thread_vectors SECONDS` goes on for longer.
 */
#include "check.h"
#include <cpuid.h>
#include <pthread.h>

#define THREADS 9

struct registers {
	_Alignas(32) uint8_t vectors[16][32];
	double x87[8];
	uint32_t mxcsr;
};

static int avx;
static _Atomic int stop, wrong;

#define EACH(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) \
	op(8) op(9) op(10) op(11) op(12) op(13) op(14) op(15)
#define CLOBBERS "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
	"xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", \
	"st(4)", "st(5)", "st(6)", "st(7)"

/* Between load and store: a stretch of user code, with a system call in the middle if asked. */
#define SPIN "1: dec %[n]\n\tjnz 1b\n\t"
#define FLD(at) "fldl 512+8*" #at "(%[from])\n\t"
#define FST(at) "fstpl 512+8*" #at "(%[to])\n\t"
#define LOAD_YMM(n) "vmovaps 32*" #n "(%[from]), %%ymm" #n "\n\t"
#define STORE_YMM(n) "vmovaps %%ymm" #n ", 32*" #n "(%[to])\n\t"
#define LOAD_XMM(n) "movaps 32*" #n "(%[from]), %%xmm" #n "\n\t"
#define STORE_XMM(n) "movaps %%xmm" #n ", 32*" #n "(%[to])\n\t"
#define X87_IN "ldmxcsr 576(%[from])\n\tfninit\n\t" FLD(0) FLD(1) FLD(2) FLD(3) FLD(4) FLD(5) FLD(6) FLD(7)
#define X87_OUT FST(7) FST(6) FST(5) FST(4) FST(3) FST(2) FST(1) FST(0) "stmxcsr 576(%[to])\n\t"
#define HOLD(load, store) __asm__ volatile(EACH(load) X87_IN SPIN "syscall\n\t" \
		EACH(store) X87_OUT \
		: [n] "+r"(n), "+a"(call) : [from] "r"(from), [to] "r"(to) : "rcx", "r11", CLOBBERS)

static void hold(const struct registers *from, struct registers *to, long n, long call)
{
	uint32_t usual;
	__asm__ volatile("stmxcsr %0" : "=m"(usual));
	if (avx)
		HOLD(LOAD_YMM, STORE_YMM);
	else
		HOLD(LOAD_XMM, STORE_XMM);
	__asm__ volatile("ldmxcsr %0" : : "m"(usual));
}

static void *work(void *arg)
{
	struct registers in, out;
	uint64_t seed = (uint64_t)(long)arg;
	for (unsigned round = 0; !stop; round++) {
		memset(&in, 0, sizeof in);
		for (size_t i = 0; i < sizeof in.vectors; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			if (avx || i % 32 < 16)
				in.vectors[i / 32][i % 32] = (uint8_t)(seed >> 56);
		}
		for (int i = 0; i < 8; i++)
			in.x87[i] = (double)(seed >> 20) / (i + 3);
		/* All exceptions masked; the rounding mode is the thread's own. */
		in.mxcsr = 0x1f80 | (uint32_t)((long)arg & 3) << 13;
		memset(&out, 0, sizeof out);
		hold(&in, &out, 100000 + (long)(seed % 100000), round % 4 ? SYS_getppid : SYS_sched_yield);
		/* The flags of exceptions may be set by the loads. */
		out.mxcsr &= ~0x3fu;
		if (memcmp(&in, &out, sizeof in) != 0)
			wrong++;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned a, b, c, d;
	__cpuid(1, a, b, c, d);
	avx = (c >> 27 & 3) == 3;
	pthread_t threads[THREADS];
	for (long i = 0; i < THREADS; i++)
		MUST(-pthread_create(&threads[i], NULL, work, (void *)(i + 1)));
	int seconds = argc > 1 ? atoi(argv[1]) : 2;
	for (int i = 0; i < seconds * 10; i++)
		usleep(100000);
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		MUST(-pthread_join(threads[i], NULL));
	IS(wrong == 0);
	return 0;
}
