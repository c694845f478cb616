/*
 * What a mount and its instance remember: MNT_EXPIRE takes two calls with no use between them, a mount that is moved keeps
 * its place in the list, access times of a read-only instance or mount stay, size= of ramfs.
 */
#include "check.h"
#include <sys/mount.h>
#include <sys/statfs.h>

static int expire(void)
{
	return umount2("m", MNT_EXPIRE);
}

static void expiry(const char *use, int (*act)(void))
{
	MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
	write_file("m/f", "text");
	SAY("%s:", use);
	T(expire());
	IS(act() >= 0);
	T(expire());
	T(expire());
	umount2("m", MNT_DETACH);
}

static int nothing(void)
{
	return 0;
}

static int look(void)
{
	struct stat st;
	return stat("m/f", &st);
}

static int look_at_root(void)
{
	struct stat st;
	return stat("m", &st);
}

static int look_beside(void)
{
	struct stat st;
	return stat("m/../m2", &st);
}

static int fails(void)
{
	return access("m/missing", F_OK) == 0 ? -1 : 0;
}

static int opens(void)
{
	return close(open("m/f", O_RDONLY));
}

static int creates(void)
{
	return close(open("m/new", O_RDWR | O_CREAT, 0600));
}

static int space(void)
{
	struct statfs st;
	return statfs("m", &st);
}

static int above(void)
{
	return mount("tmpfs", "m/f", "tmpfs", 0, NULL) == 0 ? -1 : 0;
}

static int mounts_on_it(void)
{
	return mkdir("m/d", 0755) || mount("tmpfs", "m/d", "tmpfs", 0, NULL) || umount("m/d");
}

static int remounts(void)
{
	return mount("tmpfs", "m", "tmpfs", MS_REMOUNT, NULL);
}

static void wait_a_tick(void)
{
	sleep_ms(30);
}

static int touched(const char *path, int (*act)(const char *path))
{
	struct stat before, after;
	MUST(stat(path, &before));
	wait_a_tick();
	MUST(act(path));
	MUST(stat(path, &after));
	return before.st_atim.tv_sec != after.st_atim.tv_sec || before.st_atim.tv_nsec != after.st_atim.tv_nsec;
}

static int reads(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY), n = (int)read(fd, &byte, 1);
	close(fd);
	return n - 1;
}

static int lists(const char *path)
{
	char buffer[1000];
	int fd = open(path, O_RDONLY | O_DIRECTORY), n = (int)syscall(SYS_getdents64, fd, buffer, sizeof buffer);
	close(fd);
	return n > 0 ? 0 : -1;
}

static int follows(const char *path)
{
	char text[PATH_MAX];
	(void)path;
	return readlink("m/link", text, sizeof text) > 0 ? 0 : -1;
}

static void times(const char *what)
{
	struct stat before, after;
	int link;
	SAY("access times, %s:", what);
	IS(touched("m/f", reads));
	IS(touched("m/dir", lists));
	MUST(lstat("m/link", &before));
	wait_a_tick();
	MUST(follows("m/link"));
	MUST(lstat("m/link", &after));
	link = before.st_atim.tv_sec != after.st_atim.tv_sec || before.st_atim.tv_nsec != after.st_atim.tv_nsec;
	IS(link);
}

/* The mount points below this folder, in the order of the list. */
static void order(void)
{
	char *text = strdup(read_file("/proc/self/mountinfo"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *at = strstr(line, scratch_path);
		if (at) {
			at += strlen(scratch_path);
			*strchr(at, ' ') = 0;
			SAY("  %s", at);
		}
	}
	free(text);
}

static void size_of_ramfs(void)
{
	MUST(mount("ramfs", "m", "ramfs", 0, "mode=700,size=4096"));
	static char big[3 * 4096];
	int fd = (int)MUST(open("m/f", O_RDWR | O_CREAT, 0600));
	T(write(fd, big, sizeof big));
	T(mount("ramfs", "m", "ramfs", MS_REMOUNT, "size=4096"));
	T(write(fd, big, sizeof big));
	T(mount("ramfs", "m", "ramfs", MS_REMOUNT, "nonsense=1"));
	struct statfs st;
	MUST(statfs("m", &st));
	SAY("type %lx blocks %ld free %ld files %ld", (long)st.f_type, (long)st.f_blocks, (long)st.f_bfree, (long)st.f_files);
	close(fd);
	MUST(umount("m"));
	T(mount("ramfs", "m", "ramfs", 0, "nonsense=1"));
	T(umount("m"));
}

int main(void)
{
	scratch();
	MUST(mkdir("m", 0755));
	MUST(mkdir("m2", 0755));
	expiry("no use", nothing);
	expiry("a look at a file", look);
	expiry("a look at the root", look_at_root);
	expiry("a look past it", look_beside);
	expiry("a name that is not there", fails);
	expiry("an open", opens);
	expiry("a new file", creates);
	expiry("statfs", space);
	expiry("a mount that fails", above);
	expiry("a mount on it", mounts_on_it);
	expiry("a remount", remounts);
	T(umount2("m", MNT_EXPIRE | MNT_FORCE));
	T(umount2("m", MNT_EXPIRE | MNT_DETACH));
	T(umount2("m", MNT_EXPIRE));

	MUST(mount("tmpfs", "m", "tmpfs", MS_STRICTATIME, NULL));
	MUST(mkdir("m/dir", 0755));
	MUST(mkdir("m/dir/d", 0755));
	write_file("m/f", "text");
	MUST(symlink("f", "m/link"));
	times("as ever");
	MUST(mount("tmpfs", "m", "tmpfs", MS_REMOUNT | MS_RDONLY | MS_STRICTATIME, NULL));
	times("all read-only");
	MUST(mount("tmpfs", "m", "tmpfs", MS_REMOUNT | MS_STRICTATIME, NULL));
	times("as ever");
	MUST(mount(NULL, "m", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_STRICTATIME, NULL));
	times("the mount read-only");
	MUST(mount(NULL, "m", NULL, MS_REMOUNT | MS_BIND | MS_STRICTATIME, NULL));
	MUST(mount("m", "m2", NULL, MS_BIND, NULL));
	/* The instance becomes read-only through one mount; the other is of it. */
	MUST(mount("tmpfs", "m", "tmpfs", MS_REMOUNT | MS_RDONLY | MS_STRICTATIME, NULL));
	IS(touched("m2/f", reads));
	T(open("m2/new", O_RDWR | O_CREAT, 0600));
	MUST(umount("m2"));
	MUST(umount("m"));

	static const char *const names[] = { "a", "b", "c" };
	for (int i = 0; i < 3; i++) {
		MUST(mkdir(names[i], 0755));
		MUST(mount("tmpfs", names[i], "tmpfs", 0, NULL));
	}
	SAY("the list:");
	order();
	T(mount("a", "m", NULL, MS_MOVE, NULL));
	SAY("after a was moved to m:");
	order();
	umount("m");
	umount("b");
	umount("c");
	size_of_ramfs();
	return 0;
}
