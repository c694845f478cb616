/*
 * syscall_cost: what one trip into the kernel costs, and what batching saves.
 *
 * The first part times calls that do almost nothing, past the C library (which would answer some of
 * them itself). The second moves the same 64 KiB to /dev/null in pieces, by write(2) and
 * by writev(2): the price of a call is fixed, so fewer calls of more bytes each are cheaper.
 *
 * usage: syscall_cost [CALLS]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BYTES 65536
#define BATCH 64

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void trip(const char *name, long calls, long number, long a, long b, long c)
{
	double from = now_ns();
	for (long i = 0; i < calls; i++)
		syscall(number, a, b, c);
	printf("%-22s %10.1f ns\n", name, (now_ns() - from) / (double)calls);
}

static void check(ssize_t got, ssize_t want)
{
	if (got != want) {
		fprintf(stderr, "syscall_cost: wrote %zd of %zd\n", got, want);
		exit(1);
	}
}

/* Writes BYTES to `fd`, `piece` bytes a call; returns ns. */
static double by_write(int fd, const char *data, size_t piece)
{
	double from = now_ns();
	for (size_t done = 0; done < BYTES; done += piece)
		check(write(fd, data + done, piece), (ssize_t)piece);
	return now_ns() - from;
}

/* The same pieces, but BATCH of them a call. */
static double by_writev(int fd, char *data, size_t piece)
{
	struct iovec iov[BATCH];
	double from = now_ns();
	for (size_t done = 0; done < BYTES;) {
		size_t start = done;
		int n = 0;
		for (; n < BATCH && done < BYTES; n++, done += piece)
			iov[n] = (struct iovec){ data + done, piece };
		check(writev(fd, iov, n), (ssize_t)(done - start));
	}
	return now_ns() - from;
}

int main(int argc, char **argv)
{
	static char data[BYTES];
	static const size_t pieces[] = { 1, 16, 256, 4096, 65536 };
	long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 200000;
	if (calls < 1) {
		fprintf(stderr, "usage: syscall_cost [CALLS]\n");
		return 2;
	}
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0) {
		perror("/dev/null");
		return 1;
	}
	memset(data, 'x', sizeof data);
	trip("getpid", calls, SYS_getpid, 0, 0, 0);
	trip("getppid", calls, SYS_getppid, 0, 0, 0);
	trip("close(-1)", calls, SYS_close, -1, 0, 0);
	trip("write(null, 1 byte)", calls, SYS_write, null, (long)data, 1);
	trip("getrandom(16)", calls / 4 + 1, SYS_getrandom, (long)data, 16, 0);
	printf("\n64 KiB to /dev/null    %14s %14s\n", "write", "writev");
	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		double single = by_write(null, data, pieces[i]);
		double batched = by_writev(null, data, pieces[i]);
		printf("%6zu bytes a piece    %11.1f us %11.1f us\n", pieces[i], single / 1e3,
		       batched / 1e3);
	}
	return 0;
}
