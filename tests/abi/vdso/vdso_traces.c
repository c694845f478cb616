/*
 * What the vDSO's getrandom leaves behind: on the stack and in the vector registers there is nothing afterwards of the state as it
 * was (the key that made the bytes), of the state as it is (the next key and bytes not handed out yet), or of the bytes.
 *
 * The call runs on a stack of its own, which is painted before and searched after. Vector registers are stored right behind the
 * call.
 */
#include "check.h"
#include "vdso.h"
#include <ucontext.h>

enum { STACK = 64 << 10, MOST = 5000 };

static vgetrandom_fn *get, *draw;
static struct vgetrandom_params p;
static char *state;
static ucontext_t here, there;
static long want, got;
static unsigned char drawn[MOST], before[PAGE], registers[16 * 32];
static int wide;

static void call(void)
{
	/* the C library's memcpy has left some of the state there */
	if (wide)
		__asm__ volatile("vzeroall" ::: "memory");
	else
		__asm__ volatile("pxor %%xmm0,%%xmm0\n pxor %%xmm1,%%xmm1\n pxor %%xmm2,%%xmm2\n pxor %%xmm3,%%xmm3\n"
				 "pxor %%xmm4,%%xmm4\n pxor %%xmm5,%%xmm5\n pxor %%xmm6,%%xmm6\n pxor %%xmm7,%%xmm7\n"
				 "pxor %%xmm8,%%xmm8\n pxor %%xmm9,%%xmm9\n pxor %%xmm10,%%xmm10\n pxor %%xmm11,%%xmm11\n"
				 "pxor %%xmm12,%%xmm12\n pxor %%xmm13,%%xmm13\n pxor %%xmm14,%%xmm14\n pxor %%xmm15,%%xmm15"
				 ::: "memory");
	got = draw(drawn, (size_t)want, 0, state, p.size);
	if (wide)
		__asm__ volatile("vmovups %%ymm0,(%0)\n vmovups %%ymm1,32(%0)\n vmovups %%ymm2,64(%0)\n vmovups %%ymm3,96(%0)\n"
				 "vmovups %%ymm4,128(%0)\n vmovups %%ymm5,160(%0)\n vmovups %%ymm6,192(%0)\n"
				 "vmovups %%ymm7,224(%0)\n vmovups %%ymm8,256(%0)\n vmovups %%ymm9,288(%0)\n"
				 "vmovups %%ymm10,320(%0)\n vmovups %%ymm11,352(%0)\n vmovups %%ymm12,384(%0)\n"
				 "vmovups %%ymm13,416(%0)\n vmovups %%ymm14,448(%0)\n vmovups %%ymm15,480(%0)\n vzeroupper"
				 ::"r"(registers) : "memory");
	else
		__asm__ volatile("movups %%xmm0,(%0)\n movups %%xmm1,16(%0)\n movups %%xmm2,32(%0)\n movups %%xmm3,48(%0)\n"
				 "movups %%xmm4,64(%0)\n movups %%xmm5,80(%0)\n movups %%xmm6,96(%0)\n movups %%xmm7,112(%0)\n"
				 "movups %%xmm8,128(%0)\n movups %%xmm9,144(%0)\n movups %%xmm10,160(%0)\n movups %%xmm11,176(%0)\n"
				 "movups %%xmm12,192(%0)\n movups %%xmm13,208(%0)\n movups %%xmm14,224(%0)\n movups %%xmm15,240(%0)"
				 ::"r"(registers) : "memory");
}

/* What the search has to find, or it proves nothing: a draw that copies the state to the stack first. */
static __attribute__((noinline)) long careless(void *to, size_t len, unsigned flags, void *of, size_t size)
{
	volatile unsigned char copy[PAGE];
	for (size_t i = 0; i < size; i++)
		copy[i] = ((unsigned char *)of)[i];
	(void)copy[0];
	return get(to, len, flags, of, size);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t secrets[3 * PAGE + MOST];
static size_t count;

/* Every eight bytes in a row that look like no counter. */
static void add(const void *from, size_t len)
{
	for (size_t at = 0; at + 8 <= len; at++) {
		const unsigned char *bytes = (const unsigned char *)from + at;
		int busy = 0;
		for (int i = 0; i < 8; i++)
			busy += bytes[i] != 0;
		if (busy >= 6)
			memcpy(&secrets[count++], bytes, 8);
	}
}

static int found(const unsigned char *in, size_t len)
{
	int n = 0;
	for (size_t at = 0; at + 8 <= len; at++) {
		uint64_t word;
		memcpy(&word, in + at, 8);
		n += bsearch(&word, secrets, count, sizeof word, by_value) != NULL;
	}
	return n;
}

/* One draw by `draw`: fills in what was secret and is to be searched for. */
static void draw_on(unsigned char *stack)
{
	memcpy(before, state, p.size);
	memset(stack, 0, STACK);
	memset(registers, 0, sizeof registers);
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK;
	there.uc_link = &here;
	makecontext(&there, call, 0);
	swapcontext(&here, &there);
	count = 0;
	add(before, p.size);
	add(state, p.size);
	add(drawn, (size_t)want);
	qsort(secrets, count, sizeof *secrets, by_value);
}

int main(void)
{
	get = draw = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	if (!get || get(NULL, 0, 0, &p, ~0ul) != 0 || p.size > PAGE) {
		SAY("no getrandom");
		return 0;
	}
	wide = __builtin_cpu_supports("avx2") != 0;
	state = (char *)MUST(mmap(NULL, PAGE, (int)p.prot, (int)p.flags, -1, 0));
	unsigned char *stack = (unsigned char *)MUST(mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	static const int lengths[] = { 16, 8, 24, 100, 100, 600, 1, 33, 512, 5000, 16 };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		/* the first draw takes a key from the kernel, and so does one after a loss */
		if (i == 7)
			MUST(madvise(state, PAGE, MADV_DONTNEED));
		want = lengths[i];
		draw_on(stack);
		int used = 0;
		for (size_t at = 0; at < STACK; at++)
			used += stack[at] != 0;
		SAY("%d bytes: %ld, stack used %d, secrets known %d, on the stack %d, in registers %d", (int)want, got, used > 8,
		    count > 20, found(stack, STACK), found(registers, sizeof registers));
	}
	draw = careless;
	draw_on(stack);
	IS(found(stack, STACK) > 20);
	return 0;
}
