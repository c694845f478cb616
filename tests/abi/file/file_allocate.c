/*
 * fallocate takes all that it was asked for, or nothing: a call that the file system's limit stops leaves what was there
 * and gives back what it took. One that succeeds takes the set-id bits of somebody else's program away, as a write does.
 * And long calls end when their task is killed, or, on /dev/zero, when any signal comes.
 */
#include "check.h"
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/time.h>

#define KIB 1024L
#define TIB (1L << 40)

static long free_kib(void)
{
	struct statfs fs;
	MUST(statfs(".", &fs));
	return (long)(fs.f_bfree * (unsigned long)fs.f_bsize / 1024);
}

static void say_file(int fd)
{
	struct stat st;
	MUST(fstat(fd, &st));
	SAY("size %ld KiB, blocks %ld KiB, free %ld KiB", (long)st.st_size / KIB, (long)st.st_blocks / 2, free_kib());
}

static void all_or_nothing(void)
{
	int fd = (int)MUST(open("file", O_RDWR | O_CREAT, 0644));
	char byte = 'x';
	MUST(pwrite(fd, &byte, 1, 100 * KIB));
	MUST(pwrite(fd, &byte, 1, 8000 * KIB));
	MUST(ftruncate(fd, 400 * KIB));
	say_file(fd);
	T(fallocate(fd, 0, 0, 256 * KIB));
	say_file(fd);
	T(fallocate(fd, 0, 0, 1200 * KIB));
	say_file(fd);
	T(fallocate(fd, FALLOC_FL_KEEP_SIZE, 300 * KIB, 900 * KIB));
	say_file(fd);
	T(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, TIB));
	T(fallocate(fd, 0, 0, TIB));
	say_file(fd);
	T(fallocate(fd, FALLOC_FL_KEEP_SIZE, 512 * KIB, 256 * KIB));
	say_file(fd);
	T(fallocate(fd, 0, 0, 1024 * KIB));
	say_file(fd);
	T(fallocate(fd, 0, 0, 1028 * KIB));
	say_file(fd);
	T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 96 * KIB));
	say_file(fd);
	MUST(pread(fd, &byte, 1, 100 * KIB));
	IS(byte == 'x');
	close(fd);
	MUST(unlink("file"));
}

static void mapped_meanwhile(void)
{
	int fd = (int)MUST(open("file", O_RDWR | O_CREAT, 0644));
	MUST(ftruncate(fd, 64 * KIB));
	char *map = (char *)MUST(mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	map[5 * PAGE] = 7;
	T(fallocate(fd, 0, 0, 2048 * KIB));
	IS(map[5 * PAGE] == 7);
	say_file(fd);
	T(fallocate(fd, 0, 0, 64 * KIB));
	IS(map[5 * PAGE] == 7 && map[6 * PAGE] == 0);
	say_file(fd);
	MUST(munmap(map, 64 * KIB));
	close(fd);
	MUST(unlink("file"));
}

static void set_id(int mode, unsigned perm)
{
	struct stat st;
	int fd = (int)MUST(open("program", O_RDWR | O_CREAT, 0777));
	MUST(ftruncate(fd, 8 * KIB));
	MUST(fchmod(fd, 0777));
	CHILD("as another user") {
		MUST(fchmod(fd, perm));
		MUST(setgid(1000));
		MUST(setuid(1000));
		int own = (int)MUST(open("program", O_RDWR));
		T(fallocate(own, mode, 0, 4 * KIB));
	} END;
	MUST(fstat(fd, &st));
	SAY("mode %o", st.st_mode);
	close(fd);
	MUST(unlink("program"));
}

static void nothing(int sig)
{
}

/* Any signal ends a long read of /dev/zero with what was read before. */
static void zeros_end(void)
{
	long size = 512L << 20;
	int fd = (int)MUST(open("/dev/zero", O_RDONLY));
	/* Every page of it is the same one of a file, so that it takes no memory. */
	int page = (int)MUST(memfd_create("page", 0));
	MUST(ftruncate(page, 1L << 20));
	char *area = (char *)MUST(mmap(NULL, (size_t)size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	for (long at = 0; at < size; at += 1L << 20)
		MUST(mmap(area + at, 1L << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, page, 0));
	struct sigaction act = { .sa_handler = nothing };
	MUST(sigaction(SIGALRM, &act, NULL));
	int ended = 0;
	/* The machine may be so fast, or the alarm so early, that a round says nothing. */
	for (int i = 0; i < 1000 && !ended; i++) {
		struct itimerval soon = { { 0, 0 }, { 0, 2000 } };
		MUST(setitimer(ITIMER_REAL, &soon, NULL));
		ssize_t got = read(fd, area, (size_t)size);
		ended = got > 0 && got < size && got % PAGE == 0;
	}
	SAY("a signal ends a read of zeros: %s", ended ? "yes" : "no");
	close(fd);
	close(page);
	MUST(munmap(area, (size_t)size));
}

int main(void)
{
	scratch();
	MUST(mkdir("m", 0755));
	MUST(mount("tmpfs", "m", "tmpfs", 0, "size=1M,mode=755"));
	MUST(chdir("m"));
	all_or_nothing();
	mapped_meanwhile();
	MUST(chmod(".", 0777));
	set_id(0, 06777);
	set_id(FALLOC_FL_KEEP_SIZE, 06777);
	set_id(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 06777);
	set_id(0, 02767);
	MUST(chdir(".."));
	MUST(umount("m"));
	zeros_end();
	return 0;
}
