/*
 * A file is made short on one CPU while its mapping is filled in on another: no page stays that lies beyond its end. On one CPU
 * little can happen.
 */
#include "check.h"
#include <sched.h>
#include <stdatomic.h>

#define PAGES 32
#define ROUNDS 600

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static int alone;
static struct { atomic_int go, done; } *both;

static void until(atomic_int *what, int round)
{
	while (atomic_load(what) < round)
		if (alone)
			sched_yield();
}

/* Fills the mapping in each round, as far as the file goes at that moment. */
static void filler(char *map)
{
	for (int round = 1; round <= ROUNDS; round++) {
		until(&both->go, round);
		madvise(map, PAGES * PAGE, MADV_POPULATE_WRITE);
		atomic_store(&both->done, round);
	}
	_exit(0);
}

static void race(const char *what, int fd)
{
	long stays = 0, full = 0;
	struct stat st;
	char *map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	atomic_store(&both->go, 0);
	atomic_store(&both->done, 0);
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0)
		filler(map);
	for (int round = 1; round <= ROUNDS; round++) {
		MUST(ftruncate(fd, PAGES * PAGE));
		atomic_store(&both->go, round);
		for (volatile int wait = 0; wait < round % 64 * 100; wait++)
			;
		MUST(ftruncate(fd, 0));
		until(&both->done, round);
		MUST(fstat(fd, &st));
		stays += st.st_blocks != 0;
		MUST(ftruncate(fd, PAGES * PAGE));
		full += lseek(fd, 0, SEEK_DATA) >= 0;
		MUST(ftruncate(fd, 0));
	}
	reap(child);
	if (stays != 0 || full != 0)
		SAY("%s: pages beyond the end stay %ld times, and are data later %ld times", what, stays, full);
	IS(stays == 0 && full == 0);
	munmap(map, PAGES * PAGE);
}

int main(void)
{
	alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	both = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = (int)MUST(memfd_create("short", 0));
	race("memfd", fd);
	close(fd);
	return 0;
}
