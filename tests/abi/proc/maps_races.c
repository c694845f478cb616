/*
 * Who has opened /proc/PID/maps reads of the memory that the process had then: when it executes another program in the middle of a
 * read, nothing of that is shown. On one CPU little can happen.
 */
#include "check.h"
#include <sched.h>
#include <stdatomic.h>

#define ROUNDS 40
#define AREAS 12000
#define LOW 0x10000000UL

static atomic_int *ready, *opened;

/* Below the program, so many that a text of them takes a while. */
static void map_many(void)
{
	for (unsigned long i = 0; i < AREAS; i++)
		MUST(mmap((void *)(LOW + i * 2 * PAGE), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

static void wait_us(long us)
{
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &to);
	while ((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000 < us);
}

int main(int argc, char **argv)
{
	static char text[1 << 20];
	char path[64], last[32];
	long shown = 0;
	if (argc > 1)
		return 0;
	ready = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	opened = ready + 1;
	snprintf(last, sizeof last, "\n%lx-", LOW + (AREAS - 1) * 2 * PAGE);
	scratch();
	int from = (int)MUST(open("/proc/self/exe", O_RDONLY)), to = (int)MUST(open("other", O_WRONLY | O_CREAT, 0755));
	struct stat st;
	MUST(fstat(from, &st));
	void *image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, from, 0);
	IS(write(to, image, (size_t)st.st_size) == st.st_size);
	close(to);
	for (int i = 0; i < ROUNDS; i++) {
		atomic_store(ready, 0);
		atomic_store(opened, 0);
		fflush(stdout);
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			map_many();
			atomic_store(ready, 1);
			while (!atomic_load(opened))
				;
			wait_us(i % 40 * 500);
			execl("other", "other", "end", NULL);
			_exit(3);
		}
		while (!atomic_load(ready))
			sched_yield();
		snprintf(path, sizeof path, "/proc/%d/maps", pid);
		int fd = (int)MUST(open(path, O_RDONLY));
		atomic_store(opened, 1);
		ssize_t length = read(fd, text, sizeof text - 1);
		text[length > 0 ? length : 0] = 0;
		/* After a part of the old ones no other mapping comes. */
		shown += strstr(text, last) == NULL && strstr(text, "[vdso]") != NULL;
		close(fd);
		reap(pid);
	}
	SAY("of the next program: %s", shown == 0 ? "nothing" : "something now and then");
	return 0;
}
