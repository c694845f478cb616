/*
 * load: what its kinds share: time, a piece of work, numbers of a kind, and processes that are one group.
 */
#ifndef LOAD_H
#define LOAD_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_CPUS 64
#define MOST_SAMPLES (1 << 17)
#define US 1000ull
#define MS 1000000ull

/* Ends the boot: what a kind needs and does not get is no result. */
#define MUST(call) ({ long r_ = (long)(call); if (r_ == -1) failed(#call); r_; })

__attribute__((noreturn)) static void failed(const char *what)
{
	printf("load-failed %s: errno %d\n", what, errno);
	fflush(NULL);
	reboot(RB_POWER_OFF);
	_exit(1);
}

static int cpus;
/* How long a kind lasts that has no other end. */
static uint64_t length = 1000 * MS;

/* What all processes of a kind see. */
static struct shared {
	_Atomic uint32_t go, stop, ready;
	_Atomic uint64_t work[MOST_CPUS * 128];
	_Atomic uint32_t count;
	uint64_t samples[MOST_SAMPLES];
} *shared;

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

/* A piece of work that asks nothing of the kernel: about a microsecond under TCG, 2,000 instructions. */
static void work_a_bit(void)
{
	for (int i = 0; i < 1000; i++)
		__asm__ volatile("");
}

static void sample(uint64_t ns)
{
	uint32_t at = atomic_fetch_add(&shared->count, 1);
	if (at < MOST_SAMPLES)
		shared->samples[at] = ns;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* A number of which less is better. */
static void tell(const char *kind, const char *what, double number)
{
	printf("load %s %s %.1f\n", kind, what, number);
}

/* What the samples of a latency say. */
static void tell_samples(const char *kind)
{
	size_t count = shared->count < MOST_SAMPLES ? shared->count : MOST_SAMPLES;
	if (count == 0)
		failed(kind);
	qsort(shared->samples, count, sizeof *shared->samples, ascending);
	tell(kind, "p50", (double)shared->samples[count / 2]);
	tell(kind, "p99", (double)shared->samples[count - 1 - count / 100]);
	tell(kind, "p99.9", (double)shared->samples[count - 1 - count / 1000]);
}

static void begin(void)
{
	memset(shared, 0, sizeof *shared);
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* Waits until all are told to go. */
static void wait_for_go(void)
{
	atomic_fetch_add(&shared->ready, 1);
	while (!atomic_load(&shared->go))
		futex(&shared->go, FUTEX_WAIT, 0);
}

/* Tells `all` to go once they are there: when that was. */
static uint64_t let_go(uint32_t all)
{
	while (atomic_load(&shared->ready) < all)
		nap(MS);
	uint64_t start = now_ns();
	atomic_store(&shared->go, 1);
	futex(&shared->go, FUTEX_WAKE, 0x7fffffff);
	return start;
}

/* A child that does `job` of its number and ends. All children of init are its own: reap() ends with the last. */
static pid_t child(void (*job)(int), int number)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		job(number);
		_exit(0);
	}
	return pid;
}

static void reap(void)
{
	int status;
	while (waitpid(-1, &status, 0) > 0)
		if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
			failed("a child");
}

/* Works until it is told to stop; how much of it was done stands at `number`. */
static void spinner(int number)
{
	wait_for_go();
	while (!atomic_load_explicit(&shared->stop, memory_order_relaxed)) {
		work_a_bit();
		atomic_fetch_add_explicit(&shared->work[number], 1, memory_order_relaxed);
	}
}

static uint64_t work_of(int from, int to)
{
	uint64_t sum = 0;
	for (int i = from; i < to; i++)
		sum += shared->work[i];
	return sum;
}
#endif
