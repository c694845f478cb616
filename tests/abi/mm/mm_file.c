/*
 * File mappings: shared ones and read/write see each other at once, private ones never reach the file,
 * the tail of the last page is zero and is not written back, the mapping outlives close and unlink,
 * and msync has its errors.
 */
#include "check.h"

int main(void)
{
	scratch();
	write_file("f", "hello, file");
	int fd = (int)MUST(open("f", O_RDWR));
	char *s = (char *)MUST(mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	char *p = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	SAY("%s %d", s, s[4095]);
	s[0] = 'J';
	SAY("file: %s", read_file("f"));
	pwrite(fd, "y", 1, 4);
	SAY("shared: %s private: %s", s, p);
	p[1] = 'P';
	pwrite(fd, "e", 1, 1);
	pwrite(fd, "E", 1, 2);
	SAY("shared: %s private: %s", s, p);
	struct stat st;
	fstat(fd, &st);
	SAY("size %ld", (long)st.st_size);
	T(ftruncate(fd, 200));
	/* truncation zeroes the tail for good */
	memset(s, 'z', 200);
	T(ftruncate(fd, 50));
	T(ftruncate(fd, 200));
	SAY("tail %d %d", s[49], s[50]);
	/* offsets */
	T(ftruncate(fd, 4 * PAGE));
	pwrite(fd, "page two", 9, 2 * PAGE);
	char *two = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 2 * PAGE));
	SAY("%s", two);
	T(close(fd));
	T(unlink("f"));
	SAY("%s", two);
	s[5] = '!';
	SAY("%c", s[5]);
	T(msync(s, PAGE, MS_SYNC));
	T(msync(s, PAGE, MS_ASYNC));
	T(msync(s, PAGE, MS_SYNC | MS_ASYNC));
	T(msync(s + 1, PAGE, MS_SYNC));
	T(msync(s, PAGE, 0x40));
	T(msync((void *)0x10000, PAGE, MS_SYNC));
	T(mlock(s, PAGE));
	T(munlock(s, PAGE));
	T(mlock((void *)0x10000, PAGE));
	T(mlockall(0));
	T(mlockall(MCL_CURRENT));
	T(munlockall());
	/* the kernel reads from and writes to mappings of files */
	fd = (int)MUST(open("g", O_RDWR | O_CREAT, 0644));
	MUST(ftruncate(fd, PAGE));
	char *g = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	strcpy(g, "to itself");
	T(pwrite(fd, g, 10, 100));
	SAY("%s", g + 100);
	T(pread(fd, g + 200, 10, 100));
	SAY("%s", g + 200);
	/* memfd */
	int m = (int)MUST(memfd_create("name", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	MUST(ftruncate(m, PAGE));
	char *mm = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, m, 0));
	strcpy(mm, "memfd");
	char link[64] = { 0 }, path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", m);
	T(readlink(path, link, 63));
	SAY("%s", link);
	T(fcntl(m, F_GET_SEALS));
	T(fcntl(m, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
	T(ftruncate(m, 2 * PAGE));
	T(ftruncate(m, 0));
	T(fcntl(m, F_ADD_SEALS, F_SEAL_WRITE));
	T(memfd_create("x", 0x8000));
	return 0;
}
