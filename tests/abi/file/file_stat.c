/*
 * stat, statx, statfs, times and directories: types, sizes, block counts, link counts of folders, utimensat's rules,
 * which operations change which time, getdents with seeks, and stat's flags.
 */
#include "check.h"
#include <dirent.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

static struct stat before, after;

static int newer(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Says which of the three times a step has changed. */
#define CHANGES(path, step) do { \
	stat(path, &before); sleep_ms(20); step; stat(path, &after); \
	SAY("%s changes of %s: %s%s%s", #step, path, newer(&after.st_atim, &before.st_atim) ? "a" : "-", \
	    newer(&after.st_mtim, &before.st_mtim) ? "m" : "-", newer(&after.st_ctim, &before.st_ctim) ? "c" : "-"); \
} while (0)

static void times(void)
{
	char c;
	SAY("-- times");
	write_file("f", "x");
	MUST(mkdir("d", 0755));
	int fd = (int)MUST(open("f", O_RDWR));
	CHANGES("f", write(fd, "y", 1));
	CHANGES("f", pwrite(fd, "y", 1, 0));
	CHANGES("f", ftruncate(fd, 5));
	CHANGES("f", ftruncate(fd, 5));
	CHANGES("f", truncate("f", 5));
	CHANGES("f", chmod("f", 0600));
	CHANGES("f", chown("f", 0, 0));
	CHANGES("f", link("f", "g"));
	CHANGES("f", rename("g", "h"));
	CHANGES("f", unlink("h"));
	CHANGES("f", utimensat(AT_FDCWD, "f", NULL, 0));
	CHANGES("f", close(open("f", O_RDONLY)));
	CHANGES("f", close(open("f", O_WRONLY | O_TRUNC)));
	CHANGES("d", close(open("d/n", O_CREAT | O_RDWR, 0600)));
	CHANGES("d", close(open("d/n", O_CREAT | O_RDWR, 0600)));
	CHANGES("d", rename("d/n", "d/m"));
	CHANGES("d", unlink("d/m"));
	CHANGES("d", mkdir("d/k", 0755));
	CHANGES("d", chmod("d", 0700));
	/* relatime: the first read after a write is recorded, the second is not */
	write_file("r", "data");
	fd = (int)MUST(open("r", O_RDWR));
	CHANGES("r", read(fd, &c, 1));
	CHANGES("r", read(fd, &c, 1));
	struct timespec t[2] = { { 1000, 5 }, { 2000, 6 } };
	T(utimensat(AT_FDCWD, "f", t, 0));
	stat("f", &after);
	SAY("%ld.%ld %ld.%ld", (long)after.st_atim.tv_sec, after.st_atim.tv_nsec, (long)after.st_mtim.tv_sec, after.st_mtim.tv_nsec);
	t[0].tv_nsec = UTIME_OMIT;
	t[1].tv_sec = -5;
	t[1].tv_nsec = 7;
	T(utimensat(AT_FDCWD, "f", t, 0));
	stat("f", &after);
	SAY("%ld.%ld %ld.%ld", (long)after.st_atim.tv_sec, after.st_atim.tv_nsec, (long)after.st_mtim.tv_sec, after.st_mtim.tv_nsec);
	t[1].tv_nsec = UTIME_NOW;
	T(futimens(fd, t));
	t[1].tv_nsec = 1000000000;
	T(futimens(fd, t));
	T(utimensat(AT_FDCWD, "missing", NULL, 0));
	T(utimensat(AT_FDCWD, "f", NULL, 0x40));
	T(utimensat(AT_FDCWD, NULL, NULL, 0));
	CHILD("as uid 1000") {
		chmod("f", 0666);
		chmod("r", 0644);
		MUST(setuid(1000));
		t[0] = t[1] = (struct timespec){ 5, 5 };
		T(utimensat(AT_FDCWD, "f", t, 0));
		T(utimensat(AT_FDCWD, "f", NULL, 0));
		T(utimensat(AT_FDCWD, "r", NULL, 0));
		t[0].tv_nsec = t[1].tv_nsec = UTIME_NOW;
		T(utimensat(AT_FDCWD, "f", t, 0));
		t[0].tv_nsec = t[1].tv_nsec = UTIME_OMIT;
		T(utimensat(AT_FDCWD, "r", t, 0));
	} END;
	MUST(symlink("f", "s"));
	t[0] = t[1] = (struct timespec){ 77, 0 };
	T(utimensat(AT_FDCWD, "s", t, AT_SYMLINK_NOFOLLOW));
	lstat("s", &after);
	SAY("%ld", (long)after.st_mtim.tv_sec);
}

static void stats(void)
{
	struct stat st;
	SAY("-- stat");
	write_file("size", "");
	static const long sizes[] = { 0, 1, 511, 512, 513, 4096, 4097, 100000 };
	for (unsigned i = 0; i < 8; i++) {
		int fd = (int)MUST(open("size", O_WRONLY | O_TRUNC));
		for (long n = 0; n < sizes[i]; n++)
			write(fd, "x", 1);
		close(fd);
		stat("size", &st);
		SAY("size %ld blocks %ld blksize %ld", (long)st.st_size, (long)st.st_blocks, (long)st.st_blksize);
		if (i == 6)
			i = 7;
	}
	stat("/dev/null", &st);
	SAY("null %o %u:%u", st.st_mode, major(st.st_rdev), minor(st.st_rdev));
	MUST(mkdir("links", 0755));
	MUST(mkdir("links/a", 0755));
	MUST(mkdir("links/b", 0755));
	write_file("links/f", "");
	stat("links", &st);
	SAY("links %ld", (long)st.st_nlink);
	T(fstatat(AT_FDCWD, "", &st, 0));
	T(fstatat(AT_FDCWD, "", &st, AT_EMPTY_PATH));
	T(fstatat(1, "", &st, AT_EMPTY_PATH));
	T(fstatat(99, "", &st, AT_EMPTY_PATH));
	T(fstatat(99, "x", &st, 0));
	T(fstatat(AT_FDCWD, "size", &st, 0x8000));
	T(fstat(99, &st));
	T(stat("missing", &st));
	T(stat("size/x", &st));
	T(stat("size/", &st));
	struct statx sx;
	T(statx(AT_FDCWD, "size", 0, STATX_BASIC_STATS | STATX_BTIME, &sx));
	SAY("mask %#x size %llu mode %o", sx.stx_mask & 0xfff, sx.stx_size, sx.stx_mode);
	IS(sx.stx_btime.tv_sec > 0);
	T(statx(AT_FDCWD, "size", 0, 0x80000000u, &sx));
	T(statx(AT_FDCWD, "size", 0x6000, 0, &sx));
	T(statx(AT_FDCWD, "size", AT_STATX_FORCE_SYNC, 0, &sx));
	T(statx(1, "", AT_EMPTY_PATH, STATX_TYPE, &sx));
	struct statfs sf;
	T(statfs(".", &sf));
	SAY("type %#lx bsize %ld namelen %ld", (long)sf.f_type, (long)sf.f_bsize, (long)sf.f_namelen);
	IS(sf.f_bfree <= sf.f_blocks && sf.f_files > 0);
	T(statfs("/proc", &sf));
	SAY("type %#lx", (long)sf.f_type);
	T(statfs("missing", &sf));
	T(fstatfs(99, &sf));
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void listing(void)
{
	SAY("-- directories");
	MUST(mkdir("list", 0755));
	MUST(mkdir("list/sub", 0755));
	write_file("list/file", "");
	MUST(symlink("x", "list/link"));
	MUST(mkfifo("list/fifo", 0600));
	struct dirent **all;
	int n = scandir("list", &all, NULL, by_name);
	struct stat st;
	for (int i = 0; i < n; i++) {
		char path[300];
		snprintf(path, sizeof path, "list/%s", all[i]->d_name);
		lstat(path, &st);
		SAY("%s type %d ino %s", all[i]->d_name, all[i]->d_type, st.st_ino == all[i]->d_ino ? "right" : "wrong");
	}
	int fd = (int)MUST(open("list", O_RDONLY));
	char buf[1024];
	T(syscall(SYS_getdents64, fd, buf, 10));
	T(syscall(SYS_getdents64, fd, buf, sizeof buf) > 100);
	T(syscall(SYS_getdents64, fd, buf, sizeof buf));
	T(lseek(fd, 0, SEEK_SET));
	T(syscall(SYS_getdents64, fd, buf, 60) > 0);
	T(syscall(SYS_getdents64, 1, buf, 100));
	T(syscall(SYS_getdents64, 99, buf, 100));
	close(fd);
	/* many entries, read in small pieces while some are removed: each of the rest exactly once */
	MUST(mkdir("many", 0755));
	for (int i = 0; i < 300; i++) {
		char path[32];
		snprintf(path, sizeof path, "many/%03d", i);
		close((int)MUST(open(path, O_CREAT | O_RDWR, 0600)));
	}
	int seen[300] = { 0 }, twice = 0, missed = 0;
	fd = (int)MUST(open("many", O_RDONLY));
	long got;
	while ((got = syscall(SYS_getdents64, fd, buf, 200)) > 0) {
		for (long o = 0; o < got;) {
			struct dirent64 *e = (struct dirent64 *)(buf + o);
			if (e->d_name[0] != '.') {
				char path[300];
				seen[atoi(e->d_name)]++;
				snprintf(path, sizeof path, "many/%s", e->d_name);
				unlink(path);
			}
			o += e->d_reclen;
		}
	}
	for (int i = 0; i < 300; i++) {
		twice += seen[i] > 1;
		missed += seen[i] == 0;
	}
	SAY("twice %d missed %d, end %ld", twice, missed, got);
	T(rmdir("many"));
	/* telldir and seekdir */
	DIR *d = opendir("list");
	readdir(d);
	readdir(d);
	long place = telldir(d);
	char name[256];
	strcpy(name, readdir(d)->d_name);
	while (readdir(d))
		;
	seekdir(d, place);
	IS(strcmp(name, readdir(d)->d_name) == 0);
	closedir(d);
	/* a removed folder lists nothing */
	MUST(mkdir("gone", 0755));
	fd = (int)MUST(open("gone", O_RDONLY));
	MUST(rmdir("gone"));
	T(syscall(SYS_getdents64, fd, buf, sizeof buf));
}

int main(void)
{
	scratch();
	times();
	stats();
	listing();
	return 0;
}
