/* suite_copy.h: process 1 of suite.c copies the tests itself while allocations fail, since its own never do. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies a file; 0 if all of it is there. */
static int copy_file(const char *from, const char *to)
{
	static char block[65536];
	struct stat st;
	ssize_t got = -1;
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
	if (in >= 0 && fstat(in, &st) == 0)
		out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, st.st_mode & 07777);
	while (out >= 0 && (got = read(in, block, sizeof block)) > 0)
		if (write(out, block, (size_t)got) != got)
			break;
	close(in);
	close(out);
	return out < 0 || got != 0;
}

/* Copies one file, folder or link of /suite/bb to /bb. */
static int copy_one(const char *from, const struct stat *st, int type, struct FTW *ftw)
{
	char to[PATH_MAX], target[PATH_MAX] = "";
	(void)ftw;
	snprintf(to, sizeof to, "/bb%s", from + strlen("/suite/bb"));
	if (type == FTW_D)
		return mkdir(to, st->st_mode & 07777) != 0 && errno != EEXIST;
	if (type == FTW_SL)
		return readlink(from, target, sizeof target - 1) < 0 || symlink(target, to) != 0;
	return copy_file(from, to);
}

/* What all tests need, made by process 1, whose allocations never fail. */
static int prepare(void)
{
	const char *form = getenv("SUITE_form");
	if (mount("tmpfs", "/bb", "tmpfs", 0, "mode=755") != 0 || mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") != 0 ||
	    nftw("/suite/bb", copy_one, 16, FTW_PHYS) != 0 || copy_file("/bin/busybox", "/bb/busybox") != 0)
		return -1;
	return form && strcmp(form, "light") == 0 ? copy_file("/suite/light/bc.tests", "/bb/testsuite/bc.tests") : 0;
}
