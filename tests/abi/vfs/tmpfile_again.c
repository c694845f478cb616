/*
 * A file of O_TMPFILE may be given a name once: when that name and every other is gone again, linkat is ENOENT, as it is for any
 * file without names.
 */
#include "check.h"

static int link_it(int fd, const char *name)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

int main(void)
{
	scratch();
	int fd = (int)MUST(open(".", O_TMPFILE | O_RDWR, 0600));
	struct stat st;
	T(link_it(fd, "a"));
	T(link_it(fd, "b"));
	T(unlink("a"));
	T(link_it(fd, "a"));
	T(unlink("a"));
	T(unlink("b"));
	T(link_it(fd, "a"));
	T(linkat(fd, "", AT_FDCWD, "a", AT_EMPTY_PATH));
	MUST(fstat(fd, &st));
	IS(st.st_nlink == 0);
	close(fd);

	fd = (int)MUST(open("c", O_CREAT | O_RDWR, 0600));
	T(unlink("c"));
	T(link_it(fd, "c"));
	close(fd);

	fd = (int)MUST(open(".", O_TMPFILE | O_EXCL | O_RDWR, 0600));
	T(link_it(fd, "d"));
	close(fd);
	return 0;
}
