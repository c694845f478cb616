/* A directory stays fast whatever its files are called: names that one multiplication without a secret sends to the
 * same place cost no more than random ones. */
#include "check.h"

#include <sys/resource.h>

enum { NAMES = 20000, WORST = 10 };

#define K 0x9e3779b97f4a7c15UL

static uint64_t rotl(uint64_t x, int n) { return x << n | x >> (64 - n); }

static uint64_t noise(uint64_t n)
{
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9UL;
	n = (n ^ n >> 27) * 0x94d049bb133111ebUL;
	return n ^ n >> 31;
}

static int is_name(const char *name)
{
	return !memchr(name, 0, 16) && !memchr(name, '/', 16);
}

/* The `n`th name, of 16 bytes. A multiplicative hash, h = (rotl(h, 23) ^ word) * K, is the same for all that collide. */
static uint64_t name_of(char name[17], uint64_t n, int collide)
{
	do {
		uint64_t first = noise(n++ * 2), h = (rotl(16 * K, 23) ^ first) * K;
		uint64_t second = collide ? rotl(h, 23) ^ 0x5bd1e995 : noise(n * 2 + 1);
		memcpy(name, &first, 8);
		memcpy(name + 8, &second, 8);
	} while (!is_name(name));
	name[16] = 0;
	return n;
}

static double used(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Seconds of the CPU that it takes to make all the files; the first `*made` are there if that is more than `limit`. */
static double fill(const char *dir, int collide, double limit, int *made)
{
	char name[17];
	uint64_t next = 1;
	MUST(mkdir(dir, 0700));
	MUST(chdir(dir));
	double start = used();
	for (*made = 0; *made < NAMES; ++*made) {
		next = name_of(name, next, collide);
		close(MUST(open(name, O_CREAT | O_EXCL | O_WRONLY, 0600)));
		if (*made % 500 == 0 && used() - start > limit)
			break;
	}
	double taken = used() - start;
	next = 1;
	for (int n = 0; n < NAMES; n++) {
		next = name_of(name, next, collide);
		if (unlink(name) < 0)
			break;
	}
	MUST(chdir(".."));
	return taken;
}

int main(void)
{
	int random, colliding;
	MUST(chdir("/tmp"));
	double usual = fill("dir_collisions.r", 0, 1e9, &random);
	double limit = WORST * (usual < 0.02 ? 0.02 : usual);
	double worst = fill("dir_collisions.c", 1, limit, &colliding);
	IS(random == NAMES);
	IS(colliding == NAMES && worst <= limit);
	T(rmdir("dir_collisions.r"));
	T(rmdir("dir_collisions.c"));
	return 0;
}
