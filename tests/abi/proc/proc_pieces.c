/*
 * A long file of /proc read in pieces of any size and from any place: the same bytes as read at once, each mapping once and in order, also
 * while the mappings change.
 */
#include "check.h"
#include <sys/mman.h>

#define PAGES 3000L
#define MOST (8 << 20)
static char whole[MOST], again[MOST];

static long read_by(const char *path, size_t step, char *to)
{
	int fd = MUST(open(path, O_RDONLY));
	long done = 0, got;
	while ((got = read(fd, to + done, step)) > 0)
		done += got;
	MUST((int)got);
	close(fd);
	return done;
}

static void in_pieces(const char *path)
{
	static const size_t steps[] = { 777, 4096, 32768, 100000 };
	long len = read_by(path, MOST, whole);
	printf("%s is longer than 100,000 bytes: %s\n", path, len > 100000 ? "yes" : "no");
	for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		long other = read_by(path, steps[i], again);
		printf("by %zu: %s\n", steps[i], other == len && memcmp(whole, again, (size_t)len) == 0 ? "the same" : "another");
	}
	int fd = MUST(open(path, O_RDONLY)), bad = 0;
	for (long at = len - 1; at > 0; at = at * 3 / 4 - 1) {
		long got = pread(fd, again, 100, at);
		bad += got < 1 || got > len - at || memcmp(again, whole + at, (size_t)got) != 0;
	}
	printf("from any place: %d wrong\n", bad);
	printf("at its end %zd, behind it %zd\n", pread(fd, again, 100, len), pread(fd, again, 100, 1L << 40));
	T(lseek(fd, 5, SEEK_SET));
	T((int)read(fd, again, 10));
	printf("%s\n", memcmp(again, whole + 5, 10) == 0 ? "the same" : "another");
	close(fd);
}

/* Every second mapping behind the one that was read last goes: the rest is still in order, and nothing comes twice. */
static void while_it_changes(char *mem)
{
	int fd = MUST(open("/proc/self/maps", O_RDONLY));
	long len = MUST((int)read(fd, whole, 4000)), got, bad = 0;
	for (long i = PAGES / 2; i < PAGES; i += 2)
		munmap(mem + i * 4096, 4096);
	while ((got = read(fd, whole + len, 4000)) > 0)
		len += got;
	whole[len] = 0;
	unsigned long start, end, before = 0;
	for (char *line = whole; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		bad += sscanf(line, "%lx-%lx ", &start, &end) != 2 || start < before || end <= start;
		before = end;
	}
	printf("while it changes: %ld wrong\n", bad);
	close(fd);
}

int main(void)
{
	char *mem = mmap(NULL, PAGES * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long i = 0; i < PAGES; i += 2)
		mprotect(mem + i * 4096, 4096, PROT_READ | PROT_WRITE);
	memset(whole, 1, sizeof whole);
	memset(again, 1, sizeof again);
	in_pieces("/proc/self/maps");
	in_pieces("/proc/self/smaps");
	while_it_changes(mem);
	return 0;
}
