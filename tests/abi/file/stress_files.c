/*
 * Thousands of random writes, reads, truncations, holes, mapped writes and renames of a few files against a model in
 * memory: every byte is where it was put, and a mapping and the file are never of two minds.
 */
#include "check.h"

#define FILES 4
#define SIZE 70000

static unsigned char model[FILES][SIZE], buf[SIZE];
static long length[FILES];
static int fd[FILES], wrong;
static char *map[FILES];
static uint64_t random_state = 88172645463325252;

static unsigned long draw(unsigned long below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 20) % below;
}

static void complain(const char *what, int f, long at)
{
	if (wrong++ < 10)
		SAY("%s: file %d at %ld of %ld", what, f, at, length[f]);
}

static void compare(int f)
{
	struct stat st;
	fstat(fd[f], &st);
	if (st.st_size != length[f])
		complain("size", f, st.st_size);
	long n = pread(fd[f], buf, SIZE, 0);
	if (n != length[f])
		complain("read", f, n);
	for (long i = 0; i < n; i++)
		if (buf[i] != model[f][i]) {
			complain("contents", f, i);
			break;
		}
	for (long i = 0; i < length[f]; i += 997)
		if ((unsigned char)map[f][i] != model[f][i]) {
			complain("mapped contents", f, i);
			break;
		}
}

static void put(int f, long at, long n)
{
	for (long i = 0; i < n; i++)
		model[f][at + i] = (unsigned char)draw(256);
	if (at + n > length[f])
		length[f] = at + n;
}

static void set_length(int f, long n)
{
	if (n < length[f])
		memset(model[f] + n, 0, (size_t)(length[f] - n));
	length[f] = n;
}

int main(void)
{
	scratch();
	for (int f = 0; f < FILES; f++) {
		char name[8];
		snprintf(name, sizeof name, "f%d", f);
		fd[f] = (int)MUST(open(name, O_RDWR | O_CREAT, 0600));
		map[f] = (char *)MUST(mmap(NULL, 80000, PROT_READ | PROT_WRITE, MAP_SHARED, fd[f], 0));
	}
	for (int step = 0; step < 6000; step++) {
		int f = (int)draw(FILES), g = (int)draw(FILES);
		long at = (long)draw(SIZE), n = 1 + (long)draw((unsigned long)(SIZE - at));
		if (draw(3))
			n = 1 + (long)draw((unsigned long)(n < 5000 ? n : 5000));
		switch (draw(9)) {
		case 0:
		case 1:
		case 2:
			put(f, at, n);
			if (pwrite(fd[f], model[f] + at, (size_t)n, at) != n)
				complain("pwrite", f, at);
			break;
		case 3:
			set_length(f, at);
			if (ftruncate(fd[f], at) != 0)
				complain("truncate", f, at);
			break;
		case 4:
			if (at + n > length[f])
				break;
			put(f, at, n);
			memcpy(map[f] + at, model[f] + at, (size_t)n);
			break;
		case 5:
			if (fallocate(fd[f], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, n) != 0)
				complain("punch", f, at);
			for (long i = at; i < at + n && i < length[f]; i++)
				model[f][i] = 0;
			break;
		case 6:	/* from one mapping to another file: the kernel faults on its own copy */
			if (f == g || at + n > length[g])
				break;
			memcpy(model[f] + at, model[g] + at, (size_t)n);
			if (at + n > length[f])
				length[f] = at + n;
			if (pwrite(fd[f], map[g] + at, (size_t)n, at) != n)
				complain("pwrite from a mapping", f, at);
			break;
		case 7:	/* append through another descriptor */
			if (length[f] + n > SIZE)
				break;
			char name[32];
			snprintf(name, sizeof name, "/proc/self/fd/%d", fd[f]);
			int a = open(name, O_WRONLY | O_APPEND);
			long end = length[f];
			put(f, end, n);
			if (write(a, model[f] + end, (size_t)n) != n)
				complain("append", f, end);
			close(a);
			break;
		default:
			if (madvise(map[f], 80000, MADV_DONTNEED) != 0)
				complain("madvise", f, 0);
			compare(f);
		}
	}
	for (int f = 0; f < FILES; f++)
		compare(f);
	SAY("faults found: %d", wrong);
	return 0;
}
