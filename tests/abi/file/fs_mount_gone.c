/*
 * Mounts that no path leads to any more: nothing can be mounted in a tree that was lazily unmounted, and a lazy unmount takes
 * all that is mounted below, even where its place was renamed out of what the mount shows; `.` and `/` under other mounts.
 * A mount left behind shows as one more of `mounts` when the program has ended.
 */
#include "check.h"
#include <sys/mount.h>

int main(void)
{
	struct stat outside, inside;
	scratch();
	MUST(mkdir("m", 0755));
	MUST(mkdir("other", 0755));
	/* in a tree that is not there any more */
	CHILD("detached") {
		MUST(mount("none", "m", "tmpfs", 0, NULL));
		MUST(mkdir("other/here", 0755));
		int other = (int)MUST(open("other", O_RDONLY | O_DIRECTORY));
		MUST(chdir("m"));
		MUST(mkdir("a", 0755));
		MUST(mkdir("b", 0755));
		MUST(mount("none", "b", "tmpfs", 0, NULL));
		MUST(chroot("."));
		T(umount2("/", MNT_DETACH));
		T(mount("none", "a", "tmpfs", 0, NULL));
		T(mount("none", "/", "tmpfs", 0, NULL));
		T(mount("a", "b", NULL, MS_BIND, NULL));
		T(mount("b", "a", NULL, MS_MOVE, NULL));
		T(mount("none", "/", NULL, MS_REMOUNT, NULL));
		T(mount("none", "/", NULL, MS_REMOUNT | MS_BIND, NULL));
		T(umount2("/", MNT_DETACH));
		T(umount2("b", MNT_DETACH));
		int here = (int)MUST(open("a", O_RDONLY | O_DIRECTORY));
		MUST(fchdir(other));
		T(mount("/a", "here", NULL, MS_BIND, NULL));
		T(mount("none", "here", "tmpfs", 0, NULL));
		MUST(fchdir(here));
		T(mount("none", ".", "tmpfs", 0, NULL));
		MUST(fchdir(other));
		T(umount("here"));
		T(rmdir("here"));
	} END;
	/* below a bind mount, renamed out of what it shows */
	MUST(mkdir("whole", 0755));
	MUST(mount("none", "whole", "tmpfs", 0, NULL));
	MUST(mkdir("whole/part", 0755));
	MUST(mkdir("whole/part/x", 0755));
	MUST(mkdir("whole/part/x/y", 0755));
	MUST(mount("whole/part", "m", NULL, MS_BIND, NULL));
	MUST(mount("none", "m/x/y", "tmpfs", 0, NULL));
	/* busy through any mount */
	T(rmdir("whole/part/x/y"));
	T(rename("whole/part/x/y", "whole/y"));
	T(rename("whole/part/x", "whole/x"));
	T(access("m/x", F_OK));
	T(umount2("m", MNT_DETACH));
	T(rmdir("whole/x/y"));
	T(umount("whole"));
	/* on `.`, again and again */
	MUST(stat("m", &outside));
	CHILD("stacked") {
		MUST(chdir("m"));
		T(mount("none", ".", "tmpfs", 0, NULL));
		T(mount("none", ".", "tmpfs", 0, NULL));
		T(mkdir("below", 0755));
		T(access("../m/below", F_OK));
		T(umount2(".", MNT_DETACH));
		T(umount2(".", MNT_DETACH));
		T(umount2(".", MNT_DETACH));
		T(rmdir("below"));
	} END;
	MUST(stat("m", &inside));
	IS(outside.st_ino == inside.st_ino && outside.st_dev == inside.st_dev);
	return 0;
}
