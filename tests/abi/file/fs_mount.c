/*
 * mount and chroot: tmpfs with options, what is under a mount is hidden and comes back, EBUSY, read-only, noexec,
 * nosuid and nodev mounts, bind mounts, lazy unmount, /proc/self/mounts, permissions, the root's dot-dot.
 */
#include "check.h"
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/statfs.h>

static int mounted(const char *where)
{
	char line[128];
	snprintf(line, sizeof line, " %s/%s ", scratch_path, where);
	return strstr(read_file("/proc/self/mounts"), line) != NULL;
}

int main(void)
{
	char path[128];
	struct stat a, b;
	scratch();
	MUST(mkdir("m", 0755));
	write_file("m/under", "hidden");
	T(mount("none", "m", "tmpfs", 0, "mode=700,size=64k"));
	IS(mounted("m"));
	stat("m", &a);
	stat(".", &b);
	SAY("mode %o, another device %d", a.st_mode & 07777, a.st_dev != b.st_dev);
	T(access("m/under", F_OK));
	write_file("m/f", "visible");
	stat("m/..", &a);
	IS(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	/* limits */
	struct statfs sf;
	statfs("m", &sf);
	SAY("blocks %ld", (long)sf.f_blocks);
	static char big[200000];
	int fd = (int)MUST(open("m/big", O_RDWR | O_CREAT, 0600));
	long n = write(fd, big, sizeof big);
	SAY("wrote %ld", n);
	T(write(fd, big, 1) == -1 ? -1 : 0);
	T(umount("m"));
	close(fd);
	T(rename("m/f", "f"));
	T(link("m/f", "f"));
	T(rmdir("m"));
	T(unlink("m/big"));
	/* remount read-only */
	T(mount("none", "m", "tmpfs", MS_REMOUNT | MS_RDONLY, NULL));
	T(open("m/new", O_RDWR | O_CREAT, 0600));
	T(open("m/f", O_RDWR));
	T(unlink("m/f"));
	T(mkdir("m/d", 0755));
	T(chmod("m/f", 0600));
	T(access("m/f", W_OK));
	T(close(open("m/f", O_RDONLY)));
	T(mount("none", "m", "tmpfs", MS_REMOUNT, NULL));
	T(close(open("m/new", O_RDWR | O_CREAT, 0700)));
	/* stacked mounts */
	T(mount("none", "m", "tmpfs", MS_NOEXEC | MS_NODEV | MS_NOSUID, NULL));
	T(access("m/f", F_OK));
	write_file("m/prog", "#!/bin/true\n");
	chmod("m/prog", 0755);
	CHILD("noexec") {
		execl("m/prog", "prog", NULL);
		SAY("%s", err_name(errno));
	} END;
	T(access("m/prog", X_OK));
	T(mknod("m/null", S_IFCHR | 0666, makedev(1, 3)));
	T(open("m/null", O_RDWR));
	T(umount("m"));
	T(access("m/f", F_OK));
	/* bind */
	MUST(mkdir("b", 0755));
	T(mount("m", "b", NULL, MS_BIND, NULL));
	SAY("%s", read_file("b/f"));
	write_file("b/through", "x");
	T(access("m/through", F_OK));
	write_file("target", "t");
	T(mount("m/f", "target", NULL, MS_BIND, NULL));
	SAY("%s", read_file("target"));
	T(unlink("target"));
	T(umount("target"));
	T(unlink("target"));
	/* lazy */
	int in = (int)MUST(open("b/f", O_RDONLY));
	T(umount("b"));
	T(umount2("b", MNT_DETACH));
	T(read(in, big, 7));
	close(in);
	T(umount("b"));
	T(umount("m"));
	SAY("%s", read_file("m/under"));
	/* errors */
	T(mount("none", "missing", "tmpfs", 0, NULL));
	T(mount("none", "m/under", "tmpfs", 0, NULL));
	T(mount("none", "m", "nosuchfs", 0, NULL));
	T(mount("none", "m", NULL, 0, NULL));
	T(mount("none", "m", "tmpfs", 0, "nonsense=1"));
	T(mount("none", "m", "tmpfs", MS_REMOUNT, NULL));
	T(umount("m"));
	T(umount2("m", 0x100));
	T(umount("missing"));
	T(umount2("m", UMOUNT_NOFOLLOW));
	CHILD("as uid 1000") {
		MUST(setuid(1000));
		T(mount("none", "m", "tmpfs", 0, NULL));
		T(umount("/proc"));
		T(chroot("m"));
	} END;
	/* another proc and devpts are the same kind */
	MUST(mkdir("p", 0755));
	T(mount("proc", "p", "proc", 0, NULL));
	T(access("p/self/stat", R_OK));
	T(umount("p"));
	/* chroot */
	MUST(mkdir("root", 0755));
	MUST(mkdir("root/sub", 0755));
	write_file("root/inside", "i");
	MUST(symlink("/inside", "root/sub/abs"));
	CHILD("chroot") {
		T(chroot("root/inside"));
		T(chroot("root/missing"));
		int old = open(".", O_RDONLY);
		T(chroot("root"));
		T(access("/inside", F_OK));
		T(access("/../inside", F_OK));
		T(access("/tmp", F_OK));
		/* the working directory is still outside */
		T(access("m/under", F_OK));
		T(syscall(SYS_getcwd, path, sizeof path) > 0);
		SAY("%.13s", path);
		T(chdir("/"));
		T(syscall(SYS_getcwd, path, sizeof path));
		SAY("%s", path);
		SAY("%s", read_file("sub/abs"));
		T(chdir(".."));
		T(access("inside", F_OK));
		T(fchdir(old));
		T(access("m/under", F_OK));
	} END;
	return 0;
}
