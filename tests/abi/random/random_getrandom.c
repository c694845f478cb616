/*
 * getrandom(2): flags are checked first (unknown bits, INSECURE with RANDOM: EINVAL), then the range of
 * the buffer even for length 0 (EFAULT), lengths are clamped to 0x7ffff000, a fault in the middle
 * gives the bytes before it, and only the low 32 bits of flags count.
 */
#include "check.h"

#define GET(buf, len, flags) syscall(SYS_getrandom, (buf), (size_t)(len), (flags))

static char buf[8192];

static void flags(void)
{
	for (unsigned f = 0; f < 10; f++)
		SAY("flags %u: %s", f, GET(buf, 16, f) == 16 ? "16" : err_name(errno));
	T(GET(buf, 16, 0x80000000u));
	T(GET(buf, 16, 0xffffffff00000000ul));
	T(GET(buf, 16, 0xffffffff00000001ul));
	T(GET(buf, 16, 0xffffffff00000008ul));
	T(GET(NULL, 16, 8));
	T(GET(NULL, 0, 8));
	T(GET(NULL, 0, 6));
	T(GET(NULL, 16, 6));
}

static void lengths(void)
{
	static const size_t sizes[] = { 0, 1, 2, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255,
					256, 257, 1023, 4095, 4096, 4097, 8192 };
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		memset(buf, 0, sizeof buf);
		long n = GET(buf, sizes[i], 0);
		int dirty = 0;
		for (size_t b = sizes[i]; b < sizeof buf; b++)
			dirty |= buf[b];
		SAY("length %zu: %ld, beyond %s", sizes[i], n, dirty ? "written" : "untouched");
	}
}

static void distinct(void)
{
	unsigned char a[32], b[32];
	int bits = 0;
	GET(a, 32, 0);
	GET(b, 32, 0);
	for (int i = 0; i < 32; i++)
		bits += __builtin_popcount(a[i] ^ b[i]);
	/* 256 fair bits: outside 64..192 with probability 1e-15 */
	IS(bits > 64 && bits < 192);
	int seen[256] = { 0 }, missing = 0;
	GET(buf, 8192, 0);
	for (int i = 0; i < 8192; i++)
		seen[(unsigned char)buf[i]]++;
	for (int i = 0; i < 256; i++)
		missing += seen[i] == 0;
	IS(missing == 0);
}

static void faults(void)
{
	char *end = page_end();
	T(GET(NULL, 0, 0));
	T(GET(NULL, 1, 0));
	T(GET((void *)-1, 0, 0));
	T(GET((void *)-1, 1, 0));
	T(GET(KERNEL_ADDRESS, 0, 0));
	T(GET(KERNEL_ADDRESS, 16, 0));
	T(GET((void *)0xffff800000000000ul, 0, 0));
	T(GET(NON_CANONICAL, 0, 0));
	T(GET(NON_CANONICAL, 16, 0));
	T(GET((void *)0x7ffffffff000ul, 0, 0));
	T(GET((void *)0x7ffffffff000ul, 1, 0));
	T(GET(end, 0, 0));
	T(GET(end, 1, 0));
	T(GET(end - 1, 1, 0));
	T(GET(end - 1, 2, 0));
	T(GET(end - 10, 100, 0));
	T(GET(end - 31, 32, 0));
	T(GET(end - 33, 64, 0));
	T(GET(end - 100, 1000, 0));
	T(GET(end - 4096, 100000, 0));
	T(GET(end - 16, (size_t)-1, 0));
	/* the range check covers the clamped length, wherever the fault would come */
	T(GET((void *)0x7fffffffe000ul, 0x2000, 0));
	char *read_only = pages(1);
	mprotect(read_only, PAGE, PROT_READ);
	T(GET(read_only, 16, 0));
	mprotect(read_only, PAGE, PROT_NONE);
	T(GET(read_only, 16, 0));
	T(GET("constant", 8, 0));
}

static void huge(void)
{
	/* 8 MiB mapped: more was asked for, what fits is given */
	char *p = (char *)MUST(mmap(NULL, 9 << 20, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	MUST(munmap(p + (8 << 20), 1 << 20));
	T(GET(p, 16 << 20, 0));
	T(GET(p + 5, (size_t)-1, 0));
	T(GET(p, 0x7ffff000, 1));
}

int main(void)
{
	flags();
	lengths();
	distinct();
	faults();
	huge();
	return 0;
}
