/*
 * Programs without a name: execve of a memfd, sealed or not, by its descriptor and through /proc, as loaders and container
 * runtimes do; and mounts of what lies on a mount that is not there any more.
 */
#include "check.h"
#include <sys/mman.h>
#include <sys/mount.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8
#endif

extern char **environ;

/* This program, in a memfd. */
static int copy(unsigned flags)
{
	int from = (int)MUST(open("/proc/self/exe", O_RDONLY));
	int to = (int)MUST(memfd_create("copy", flags));
	char bytes[65536];
	ssize_t got;
	while ((got = read(from, bytes, sizeof bytes)) > 0)
		MUST(write(to, bytes, (size_t)got) == got ? 0 : -1);
	close(from);
	return to;
}

static void run(int fd, const char *path)
{
	char *argv[] = { "copy", "inside", NULL };
	if (path)
		execve(path, argv, environ);
	else
		syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	SAY("%s", strerror(errno));
}

int main(int argc, char **argv)
{
	char path[64];
	if (argc > 1) {
		ssize_t got = readlink("/proc/self/exe", path, sizeof path - 1);
		path[got < 0 ? 0 : got] = 0;
		SAY("%s runs as %s", argv[1], path);
		T(open("/proc/self/exe", O_RDWR));
		return 7;
	}
	int fd = copy(0);
	CHILD("by its descriptor") { run(fd, NULL); } END;
	sprintf(path, "/proc/self/fd/%d", fd);
	CHILD("by its name in /proc") { run(fd, path); } END;
	int again = (int)MUST(open(path, O_RDWR));
	CHILD("while it is open for writing by its name") { run(fd, NULL); } END;
	close(again);
	CHILD("after that") { run(fd, NULL); } END;
	T(write(fd, "x", 1));
	T(pwrite(fd, "x", 1, 0));
	CHILD("changed by who made it") { run(fd, NULL); } END;
	close(fd);

	fd = copy(MFD_CLOEXEC | MFD_ALLOW_SEALING);
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	CHILD("sealed") { run(fd, NULL); } END;
	close(fd);
	fd = copy(MFD_NOEXEC_SEAL);
	CHILD("that may not be executed") { run(fd, NULL); } END;
	close(fd);

	/* A file, a mount of it, and what can be mounted once that is gone. */
	MUST(mkdir("/tmp/bind", 0755));
	MUST(mount("none", "/tmp/bind", "tmpfs", 0, NULL));
	close((int)MUST(open("/tmp/bind/file", O_CREAT | O_WRONLY, 0644)));
	close((int)MUST(open("/tmp/bind/other", O_CREAT | O_WRONLY, 0644)));
	fd = (int)MUST(open("/tmp/bind/file", O_RDONLY));
	int place = (int)MUST(open("/tmp/bind", O_RDONLY | O_DIRECTORY));
	MUST(mount("/tmp/bind/file", "/tmp/bind/other", NULL, MS_BIND, NULL));
	int inner = (int)MUST(open("/tmp/bind/other", O_RDONLY));
	sprintf(path, "/proc/self/fd/%d", fd);
	close((int)MUST(open("/tmp/at", O_CREAT | O_WRONLY, 0644)));
	T(mount(path, "/tmp/at", NULL, MS_BIND, NULL));
	T(umount("/tmp/at"));
	T(umount2("/tmp/bind/other", MNT_DETACH));
	sprintf(path, "/proc/self/fd/%d", inner);
	T(mount(path, "/tmp/at", NULL, MS_BIND, NULL));
	T(umount2("/tmp/bind", MNT_DETACH));
	sprintf(path, "/proc/self/fd/%d", fd);
	T(mount(path, "/tmp/at", NULL, MS_BIND, NULL));
	T(mount(path, "/tmp/at", NULL, MS_BIND | MS_REC, NULL));
	T(mount(path, "/tmp/at", NULL, MS_MOVE, NULL));
	/* And onto it. */
	sprintf(path, "/proc/self/fd/%d", place);
	T(mount("none", path, "tmpfs", 0, NULL));
	T(mount("/tmp", path, NULL, MS_BIND, NULL));
	T(umount(path));
	T(unlink("/tmp/at"));
	T(rmdir("/tmp/bind"));
	return 0;
}
