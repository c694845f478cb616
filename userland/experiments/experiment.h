/*
 * experiment.h: what the experiments share. Each is a program of its own, and an init too: as process 1 it mounts /dev and /proc, takes
 * its scale from the kernel's command line (experiment.scale=F, experiment.settle=SECONDS), and powers off in the end.
 *
 * A result is a line `rung NAME CALLS NANOSECONDS`; a fact is a line `fact NAME yes|no`.
 */
#ifndef ALEA_EXPERIMENT_H
#define ALEA_EXPERIMENT_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double experiment_scale = 1.0;

static double word_of(const char *line, const char *name, double otherwise)
{
	const char *at = strstr(line, name);
	return at ? strtod(at + strlen(name), NULL) : otherwise;
}

static void experiment_begin(int argc, char **argv)
{
	static char line[4096];
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getpid() != 1) {
		experiment_scale = argc > 1 ? strtod(argv[1], NULL) : 1.0;
		return;
	}
	mkdir("/dev", 0755);
	mkdir("/proc", 0755);
	mkdir("/tmp", 01777);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("tmp", "/tmp", "tmpfs", 0, NULL);
	int console = open("/dev/console", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(console, fd);
	int fd = open("/proc/cmdline", O_RDONLY);
	if (fd < 0 || read(fd, line, sizeof line - 1) <= 0)
		puts("experiment: no /proc/cmdline");
	close(fd);
	experiment_scale = word_of(line, "experiment.scale=", 1.0);
	sleep((unsigned)word_of(line, "experiment.settle=", 0));
}

static void experiment_end(void)
{
	puts("experiment-end");
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
}

/* So many calls at this scale, at least one. */
static inline long calls(long at_scale_one)
{
	long scaled = (long)((double)at_scale_one * experiment_scale);
	return scaled > 0 ? scaled : 1;
}

static inline int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static inline void rung(const char *name, long count, int64_t ns)
{
	printf("rung %s %ld %lld\n", name, count, (long long)ns);
}

static inline void fact(const char *name, int holds)
{
	printf("fact %s %s\n", name, holds ? "yes" : "no");
}

static inline void must(int works, const char *what)
{
	if (works)
		return;
	printf("experiment: FAILED: %s: %m\n", what);
	experiment_end();
	exit(1);
}

#endif
