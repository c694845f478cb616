/*
 * A file system that is full: ENOSPC for data and for names, what was there stays whole and can be written over, a
 * write is cut where the room ends, a mapped hole gives SIGBUS, and what is removed makes room at once.
 */
#include "check.h"
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/uio.h>

static char block[1 << 16];

static long room(const char *path)
{
	struct statfs st;
	MUST(statfs(path, &st));
	return (long)st.f_bfree;
}

static long inodes(const char *path)
{
	struct statfs st;
	MUST(statfs(path, &st));
	return (long)st.f_ffree;
}

static long size(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (long)st.st_size : -1;
}

/* Whether a file is this letter and nothing else. */
static int all(const char *path, char letter, long want)
{
	int fd = open(path, O_RDONLY);
	long have = 0, n;
	while ((n = read(fd, block, sizeof block)) > 0)
		for (long i = 0; i < n; i++)
			have += block[i] == letter ? 1 : -1000000;
	close(fd);
	return have == want;
}

/* Writes until no more goes in; gives the bytes that did. */
static long fill(int fd, char letter, size_t piece)
{
	long sum = 0, n;
	memset(block, letter, sizeof block);
	while ((n = write(fd, block, piece)) > 0)
		sum += n;
	report("fill ends in", n);
	return sum;
}

static void data(void)
{
	SAY("-- data");
	MUST(mkdir("m", 0755));
	MUST(mount("tmpfs", "m", "tmpfs", 0, "size=1M,mode=755"));
	int kept = (int)MUST(open("m/kept", O_RDWR | O_CREAT, 0644));
	memset(block, 'k', sizeof block);
	MUST(write(kept, block, 40000));
	SAY("blocks free %ld", room("m"));
	int big = (int)MUST(open("m/big", O_RDWR | O_CREAT, 0644));
	long sum = fill(big, 'b', 10000);
	SAY("went in %ld, size %ld", sum, size("m/big"));
	SAY("blocks free %ld", room("m"));
	IS(all("m/kept", 'k', 40000));
	/* what has a page can be written, what needs one cannot */
	memset(block, 'K', sizeof block);
	T(pwrite(kept, block, 40000, 0));
	T(pwrite(kept, block, 960, 40000));
	T(pwrite(kept, block, 8192, 36864));
	T(pwrite(kept, block, 1, 40960));
	IS(all("m/kept", 'K', 40960));
	struct iovec two[2] = { { block, 4096 }, { block, 4096 } };
	T(pwritev(kept, two, 2, 36864));
	T(pwrite(kept, block, 1, 1 << 20));
	SAY("size %ld", size("m/kept"));
	T(ftruncate(kept, 8 << 20));
	T(pread(kept, block, 1, 7 << 20));
	SAY("a hole reads %d", block[0]);
	CHILD("writing to a mapped hole") {
		char *p = (char *)MUST(mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, kept, 0));
		SAY("the first page: %c", p[0]);
		p[0] = 'K';
		SAY("a hole: %d", p[2 << 20]);
		fflush(stdout);
		p[4 << 20] = 1;
	} END;
	CHILD("read into a mapped hole") {
		char *p = (char *)MUST(mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, kept, 0));
		int zero = (int)MUST(open("/dev/zero", O_RDONLY));
		T(read(zero, p + (4 << 20), 4096));
	} END;
	T(ftruncate(kept, 40960));
	T(fallocate(kept, 0, 0, 40960));
	T(fallocate(kept, 0, 0, 65536));
	T(fallocate(kept, FALLOC_FL_KEEP_SIZE, 1 << 20, 65536));
	SAY("size %ld, blocks free %ld", size("m/kept"), room("m"));
	/* names still go in, and links that are short */
	T(mkdir("m/d", 0755));
	T(close(open("m/empty", O_CREAT | O_WRONLY, 0644)));
	T(symlink("short", "m/short"));
	memset(block, 's', 2000);
	block[2000] = 0;
	T(symlink(block, "m/long"));
	T(rename("m/empty", "m/renamed"));
	T(link("m/renamed", "m/linked"));
	T(truncate("m/renamed", 100));
	/* room again, from a file that is removed but open only when it is closed */
	T(unlink("m/big"));
	SAY("blocks free %ld", room("m"));
	T(close(big));
	SAY("blocks free %ld", room("m"));
	T(symlink(block, "m/long"));
	SAY("blocks free %ld", room("m"));
	T(fallocate(kept, 0, 0, 65536));
	SAY("size %ld, blocks free %ld", size("m/kept"), room("m"));
	T(ftruncate(kept, 40960));
	IS(all("m/kept", 'K', 40960));
	big = (int)MUST(open("m/big", O_RDWR | O_CREAT | O_APPEND, 0644));
	SAY("went in %ld", fill(big, 'c', sizeof block));
	T(fallocate(big, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 8192));
	SAY("blocks free %ld", room("m"));
	T(write(big, block, 65536));
	T(ftruncate(big, 4096));
	IS(all("m/big", 'c', 4096));
	/* the limit can be moved, not below what is used */
	T(mount("tmpfs", "m", "tmpfs", MS_REMOUNT, "size=8K"));
	T(mount("tmpfs", "m", "tmpfs", MS_REMOUNT, "size=2M"));
	T(fallocate(big, 0, 0, 1900000));
	SAY("blocks free %ld", room("m"));
	close(big);
	close(kept);
	T(umount("m"));
}

static void names(void)
{
	char path[64];
	int count = 0;
	SAY("-- names");
	MUST(mount("tmpfs", "m", "tmpfs", 0, "nr_inodes=20,mode=755"));
	SAY("inodes free %ld", inodes("m"));
	write_file("m/first", "first");
	do
		snprintf(path, sizeof path, "m/%d", count++);
	while (close(open(path, O_CREAT | O_WRONLY, 0644)) == 0);
	SAY("files %d, inodes free %ld", count, inodes("m"));
	T(open("m/one", O_CREAT | O_WRONLY, 0644));
	T(close(open("m/first", O_CREAT | O_RDONLY, 0644)));
	T(mkdir("m/one", 0755));
	T(symlink("x", "m/one"));
	T(mkfifo("m/one", 0644));
	T(link("m/first", "m/one"));
	T(rename("m/first", "m/second"));
	SAY("%s", read_file("m/second"));
	T(unlink("m/0"));
	T(link("m/second", "m/one"));
	T(mkdir("m/two", 0755));
	T(unlink("m/1"));
	T(mkdir("m/two", 0755));
	T(mount("tmpfs", "m", "tmpfs", MS_REMOUNT, "nr_inodes=5"));
	T(mount("tmpfs", "m", "tmpfs", MS_REMOUNT, "nr_inodes=30"));
	SAY("inodes free %ld", inodes("m"));
	T(umount("m"));
}

int main(void)
{
	scratch();
	data();
	names();
	return 0;
}
