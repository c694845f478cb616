/*
 * brk: grows and shrinks by page, new memory is zero, what is not possible returns the old break, and
 * memory given back is gone.
 */
#include "check.h"
#include <setjmp.h>
#include <sys/resource.h>

static sigjmp_buf out;

static void on_fault(int s) { siglongjmp(out, 1); }

static char *raw_brk(void *p) { return (char *)syscall(SYS_brk, p); }

int main(void)
{
	char *start = raw_brk(NULL);
	start = raw_brk((void *)(((unsigned long)start + 4095) & ~4095ul));
	signal(SIGSEGV, on_fault);
	IS(((unsigned long)start & 4095) == 0);
	IS(raw_brk(NULL) == start);
	IS(raw_brk(start + 3 * PAGE) == start + 3 * PAGE);
	int clean = 1;
	for (long i = 0; i < 3 * PAGE; i++)
		clean &= start[i] == 0;
	IS(clean);
	memset(start, 'b', 3 * PAGE);
	/* a byte more takes a page, and the break stays where it was asked */
	IS(raw_brk(start + 3 * PAGE + 1) == start + 3 * PAGE + 1);
	start[4 * PAGE - 1] = 1;
	IS(raw_brk(start + PAGE + 10) == start + PAGE + 10);
	SAY("kept %c", start[2 * PAGE - 1]);
	int fault = sigsetjmp(out, 1);
	if (!fault)
		start[2 * PAGE] = 1;
	IS(fault);
	IS(raw_brk(start + 4 * PAGE) == start + 4 * PAGE);
	SAY("given again: %d", start[2 * PAGE]);
	/* refused: the answer is the present break */
	IS(raw_brk((void *)1) == start + 4 * PAGE);
	IS(raw_brk(KERNEL_ADDRESS) == start + 4 * PAGE);
	IS(raw_brk((void *)-1) == start + 4 * PAGE);
	char *wall = mmap(start + 8 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	IS(wall == start + 8 * PAGE);
	IS(raw_brk(start + 16 * PAGE) == start + 4 * PAGE);
	IS(raw_brk(start + 7 * PAGE) == start + 7 * PAGE);
	munmap(wall, PAGE);
	CHILD("child has its own break") {
		IS(raw_brk(NULL) == start + 7 * PAGE);
		IS(raw_brk(start + 20 * PAGE) == start + 20 * PAGE);
	} END;
	IS(raw_brk(NULL) == start + 7 * PAGE);
	struct rlimit none = { 0, RLIM_INFINITY };
	T(setrlimit(RLIMIT_DATA, &none));
	IS(raw_brk(start + 30 * PAGE) == start + 7 * PAGE);
	IS(raw_brk(start) == start);
	return 0;
}
