/*
 * Pages that lie far from each other: holes punched through hundreds of them and lengths cut in their middle take what they should
 * and nothing else, from a mapping too.
 */
#include "check.h"
#include <sys/stat.h>

#define STEP (2L << 20)
#define COUNT 300L

static int fd;

/* Two pages at each step, the second half a step later. */
static void fill(void)
{
	for (long at = 0; at < COUNT; at++) {
		char byte = (char)(1 + at % 100);
		MUST(pwrite(fd, &byte, 1, at * STEP));
		MUST(pwrite(fd, &byte, 1, at * STEP + STEP / 2));
	}
}

/* What there is: the runs of data in units of half a step, how much it takes, and a sum of it. */
static void show(const char *what)
{
	struct stat st;
	long first = -1, last = -1, runs = 0, sum = 0;
	MUST(fstat(fd, &st));
	for (off_t at = lseek(fd, 0, SEEK_DATA); at >= 0; at = lseek(fd, at, SEEK_DATA)) {
		char byte = 0;
		MUST(pread(fd, &byte, 1, at));
		sum += byte;
		runs++;
		if (first < 0)
			first = at / (STEP / 2);
		last = at / (STEP / 2);
		at = lseek(fd, at, SEEK_HOLE);
	}
	printf("%s: size %ld, %ld runs from %ld to %ld, sum %ld, %ld blocks\n", what, (long)st.st_size, runs, first, last, sum, (long)st.st_blocks);
}

static void punch(const char *what, off_t from, off_t to)
{
	MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from));
	show(what);
}

int main(void)
{
	fd = (int)MUST(memfd_create("scattered", 0));
	fill();
	show("full");
	punch("within one step", 7 * STEP + 100, 7 * STEP + STEP / 4);
	punch("one page of two", 8 * STEP, 8 * STEP + PAGE);
	punch("between two middles", 10 * STEP + STEP / 4, 150 * STEP + STEP / 4);
	punch("whole steps", 160 * STEP, 240 * STEP);
	punch("up to the end", 290 * STEP + STEP / 4, COUNT * STEP);
	fill();
	char *map = mmap(NULL, (size_t)(COUNT * STEP), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char *copy = mmap(NULL, (size_t)(COUNT * STEP), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	for (long at = 0; at < COUNT; at++) {
		map[at * STEP] = 50;
		copy[at * STEP + STEP / 2] = 60;
	}
	show("through a mapping");
	punch("mapped", STEP / 4, 200 * STEP + STEP / 4);
	printf("mapping %d %d %d %d, copy %d %d %d\n", map[0], map[STEP], map[200 * STEP], map[201 * STEP], copy[STEP / 2], copy[STEP], copy[201 * STEP + STEP / 2]);
	MUST(ftruncate(fd, 250 * STEP + 10));
	show("cut");
	printf("mapping %d %d, copy %d\n", map[249 * STEP], map[250 * STEP], copy[249 * STEP + STEP / 2]);
	CHILD("beyond the end, shared") { printf("%d\n", map[251 * STEP]); } END;
	CHILD("beyond the end, a copy") { printf("%d\n", copy[251 * STEP + STEP / 2]); } END;
	MUST(ftruncate(fd, 0));
	show("empty");
	MUST(ftruncate(fd, COUNT * STEP));
	printf("mapping %d %d, copy %d\n", map[0], map[201 * STEP], copy[201 * STEP + STEP / 2]);
	show("long again");
	return 0;
}
