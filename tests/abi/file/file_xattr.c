/*
 * file_xattr.c: extended attributes of a tmpfs: names, sizes and flags, who may see and change which, what is
 * charged, and that they follow the object, not its name.
 */
#include "check.h"
#include <sys/inotify.h>
#include <sys/statfs.h>
#include <sys/mount.h>
#include <sys/xattr.h>

static char buf[70000];

static void show(const char *what, long n)
{
	printf("%s: %ld", what, n);
	if (n < 0)
		printf(" %s", err_name(errno));
	for (long i = 0; i < n && i < 100; i++)
		putchar(buf[i] ? buf[i] : '|');
	putchar('\n');
}

static void get(const char *path, const char *name)
{
	printf("%s ", path);
	show(name, lgetxattr(path, name, buf, sizeof buf));
}

static void list(const char *path)
{
	show(path, llistxattr(path, buf, sizeof buf));
}

static void values(void)
{
	T(setxattr("f", "user.a", "one", 3, 0));
	T(setxattr("f", "user.a", "two!", 4, XATTR_CREATE));
	T(setxattr("f", "user.a", "two!", 4, XATTR_REPLACE));
	T(setxattr("f", "user.b", "", 0, XATTR_REPLACE));
	T(setxattr("f", "user.b", "", 0, XATTR_CREATE | XATTR_REPLACE));
	T(setxattr("f", "user.a", "", 0, XATTR_CREATE | XATTR_REPLACE));
	T(setxattr("f", "user.b", NULL, 0, XATTR_CREATE));
	T(setxattr("f", "user.c", "x", 1, 4));
	T(setxattr("f", "trusted.t", "t\0u", 3, 0));
	T(setxattr("f", "security.s", "s", 1, 0));
	get("f", "user.a");
	get("f", "user.b");
	get("f", "user.none");
	get("f", "trusted.t");
	get("f", "security.s");
	get("f", "security.capability");
	T(getxattr("f", "user.a", buf, 0));
	T(getxattr("f", "user.a", buf, 3));
	T(getxattr("f", "user.a", NON_CANONICAL, 4));
	T(getxattr("f", "user.b", NULL, 4));
	list("f");
	T(listxattr("f", buf, 0));
	T(listxattr("f", buf, 6));
	T(listxattr("f", NON_CANONICAL, 1000));
	T(removexattr("f", "user.b"));
	T(removexattr("f", "user.b"));
	list("f");
	T(link("f", "f2") | rename("f2", "f3"));
	list("f3");
	T(unlink("f3"));
}

static void names(void)
{
	static char name[300];
	for (int len = 0; len < 3; len++) {
		memset(name, 'n', sizeof name);
		memcpy(name, "user.", 5);
		name[254 + len] = 0;
		T(setxattr("f", name, "x", 1, 0));
		T(removexattr("f", name));
	}
	T(setxattr("f", "", "x", 1, 0));
	T(setxattr("f", "user.", "x", 1, 0));
	T(setxattr("f", "user", "x", 1, 0));
	T(setxattr("f", "other.x", "x", 1, 0));
	T(setxattr("f", "trusted.", "x", 1, 0));
	T(getxattr("f", "security.", buf, 10));
	T(getxattr("f", "nothing", buf, 10));
	T(removexattr("f", "nothing"));
	T(setxattr("f", NON_CANONICAL, "x", 1, 0));
	T(setxattr("f", "user.x", NON_CANONICAL, 1, 0));
	T(setxattr("f", "user.x", buf, 65536, 0));
	T(getxattr("f", "user.x", buf, 65535));
	T(getxattr("f", "user.x", buf, sizeof buf));
	T(setxattr("f", "user.x", buf, 65537, 0));
	T(setxattr("f", "user.x", buf, -1, 0));
	T(setxattr("none", "user.x", buf, 1, 9));
	T(getxattr("none", "", buf, 1));
	T(getxattr("none", "user.x", buf, 1));
	T(removexattr("none", ""));
	T(listxattr("none", NULL, 0));
	T(setxattr("f", "user.x", NON_CANONICAL, 1, 9));
	T(setxattr("f", "", NON_CANONICAL, 65537, 0));
	T(removexattr("f", "user.x"));
}

static void kinds(void)
{
	MUST(mkdir("d", 0755));
	MUST(symlink("f", "l"));
	MUST(mkfifo("p", 0666));
	T(setxattr("d", "user.a", "d", 1, 0));
	T(setxattr("l", "user.l", "f", 1, 0));
	T(lsetxattr("l", "user.l", "l", 1, 0));
	T(lgetxattr("l", "user.l", buf, 1));
	T(lsetxattr("l", "trusted.l", "l", 1, 0));
	T(setxattr("p", "user.p", "p", 1, 0));
	T(getxattr("p", "user.p", buf, 1));
	T(setxattr("p", "trusted.p", "p", 1, 0));
	list("d");
	list("l");
	list("f");
	list("p");
	T(lremovexattr("l", "trusted.l"));
	T(setxattr("/proc/self/status", "user.a", "x", 1, 0));
	T(getxattr("/proc/self/status", "user.a", buf, 1));
	T(listxattr("/proc/self/status", buf, 100));
	int fd = (int)MUST(open("f", O_RDONLY)), path = (int)MUST(open("f", O_PATH)), ends[2];
	T(fsetxattr(fd, "user.fd", "x", 1, 0));
	T(fgetxattr(fd, "user.fd", buf, 10));
	T(flistxattr(fd, buf, 1000));
	T(fremovexattr(fd, "user.fd"));
	T(fsetxattr(path, "user.fd", "x", 1, 0));
	T(fgetxattr(path, "user.fd", buf, 10));
	T(flistxattr(99, buf, 10));
	MUST(pipe(ends));
	T(fsetxattr(ends[0], "user.a", "x", 1, 0));
	T(fgetxattr(ends[0], "user.a", buf, 10));
	T(flistxattr(ends[0], buf, 10));
}

static void others(void)
{
	MUST(chmod("f", 0604));
	MUST(mkdir("s", 0755));
	MUST(chmod("s", 01777));
	CHILD("somebody else") {
		MUST(setgid(1000));
		MUST(setuid(1000));
		get("f", "user.a");
		get("f", "trusted.t");
		get("f", "security.s");
		list("f");
		T(setxattr("f", "user.a", "x", 1, 0));
		T(setxattr("f", "trusted.t", "x", 1, 0));
		T(setxattr("f", "security.s", "x", 1, 0));
		T(removexattr("f", "security.s"));
		T(removexattr("f", "user.none"));
		T(setxattr("s", "user.a", "x", 1, 0));
		T(setxattr("d", "user.a", "x", 1, 0));
		T(setxattr("f", "other.a", "x", 1, 0));
		T(setxattr("f", "system.a", "x", 1, 0));
	} END;
	MUST(chmod("f", 0600));
	CHILD("without any right") {
		MUST(setuid(1000));
		get("f", "user.a");
		list("f");
	} END;
}

static long free_inodes(void)
{
	struct statfs now;
	MUST(statfs("m", &now));
	return now.f_ffree;
}

static void charged(void)
{
	MUST(mkdir("m", 0755));
	MUST(mount("none", "m", "tmpfs", 0, "nr_inodes=10"));
	MUST(close((int)MUST(open("m/f", O_CREAT | O_RDWR, 0644))));
	long before = free_inodes();
	MUST(setxattr("m/f", "user.a", buf, 3000, 0));
	SAY("3000 bytes take %ld", before - free_inodes());
	MUST(setxattr("m/f", "user.a", buf, 10, 0));
	SAY("10 bytes take %ld", before - free_inodes());
	T(setxattr("m/f", "user.b", buf, 20000, 0));
	list("m/f");
	MUST(setxattr("m/f", "user.c", buf, 4000, 0));
	MUST(unlink("m/f"));
	SAY("%ld", before + 1 - free_inodes());
	MUST(mount("none", "m", NULL, MS_REMOUNT | MS_RDONLY, NULL));
	T(setxattr("m", "user.a", "x", 1, 99));
	T(removexattr("m", ""));
	T(getxattr("m", "user.a", buf, 1));
	MUST(umount("m"));
}

static void watched(void)
{
	int in = (int)MUST(inotify_init());
	MUST(inotify_add_watch(in, "f", IN_ALL_EVENTS));
	MUST(setxattr("f", "user.w", "x", 1, 0));
	T(setxattr("f", "user.w", "x", 1, XATTR_CREATE));
	T(read(in, buf, sizeof buf));
	IS(((struct inotify_event *)buf)->mask == IN_ATTRIB);
	MUST(removexattr("f", "user.w"));
	T(read(in, buf, sizeof buf));
	IS(((struct inotify_event *)buf)->mask == IN_ATTRIB);
}

int main(void)
{
	struct stat before, after;
	struct timespec past[2] = { { 1000, 0 }, { 1000, 0 } };
	scratch();
	MUST(close((int)MUST(open("f", O_CREAT | O_RDWR, 0644))));
	MUST(utimensat(AT_FDCWD, "f", past, 0));
	MUST(stat("f", &before));
	struct timespec tick = { 0, 20000000 };
	nanosleep(&tick, NULL);
	values();
	MUST(stat("f", &after));
	IS(after.st_mtime == 1000);
	IS(after.st_ctim.tv_sec > before.st_ctim.tv_sec || after.st_ctim.tv_nsec > before.st_ctim.tv_nsec);
	names();
	kinds();
	watched();
	others();
	charged();
	return 0;
}
