/*
 * Anonymous memory that is written from one page to the next: a kernel may fill in pages before they are written, but only a few,
 * only zeros, never over a page that is there, never outside the mapping, and none after MADV_NOHUGEPAGE; memory that is written here
 * and there stays as it is.
 */
#include "check.h"

enum { PAGES = 256 };

static char *fresh(void)
{
	char *at = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(at == MAP_FAILED ? -1 : 0);
	/* A mapping of its own, which nobody touches. */
	MUST(mprotect(at + PAGES * PAGE, PAGE, PROT_READ));
	return at;
}

static int resident(char *at, int first, int count)
{
	static unsigned char there[PAGES + 1];
	int sum = 0;
	MUST(mincore(at + first * PAGE, (size_t)count * PAGE, there));
	for (int i = 0; i < count; i++)
		sum += there[i] & 1;
	return sum;
}

static void write_pages(char *at, int first, int count, int step)
{
	for (int i = first; i < first + count; i += step)
		at[i * PAGE] = (char)(i + 1);
}

int main(void)
{
	char *at = fresh();
	int wrong = 0;

	/* A run, over a page that is there already. */
	at[90 * PAGE + 5] = 'x';
	write_pages(at, 0, 80, 1);
	IS(at[90 * PAGE + 5] == 'x');
	IS(resident(at, 0, 80) == 80);
	IS(resident(at, 80, PAGES - 80) <= 1 + 80 / 4);
	write_pages(at, 80, PAGES - 80, 1);
	IS(at[90 * PAGE + 5] == 'x' && at[90 * PAGE] == 91);
	IS(resident(at, PAGES, 1) == 0);
	for (int i = 0; i < PAGES; i++)
		wrong += at[i * PAGE] != (char)(i + 1) || at[i * PAGE + 1] != 0 || at[i * PAGE + PAGE - 1] != 0;
	IS(wrong == 0);
	T(munmap(at, (PAGES + 1) * PAGE));

	/* Here and there, and backwards. */
	at = fresh();
	write_pages(at, 0, PAGES, 2);
	IS(resident(at, 0, PAGES) == PAGES / 2);
	T(munmap(at, (PAGES + 1) * PAGE));
	at = fresh();
	for (int i = PAGES - 1; i >= PAGES / 2; i--)
		at[i * PAGE] = 1;
	IS(resident(at, 0, PAGES / 2) == 0);

	/* As the program wants it. */
	T(madvise(at, PAGES / 2 * PAGE, MADV_NOHUGEPAGE));
	write_pages(at, 0, 80, 1);
	IS(resident(at, 0, PAGES / 2) == 80);
	T(madvise(at, PAGES / 2 * PAGE, MADV_HUGEPAGE));
	T(madvise(at, PAGES / 2 * PAGE, MADV_DONTNEED));

	/* What was filled in is given back, and comes again as zeros. */
	write_pages(at, 0, 64, 1);
	T(madvise(at, PAGES * PAGE, MADV_DONTNEED));
	IS(resident(at, 0, PAGES) == 0);
	IS(at[70 * PAGE] == 0 && at[0] == 0);

	/* A child has what its parent wrote, and what neither wrote stays zero for both. */
	write_pages(at, 0, 64, 1);
	pid_t child = fork();
	if (child == 0) {
		write_pages(at, 64, 64, 1);
		_exit(at[63 * PAGE] == 64 && at[100 * PAGE] == 101 ? 7 : 1);
	}
	int status;
	MUST(waitpid(child, &status, 0) == child ? 0 : -1);
	IS(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	IS(at[64 * PAGE] == 0 && at[100 * PAGE] == 0);
	return 0;
}
