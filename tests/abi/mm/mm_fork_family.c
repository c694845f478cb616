/*
 * A parent and its children on two CPUs write the same pages for the first time after a fork, at the same moment,
 * again and again; when all children are gone, so is all memory that was copied for them.
 */
#include "check.h"
#include <sched.h>
#include <stdatomic.h>

#define PAGES 8
#define ROUNDS 60
#define HEIRS 20

static char written[PAGES][4096] __attribute__((aligned(4096)));
static atomic_int *ready;

static void write_all(int by)
{
	for (int i = 0; i < PAGES; i++)
		*(volatile char *)written[i] = (char)by;
}

/* Private memory of all processes, in pages. */
static long anonymous(void)
{
	char text[4096] = "";
	int fd = (int)MUST(open("/proc/meminfo", O_RDONLY));
	MUST(read(fd, text, sizeof text - 1));
	close(fd);
	char *at = strstr(text, "AnonPages:");
	return at ? strtol(at + 10, NULL, 10) / 4 : -1;
}

static pid_t writer(int cpu, int by)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof set, &set);
		atomic_fetch_add(ready, 1);
		for (long spins = 0; atomic_load(ready) < 2 && spins < 50000000; spins++)
			if (sysconf(_SC_NPROCESSORS_ONLN) == 1)
				sched_yield();
		write_all(by);
		_exit(0);
	}
	return pid;
}

static void round_of(int by)
{
	atomic_store(ready, 0);
	pid_t one = writer(0, by), two = writer((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, by + 1);
	reap(one);
	reap(two);
	for (int i = 0; i < HEIRS; i++) {
		pid_t heir = (pid_t)MUST(fork());
		if (heir == 0) {
			write_all(i);
			_exit(0);
		}
		reap(heir);
	}
	/* Children that write nothing: what was learnt is forgotten. */
	for (int i = 0; i < 2; i++) {
		pid_t idle = (pid_t)MUST(fork());
		if (idle == 0)
			_exit(0);
		reap(idle);
	}
}

int main(void)
{
	ready = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	write_all(1);
	round_of(2);
	long before = anonymous();
	for (int i = 0; i < ROUNDS; i++)
		round_of(i);
	/* What a CPU counts for itself is added from time to time. */
	sleep_ms(1500);
	long more = anonymous() - before;
	if (more >= ROUNDS)
		SAY("%ld pages stay", more);
	IS(more < ROUNDS);
	return 0;
}
