/*
 * mm_lock_hole: what is locked already behind a hole is counted once, too (count_mm_mlocked_page_nr): mlock then locks what lies before the hole.
 */
#include "check.h"
#include <sys/resource.h>

int main(void)
{
	struct rlimit limit = {5 * PAGE, 5 * PAGE};
	MUST(setrlimit(RLIMIT_MEMLOCK, &limit));
	MUST(setuid(1234));
	char *at = (char *)MUST(mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	MUST(munmap(at + 2 * PAGE, PAGE));
	T(mlock(at + 3 * PAGE, 2 * PAGE));
	T(mlock(at, 5 * PAGE));
	T(madvise(at, PAGE, MADV_DONTNEED));
	return 0;
}
