/*
 * open: every flag and its errors, in Linux's order: O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW,
 * O_PATH, O_TMPFILE, O_CLOEXEC, trailing slashes, names too long, dangling links, folders opened for writing.
 */
#include "check.h"

#define TRY(path, flags) ({ errno = 0; int fd_ = open(path, flags, 0640); \
	SAY("open(%.30s, %s): %s", path, #flags, fd_ < 0 ? err_name(errno) : "ok"); if (fd_ >= 0) close(fd_); })

int main(void)
{
	char name[5000];
	struct stat st;
	scratch();
	write_file("f", "0123456789");
	MUST(mkdir("d", 0755));
	MUST(symlink("f", "lf"));
	MUST(symlink("d", "ld"));
	MUST(symlink("missing", "dangling"));
	MUST(symlink("loop2", "loop1"));
	MUST(symlink("loop1", "loop2"));
	TRY("f", O_RDONLY);
	TRY("f", O_RDONLY | O_CREAT | O_EXCL);
	TRY("missing", O_RDONLY);
	TRY("", O_RDONLY);
	TRY("", O_RDWR | O_CREAT);
	TRY("f/", O_RDONLY);
	TRY("f/x", O_RDONLY);
	TRY("f/.", O_RDONLY);
	TRY("d", O_RDONLY);
	TRY("d/", O_RDONLY);
	TRY("d", O_WRONLY);
	TRY("d", O_RDWR);
	TRY("d", O_RDONLY | O_CREAT);
	TRY("d", O_RDONLY | O_CREAT | O_EXCL);
	TRY("d", O_RDONLY | O_TRUNC);
	TRY("d", O_RDONLY | O_DIRECTORY);
	TRY("f", O_RDONLY | O_DIRECTORY);
	TRY("new/", O_RDWR | O_CREAT);
	TRY("d/new/", O_RDWR | O_CREAT);
	TRY("new", O_RDWR | O_CREAT | O_DIRECTORY);
	TRY("no/new", O_RDWR | O_CREAT);
	TRY("lf", O_RDONLY | O_NOFOLLOW);
	TRY("ld", O_RDONLY | O_NOFOLLOW);
	TRY("ld/", O_RDONLY | O_NOFOLLOW);
	TRY("ld", O_RDONLY | O_NOFOLLOW | O_DIRECTORY);
	TRY("ld", O_RDONLY | O_DIRECTORY);
	TRY("lf", O_PATH | O_NOFOLLOW);
	TRY("lf", O_RDONLY | O_CREAT | O_EXCL);
	TRY("dangling", O_RDONLY);
	TRY("dangling", O_RDWR | O_CREAT | O_EXCL);
	TRY("dangling", O_RDWR | O_CREAT | O_NOFOLLOW);
	TRY("dangling", O_RDWR | O_CREAT);
	TRY("missing", O_RDONLY);
	TRY("loop1", O_RDONLY);
	TRY("loop1/x", O_RDONLY);
	TRY("loop1", O_RDWR | O_CREAT);
	TRY("loop1", O_PATH | O_NOFOLLOW);
	TRY("f", O_WRONLY | O_RDWR);
	TRY("f", O_RDONLY | 0x40000000);
	TRY("d", O_TMPFILE | O_RDWR);
	TRY("d", O_TMPFILE | O_RDONLY);
	TRY("f", O_TMPFILE | O_RDWR);
	TRY("no", O_TMPFILE | O_RDWR);
	TRY("d", O_TMPFILE | O_RDWR | O_CREAT);
	/* umask and mode */
	umask(027);
	close(open("m", O_RDWR | O_CREAT, 07777));
	stat("m", &st);
	SAY("mode %o", st.st_mode);
	close(open("ro", O_RDWR | O_CREAT, 0));
	stat("ro", &st);
	SAY("mode %o", st.st_mode);
	umask(022);
	/* a new file of mode 0 is writable through its own descriptor */
	CHILD("as uid 1000") {
		chmod(".", 0777);
		MUST(setuid(1000));
		int fd = (int)T(open("mine", O_WRONLY | O_CREAT | O_EXCL, 0));
		T(write(fd, "x", 1));
		TRY("mine", O_RDONLY);
		TRY("f", O_WRONLY);
		TRY("f", O_RDONLY | O_TRUNC);
		TRY("f", O_RDONLY | O_NOATIME);
		TRY("f", O_PATH);
		TRY("ro", O_RDONLY);
		TRY("ro", O_PATH);
	} END;
	/* append */
	int a = (int)MUST(open("f", O_RDWR | O_APPEND)), b = (int)MUST(open("f", O_RDWR));
	T(write(b, "AB", 2));
	T(write(a, "CD", 2));
	T(lseek(a, 0, SEEK_CUR));
	T(lseek(a, 0, SEEK_SET));
	T(write(a, "EF", 2));
	T(pwrite(a, "GH", 2, 0));
	T(pread(a, name, 4, 0));
	SAY("%s", read_file("f"));
	/* truncation keeps other descriptors' offsets: a hole */
	T(lseek(b, 0, SEEK_CUR));
	close(open("f", O_WRONLY | O_TRUNC));
	T(write(b, "Z", 1));
	fstat(b, &st);
	SAY("size %ld", (long)st.st_size);
	/* tmpfile: no name until linked */
	int t = (int)T(open(".", O_TMPFILE | O_RDWR, 0600));
	fstat(t, &st);
	SAY("nlink %ld mode %o", (long)st.st_nlink, st.st_mode);
	write(t, "temporary", 9);
	snprintf(name, sizeof name, "/proc/self/fd/%d", t);
	T(linkat(AT_FDCWD, name, AT_FDCWD, "kept", AT_SYMLINK_FOLLOW));
	SAY("%s", read_file("kept"));
	t = (int)T(open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600));
	snprintf(name, sizeof name, "/proc/self/fd/%d", t);
	T(linkat(AT_FDCWD, name, AT_FDCWD, "kept2", AT_SYMLINK_FOLLOW));
	/* names */
	memset(name, 'n', sizeof name);
	name[255] = 0;
	TRY(name, O_RDWR | O_CREAT);
	name[255] = 'n';
	name[256] = 0;
	TRY(name, O_RDWR | O_CREAT);
	TRY(name, O_RDONLY);
	for (int i = 0; i < 4095; i++)
		name[i] = i % 2 ? '/' : '.';
	name[4094] = 'f';
	name[4095] = 0;
	TRY(name, O_RDONLY);
	name[4095] = 'f';
	name[4096] = 0;
	TRY(name, O_RDONLY);
	/* at */
	int d = (int)MUST(open("d", O_RDONLY)), f = (int)MUST(open("f", O_RDONLY));
	T(openat(d, "../f", O_RDONLY) >= 0);
	T(openat(f, "x", O_RDONLY));
	T(openat(99, "x", O_RDONLY));
	T(openat(99, "/", O_RDONLY) >= 0);
	T(openat(d, "", O_RDONLY));
	/* creat on something special */
	T(creat("d", 0600));
	T(close(creat("c", 0600)));
	T(open("/dev/null/x", O_RDONLY));
	TRY("//tmp///", O_RDONLY);
	TRY("/..", O_RDONLY);
	return 0;
}
