/*
 * Long symbolic links take what they are charged and no more: a file system is full of them at its limit, the memory that
 * they take is about that limit, and all of it comes back.
 */
#include "check.h"
#include <sys/mount.h>

/* Pages of the file system, and so links that fit. */
#define LINKS 4096

static long free_kib(void)
{
	char text[4096];
	int fd = (int)MUST(open("/proc/meminfo", O_RDONLY));
	long n = MUST(read(fd, text, sizeof text - 1));
	close(fd);
	text[n] = 0;
	char *at = strstr(text, "MemFree:");
	return at ? atol(at + 8) : -1;
}

int main(void)
{
	static char target[4096];
	char name[32];
	long before, taken, made = 0;
	memset(target, 't', 4094);
	MUST(mkdir("m", 0755));
	MUST(mount("tmpfs", "m", "tmpfs", 0, "size=16M,nr_inodes=100k"));
	before = free_kib();
	for (int i = 0; i < LINKS + 1; i++) {
		snprintf(name, sizeof name, "m/%d", i);
		if (symlink(target, name)) {
			report("full", -1);
			break;
		}
		made++;
	}
	SAY("%ld links", made);
	/* The targets are 16 MiB; inodes and names take some more, but not as much again. */
	taken = before - free_kib();
	IS(taken > 15 << 10);
	IS(taken < 30 << 10);
	for (int i = 0; i < LINKS; i += LINKS - 1) {
		char text[4096];
		snprintf(name, sizeof name, "m/%d", i);
		T(readlink(name, text, sizeof text));
		IS(memcmp(text, target, 4094) == 0);
	}
	/* One that goes makes room for one. */
	T(unlink("m/7"));
	T(symlink(target, "m/again"));
	T(symlink(target, "m/more"));
	T(umount("m"));
	MUST(rmdir("m"));
	taken = before - free_kib();
	IS(taken < 2 << 10);
	return 0;
}
