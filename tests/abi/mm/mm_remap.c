/*
 * mremap: shrinking, growing in place, moving with MREMAP_MAYMOVE, MREMAP_FIXED replacing what is
 * there, MREMAP_DONTUNMAP, and the errors.
 */
#include "check.h"

static int mapped(void *p)
{
	unsigned char v;
	return mincore(p, PAGE, &v) == 0;
}

int main(void)
{
	scratch();
	char *p = pages(16), *q;
	for (int i = 0; i < 16; i++)
		p[i * PAGE] = (char)('a' + i);
	/* shrink */
	IS(mremap(p, 16 * PAGE, 8 * PAGE, 0) == p);
	IS(mapped(p + 7 * PAGE));
	IS(!mapped(p + 8 * PAGE));
	/* grow in place into the hole */
	IS(mremap(p, 8 * PAGE, 12 * PAGE, 0) == p);
	SAY("grown: %c %d", p[7 * PAGE], p[8 * PAGE]);
	/* blocked: cannot grow without moving */
	MUST(munmap(p + 8 * PAGE, 4 * PAGE));
	q = (char *)MUST(mmap(p + 8 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	OK(mremap(p, 8 * PAGE, 9 * PAGE, 0));
	char *moved = mremap(p, 8 * PAGE, 32 * PAGE, MREMAP_MAYMOVE);
	IS(moved != MAP_FAILED && moved != p);
	SAY("moved: %c %c %d", moved[0], moved[7 * PAGE], moved[8 * PAGE]);
	IS(!mapped(p));
	/* fixed: replaces the target */
	char *target = pages(4);
	target[0] = 'T';
	IS(mremap(moved, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target);
	SAY("fixed: %c %c", target[0], target[3 * PAGE]);
	IS(!mapped(moved));
	IS(mapped(moved + 4 * PAGE));
	/* dontunmap: the old range stays and reads zero */
	char *twin = mremap(target, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	IS(twin != MAP_FAILED && twin != target);
	if (twin != MAP_FAILED)
		SAY("dontunmap: %c then %d", twin[PAGE], target[PAGE]);
	/* errors */
	char *e = pages(4);
	OK(mremap(e + 1, PAGE, PAGE, 0));
	OK(mremap(e, PAGE, 0, 0));
	OK(mremap(e, PAGE, PAGE, 0x100));
	OK(mremap(e, PAGE, PAGE, MREMAP_FIXED, target));
	OK(mremap(e, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + 1));
	OK(mremap(e, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, e + PAGE));
	OK(mremap((void *)0x10000, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	OK(mremap(e, 0, PAGE, MREMAP_MAYMOVE));
	OK(mremap(e, PAGE, (size_t)-4096, MREMAP_MAYMOVE));
	OK(mremap(e, PAGE, 1ul << 47, MREMAP_MAYMOVE));
	MUST(munmap(e + 2 * PAGE, PAGE));
	OK(mremap(e, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE));
	/* a shared file mapping keeps its file */
	int fd = (int)MUST(open("f", O_RDWR | O_CREAT, 0644));
	MUST(ftruncate(fd, 8 * PAGE));
	char *f = (char *)MUST(mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	f[0] = 'F';
	char *g = mremap(f, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
	IS(g != MAP_FAILED);
	g[5 * PAGE] = 'G';
	char c = 0;
	T(pread(fd, &c, 1, 5 * PAGE));
	SAY("file has %c", c);
	/* old length 0 of a shared mapping duplicates it */
	char *h = mremap(g, 0, PAGE, MREMAP_MAYMOVE);
	IS(h != MAP_FAILED);
	if (h != MAP_FAILED)
		SAY("duplicate %c", h[0]);
	T(munmap(q, PAGE));
	return 0;
}
