/*
 * exec_loop N PROGRAM [ARG...]: forks, execs and reaps PROGRAM N times, one after the other, and
 * says how long one took on average. Stops with status 1 at the first that does not exit with 0,
 * so that a figure is only printed for execs that worked.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: exec_loop N PROGRAM [ARG...]\n");
		return 2;
	}
	long count = strtol(argv[1], NULL, 10);
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (long i = 0; i < count; i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			execvp(argv[2], argv + 2);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
			fprintf(stderr, "exec_loop: run %ld of %s failed\n", i, argv[2]);
			return 1;
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	double us = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
	printf("%ld execs of %s: %.1f us each\n", count, argv[2], count > 0 ? us / (double)count : 0.0);
	return 0;
}
