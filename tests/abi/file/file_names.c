/*
 * Names: hard links, unlink while open, rmdir, rename and renameat2 with their flags, symbolic links and their
 * limits (40 followed, then ELOOP), dot and dot-dot, names at the limit, and every error of these.
 */
#include "check.h"
#include <sys/syscall.h>

static long links(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 ? (long)st.st_nlink : -1;
}

static void hard(void)
{
	struct stat a, b;
	SAY("-- link and unlink");
	write_file("a", "contents");
	T(link("a", "b"));
	SAY("links %ld %ld", links("a"), links("b"));
	stat("a", &a);
	stat("b", &b);
	IS(a.st_ino == b.st_ino);
	T(link("a", "b"));
	T(link("missing", "c"));
	T(link("a", "missing/c"));
	T(link("a/", "c"));
	T(link("a", "c/"));
	MUST(mkdir("d", 0755));
	T(link("d", "e"));
	MUST(symlink("a", "s"));
	T(link("s", "s2"));
	SAY("link to a link is a link: %d, links %ld", lstat("s2", &b) == 0 && S_ISLNK(b.st_mode), links("s"));
	T(linkat(AT_FDCWD, "s", AT_FDCWD, "s3", AT_SYMLINK_FOLLOW));
	SAY("links %ld", links("a"));
	T(linkat(AT_FDCWD, "a", AT_FDCWD, "x", 0x40));
	int fd = (int)MUST(open("a", O_RDWR));
	T(unlink("a"));
	T(unlink("a"));
	T(unlink("s3"));
	T(unlink("b"));
	fstat(fd, &a);
	SAY("links left %ld", (long)a.st_nlink);
	char buf[16] = { 0 }, link[64], path[32];
	T(read(fd, buf, 8));
	SAY("%s", buf);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, link, 63);
	link[n] = 0;
	SAY("%s", strrchr(link, '/'));
	T(linkat(AT_FDCWD, path, AT_FDCWD, "again", AT_SYMLINK_FOLLOW));
	close(fd);
	T(unlink("d"));
	T(unlink("d/"));
	T(unlink("missing"));
	T(unlink(""));
	T(unlink("."));
	T(unlink("s/"));
	T(unlinkat(AT_FDCWD, "d", AT_REMOVEDIR));
	T(unlinkat(AT_FDCWD, "s", AT_REMOVEDIR));
	T(unlinkat(AT_FDCWD, "s", 0x100));
	T(unlink("s"));
	T(unlink("s2"));
}

static void folders(void)
{
	SAY("-- mkdir and rmdir");
	T(mkdir("d", 0755));
	T(mkdir("d", 0755));
	T(mkdir("d/", 0755));
	T(mkdir("d/e/", 0755));
	T(mkdir("x/y", 0755));
	T(mkdir("", 0755));
	T(mkdir("/", 0755));
	T(mkdir(".", 0755));
	T(mkdir("d/..", 0755));
	MUST(symlink("nowhere", "s"));
	T(mkdir("s", 0755));
	T(mkdir("s/", 0755));
	SAY("links %ld", links("d"));
	T(rmdir("d"));
	T(rmdir("d/e/."));
	T(rmdir("d/e/.."));
	T(rmdir("."));
	T(rmdir(".."));
	T(rmdir("/"));
	T(rmdir("s"));
	write_file("f", "");
	T(rmdir("f"));
	T(rmdir("f/"));
	T(rmdir("missing"));
	/* a removed folder that is still the working directory */
	MUST(chdir("d/e"));
	T(rmdir("../e"));
	T(open("new", O_CREAT | O_RDWR, 0600));
	T(mkdir("new", 0755));
	T(open(".", O_RDONLY) >= 0);
	T(open("..", O_RDONLY) >= 0);
	char cwd[100];
	T(syscall(SYS_getcwd, cwd, sizeof cwd));
	SAY("links %ld", links("."));
	MUST(chdir(scratch_path));
	T(rmdir("d"));
	T(unlink("s"));
	T(unlink("f"));
	struct stat st;
	umask(027);
	T(mkdir("m", 07777));
	stat("m", &st);
	SAY("mode %o", st.st_mode);
	umask(022);
	T(rmdir("m"));
	T(syscall(SYS_getcwd, cwd, 1));
	T(syscall(SYS_getcwd, cwd, 0));
}

static long rename2(const char *from, const char *to, unsigned flags)
{
	return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static void renames(void)
{
	SAY("-- rename");
	write_file("a", "A");
	write_file("b", "B");
	MUST(mkdir("d", 0755));
	MUST(mkdir("d/sub", 0755));
	MUST(mkdir("e", 0755));
	MUST(symlink("a", "s"));
	T(rename("a", "a"));
	T(rename("a", "b"));
	SAY("%s", read_file("b"));
	T(rename("a", "b"));
	T(rename("b", "d"));
	T(rename("d", "b"));
	T(rename("d", "e"));
	SAY("moved over an empty folder: %ld", links("e/sub"));
	T(mkdir("d", 0755));
	T(rename("d", "e"));
	T(rename("e", "e/sub/x"));
	T(rename("e", "e"));
	T(rename("e/sub", "e"));
	T(rename("e", "e/sub"));
	T(rename("missing", "x"));
	T(rename("b", "missing/x"));
	T(rename("b", "x/"));
	T(rename("b/", "x"));
	T(rename("d/", "d2/"));
	T(rename("d2", "d"));
	T(rename(".", "x"));
	T(rename("d/..", "x"));
	T(rename("d", "."));
	T(rename("/", "x"));
	T(rename("", "x"));
	T(rename("b", ""));
	T(rename("s", "s2"));
	SAY("links %ld", links("s2"));
	T(rename("d/", "s2"));
	T(rename("s2/", "x"));
	/* hard links to one file: nothing happens */
	MUST(link("b", "b2"));
	T(rename("b", "b2"));
	SAY("both there: %ld", links("b"));
	/* flags */
	write_file("c", "C");
	T(rename2("b", "c", 1));
	T(rename2("b", "new", 1));
	T(rename2("new", "c", 2));
	SAY("exchanged: new %s c %s", read_file("new"), read_file("c"));
	T(rename2("new", "d", 2));
	SAY("exchanged with a folder: %ld", links("new"));
	T(rename2("new", "missing", 2));
	T(rename2("new", "c", 3));
	T(rename2("new", "c", 8));
	T(rename2("new", "new/in", 2));
	/* a name that is open */
	int fd = (int)MUST(open("c", O_RDONLY));
	write_file("over", "O");
	T(rename("over", "c"));
	char ch = 0;
	T(read(fd, &ch, 1));
	SAY("old file still reads %c", ch);
	close(fd);
	T(rename("/dev/null", "null"));
	/* the parent entry follows */
	MUST(mkdir("p1", 0755));
	MUST(mkdir("p2", 0755));
	MUST(mkdir("p1/k", 0755));
	SAY("links %ld %ld", links("p1"), links("p2"));
	T(rename("p1/k", "p2/k"));
	SAY("links %ld %ld", links("p1"), links("p2"));
	struct stat a, b;
	stat("p2/k/..", &a);
	stat("p2", &b);
	IS(a.st_ino == b.st_ino);
}

static void symbolic(void)
{
	char target[5000], buf[5000];
	SAY("-- symlinks");
	T(symlink("t", "l"));
	T(symlink("t", "l"));
	T(symlink("", "empty"));
	T(symlink("t", ""));
	T(symlink("t", "missing/l"));
	T(symlink("t", "l2/"));
	T(readlink("l", buf, sizeof buf));
	T(readlink("l", buf, 0));
	memset(target, 'x', sizeof target);
	target[4095] = 0;
	T(symlink(target, "long"));
	T(readlink("long", buf, sizeof buf));
	T(readlink("long", buf, 100));
	target[4095] = 'x';
	target[4096] = 0;
	T(symlink(target, "longer"));
	T(readlink("missing", buf, 10));
	write_file("file", "x");
	T(readlink("file", buf, 10));
	T(readlink("l/", buf, 10));
	T(readlinkat(AT_FDCWD, "", buf, 10));
	int fd = (int)MUST(open("l", O_PATH | O_NOFOLLOW));
	T(readlinkat(fd, "", buf, 10));
	close(fd);
	struct stat st;
	lstat("l", &st);
	SAY("mode %o size %ld", st.st_mode, (long)st.st_size);
	T(chmod("l", 0600));
	T(lchown("l", 5, 6));
	lstat("l", &st);
	SAY("owner %d %d", st.st_uid, st.st_gid);
	/* chains */
	write_file("k0", "end");
	for (int i = 1; i <= 41; i++) {
		char from[8], to[8];
		snprintf(from, sizeof from, "k%d", i - 1);
		snprintf(to, sizeof to, "k%d", i);
		MUST(symlink(from, to));
	}
	SAY("39 links: %s", read_file("k39"));
	SAY("40 links: %s", read_file("k40"));
	SAY("41 links: %s", read_file("k41"));
	T(open("k41", O_RDONLY | O_NOFOLLOW));
	T(unlink("k41"));
	/* links in the middle, relative to their own folder */
	MUST(mkdir("q", 0755));
	MUST(symlink("../file", "q/up"));
	MUST(symlink("q", "toq"));
	SAY("%s", read_file("toq/up"));
	SAY("%s", read_file("toq/../file"));
	MUST(symlink("/", "root"));
	T(stat("root/tmp", &st));
	T(lstat("root", &st));
	SAY("%d", S_ISLNK(st.st_mode));
	T(lstat("root/", &st));
	SAY("%d", S_ISDIR(st.st_mode));
	T(stat("l", &st));
	T(access("l", F_OK));
}

int main(void)
{
	scratch();
	hard();
	folders();
	renames();
	symbolic();
	return 0;
}
