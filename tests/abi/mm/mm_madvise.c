/*
 * madvise: DONTNEED gives zeros (anonymous) or the file again (private file), WIPEONFORK gives the child
 * zeros, DONTFORK takes the range away from it, and unknown advice, holes and odd addresses are errors.
 */
#include "check.h"
#include <setjmp.h>

static sigjmp_buf out;

static void on_fault(int s) { siglongjmp(out, s); }

static void peek(const char *what, volatile char *p)
{
	int s = sigsetjmp(out, 1);
	if (s == 0)
		SAY("%s: %d", what, *p);
	else
		SAY("%s: %s", what, sig_name(s));
}

int main(void)
{
	scratch();
	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	char *p = pages(4);
	memset(p, 'x', 4 * PAGE);
	T(madvise(p, PAGE, MADV_DONTNEED));
	SAY("after DONTNEED: %d %d", p[0], p[PAGE]);
	T(madvise(p + PAGE, 1, MADV_DONTNEED));
	SAY("after DONTNEED of one byte: %d %d", p[PAGE], p[2 * PAGE]);
	T(madvise(p + 1, PAGE, MADV_DONTNEED));
	T(madvise(p, 0, MADV_DONTNEED));
	T(madvise(p, PAGE, 9999));
	T(madvise(p, 0, 9999));
	T(madvise(p, (size_t)-1, MADV_DONTNEED));
	T(madvise(p, PAGE, MADV_NORMAL));
	T(madvise(p, PAGE, MADV_RANDOM));
	T(madvise(p, PAGE, MADV_SEQUENTIAL));
	T(madvise(p, PAGE, MADV_WILLNEED));
	T(madvise(p, PAGE, MADV_FREE));
	T(madvise(p, PAGE, MADV_DONTDUMP));
	T(madvise(p, PAGE, MADV_DODUMP));
	T(madvise(p, PAGE, MADV_COLD));
	T(madvise(p, PAGE, MADV_PAGEOUT));
	T(madvise(p, PAGE, MADV_POPULATE_READ));
	T(madvise(p, PAGE, MADV_POPULATE_WRITE));
	/* the rest of a range is done around a hole, then ENOMEM */
	memset(p, 'y', 4 * PAGE);
	MUST(munmap(p + PAGE, PAGE));
	T(madvise(p, 4 * PAGE, MADV_DONTNEED));
	SAY("around the hole: %d %d", p[0], p[3 * PAGE]);
	T(madvise((void *)0x10000, PAGE, MADV_DONTNEED));
	/* file */
	write_file("f", "contents");
	int fd = (int)MUST(open("f", O_RDWR));
	char *f = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	f[0] = 'C';
	T(madvise(f, PAGE, MADV_DONTNEED));
	SAY("private file after DONTNEED: %c", f[0]);
	T(madvise(f, PAGE, MADV_FREE));
	T(madvise(f, PAGE, MADV_WIPEONFORK));
	char *s = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	s[1] = 'O';
	T(madvise(s, PAGE, MADV_DONTNEED));
	SAY("shared file after DONTNEED: %.8s", s);
	T(madvise(s, PAGE, MADV_REMOVE));
	SAY("after REMOVE: %d", s[0]);
	T(madvise(f, PAGE, MADV_REMOVE));
	/* fork */
	char *w = pages(1), *d = pages(1), *k = pages(1);
	*w = *d = *k = 'k';
	T(madvise(w, PAGE, MADV_WIPEONFORK));
	T(madvise(k, PAGE, MADV_WIPEONFORK));
	T(madvise(k, PAGE, MADV_KEEPONFORK));
	T(madvise(d, PAGE, MADV_DONTFORK));
	CHILD("child") {
		peek("wiped", w);
		peek("kept", k);
		peek("not forked", d);
		*w = 'c';
		CHILD("grandchild") {
			peek("wiped again", w);
		} END;
	} END;
	SAY("parent still has %c %c", *w, *d);
	T(madvise(d, PAGE, MADV_DOFORK));
	CHILD("child after DOFORK") {
		peek("forked", d);
	} END;
	return 0;
}
