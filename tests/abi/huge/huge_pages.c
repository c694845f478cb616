/*
 * Transparent huge pages: which writes make one (a whole 2 MiB of private memory without a file, that nothing has touched, where
 * the machine, the mapping and the program want them), what smaps says of it, and that whatever changes a part of it leaves the
 * bytes of the rest as they were.
 */
#include "huge.h"
#include <sys/prctl.h>

static void where(void)
{
	enabled("always");
	char *at = aligned(3, RW);
	at[HUGE + 5 * PAGE] = 1;
	printf("one of three: %ld huge, %ld resident\n", huge(at), rss(at));
	at[0] = 1;
	at[2 * HUGE] = 1;
	printf("three of three: %ld huge, %ld resident\n", huge(at), rss(at));
	drop(at, 3);

	at = aligned(2, RW);
	IS(*(volatile char *)at == 0);
	T(munmap(at + HUGE + PAGE, PAGE));
	at[HUGE] = 1;
	printf("with a hole in it: %ld huge, %ld resident\n", huge(at + HUGE), rss(at + HUGE));
	T(munmap(at, HUGE + PAGE));
	T(munmap(at + HUGE + 2 * PAGE, HUGE - 2 * PAGE));

	at = aligned(2, RW);
	T(mprotect(at, HUGE, PROT_READ));
	at[HUGE] = 1;
	printf("beside what may not be written: %ld huge\n", huge(at + HUGE));
	drop(at, 2);

	at = mmap(NULL, 2 * HUGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(at, 1, 2 * HUGE);
	printf("shared: %ld huge\n", huge(at));
	drop(at, 2);
}

/* Where the kernel chooses the place: memory that can be all huge pages is laid so; the stack of a thread gets none. */
static void chosen(void)
{
	char *at = mmap(NULL, 3 * HUGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	IS(((uintptr_t)at & (HUGE - 1)) == 0);
	memset(at, 1, 3 * HUGE);
	printf("three: %ld huge\n", huge(at));
	char *next = mmap(NULL, HUGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	IS(((uintptr_t)next & (HUGE - 1)) == 0);
	drop(at, 3);
	drop(next, 1);
	at = mmap(NULL, 4 * HUGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	memset(at, 1, 4 * HUGE);
	printf("a stack: %ld huge, %ld eligible\n", huge(at), field(at, "THPeligible:"));
	drop(at, 4);
}

static void wanted(void)
{
	char *at;
	enabled("madvise");
	at = aligned(2, RW);
	T(madvise(at, HUGE, MADV_HUGEPAGE));
	at[0] = at[HUGE] = 1;
	printf("madvise: %ld huge, and without advice %ld\n", huge(at), huge(at + HUGE));
	printf("eligible: %ld and %ld\n", field(at, "THPeligible:"), field(at + HUGE, "THPeligible:"));
	drop(at, 2);
	enabled("always");
	at = aligned(2, RW);
	T(madvise(at, HUGE, MADV_NOHUGEPAGE));
	at[0] = at[HUGE] = 1;
	printf("always: %ld huge against advice, and without advice %ld\n", huge(at), huge(at + HUGE));
	printf("eligible: %ld and %ld\n", field(at, "THPeligible:"), field(at + HUGE, "THPeligible:"));
	drop(at, 2);
	enabled("never");
	at = aligned(1, RW);
	T(madvise(at, HUGE, MADV_HUGEPAGE));
	at[0] = 1;
	printf("never: %ld huge\n", huge(at));
	drop(at, 1);
	enabled("always");

	T(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	T(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 1));
	T(prctl(PR_SET_THP_DISABLE, 1, 1, 0, 0));
	T(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	T(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	at = aligned(1, RW);
	at[0] = 1;
	printf("a program that wants none: %ld huge, status says %ld\n", huge(at), status("THP_enabled:"));
	drop(at, 1);
	IN_CHILD({
		at = aligned(1, RW);
		at[0] = 1;
		printf("its child: %ld huge, status says %ld\n", huge(at), status("THP_enabled:"));
		fflush(stdout);
		execl("/proc/self/exe", "huge_pages", "executed", NULL);
	});
	T(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0));
	printf("status says %ld\n", status("THP_enabled:"));
}

/* A huge page whose every page says its number. */
static char *full(void)
{
	char *at = aligned(1, RW);
	for (int i = 0; i < PAGES; i++)
		*(int *)(at + i * PAGE + 8) = i + 1;
	if (huge(at) != 2048)
		printf("no huge page to begin with\n");
	return at;
}

static int wrong(const char *at, int first, int count)
{
	int n = 0;
	for (int i = first; i < first + count; i++)
		n += *(int *)(at + i * PAGE + 8) != i + 1;
	return n;
}

static void parts(void)
{
	char *at = full();
	T(munmap(at + 100 * PAGE, 10 * PAGE));
	printf("unmapped in part: %d wrong, %ld resident, %ld huge\n", wrong(at, 0, 100) + wrong(at, 110, 402), rss(at), huge(at));
	IS(mmap(at + 100 * PAGE, 10 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + 100 * PAGE);
	IS(at[104 * PAGE + 8] == 0);
	drop(at, 1);

	at = full();
	T(madvise(at + 7 * PAGE, PAGE, MADV_DONTNEED));
	IS(at[7 * PAGE + 8] == 0);
	printf("dropped in part: %d wrong\n", wrong(at, 0, 7) + wrong(at, 8, 504));
	T(madvise(at, HUGE, MADV_DONTNEED));
	IS(at[8] == 0 && at[511 * PAGE + 8] == 0);
	drop(at, 1);

	at = full();
	T(madvise(at, HUGE, MADV_DONTNEED));
	printf("dropped whole: %ld huge, %ld resident\n", huge(at), rss(at));
	at[9 * PAGE] = 1;
	printf("and written again: %ld huge, %ld resident\n", huge(at), rss(at));
	drop(at, 1);

	at = full();
	T(mprotect(at + 3 * PAGE, PAGE, PROT_READ));
	IS(faults(at + 3 * PAGE + 8) == 1 && faults(at + 4 * PAGE) == 0);
	T(mprotect(at, HUGE, PROT_NONE));
	T(mprotect(at, HUGE, RW));
	printf("protected: %d wrong\n", wrong(at, 0, PAGES));
	drop(at, 1);

	at = full();
	T(mprotect(at, HUGE, PROT_READ));
	IS(faults(at + 8) == 1);
	printf("read-only: %d wrong, %ld resident\n", wrong(at, 0, PAGES), rss(at));
	drop(at, 1);

	at = full();
	char *to = aligned(1, RW);
	IS(mremap(at, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	printf("moved: %d wrong\n", wrong(to, 0, PAGES));
	char *back = aligned(2, RW);
	IS(mremap(to, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, back + 5 * PAGE) == back + 5 * PAGE);
	printf("moved to another alignment: %d wrong\n", wrong(back + 5 * PAGE, 0, PAGES));
	drop(back, 2);

	at = full();
	T(mlock(at + PAGE, PAGE));
	T(madvise(at + 2 * PAGE, 4 * PAGE, MADV_DONTFORK));
	printf("locked and advised in part: %d wrong\n", wrong(at, 0, PAGES));
	drop(at, 1);
}

static void forks(void)
{
	char *at = full();
	IN_CHILD({
		*(int *)(at + 8) = -1;
		*(int *)(at + 300 * PAGE + 8) = -1;
		printf("child: %d wrong\n", wrong(at, 0, PAGES));
		T(munmap(at + 400 * PAGE, PAGE));
	});
	printf("parent: %d wrong\n", wrong(at, 0, PAGES));
	int ready[2], go[2];
	MUST(pipe(ready));
	MUST(pipe(go));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char c;
		MUST(read(go[0], &c, 1));
		_exit(wrong(at, 0, PAGES));
	}
	*(int *)(at + 77 * PAGE + 8) = -1;
	MUST(write(go[1], "x", 1));
	int how;
	MUST(waitpid(pid, &how, 0));
	printf("what the parent wrote is not the child's: %d wrong there, %d here\n", WEXITSTATUS(how), wrong(at, 0, PAGES));
	*(int *)(at + 77 * PAGE + 8) = 78;
	printf("after it: %d wrong\n", wrong(at, 0, PAGES));
	drop(at, 1);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		char *at = aligned(1, RW);
		at[0] = 1;
		printf("what it executes: %ld huge, status says %ld\n", huge(at), status("THP_enabled:"));
		return 0;
	}
	where();
	chosen();
	wanted();
	parts();
	forks();
	return 0;
}
