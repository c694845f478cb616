/*
 * A file of many pages: holes punched far from its start take nothing else with them, and what is written,
 * read and mapped there is the same.
 */
#include "check.h"

#define LEN (5L << 20)

static unsigned char mark(long page) { return (unsigned char)(page * 7 % 251 + 1); }

/* Pages that do not hold their mark, or zeros if they were punched. */
static int wrong(int fd, long from, long to)
{
	static unsigned char buf[PAGE];
	int bad = 0;
	for (long page = 0; page < LEN / PAGE; page++) {
		unsigned char want = page >= from && page < to ? 0 : mark(page);
		if (pread(fd, buf, PAGE, page * PAGE) != PAGE)
			return -1;
		bad += buf[0] != want || buf[PAGE - 1] != want;
	}
	return bad;
}

static int make(const char *name)
{
	static unsigned char buf[PAGE];
	int fd = (int)MUST(open(name, O_RDWR | O_CREAT | O_TRUNC, 0600));
	for (long page = 0; page < LEN / PAGE; page++) {
		memset(buf, mark(page), PAGE);
		if (write(fd, buf, PAGE) != PAGE)
			SAY("short write");
	}
	return fd;
}

int main(void)
{
	static const struct { long from, to; } holes[] = {
		{ 0, 1 }, { 511, 512 }, { 512, 513 }, { 600, 601 }, { 1023, 1025 }, { 1279, 1280 }, { 100, 1200 }, { 513, 1023 },
	};
	scratch();
	for (size_t i = 0; i < sizeof holes / sizeof holes[0]; i++) {
		long from = holes[i].from, to = holes[i].to;
		int fd = make("f");
		char *p = (char *)MUST(mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0));
		T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from * PAGE, (to - from) * PAGE));
		SAY("hole %ld to %ld: %d wrong, mapped %d %d", from, to, wrong(fd, from, to), p[from * PAGE],
		    (unsigned char)p[to < LEN / PAGE ? to * PAGE : 0]);
		/* cut in the middle of the hole, and grown again */
		T(ftruncate(fd, from * PAGE + 1));
		T(ftruncate(fd, LEN));
		SAY("cut: %d wrong", wrong(fd, from, LEN / PAGE));
		munmap(p, LEN);
		close(fd);
	}
	return 0;
}
