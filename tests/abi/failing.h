/*
 * failing.h: makes one allocation of the kernel after the other fail, in one call: on Alea with `alea.fail_alloc=0`
 * (`cargo xtask abi NAME --fail-alloc 0`). Elsewhere nothing fails, and each call is made once.
 */
#ifndef ALEA_ABI_FAILING_H
#define ALEA_ABI_FAILING_H

#include "check.h"

/* No call asks for more. */
#define MOST_ALLOCATIONS 400

static int failing_fd = -1;

static void failing_begin(void)
{
	int fd = open("/proc/self/alea/fail_nth", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && pwrite(fd, "0", 1, 0) == 1)
		failing_fd = fd;
	else if (fd >= 0)
		close(fd);
}

/* How many have failed. */
static unsigned long failing_count(void)
{
	char text[300];
	int fd = open("/proc/alea/fail_alloc", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	char *at = strstr(text, "failed ");
	return at ? strtoul(at + 7, NULL, 10) : 0;
}

/* The caller's n-th allocation from now on is to fail. */
static void failing_at(int n)
{
	char text[12];
	int len = snprintf(text, sizeof text, "%d", n);
	if (failing_fd >= 0 && pwrite(failing_fd, text, (size_t)len, 0) != len)
		_exit(98);
}

/* No more; nonzero if this is what failed, and not what came before. */
static int failing_at_none(void)
{
	int itself = 0;
	while (failing_fd >= 0 && pwrite(failing_fd, "0", 1, 0) != 1)
		itself = 1;
	return itself;
}

/* One call, and what it takes. */
struct call {
	const char *name;
	/* Puts something there to be taken. */
	void (*before)(void);
	/* The call: what it gives, or -1. */
	long (*act)(void);
	/* Whether nothing was taken by a call that has failed; without one it is made again. */
	int (*is_untouched)(void);
	/* Whether all was taken that was there. */
	int (*is_whole)(long result);
};

static void failing_broken(const struct call *call, int nth, const char *what, int error)
{
	printf("not whole: %s: allocation %d: %s (%s)\n", call->name, nth, what, err_name(error));
}

/* Makes the call with its first allocation failing, its second, and so on until there are no more. */
static UNUSED void fail_each(const struct call *call)
{
	int nth = 1, broken = 0, fails = 1;
	for (; fails && nth < MOST_ALLOCATIONS && broken < 3; nth++) {
		call->before();
		unsigned long count = failing_count();
		failing_at(nth);
		errno = 0;
		long result = call->act();
		int error = errno, itself = failing_at_none();
		fails = !itself && failing_count() != count;
		if (result == -1 && fails && (error == ENOMEM || error == ENOBUFS)) {
			if (call->is_untouched && !call->is_untouched()) {
				failing_broken(call, nth, "it has failed and changed something", error);
				broken++;
			}
			errno = 0;
			result = call->act();
			error = errno;
			if (result == -1) {
				failing_broken(call, nth, "it has failed and is not to be had again", error);
				broken++;
				continue;
			}
		}
		if (result == -1 || !call->is_whole(result)) {
			failing_broken(call, nth, "not what was there", error);
			broken++;
		}
	}
	SAY("%s: %s", call->name, nth == MOST_ALLOCATIONS ? "too many" : broken ? "broken" : "whole");
}

#endif
