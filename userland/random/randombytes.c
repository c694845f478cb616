/*
 * randombytes: five ways of getting 16 random bytes, from the slowest to the fastest.
 *
 *   stdio      fopen, fread and fclose of /dev/urandom for every request
 *   descriptor read(2) from a /dev/urandom that stays open
 *   libc       getrandom(3)
 *   syscall    the instruction itself, no library in between
 *   buffered   256 bytes a system call, handed out by one unaligned 16-byte move each
 *
 * It is the ladder of "From fread to syscall": the cost is opening and closing the file first, then
 * entering the kernel, and hardly ever the generator. A used piece of the buffer is wiped at once,
 * and the buffer does not survive a fork: both processes would hand out the same bytes.
 *
 * usage: randombytes [CALLS]
 */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WANT 16
#define POOL 256

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void by_stdio(uint8_t *out)
{
	FILE *f = fopen("/dev/urandom", "rb");
	if (!f || fread(out, 1, WANT, f) != WANT || fclose(f) != 0)
		die("/dev/urandom");
}

static int urandom = -1;

static void by_descriptor(uint8_t *out)
{
	if (urandom < 0)
		urandom = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	if (read(urandom, out, WANT) != WANT)
		die("read /dev/urandom");
}

static void by_libc(uint8_t *out)
{
	if (getrandom(out, WANT, 0) != WANT)
		die("getrandom");
}

static long getrandom_instruction(void *out, size_t len)
{
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_getrandom), "D"(out), "S"(len), "d"(0L)
			 : "rcx", "r11", "memory");
	return result;
}

static void by_syscall(uint8_t *out)
{
	if (getrandom_instruction(out, WANT) != WANT)
		_exit(1);
}

static uint8_t pool[POOL] __attribute__((aligned(16)));
static size_t used = POOL;

static void forget_pool(void)
{
	memset(pool, 0, sizeof pool);
	used = POOL;
}

static void by_buffer(uint8_t *out)
{
	if (used == POOL) {
		if (getrandom_instruction(pool, POOL) != POOL)
			_exit(1);
		used = 0;
	}
	__m128i *piece = (__m128i *)(pool + used);
	_mm_storeu_si128((__m128i *)out, _mm_load_si128(piece));
	_mm_store_si128(piece, _mm_setzero_si128());
	used += WANT;
}

struct way {
	const char *name;
	void (*draw)(uint8_t *out);
	long share;	/* the slow ways do 1/share of the calls */
};

static const struct way ways[] = {
	{ "stdio", by_stdio, 20 },
	{ "descriptor", by_descriptor, 1 },
	{ "libc", by_libc, 1 },
	{ "syscall", by_syscall, 1 },
	{ "buffered", by_buffer, 1 },
};

static double measure(const struct way *w, long calls)
{
	uint8_t out[WANT], first[WANT];
	struct timespec from, to;
	w->draw(first);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (long i = 0; i < calls; i++)
		w->draw(out);
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (memcmp(first, out, WANT) == 0) {
		fprintf(stderr, "randombytes: %s repeats itself\n", w->name);
		exit(1);
	}
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
	       (double)calls;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
	double slowest = 0;
	if (calls < 20) {
		fprintf(stderr, "usage: randombytes [CALLS]   (20 or more)\n");
		return 2;
	}
	pthread_atfork(NULL, NULL, forget_pool);
	printf("%-10s %14s %14s %10s\n", "way", "ns a call", "calls a second", "speed-up");
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		double ns = measure(&ways[i], calls / ways[i].share);
		if (i == 0)
			slowest = ns;
		printf("%-10s %14.1f %14.0f %9.1fx\n", ways[i].name, ns, 1e9 / ns, slowest / ns);
	}
	return 0;
}
