/*
 * What a huge page allows is what its mapping allows, however it came to be: memory that may not be written is not collapsed, by
 * whoever asks nor by khugepaged, and advice about a few pages is no advice about those behind them.
 */
#include "huge.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static int unreadable(char *at)
{
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(out_of_fault, 1))
		return 1;
	return *(volatile char *)at == 77 ? 2 : 0;
}

static void show(const char *what, char *at)
{
	printf("%s: %ld huge, reading %d, writing %d\n", what, huge(at), unreadable(at), faults(at));
}

/* Memory in single pages. */
static char *scattered(long count)
{
	char *at = aligned(count, RW);
	for (long i = 0; i < count * PAGES; i += 3)
		at[i * PAGE] = 1;
	return at;
}

static void rights(void)
{
	enabled("never");
	char *at = scattered(1);
	T(mprotect(at, HUGE, PROT_READ));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	show("to be read", at);
	T(mprotect(at, HUGE, PROT_NONE));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	show("not to be touched", at);
	T(mprotect(at, HUGE, PROT_READ | PROT_EXEC));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	show("to be executed", at);
	T(mprotect(at, HUGE, RW));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	show("to be written", at);
	T(mprotect(at, HUGE, PROT_READ));
	T(mprotect(at, HUGE, PROT_READ));
	printf("to be read once more: writing %d\n", faults(at));
	T(mprotect(at, HUGE, PROT_NONE));
	printf("not to be touched once more: reading %d, writing %d\n", unreadable(at), faults(at));
	drop(at, 1);

	enabled("always");
	at = aligned(1, RW | PROT_EXEC);
	memcpy(at + 5 * PAGE, "\xb8\x2a\0\0\0\xc3", 6);
	int (*call)(void) = (int (*)(void))(uintptr_t)(at + 5 * PAGE);
	printf("%d, %ld huge\n", call(), huge(at));
	T(mprotect(at, HUGE, PROT_READ | PROT_EXEC));
	printf("%d, writing %d\n", call(), faults(at + 5 * PAGE));
	drop(at, 1);
}

/* Advice about less than a huge page, in and beside what could be one. */
static void ranges(void)
{
	enabled("never");
	char *at = scattered(3);
	T(madvise(at + PAGE, PAGE, MADV_COLLAPSE));
	T(madvise(at, PAGE, MADV_COLLAPSE));
	T(madvise(at + HUGE + PAGE, HUGE - PAGE, MADV_COLLAPSE));
	T(madvise(at + HUGE + PAGE, HUGE - 2 * PAGE, MADV_COLLAPSE));
	T(madvise(at + 2 * HUGE + PAGE, PAGE, MADV_COLLAPSE));
	printf("%ld huge\n", huge(at));
	T(madvise(at + PAGE, HUGE, MADV_COLLAPSE));
	T(madvise(at + PAGE, 2 * HUGE - PAGE, MADV_COLLAPSE));
	printf("%ld huge\n", huge(at));
	drop(at, 3);
}

/* Where nothing was written there is nothing to collapse. */
static void nothing(void)
{
	enabled("never");
	char *at = aligned(1, RW);
	IS(at[5 * PAGE] == 0);
	T(madvise(at, HUGE, MADV_COLLAPSE));
	at[5 * PAGE] = 1;
	T(madvise(at + 5 * PAGE, PAGE, MADV_DONTNEED));
	T(madvise(at, HUGE, MADV_COLLAPSE));
	printf("%ld huge\n", huge(at));
	drop(at, 1);
}

static long scans(void)
{
	return atol(read_file("/sys/kernel/mm/transparent_hugepage/khugepaged/full_scans"));
}

static void by_itself(void)
{
	enabled("never");
	char *read_only = scattered(1), *none = scattered(1), *other = scattered(1);
	T(mprotect(read_only, HUGE, PROT_READ));
	T(mprotect(none, HUGE, PROT_NONE));
	khugepaged("pages_to_scan", "1000000");
	khugepaged("scan_sleep_millisecs", "50");
	enabled("always");
	for (int i = 0; i < 400 && huge(other) == 0; i++)
		usleep(50000);
	for (long before = scans(), i = 0; i < 400 && scans() < before + 3; i++)
		usleep(50000);
	show("by khugepaged", other);
	show("to be read", read_only);
	show("not to be touched", none);
	khugepaged("scan_sleep_millisecs", "10000");
	khugepaged("pages_to_scan", "4096");
	drop(other, 1);
	drop(none, 1);
	drop(read_only, 1);
}

int main(void)
{
	rights();
	nothing();
	by_itself();
	ranges();
	return 0;
}
