/*
 * Mounting on a name while somebody else removes it or replaces it by a rename: a mount stands where a path leads, so what was
 * mounted can be unmounted. On one CPU nothing can happen.
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mount.h>

#define ROUNDS 1000

static atomic_int stop;

/* Directories and files that replace others, and some that go. */
static void *moves(void *unused)
{
	(void)unused;
	for (int i = 0; !stop; i++) {
		mkdir("s", 0755);
		rename("s", "t");
		if (i % 4 == 0) {
			rmdir("t");
			mkdir("t", 0755);
		}
		close(open("e", O_CREAT | O_RDWR | O_CLOEXEC, 0644));
		rename("e", "f");
		if (i % 4 == 0) {
			unlink("f");
			close(open("f", O_CREAT | O_RDWR | O_CLOEXEC, 0644));
		}
	}
	return NULL;
}

static int mounts(void)
{
	FILE *file = fopen("/proc/self/mounts", "r");
	int lines = 0, byte;
	while (file && (byte = getc(file)) != EOF)
		lines += byte == '\n';
	if (file)
		fclose(file);
	return lines;
}

/* Mounts `from` on `to` and takes it away, again and again. */
static void mount_and_unmount(const char *from, const char *to)
{
	int mounted = 0, unmounted = 0;
	while (mounted < ROUNDS) {
		if (mount(from, to, NULL, MS_BIND, NULL) != 0) {
			if (errno != ENOENT)
				SAY("mount on %s: %s", to, err_name(errno));
			continue;
		}
		mounted++;
		unmounted += umount2(to, MNT_DETACH) == 0;
	}
	SAY("%s", to);
	IS(unmounted == mounted);
}

int main(void)
{
	pthread_t other;
	scratch();
	MUST(mkdir("races", 0755));
	MUST(mount("none", "races", "tmpfs", 0, NULL));
	MUST(chdir("races"));
	MUST(mkdir("t", 0755));
	MUST(mkdir("directory", 0755));
	MUST(close(open("f", O_CREAT | O_RDWR, 0644)));
	MUST(close(open("file", O_CREAT | O_RDWR, 0644)));
	int before = mounts();
	MUST(pthread_create(&other, NULL, moves, NULL) ? -1 : 0);
	mount_and_unmount("directory", "t");
	mount_and_unmount("file", "f");
	stop = 1;
	pthread_join(other, NULL);
	IS(mounts() == before);
	MUST(chdir(".."));
	T(umount2("races", MNT_DETACH));
	return 0;
}
