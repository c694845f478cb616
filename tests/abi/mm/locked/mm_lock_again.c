/*
 * RLIMIT_MEMLOCK: what is locked already is not counted twice when it is locked again (count_mm_mlocked_page_nr).
 */
#include "check.h"
#include <sys/resource.h>

int main(void)
{
	struct rlimit limit = { 16 * PAGE, 16 * PAGE };
	MUST(setrlimit(RLIMIT_MEMLOCK, &limit));
	MUST(setuid(1234));
	char *at = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(mlock(at, 16 * PAGE));
	T(mlock(at, 16 * PAGE));
	T(mlock(at + 4 * PAGE, 8 * PAGE));
	T(mlock2(at, 16 * PAGE, 1));
	T(mlock(at + 8 * PAGE, 16 * PAGE));
	return 0;
}
