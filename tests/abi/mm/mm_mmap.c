/*
 * mmap and munmap: the order and kind of errors, zeroed memory, hints, MAP_FIXED replacing, partial
 * munmap splitting, MAP_FIXED_NOREPLACE, and what is refused.
 */
#include "check.h"

#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static int mapped(void *p)
{
	unsigned char v;
	return mincore(p, PAGE, &v) == 0;
}

static void errors(void)
{
	int fd = (int)MUST(open("f", O_RDWR | O_CREAT, 0644)), ro, wo;
	MUST(ftruncate(fd, 3 * PAGE));
	ro = (int)MUST(open("f", O_RDONLY));
	wo = (int)MUST(open("f", O_WRONLY));
	OK(mmap(NULL, 0, RW, ANON, -1, 0));
	OK(mmap(NULL, PAGE, RW, 0, -1, 0));
	OK(mmap(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0));
	OK(mmap(NULL, PAGE, RW, MAP_PRIVATE, -1, 0));
	OK(mmap(NULL, PAGE, RW, MAP_PRIVATE, 99, 0));
	OK(mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 1));
	OK(mmap(NULL, (size_t)-1, RW, ANON, -1, 0));
	OK(mmap(NULL, 1ul << 47, RW, ANON, -1, 0));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ro, 0));
	OK(mmap(NULL, PAGE, RW, MAP_SHARED, ro, 0));
	OK(mmap(NULL, PAGE, RW, MAP_PRIVATE, ro, 0));
	OK(mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, wo, 0));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, wo, 0));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 1l << 62));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 10 * PAGE));
	OK(mmap((void *)1, PAGE, RW, ANON | MAP_FIXED, -1, 0));
	OK(mmap((void *)0x7ffffffff000, PAGE, RW, ANON | MAP_FIXED, -1, 0));
	OK(mmap(KERNEL_ADDRESS, PAGE, RW, ANON | MAP_FIXED, -1, 0));
	OK(mmap(KERNEL_ADDRESS, PAGE, RW, ANON, -1, 0));
	int dir = (int)MUST(open(".", O_RDONLY)), pipes[2];
	MUST(pipe(pipes));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, dir, 0));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, pipes[0], 0));
	T(munmap((void *)1, PAGE));
	T(munmap(NULL, 0));
	T(munmap((void *)0x10000, PAGE));
	T(munmap(KERNEL_ADDRESS, PAGE));
	T(munmap((void *)0x7fffffffe000, 1 << 20));
	close(fd); close(ro); close(wo); close(dir); close(pipes[0]); close(pipes[1]);
}

static void placement(void)
{
	char *p = pages(8);
	int clean = 1;
	for (long i = 0; i < 8 * PAGE; i++)
		clean &= p[i] == 0;
	IS(clean);
	for (int i = 0; i < 8; i++)
		p[i * PAGE] = (char)('a' + i);
	T(munmap(p + 2 * PAGE, 1));
	IS(mapped(p + PAGE));
	IS(!mapped(p + 2 * PAGE));
	IS(mapped(p + 3 * PAGE));
	/* a free hint is taken, a taken one is not */
	IS(mmap(p + 2 * PAGE, PAGE, RW, ANON, -1, 0) == p + 2 * PAGE);
	IS(p[2 * PAGE] == 0);
	IS(mmap(p + 3 * PAGE, PAGE, RW, ANON, -1, 0) != p + 3 * PAGE);
	IS(p[3 * PAGE] == 'd');
	IS(((unsigned long)mmap(p + 100, PAGE, RW, ANON, -1, 0) & 4095) == 0);
	/* fixed replaces */
	IS(mmap(p + 3 * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + 3 * PAGE);
	SAY("after MAP_FIXED: %d %d %c", p[3 * PAGE], p[4 * PAGE], p[5 * PAGE]);
	T((long)mmap(p + 5 * PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
	MUST(munmap(p + 5 * PAGE, PAGE));
	IS(mmap(p + 5 * PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == p + 5 * PAGE);
	T(munmap(p, 8 * PAGE));
	T(munmap(p, 8 * PAGE));
	IS(!mapped(p + 7 * PAGE));
	/* a page-rounded length */
	char *q = (char *)MUST(mmap(NULL, PAGE + 1, RW, ANON, -1, 0));
	q[2 * PAGE - 1] = 1;
	T(munmap(q, PAGE + 1));
	IS(!mapped(q + PAGE));
	/* MAP_32BIT, MAP_POPULATE, MAP_NORESERVE, MAP_STACK, MAP_GROWSDOWN, MAP_LOCKED */
	IS((unsigned long)mmap(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0) < 1ul << 32);
	unsigned char v[4] = { 0 };
	q = (char *)MUST(mmap(NULL, 4 * PAGE, RW, ANON | MAP_POPULATE, -1, 0));
	T(mincore(q, 4 * PAGE, v));
	SAY("populated %d %d %d %d", v[0] & 1, v[1] & 1, v[2] & 1, v[3] & 1);
	q = pages(4);
	q[PAGE] = 1;
	T(mincore(q, 4 * PAGE, v));
	SAY("touched %d %d %d %d", v[0] & 1, v[1] & 1, v[2] & 1, v[3] & 1);
	T(mincore(q + 1, PAGE, v));
	T(mincore((void *)0x10000, PAGE, v));
	OK(mmap(NULL, PAGE, RW, ANON | MAP_STACK | MAP_NORESERVE, -1, 0));
	OK(mmap(NULL, PAGE, RW, ANON | MAP_LOCKED, -1, 0));
	OK(mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	OK(mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0));
	OK(mmap(NULL, 64l << 30, PROT_NONE, ANON | MAP_NORESERVE, -1, 0));
}

static void droppable(void)
{
	char *p = (char *)MUST(mmap(NULL, 2 * PAGE, RW, MAP_ANONYMOUS | 0x08, -1, 0));
	memset(p, 'd', 2 * PAGE);
	CHILD("child of a droppable mapping") {
		IS(p[0] == 0 || p[0] == 'd');
		SAY("child reads %d", p[PAGE]);
	} END;
	OK(mmap(NULL, PAGE, RW, MAP_ANONYMOUS | 0x08 | MAP_LOCKED, -1, 0));
	OK(mmap(NULL, PAGE, RW, MAP_ANONYMOUS | 0x08 | MAP_GROWSDOWN, -1, 0));
	int fd = (int)MUST(open("f", O_RDWR));
	OK(mmap(NULL, PAGE, RW, 0x08, fd, 0));
	close(fd);
	T(madvise(p, PAGE, MADV_KEEPONFORK));
	T(madvise(p, PAGE, MADV_DODUMP));
	T(madvise(p, PAGE, MADV_WIPEONFORK));
	T(mlock(p, PAGE));
}

int main(void)
{
	scratch();
	errors();
	placement();
	droppable();
	return 0;
}
