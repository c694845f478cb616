/*
 * mount_edges.c: mounts in use and over each other: what keeps one busy, what a lazy unmount leaves usable, bind mounts of and over
 * themselves, moves into what is moved, copies of trees that double until the limit (fs.mount-max), and the limits of both.
 */
#include "check.h"
#include <pthread.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/inotify.h>

static int count_mounts(void)
{
	int lines = 0, fd = open("/proc/self/mounts", O_RDONLY);
	static char text[65536];
	ssize_t n;
	while ((n = read(fd, text, sizeof text)) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
	close(fd);
	return lines;
}

static void busy(void)
{
	SAY("-- busy");
	int fd, start = count_mounts();
	MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
	write_file("m/f", "text");
	fd = open("m/f", O_RDONLY);
	T(umount("m"));
	char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	T(umount("m"));
	SAY("%c", p[0]);
	munmap(p, 4096);
	fd = open("m", O_PATH);
	T(umount("m"));
	close(fd);
	fd = inotify_init1(0);
	MUST(inotify_add_watch(fd, "m", IN_ALL_EVENTS));
	T(umount("m"));
	char event[512];
	struct inotify_event *e = (void *)event;
	if (read(fd, event, sizeof event) > 0)
		SAY("%#x", e->mask);
	close(fd);
	MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
	CHILD("a folder") {
		chdir("m");
		T(umount("../m"));
		T(umount("."));
		T(umount2(".", MNT_DETACH));
		char cwd[PATH_MAX];
		SAY("%s", syscall(SYS_getcwd, cwd, sizeof cwd) > 0 ? strncmp(cwd, "(unreachable)", 13) ? "reachable" : cwd : "error");
		T(mkdir("d", 0700));
		T(access("../m", F_OK));
		T(chdir(".."));
		T(mount("tmpfs", "d", "tmpfs", 0, NULL));
		T(umount2(".", MNT_DETACH));
		fflush(stdout);
	} END;
	MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
	CHILD("a root") {
		chroot("m");
		T(umount2("/", 0));
		T(umount2("/", MNT_DETACH));
		T(umount2("/", MNT_DETACH));
		T(mkdir("/d", 0700));
		T(mount("tmpfs", "/d", "tmpfs", 0, NULL));
		fflush(stdout);
	} END;
	umount2("m", MNT_DETACH);
	/* A program that runs from there. */
	MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
	MUST(system("cat /proc/self/exe > m/cat 2>/dev/null"));
	umount2("m", MNT_DETACH);
	SAY("as many as before: %d", count_mounts() - start);
}

static void nested(void)
{
	SAY("-- nested");
	int start = count_mounts(), fds[20];
	char path[400] = "m";
	for (int n = 0; n < 20; n++) {
		MUST(mount("tmpfs", path, "tmpfs", 0, NULL));
		strcat(path, "/d");
		MUST(mkdir(path, 0755));
		fds[n] = (int)MUST(open(path, O_RDONLY));
	}
	T(umount("m"));
	T(umount2("m", MNT_DETACH));
	SAY("%d", count_mounts() - start);
	for (int n = 0; n < 20; n++) {
		int made = openat(fds[n], "f", O_CREAT | O_RDWR, 0600);
		if (made < 0)
			SAY("%d: %s", n, err_name(errno));
		close(made);
		/* What was mounted there is not any more: nothing leads on. */
		if (n == 3)
			T(faccessat(fds[n], "d/d/d/d", F_OK, 0)), T(faccessat(fds[n], "..", F_OK, 0));
	}
	for (int n = 0; n < 20; n++)
		close(fds[n]);
	/* One over the other, 30 times; a lazy unmount takes one. */
	for (int n = 0; n < 30; n++)
		MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
	SAY("%d", count_mounts() - start);
	for (int n = 0; n < 15; n++)
		MUST(umount2("m", n & 1 ? MNT_DETACH : 0));
	SAY("%d", count_mounts() - start);
	for (int n = 0; n < 15; n++)
		MUST(umount2("m", MNT_DETACH));
	T(umount("m"));
}

static void over_itself(void)
{
	SAY("-- over itself");
	int start = count_mounts();
	T(mount("m", "m", NULL, MS_BIND, NULL));
	T(mount("m", "m", NULL, MS_BIND | MS_REC, NULL));
	T(mount("m", "m", NULL, MS_BIND | MS_REC, NULL));
	SAY("%d", count_mounts() - start);
	T(mkdir("m/d", 0755));
	T(mount("m", "m/d", NULL, MS_BIND | MS_REC, NULL));
	T(access("m/d/d", F_OK));
	T(access("m/d/d/d", F_OK));
	T(mount("m", "m/d/d", NULL, MS_BIND | MS_REC, NULL));
	SAY("%d", count_mounts() - start);
	T(mount("m", "m/d", NULL, MS_MOVE, NULL));
	T(mount("m", "m/d/d", NULL, MS_MOVE, NULL));
	T(mount("m", "m", NULL, MS_MOVE, NULL));
	T(mount("m/d", "m", NULL, MS_MOVE, NULL));
	SAY("%d", count_mounts() - start);
	while (umount2("m", MNT_DETACH) == 0)
		;
	SAY("%d", count_mounts() - start);
	T(rmdir("m/d"));
	write_file("file", "x");
	write_file("other", "y");
	T(mount("file", "file", NULL, MS_BIND, NULL));
	T(mount("other", "file", NULL, MS_BIND, NULL));
	T(mount("file", "m", NULL, MS_BIND, NULL));
	T(mount("m", "file", NULL, MS_BIND, NULL));
	T(mount("tmpfs", "file", "tmpfs", 0, NULL));
	T(unlink("file"));
	T(rename("file", "third"));
	T(rename("other", "file"));
	SAY("%s", read_file("file"));
	T(umount("file"));
	SAY("%s", read_file("file"));
	T(umount("file"));
	T(umount("file"));
	T(mount("missing", "m", NULL, MS_BIND, NULL));
	T(mount(NULL, "m", NULL, MS_BIND, NULL));
	T(mount("m", "m", NULL, MS_MOVE, NULL));
	T(mount("/", "m", NULL, MS_MOVE, NULL));
	T(mount("/proc", "m", NULL, MS_MOVE, NULL));
	T(access("/proc/self", F_OK));
	T(mount("m", "/proc", NULL, MS_MOVE, NULL));
	IS(access("/proc/self", F_OK) == 0);
	T(mount(NULL, "m", NULL, MS_REMOUNT, NULL));
	T(mount(NULL, "m", NULL, MS_REMOUNT | MS_BIND, NULL));
	T(mount(NULL, "m", NULL, MS_PRIVATE, NULL));
	SAY("%d", count_mounts() - start);
}

/* The copy of a tree into itself doubles it: the limit ends that. */
static void doubling(void)
{
	SAY("-- doubling");
	int start = count_mounts();
	SAY("%s", get_setting("fs/mount-max"));
	MUST(put_setting("fs/mount-max", "2000"));
	SAY("%s", get_setting("fs/mount-max"));
	MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
	MUST(mkdir("m/a", 0755));
	int rounds = 0;
	char path[64];
	for (; rounds < 14; rounds++) {
		snprintf(path, sizeof path, "m/%d", rounds);
		MUST(mkdir(path, 0755));
		if (mount("m", path, NULL, MS_BIND | MS_REC, NULL) != 0)
			break;
	}
	SAY("%s after %d", err_name(errno), rounds);
	int had = count_mounts() - start;
	SAY("%d", had);
	/* One at a time, to the last. */
	int more = 0;
	while (mount("tmpfs", "m", "tmpfs", 0, NULL) == 0)
		more++;
	SAY("%s, %d in all", err_name(errno), start + had + more);
	T(mount("m", "m", NULL, MS_BIND, NULL));
	T(umount("m"));
	T(mount("m", "m", NULL, MS_BIND, NULL));
	T(mount("m", "m", NULL, MS_BIND, NULL));
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	while (umount2("m", MNT_DETACH) == 0)
		;
	SAY("%d", count_mounts() - start);
	T(put_setting("fs/mount-max", "0"));
	MUST(put_setting("fs/mount-max", "100000"));
}

int main(void)
{
	scratch();
	MUST(mkdir("m", 0755));
	busy();
	nested();
	over_itself();
	doubling();
	return 0;
}
