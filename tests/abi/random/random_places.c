/*
 * Long random requests into every kind of memory: all bytes of any length at any offset are made and none beyond; pages
 * that are not there yet, that a child shares, that a file backs; pages that may not be written, with the bytes before
 * them counted; memory that other threads take away meanwhile. The vector registers are the caller's throughout.
 */
#include "check.h"
#include <pthread.h>
#include <sys/uio.h>

#define GET(buf, len) syscall(SYS_getrandom, (buf), (size_t)(len), 0)
#define SPAN (32 * PAGE)

static unsigned char sum[SPAN];

/* Whether len bytes at p change all, and the 64 on both sides do not. A byte is 0 eight times once in 2^64. */
static int exact(unsigned char *p, long len)
{
	int sound = 1;
	memset(sum, 0, sizeof sum);
	for (int round = 0; round < 8; round++) {
		memset(p - 64, 0, (size_t)len + 128);
		sound &= GET(p, len) == len;
		for (long i = 0; i < len; i++)
			sum[i] |= p[i];
		for (int i = 0; i < 64; i++)
			sound &= p[-1 - i] == 0 && p[len + i] == 0;
	}
	for (long i = 0; i < len; i++)
		sound &= sum[i] != 0;
	return sound;
}

static void lengths(void)
{
	static const long sizes[] = { 256, 257, 511, 512, 513, 1024, 4095, 4096, 4097, 4608, 8191, 8192, 40000, 65536 };
	unsigned char *p = (unsigned char *)pages(32) + 64;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		int sound = 1;
		for (int offset = 0; offset < 40; offset += 13)
			sound &= exact(p + offset, sizes[i]);
		SAY("%ld bytes: %s", sizes[i], sound ? "exact" : "not exact");
	}
}

static int drawn(const unsigned char *p, long len)
{
	int zeros = 0;
	for (long i = 0; i < len; i++)
		zeros += p[i] == 0;
	return zeros < len / 64;	/* one in 256 is expected */
}

static void kinds(void)
{
	unsigned char *fresh = (unsigned char *)pages(32);
	T(GET(fresh + 100, SPAN - 200));
	IS(drawn(fresh + 100, SPAN - 200));
	memset(fresh, 0, SPAN);
	CHILD("shares the pages") {
		T(GET(fresh, SPAN));
		IS(drawn(fresh, SPAN));
	} END;
	long changed = 0;
	for (long i = 0; i < SPAN; i++)
		changed += fresh[i] != 0;
	IS(changed == 0);
	scratch();
	int fd = (int)MUST(open("file", O_RDWR | O_CREAT, 0600));
	MUST(ftruncate(fd, SPAN + 100));
	unsigned char *file = (unsigned char *)MUST(mmap(NULL, SPAN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	T(GET(file, SPAN));
	MUST(pread(fd, sum, SPAN, 0));
	IS(memcmp(sum, file, SPAN) == 0 && drawn(file, SPAN));
	MUST(ftruncate(fd, 5 * PAGE));
	T(GET(file + 10, SPAN - 10));
	T(GET(file + 5 * PAGE, 1000));
	struct iovec iov[3] = { { fresh, 700 }, { fresh + 5000, 9000 }, { fresh + 20000, 1 } };
	int device = (int)MUST(open("/dev/urandom", O_RDONLY));
	T(readv(device, iov, 3));
	IS(drawn(fresh, 700) && drawn(fresh + 5000, 9000) && fresh[700] == 0 && fresh[14000] == 0);
	close(device);
	close(fd);
}

static void barriers(void)
{
	char *p = pages(32);
	MUST(mprotect(p + 7 * PAGE, PAGE, PROT_READ));
	T(GET(p, SPAN));
	T(GET(p + 6 * PAGE, SPAN - 6 * PAGE));
	T(GET(p + 6 * PAGE + 1000, 3000));
	T(GET(p + 6 * PAGE + 1000, 4000));
	T(GET(p + 7 * PAGE - 600, 1200));
	T(GET(p + 7 * PAGE - 512, 1024));
	T(GET(p + 7 * PAGE, 1024));
	MUST(mprotect(p + 7 * PAGE, PAGE, PROT_NONE));
	T(GET(p, SPAN));
	MUST(munmap(p + 7 * PAGE, PAGE));
	T(GET(p, SPAN));
}

static char *area;
static volatile int over;

static void *take_away(void *unused)
{
	for (int i = 0; !over; i++) {
		char *at = area + i % 32 * PAGE;
		if (i & 1)
			madvise(at, 4 * PAGE, MADV_DONTNEED);
		else if (i & 2)
			mprotect(at, PAGE, i & 4 ? PROT_READ : PROT_READ | PROT_WRITE);
		else
			mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	return unused;
}

static void races(void)
{
	pthread_t thread;
	int bad = 0;
	area = pages(40);
	MUST(-pthread_create(&thread, NULL, take_away, NULL));
	for (int i = 0; i < 2000; i++) {
		long n = GET(area + i % PAGE, SPAN);
		bad += n < 0 ? errno != EFAULT : n == 0 || n > SPAN;
	}
	over = 1;
	pthread_join(thread, NULL);
	IS(bad == 0);
}

static unsigned char before[16][32] __attribute__((aligned(32))), after[16][32] __attribute__((aligned(32)));

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD(n) "movaps " #n "*32(%[i]),%%xmm" #n ";"
#define STORE(n) "movaps %%xmm" #n "," #n "*32(%[o]);"
#define LOADY(n) "vmovaps " #n "*32(%[i]),%%ymm" #n ";"
#define STOREY(n) "vmovaps %%ymm" #n "," #n "*32(%[o]);"
#define CLOBBERS "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
	"xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* getrandom with values in all vector registers: the result, or -1000 if one of them changed. */
static long get_with_registers(void *buf, long len)
{
	int wide = __builtin_cpu_supports("avx");
	long ax = SYS_getrandom;
	for (int r = 0; r < 16; r++)
		for (int b = 0; b < 32; b++)
			before[r][b] = (unsigned char)(r * 16 + b + len);
	if (wide)
		__asm__ volatile(EACH(LOADY) "syscall;" EACH(STOREY) "vzeroupper"
				 : "+a"(ax) : "D"(buf), "S"(len), "d"(0L), [i] "r"(before), [o] "r"(after) : CLOBBERS);
	else
		__asm__ volatile(EACH(LOAD) "syscall;" EACH(STORE)
				 : "+a"(ax) : "D"(buf), "S"(len), "d"(0L), [i] "r"(before), [o] "r"(after) : CLOBBERS);
	for (int r = 0; r < 16; r++)
		if (memcmp(before[r], after[r], wide ? 32 : 16) != 0)
			return -1000;
	return ax;
}

static void registers(void)
{
	char *p = pages(32), *end = page_end();
	SAY("16: %ld", get_with_registers(p, 16));
	SAY("512: %ld", get_with_registers(p, 512));
	SAY("8192, one page new: %ld", get_with_registers(p, 8192));
	SAY("all, 30 pages new: %ld", get_with_registers(p, SPAN));
	SAY("across the end: %ld", get_with_registers(end - 3000, 8192));
	SAY("behind the end: %ld", get_with_registers(end, 512));
}

int main(void)
{
	lengths();
	kinds();
	barriers();
	races();
	registers();
	return 0;
}
