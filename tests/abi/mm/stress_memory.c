/*
 * Thousands of random mmap, munmap, mprotect, mremap, madvise, reads, writes and forks against a model of what each page
 * must hold: no page is ever lost, stale, shared by mistake or writable when it must not be.
 */
#include "check.h"
#include <setjmp.h>

#define PAGES 96
#define SHARED_FROM 64	/* pages from here on are shared when mapped */

enum { NONE, READ_ONLY, READ_WRITE };

static char *base;
static unsigned char model[PAGES], state[PAGES];
static uint64_t random_state = 0x9e3779b97f4a7c15;
static sigjmp_buf out;
static int wrong;

static unsigned draw(unsigned below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 33) % below;
}

static void on_fault(int s) { siglongjmp(out, 1); }

static void complain(const char *what, int page)
{
	if (wrong++ < 10)
		SAY("%s at page %d, state %d", what, page, state[page]);
}

/* Touches both ends of a page and compares with the model. */
static void check_page(int page)
{
	volatile unsigned char *p = (unsigned char *)base + page * PAGE;
	unsigned char a, b;
	if (sigsetjmp(out, 1) == 0) {
		a = p[0];
		b = p[PAGE - 1];
		if (state[page] == NONE)
			complain("readable", page);
		else if (a != model[page] || b != model[page])
			complain("wrong contents", page);
	} else if (state[page] != NONE) {
		complain("not readable", page);
	}
}

static void write_page(int page)
{
	unsigned char *p = (unsigned char *)base + page * PAGE;
	unsigned char value = (unsigned char)(1 + draw(255));
	if (sigsetjmp(out, 1) == 0) {
		((volatile unsigned char *)p)[0] = value;
		((volatile unsigned char *)p)[PAGE - 1] = value;
		if (state[page] != READ_WRITE)
			complain("writable", page);
		model[page] = value;
	} else if (state[page] == READ_WRITE) {
		complain("not writable", page);
	}
}

static void map(int page, int count)
{
	int shared = page >= SHARED_FROM;
	if (mmap(base + page * PAGE, (size_t)(count * PAGE), PROT_READ | PROT_WRITE,
		 (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		complain("mmap failed", page);
	memset(model + page, 0, (size_t)count);
	memset(state + page, READ_WRITE, (size_t)count);
}

static void protect(int page, int count)
{
	static const int prots[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };
	int to = draw(2) ? READ_ONLY : READ_WRITE;
	for (int i = page; i < page + count; i++)
		if (state[i] == NONE)
			return;
	if (mprotect(base + page * PAGE, (size_t)(count * PAGE), prots[to]) != 0)
		complain("mprotect failed", page);
	memset(state + page, to, (size_t)count);
}

/* Moves a page to another place; what was there goes away. */
static void move(int page, int to)
{
	if (state[page] != READ_WRITE || page == to || (page < SHARED_FROM) != (to < SHARED_FROM))
		return;
	if (mremap(base + page * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, base + to * PAGE) == MAP_FAILED) {
		complain("mremap failed", page);
		return;
	}
	model[to] = model[page];
	state[to] = state[page];
	state[page] = NONE;
}

static void forked(void)
{
	static unsigned char before[PAGES];
	memcpy(before, model, sizeof before);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		for (int i = 0; i < PAGES; i++)
			check_page(i);
		for (int i = 0; i < SHARED_FROM; i++)
			if (state[i] == READ_WRITE)
				write_page(i);
		for (int i = 0; i < SHARED_FROM; i++)
			check_page(i);
		_exit(wrong != 0);
	}
	/* the parent writes at the same time */
	for (int i = 0; i < SHARED_FROM; i += 3)
		if (state[i] == READ_WRITE)
			write_page(i);
	if (reap(pid) != 0)
		complain("a child found faults", 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_fault };
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	base = pages(PAGES + 2) + PAGE;
	MUST(munmap(base - PAGE, (PAGES + 2) * PAGE));
	for (int step = 0; step < 4000; step++) {
		int page = (int)draw(PAGES), most = page < SHARED_FROM ? SHARED_FROM - page : PAGES - page;
		int count = 1 + (int)draw((unsigned)(most < 12 ? most : 12));
		switch (draw(12)) {
		case 0:
		case 1:
			map(page, count);
			break;
		case 2:
			if (munmap(base + page * PAGE, (size_t)(count * PAGE)) != 0)
				complain("munmap failed", page);
			memset(state + page, NONE, (size_t)count);
			break;
		case 3:
			protect(page, count);
			break;
		case 4:
			if (page < SHARED_FROM && state[page] != NONE) {
				if (madvise(base + page * PAGE, PAGE, MADV_DONTNEED) != 0)
					complain("madvise failed", page);
				model[page] = 0;
			}
			break;
		case 5:
			move(page, (int)draw(PAGES));
			break;
		case 6:
			if (step % 4 == 0)
				forked();
			break;
		default:
			write_page(page);
			check_page((int)draw(PAGES));
		}
		if (step % 100 == 0)
			for (int i = 0; i < PAGES; i++)
				check_page(i);
	}
	SAY("faults found: %d", wrong);
	return 0;
}
