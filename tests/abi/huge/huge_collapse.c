/*
 * MADV_COLLAPSE: single pages of private memory are put into a huge one, with zeros where none was, for whoever asks, whatever the
 * machine wants; what cannot be in one is refused. khugepaged does the same by itself, where huge pages are wanted.
 */
#include "huge.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Pages that are written here and there, each with its number. */
static void scatter(char *at, int step)
{
	for (int i = 0; i < PAGES; i += step)
		*(int *)(at + i * PAGE + 8) = i + 1;
}

static int wrong(const char *at, int step)
{
	int n = 0;
	for (int i = 0; i < PAGES; i++)
		n += *(const int *)(at + i * PAGE + 8) != (i % step ? 0 : i + 1) || at[i * PAGE] != 0 || at[i * PAGE + PAGE - 1] != 0;
	return n;
}

static void state(const char *what, char *at)
{
	printf("%s: %ld huge, %ld resident\n", what, huge(at), rss(at));
}

static void asked(void)
{
	enabled("never");
	char *at = aligned(1, RW);
	scatter(at, 7);
	state("scattered", at);
	T(madvise(at, HUGE, MADV_COLLAPSE));
	state("collapsed", at);
	printf("%d wrong\n", wrong(at, 7));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	T(mprotect(at + 5 * PAGE, PAGE, PROT_READ));
	T(mprotect(at + 5 * PAGE, PAGE, RW));
	state("opened", at);
	T(madvise(at, HUGE, MADV_COLLAPSE));
	state("collapsed again", at);
	printf("%d wrong\n", wrong(at, 7));
	drop(at, 1);

	at = aligned(3, RW);
	scatter(at, 2);
	scatter(at + HUGE, 511);
	scatter(at + 2 * HUGE, 1);
	T(madvise(at + PAGE, 2 * HUGE, MADV_COLLAPSE));
	state("the middle of three", at);
	printf("%d %d %d wrong\n", wrong(at, 2), wrong(at + HUGE, 511), wrong(at + 2 * HUGE, 1));
	T(madvise(at, HUGE - PAGE, MADV_COLLAPSE));
	T(madvise(at, 3 * HUGE, MADV_COLLAPSE));
	state("all three", at);
	printf("%d %d %d wrong\n", wrong(at, 2), wrong(at + HUGE, 511), wrong(at + 2 * HUGE, 1));
	drop(at, 3);

	at = aligned(1, RW);
	scatter(at, 3);
	IN_CHILD({
		printf("child: %d wrong\n", wrong(at, 3));
		*(int *)(at + 8) = -1;
	});
	*(volatile char *)(at + 3 * PAGE + 8) = 4;
	T(madvise(at, HUGE, MADV_COLLAPSE));
	state("after a child", at);
	printf("%d wrong\n", wrong(at, 3));
	drop(at, 1);
}

static void refused(void)
{
	char *at = aligned(1, RW);
	at[0] = 1;
	T(madvise(at, HUGE, MADV_NOHUGEPAGE));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	T(madvise(at, HUGE, MADV_HUGEPAGE));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	drop(at, 1);
	at = mmap(NULL, HUGE - PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *alone = aligned(1, RW);
	T(munmap(alone, PAGE));
	alone[PAGE] = 1;
	T(madvise(alone + PAGE, HUGE - PAGE, MADV_COLLAPSE));
	T(madvise(alone, HUGE, MADV_COLLAPSE));
	T(munmap(alone + PAGE, HUGE - PAGE));
	T(munmap(at, HUGE - PAGE));
	T(madvise((char *)1, HUGE, MADV_COLLAPSE));
}

static void setting(const char *name, const char *value)
{
	char path[128];
	snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/khugepaged/%s", name);
	int fd = (int)MUST(open(path, O_WRONLY));
	long n = write(fd, value, strlen(value));
	int e = errno;
	close(fd);
	printf("%s = %s: %s\n", name, value, n == (long)strlen(value) ? "taken" : err_name(e));
}

/* Waits for huge pages in a mapping. */
static void await(const char *what, char *at)
{
	for (int i = 0; i < 400 && huge(at) == 0; i++)
		usleep(50000);
	state(what, at);
}

static void by_itself(void)
{
	setting("pages_to_scan", "0");
	setting("max_ptes_none", "512");
	setting("max_ptes_none", "none");
	setting("max_ptes_none", "511");
	setting("pages_to_scan", "1000000");
	setting("scan_sleep_millisecs", "50");
	enabled("always");
	char *at = aligned(1, RW);
	T(madvise(at, HUGE, MADV_NOHUGEPAGE));
	scatter(at, 7);
	T(madvise(at, HUGE, MADV_HUGEPAGE));
	await("by khugepaged", at);
	printf("%d wrong\n", wrong(at, 7));
	drop(at, 1);
	setting("max_ptes_none", "100");
	at = aligned(1, RW);
	T(madvise(at, HUGE, MADV_NOHUGEPAGE));
	for (int i = 0; i < PAGES; i += 2)
		at[i * PAGE] = 1;
	char *full = aligned(1, RW);
	T(madvise(full, HUGE, MADV_NOHUGEPAGE));
	scatter(full, 1);
	T(madvise(at, HUGE, MADV_HUGEPAGE));
	T(madvise(full, HUGE, MADV_HUGEPAGE));
	await("what is full", full);
	state("what is half empty", at);
	drop(at, 1);
	drop(full, 1);
	setting("max_ptes_none", "511");
	setting("scan_sleep_millisecs", "10000");
	setting("pages_to_scan", "4096");
}

int main(void)
{
	asked();
	refused();
	by_itself();
	return 0;
}
