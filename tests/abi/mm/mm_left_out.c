/*
 * What a child does not get (WIPEONFORK, DONTFORK), page by page beside what it gets: at the ends of mappings in one
 * stretch of memory, and at the lowest addresses that may be mapped, below everything else.
 */
#include "check.h"
#include <setjmp.h>

static sigjmp_buf out;

static void on_fault(int s) { siglongjmp(out, s); }

static int look(volatile char *p)
{
	return sigsetjmp(out, 1) == 0 ? *p : -1;
}

static char *at(unsigned long addr, size_t count)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	char *p = (char *)MUST(mmap((void *)addr, count * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0));
	memset(p, 'x', count * PAGE);
	return p;
}

/* Each of COUNT pages from P on gets the advice of its letter; then what the child finds there: . for nothing. */
static void show(const char *what, char *p, const char *plan)
{
	size_t count = strlen(plan);
	for (size_t i = 0; i < count; i++)
		if (plan[i] != 'k')
			MUST(madvise(p + i * PAGE, PAGE, plan[i] == 'w' ? MADV_WIPEONFORK : MADV_DONTFORK));
	CHILD(what) {
		char seen[65] = "";
		for (size_t i = 0; i < count; i++) {
			int c = look(p + i * PAGE);
			seen[i] = c < 0 ? '.' : c == 0 ? '0' : (char)c;
		}
		SAY("%s: %s", plan, seen);
	} END;
}

int main(void)
{
	signal(SIGSEGV, on_fault);
	static const char *const plans[] = {
		"kwkkdkkkkkkkkkkk", "wkkkkkkkkkkkkkkw", "dkkkkkkkdkkkkkkd", "kkkkkkkwwkkkkkkk", "kkkkkkkddkkkkkkk",
		"wwwwwwwkkwwwwwww", "dddddddkkddddddd", "wdwdkkkkkkkkdwdw", "wwwwwwwwwwwwwwww", "dddddddddddddddd",
	};
	/* Ranges of their own, a little apart from each other, then far. */
	for (unsigned long step = 32 * PAGE; step <= (1ul << 32); step <<= 6)
		for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
			char *p = at(0x100000000000 + (step << 4) + i * step, 16);
			show("plan", p, plans[i]);
			MUST(munmap(p, 16 * PAGE));
		}
	/* All of them at once, so that what is left out has neighbours on both sides. */
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
		show("beside the others", at(0x110000000000 + i * 16 * PAGE, 16), plans[i]);
	/* The lowest addresses. */
	char *lowest = at(0x10000, 1), *low = at(0x18000, 1), *above = at(0x100000, 1);
	MUST(madvise(lowest, PAGE, MADV_WIPEONFORK));
	MUST(madvise(low, PAGE, MADV_DONTFORK));
	CHILD("lowest") {
		SAY("wiped %d, left out %d, kept %c", look(lowest), look(low), look(above));
	} END;
	return 0;
}
