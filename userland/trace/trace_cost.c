/*
 * trace_cost: what a call of getpid costs, alone and traced through /proc/alea/trace, in nanoseconds, which under -icount are
 * instructions. A child makes the calls. `traced` is its own time, with rings that nobody reads meanwhile and that have room;
 * `read` is the time that passes on a machine with one CPU when the parent reads and pairs the records, as alea-trace -c does.
 *
 * usage: trace_cost       prints three numbers: plain, traced, read; as process 1 it powers off then
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 4000 };

static int64_t now(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* What the loop costs without its call is the same in all. */
static double per_call(clockid_t clock)
{
	int64_t start = now(clock);
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getpid);
	return (double)(now(clock) - start) / CALLS;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void child(int orders, int answers)
{
	char order;
	while (read(orders, &order, 1) == 1) {
		double cost = per_call(order == 'c' ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
		if (write(answers, &cost, sizeof cost) != sizeof cost)
			die("write");
	}
	_exit(0);
}

static int session(pid_t pid)
{
	char text[128];
	int fd = open("/proc/alea/trace", O_RDWR | O_NONBLOCK);
	int len = snprintf(text, sizeof text, "size 1024\npoints calls\nstrings 0\ntrace %d\n", (int)pid);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		die("/proc/alea/trace");
	return fd;
}

/* Reads all that is there; how many calls of getpid began and ended. */
static long drain(int fd, long *lost)
{
	static uint64_t words[1 << 15];
	long calls = 0;
	for (ssize_t got; (got = read(fd, words, sizeof words)) > 0;)
		for (size_t at = 0; at < (size_t)got / 8; at += words[at] >> 16 & 0xffff) {
			unsigned kind = words[at] & 0xff;
			if (kind == 16)
				calls += words[at + 3] == SYS_getpid;
			else if (kind == 2)
				*lost += (long)words[at + 2];
		}
	return calls;
}

int main(void)
{
	int orders[2], answers[2];
	double plain, traced, with_reader;
	if (getpid() == 1)
		mount("proc", "/proc", "proc", 0, NULL);
	if (pipe(orders) || pipe(answers))
		die("pipe");
	pid_t pid = fork();
	if (!pid) {
		close(orders[1]);
		close(answers[0]);
		child(orders[0], answers[1]);
	}
	for (int warm = 0; warm < 2; warm++)
		if (write(orders[1], "c", 1) != 1 || read(answers[0], &plain, sizeof plain) != sizeof plain)
			die("child");
	int fd = session(pid);
	if (write(orders[1], "c", 1) != 1 || read(answers[0], &traced, sizeof traced) != sizeof traced)
		die("child");
	long lost = 0, seen = drain(fd, &lost);
	int64_t start = now(CLOCK_MONOTONIC);
	if (write(orders[1], "m", 1) != 1 || read(answers[0], &with_reader, sizeof with_reader) != sizeof with_reader)
		die("child");
	seen += drain(fd, &lost);
	with_reader = (double)(now(CLOCK_MONOTONIC) - start) / CALLS;
	if (seen != 2 * CALLS || lost) {
		printf("%ld calls seen, %ld records lost\n", seen, lost);
		return 1;
	}
	printf("trace_cost %.1f %.1f %.1f\n", plain, traced, with_reader);
	close(orders[1]);
	waitpid(pid, NULL, 0);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return 0;
}
