/*
 * Advice about locked memory: what would take pages out is refused (EINVAL), but for MADV_DONTNEED_LOCKED; and a page that may not be
 * touched is resident all the same.
 */
#include "check.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif

int main(void)
{
	char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(at, 7, 4 * PAGE);
	T(mlock(at, 2 * PAGE));
	T(madvise(at, 2 * PAGE, MADV_DONTNEED));
	T(madvise(at, 2 * PAGE, MADV_FREE));
	IS(at[0] == 7 && at[PAGE] == 7);
	T(madvise(at, 2 * PAGE, MADV_COLD));
	T(madvise(at, 2 * PAGE, MADV_PAGEOUT));
	T(munlock(at, 2 * PAGE));
	unsigned char vec[4] = { 0 };
	T(mprotect(at + 2 * PAGE, 2 * PAGE, PROT_NONE));
	T(mincore(at, 4 * PAGE, vec));
	printf("%d %d %d %d\n", vec[0] & 1, vec[1] & 1, vec[2] & 1, vec[3] & 1);
	char *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared[0] = 1;
	T(mlock(shared, PAGE));
	T(madvise(shared, PAGE, MADV_FREE));
	T(madvise(shared, PAGE, MADV_DONTNEED_LOCKED));
	IS(shared[0] == 1);
	return 0;
}
