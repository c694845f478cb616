/*
 * growth: what one more costs when there are N already. The init of a boot
 * (rdinit=/usr/lib/alea/growth), on Alea and on Linux, or a plain program.
 *
 * Prints for every curve and size
 *     growth CURVE N NANOSECONDS     (of one operation)
 * then `growth-end`. A curve that this kernel refuses at some size says `growth-skip CURVE N errno`
 * and ends there. The curves `cpus_*` (growth_cpus.h) have one size, the number of CPUs there are.
 * On a command line with `alea.growth=GLOB,GLOB` only those run that match (without it, all but
 * `cpus_*`), and with `alea.growth_max=N` the sizes end there. As process 1 it powers off at the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 10000

static int held[MOST];		/* descriptors or pids of what there is already */
static long have;

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- processes: fork, exit and wait beside N that sleep ---- */

static int more_processes(long n)
{
	while (have < n) {
		pid_t pid = fork();
		if (pid == 0)
			for (;;)
				pause();
		if (pid < 0)
			return errno;
		held[have++] = pid;
	}
	return 0;
}

static int one_process(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(7);
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 7 << 8;
}

static void no_processes(void)
{
	for (long i = 0; i < have; i++)
		kill(held[i], SIGKILL);
	for (long i = 0; i < have; i++)
		waitpid(held[i], NULL, 0);
}

/* ---- files: open and close beside N open ones ---- */

static int more_files(long n)
{
	struct rlimit all = { MOST + 100, MOST + 100 };
	setrlimit(RLIMIT_NOFILE, &all);
	while (have < n)
		if ((held[have++] = open("/proc/self/stat", O_RDONLY)) < 0)
			return errno;
	return 0;
}

static int one_file(void)
{
	int fd = open("/tmp", O_RDONLY);
	return fd < 0 || close(fd) != 0;
}

static void close_all(void)
{
	for (long i = 0; i < have; i++)
		close(held[i]);
}

/* ---- names: make, look up and remove one in a directory of N ---- */

static int more_names(long n)
{
	char name[64];
	mkdir("/tmp/growth", 0755);
	while (have < n) {
		snprintf(name, sizeof name, "/tmp/growth/name-%ld", have++);
		int fd = open(name, O_WRONLY | O_CREAT, 0644);
		if (fd < 0)
			return errno;
		close(fd);
	}
	return 0;
}

static int one_name(void)
{
	struct stat st;
	int fd = open("/tmp/growth/another", O_WRONLY | O_CREAT | O_EXCL, 0644);
	return fd < 0 || close(fd) != 0 || stat("/tmp/growth/another", &st) != 0 ||
	       unlink("/tmp/growth/another") != 0;
}

static void no_names(void)
{
	char name[64];
	for (long i = 0; i < have; i++) {
		snprintf(name, sizeof name, "/tmp/growth/name-%ld", i);
		unlink(name);
	}
	rmdir("/tmp/growth");
}

/* ---- mappings: map, touch and unmap a page beside N mappings that do not merge ---- */

static char *area;

static int more_mappings(long n)
{
	if (!area)
		area = mmap(NULL, 2L * MOST * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (; have < n; have += 2)	/* every other page splits the area once more */
		if (mprotect(area + have * 4096, 4096, PROT_READ) != 0)
			return errno;
	return 0;
}

static int one_mapping(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 1;
	*(volatile char *)page = 1;
	return munmap(page, 4096) != 0;
}

static void no_mappings(void)
{
	munmap(area, 2L * MOST * 4096);
	area = NULL;
}

/* ---- pages: fork, exit and wait with N pages written by the parent ---- */

static int more_pages(long n)
{
	if (!area)
		area = mmap(NULL, (long)MOST * 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (; have < n; have++)
		area[have * 4096] = 1;
	return 0;
}

static void no_pages(void)
{
	munmap(area, (long)MOST * 4096);
	area = NULL;
}

/* ---- timers: arm and disarm one beside N armed ones ---- */

static timer_t another;

static int arm(timer_t timer, long seconds)
{
	struct itimerspec at = { .it_value = { .tv_sec = seconds } };
	return timer_settime(timer, 0, &at, NULL);
}

static int more_timers(long n)
{
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	struct rlimit all = { 2 * MOST, 2 * MOST };
	setrlimit(RLIMIT_SIGPENDING, &all);
	if (have == 0 && timer_create(CLOCK_MONOTONIC, &none, &another) != 0)
		return errno;
	while (have < n) {
		timer_t timer;
		if (timer_create(CLOCK_MONOTONIC, &none, &timer) != 0 || arm(timer, 5000 + have) != 0)
			return errno;
		have++;
	}
	return 0;
}

static int one_timer(void)
{
	return arm(another, 4000) != 0 || arm(another, 0) != 0;
}

/* ---- epoll: the one that is ready among N that are watched ---- */

static int epoll_fd = -1;

static int more_watched(long n)
{
	struct rlimit all = { MOST + 100, MOST + 100 };
	setrlimit(RLIMIT_NOFILE, &all);
	if (epoll_fd < 0)
		epoll_fd = epoll_create1(0);
	while (have < n) {
		struct epoll_event event = { .events = EPOLLIN };
		int fd = eventfd(0, 0);
		if (fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
			return errno;
		held[have++] = fd;
	}
	return 0;
}

static int one_ready(void)
{
	struct epoll_event event;
	uint64_t one = 1;
	return write(held[0], &one, 8) != 8 || epoll_wait(epoll_fd, &event, 1, 1000) != 1 ||
	       read(held[0], &one, 8) != 8;
}

#include "growth_cpus.h"

/* ---- the table ---- */

static const struct curve {
	const char *name;
	int (*more)(long n);	/* makes it N; returns an errno */
	int (*one)(void);	/* the operation; returns whether it failed */
	void (*end)(void);
	long times;
} curves[] = {
	{ "processes", more_processes, one_process, no_processes, 40 },
	{ "open_files", more_files, one_file, close_all, 400 },
	{ "directory", more_names, one_name, no_names, 400 },
	{ "mappings", more_mappings, one_mapping, no_mappings, 400 },
	{ "fork_pages", more_pages, one_process, no_pages, 10 },
	{ "timers", more_timers, one_timer, NULL, 400 },
	{ "epoll", more_watched, one_ready, close_all, 400 },
};

static void curve(const void *which, long most)
{
	const struct curve *c = which;
	for (long n = 1; n <= most; n *= 10) {
		int error = c->more(n);
		for (long i = 0; !error && i < c->times / 10; i++)
			error = c->one() ? EPROTO : 0;
		uint64_t from = now_ns();
		for (long i = 0; !error && i < c->times; i++)
			error = c->one() ? EPROTO : 0;
		uint64_t each = (now_ns() - from) / (uint64_t)c->times;
		if (error) {
			printf("growth-skip %s %ld %d\n", c->name, n, error);
			break;
		}
		printf("growth %s %ld %llu\n", c->name, n, (unsigned long long)each);
	}
	if (c->end)
		c->end();
}

/* ---- which curves run ---- */

static char command_line[4096];

static const char *knob(const char *name)
{
	const char *at = strstr(command_line, name);
	return at ? at + strlen(name) : NULL;
}

static int is_wanted(const char *name)
{
	static char globs[256];
	const char *given = knob("alea.growth=");
	if (!given)
		return strncmp(name, "cpus_", 5) != 0;
	snprintf(globs, sizeof globs, "%.*s", (int)strcspn(given, " \n"), given);
	for (char *rest = globs, *glob; (glob = strsep(&rest, ","));)
		if (fnmatch(glob, name, 0) == 0)
			return 1;
	return 0;
}

/* Runs one curve in a process of its own: it leaves nothing behind. */
static void apart(const char *name, void (*run)(const void *, long), const void *what, long most)
{
	int status;
	if (!is_wanted(name))
		return;
	pid_t pid = fork();
	if (pid == 0) {
		run(what, most);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		printf("growth-skip %s 0 status\n", name);
}

int main(void)
{
	int alone = getpid() == 1;
	long most = MOST;
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/proc", 0555);
	mkdir("/tmp", 01777);
	if (alone)
		mount("proc", "/proc", "proc", 0, NULL);
	int fd = open("/proc/cmdline", O_RDONLY);
	if (fd >= 0 && read(fd, command_line, sizeof command_line - 1) < 0)
		perror("growth: /proc/cmdline");
	close(fd);
	const char *limit = knob("alea.growth_max=");
	if (limit)
		most = strtol(limit, NULL, 10);
	if (alone)
		sleep(3);	/* the kernel may have work of its own to end */
	for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++)
		apart(curves[i].name, curve, &curves[i], most);
	apart("threads", curve_threads, NULL, most);
	for (size_t i = 0; i < sizeof cpu_curves / sizeof cpu_curves[0]; i++)
		apart(cpu_curves[i].name, cpu_curve, &cpu_curves[i], most);
	puts("growth-end");
	if (alone) {
		sync();
		reboot(RB_POWER_OFF);
	}
	return 0;
}
