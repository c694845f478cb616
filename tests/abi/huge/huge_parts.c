/*
 * Parts of huge pages that others have: pipes, children that get no copy of some, and what is moved elsewhere; and the counts of
 * what is resident, which come out even however often that is done.
 */
#include "huge.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static char *full(void)
{
	char *at = aligned(1, RW);
	for (int i = 0; i < PAGES; i++)
		*(int *)(at + i * PAGE + 8) = i + 1;
	return at;
}

static int wrong(const char *at, int first, int count)
{
	int n = 0;
	for (int i = first; i < first + count; i++)
		n += *(const int *)(at + i * PAGE + 8) != i + 1;
	return n;
}

/* Three pages from the middle, which a pipe has. */
static void given(int fds[2], char *at)
{
	struct iovec iov = { at + 100 * PAGE, 3 * PAGE };
	MUST(pipe(fds));
	if (MUST(vmsplice(fds[1], &iov, 1, 0)) != 3 * PAGE)
		printf("not all was taken\n");
}

static int taken(int fds[2])
{
	static char buf[3 * 4096];
	int n = 0;
	MUST(read(fds[0], buf, sizeof buf));
	for (int i = 0; i < 3; i++)
		n += *(int *)(buf + i * PAGE + 8) != 101 + i;
	close(fds[0]);
	close(fds[1]);
	return n;
}

static void in_pipes(void)
{
	int fds[2];
	char *at = full();
	given(fds, at);
	drop(at, 1);
	char *other = full(), *more = full();
	memset(other, 5, HUGE);
	memset(more, 6, HUGE);
	printf("a pipe has pages of what is gone: %d wrong\n", taken(fds));
	drop(other, 1);
	drop(more, 1);

	at = full();
	given(fds, at);
	T(madvise(at, HUGE, MADV_DONTNEED));
	memset(at, 7, HUGE);
	printf("and of what was dropped: %d wrong\n", taken(fds));
	drop(at, 1);

	at = full();
	given(fds, at);
	T(mprotect(at + PAGE, PAGE, PROT_READ));
	T(mprotect(at + PAGE, PAGE, RW));
	/* Refused, or the pipe has copies. */
	madvise(at, HUGE, MADV_COLLAPSE);
	printf("collapsed while a pipe has pages: %d and %d wrong\n", wrong(at, 0, PAGES), taken(fds));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	printf("%d wrong\n", wrong(at, 0, PAGES));
	drop(at, 1);
}

static void children(void)
{
	char *at = full();
	T(madvise(at + 64 * PAGE, 64 * PAGE, MADV_WIPEONFORK));
	T(madvise(at + 256 * PAGE, 64 * PAGE, MADV_DONTFORK));
	IN_CHILD({
		printf("child: %d wrong, %d of 64 wiped, ", wrong(at, 0, 64) + wrong(at, 128, 128) + wrong(at, 320, 192), wrong(at, 64, 64));
		printf("what it has not faults: %d\n", faults(at + 256 * PAGE));
		memset(at, 1, 128 * PAGE);
	});
	printf("parent: %d wrong\n", wrong(at, 0, PAGES));
	for (int i = 0; i < PAGES; i++)
		at[i * PAGE] = 1;
	T(munmap(at + 256 * PAGE, 64 * PAGE));
	printf("parent: %d wrong\n", wrong(at, 0, 256) + wrong(at, 320, 192));
	T(munmap(at, 256 * PAGE));
	T(munmap(at + 320 * PAGE, 192 * PAGE));
}

static void moved(void)
{
	char *from = full(), *to = full();
	char *got = mremap(from + 10 * PAGE, 20 * PAGE, 20 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to + 40 * PAGE);
	IS(got == to + 40 * PAGE);
	int n = 0;
	for (int i = 0; i < 20; i++)
		n += *(int *)(got + i * PAGE + 8) != 11 + i;
	printf("moved: %d wrong, beside it %d\n", n, wrong(to, 0, 40) + wrong(to, 60, 452));
	printf("what is left: %d wrong, and faults: %d\n", wrong(from, 0, 10) + wrong(from, 30, 482), faults(from + 10 * PAGE));
	T(mlock(to + 100 * PAGE, 7 * PAGE));
	printf("locked: %ld\n", status("VmLck:"));
	T(munlock(to + 100 * PAGE, 7 * PAGE));
	T(munmap(from, 10 * PAGE));
	T(munmap(from + 30 * PAGE, 482 * PAGE));
	drop(to, 1);

	char *low = sbrk(0);
	char *base = (char *)(((uintptr_t)low + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	MUST(brk(base + 2 * HUGE));
	memset(base, 3, 2 * HUGE);
	MUST(brk(base + HUGE + 9 * PAGE));
	MUST(brk(base + 2 * HUGE));
	printf("the heap: %d %d\n", base[HUGE + 8 * PAGE], base[HUGE + 9 * PAGE]);
	MUST(brk(low));
}

/* Into one huge page again, unless no 2 MiB in a row are free. */
static void collapse(char *at)
{
	MUST(madvise(at, HUGE, MADV_COLLAPSE) == 0 || errno == ENOMEM ? 0 : -1);
}

static int *word;

static void *waiter(void *op)
{
	return (void *)syscall(SYS_futex, word, (int)(long)op, 0, NULL, NULL, 0);
}

static void futexes(void)
{
	for (int private = 0; private < 2; private++) {
		char *at = full();
		pthread_t thread;
		word = (int *)(at + 77 * PAGE);
		MUST(pthread_create(&thread, NULL, waiter, (void *)(long)(FUTEX_WAIT | (private ? FUTEX_PRIVATE_FLAG : 0))));
		usleep(100000);
		MUST(mprotect(at, PAGE, PROT_READ));
		MUST(mprotect(at, PAGE, RW));
		collapse(at);
		long woken = 0;
		for (int i = 0; i < 100 && woken == 0; i++) {
			woken = syscall(SYS_futex, word, FUTEX_WAKE | (private ? FUTEX_PRIVATE_FLAG : 0), 1, NULL, NULL, 0);
			usleep(10000);
		}
		printf("woken: %ld\n", woken);
		MUST(pthread_join(thread, NULL));
		drop(at, 1);
	}
}

static long meminfo(const char *name)
{
	const char *line = strstr(read_file("/proc/meminfo"), name);
	return line ? atol(line + strlen(name)) : -1;
}

static long rollup(const char *name)
{
	const char *line = strstr(read_file("/proc/self/smaps_rollup"), name);
	return line ? atol(line + strlen(name)) : -1;
}

static void once(int round)
{
	char *at = full();
	char *part = at + (round * 37 % 500) * PAGE;
	switch (round % 8) {
	case 0: MUST(munmap(part, 3 * PAGE)); break;
	case 1: MUST(madvise(part, 3 * PAGE, MADV_DONTNEED)); break;
	case 2: MUST(mprotect(part, 3 * PAGE, PROT_NONE)); break;
	case 3: MUST(madvise(at, HUGE, MADV_DONTNEED)); break;
	case 4: IN_CHILD(part[0] = 1); break;
	case 5:
		MUST(madvise(part, 3 * PAGE, MADV_DONTFORK));
		IN_CHILD(at[0]++);
		break;
	case 6:
		MUST(mremap(part, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 505 * PAGE) == MAP_FAILED ? -1 : 0);
		break;
	case 7:
		MUST(madvise(part, 3 * PAGE, MADV_DONTNEED));
		collapse(at);
		break;
	}
	if (round % 3 == 0)
		madvise(at, HUGE, MADV_COLLAPSE);
	drop(at, 1);
}

static void counts(void)
{
	once(4);
	long large = meminfo("AnonHugePages:"), anon = meminfo("AnonPages:"), resident = status("VmRSS:");
	long drift = resident - rollup("Rss:");
	for (int round = 0; round < 400; round++)
		once(round);
	IS(labs(meminfo("AnonHugePages:") - large) < 4096);
	IS(labs(meminfo("AnonPages:") - anon) < 16384);
	IS(labs(status("VmRSS:") - resident) < 1024);
	IS(labs(status("VmRSS:") - rollup("Rss:") - drift) < 512);
}

int main(void)
{
	enabled("always");
	in_pipes();
	children();
	moved();
	futexes();
	counts();
	return 0;
}
