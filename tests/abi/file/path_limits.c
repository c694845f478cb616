/*
 * The limits of names and paths with every call that takes one: a name of 255 bytes is good and one of 256 is not, a path
 * of 4095 bytes is good and one of 4096 is not, forty symbolic links are followed and forty-one are not.
 */
#include "check.h"
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/un.h>

static char path[8192], other[8192];

/* Every call with a path; those that make something come with `fresh`, a name of the same length that is free. */
static void with(const char *what, const char *there, const char *fresh)
{
	struct stat st;
	struct statfs sf;
	struct timespec times[2] = { { 1, 2 }, { 3, 4 } };
	char text[16];
	SAY("-- %s", what);
	T(mkdir(fresh, 0755));
	T(rmdir(fresh));
	T(mknod(fresh, S_IFREG | 0644, 0));
	T(unlink(fresh));
	T(mkfifo(fresh, 0644));
	T(unlink(fresh));
	T(symlink("x", fresh));
	T(readlink(fresh, text, sizeof text));
	T(lstat(fresh, &st));
	T(lchown(fresh, 1, 1));
	T(unlink(fresh));
	T(close(open(fresh, O_CREAT | O_EXCL | O_RDWR, 0644)) == 0 ? 0 : -1);
	T(link(fresh, "short"));
	T(unlink("short"));
	T(rename(fresh, "short"));
	T(link("short", fresh));
	T(unlink("short"));
	write_file("short", "s");
	T(rename("short", fresh));
	T(truncate(fresh, 3));
	T(chmod(fresh, 0600));
	T(chown(fresh, 0, 0));
	T(access(fresh, R_OK));
	T(utimensat(AT_FDCWD, fresh, times, 0));
	T(statfs(fresh, &sf));
	T(execl(fresh, "x", NULL));
	T(unlink(fresh));
	unlink("short");
	T(stat(there, &st));
	T(chdir(there));
	MUST(chdir(scratch_path));
	T(close(open(there, O_RDONLY | O_DIRECTORY)) == 0 ? 0 : -1);
	T(mount("x", there, "tmpfs", 0, NULL));
	if (stat(there, &st) == 0)
		T(umount(there));
	CHILD("chroot") {
		T(chroot(there));
	} END;
}

/* A path of `length` bytes that leads to `last` in the working directory. */
static const char *long_path(char *to, size_t length, const char *last)
{
	size_t rest = length - strlen(last);
	for (size_t i = 0; i < rest; i++)
		to[i] = i % 2 ? '/' : '.';
	/* an even number of bytes ends in a slash */
	if (rest % 2)
		to[rest - 1] = '/';
	strcpy(to + rest, last);
	return to;
}

int main(void)
{
	char name[400], second[400];
	scratch();
	memset(name, 'n', sizeof name);
	memset(second, 'f', sizeof second);
	name[255] = second[255] = 0;
	MUST(mkdir(name, 0755));
	with("a name of 255", name, second);
	name[255] = 'n';
	second[255] = 'f';
	name[256] = second[256] = 0;
	with("a name of 256", name, second);
	MUST(mkdir("d", 0755));
	with("a path of 4095", long_path(path, 4095, "d"), long_path(other, 4095, "f"));
	with("a path of 4096", long_path(path, 4096, "d"), long_path(other, 4096, "f"));
	long_path(path, 4097, "d");
	with("a path of 4097", path, long_path(other, 4097, "f"));
	MUST(symlink(".", "l0"));
	for (int i = 1; i < 41; i++) {
		char from[16], to[16];
		snprintf(from, sizeof from, "l%d", i - 1);
		snprintf(to, sizeof to, "l%d", i);
		MUST(symlink(from, to));
	}
	with("through forty links", "l39/d", "l39/f");
	with("through forty-one links", "l40/d", "l40/f");
	/* links one after the other count as those in each other do */
	path[0] = 0;
	for (int i = 0; i < 20; i++)
		strcat(path, "l0/");
	for (int i = 0; i < 19; i++)
		strcat(path, "l0/");
	strcpy(other, path);
	strcat(path, "l0/d");
	T(access(path, F_OK));
	strcat(other, "l0/l0/d");
	T(access(other, F_OK));
	/* what a descriptor is relative to does not count, and what getcwd finds may be longer than any path */
	memset(name, 'm', 250);
	name[250] = 0;
	for (int i = 0; i < 20; i++) {
		MUST(mkdir(name, 0755));
		MUST(chdir(name));
	}
	T(syscall(SYS_getcwd, path, sizeof path));
	T(syscall(SYS_getcwd, path, 100));
	T(access("../..", F_OK));
	int fd = (int)MUST(open(".", O_RDONLY | O_DIRECTORY));
	T(mkdirat(fd, "below", 0755));
	T(readlink("/proc/self/cwd", path, sizeof path));
	T(unlinkat(fd, "below", AT_REMOVEDIR));
	for (int i = 0; i < 20; i++) {
		MUST(chdir(".."));
		MUST(rmdir(name));
	}
	/* names elsewhere */
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	memset(sun.sun_path, 'u', sizeof sun.sun_path);
	int s = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	T(bind(s, (struct sockaddr *)&sun, sizeof sun));
	T(unlink("missing"));
	char link[4200];
	memset(link, 'x', sizeof link);
	link[4095] = 0;
	T(symlink(link, "s4095"));
	T(access("s4095", F_OK));
	link[4095] = 'x';
	link[4096] = 0;
	T(symlink(link, "s4096"));
	return 0;
}
