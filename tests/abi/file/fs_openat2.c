/*
 * openat2: the resolve flags (BENEATH, IN_ROOT, NO_SYMLINKS, NO_MAGICLINKS, NO_XDEV, CACHED) and the checks of struct
 * open_how: size, unknown flags, mode without O_CREAT.
 */
#include "check.h"
#include <linux/openat2.h>

static int dir;

static void try(const char *path, unsigned long flags, unsigned long resolve)
{
	struct open_how how = { .flags = flags, .resolve = resolve };
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
	SAY("%s flags %#lo resolve %#lx: %s", path, flags, resolve, fd < 0 ? err_name(errno) : "ok");
	if (fd >= 0)
		close((int)fd);
}

int main(void)
{
	scratch();
	MUST(mkdir("d", 0755));
	MUST(mkdir("d/in", 0755));
	write_file("outside", "");
	write_file("d/f", "");
	MUST(symlink("f", "d/link"));
	MUST(symlink("../outside", "d/out"));
	MUST(symlink("/f", "d/abs"));
	MUST(symlink("in", "d/lin"));
	MUST(symlink("lin", "d/trail"));
	dir = (int)MUST(open("d", O_RDONLY));
	static const unsigned long modes[] = { 0, RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_SYMLINKS,
					       RESOLVE_NO_MAGICLINKS, RESOLVE_NO_XDEV };
	static const char *const paths[] = { "f", "link", "out", "abs", "../outside", "in/../f", "in/../../outside",
					     "lin/../f", "trail", "..", ".", "/f", "/tmp", "/proc/self/exe", "missing",
					     "/proc/self/cwd/d/f" };
	for (unsigned m = 0; m < 6; m++)
		for (unsigned p = 0; p < sizeof paths / sizeof paths[0]; p++)
			try(paths[p], O_RDONLY, modes[m]);
	try("link", O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	try("f", O_RDONLY, RESOLVE_BENEATH | RESOLVE_IN_ROOT);
	try("f", O_RDONLY, 0x80);
	try("f", 1ul << 40, 0);
	try("f", O_RDONLY | 0x40000000, 0);
	try("f", O_PATH | O_RDWR, 0);
	try("f", O_PATH | O_CLOEXEC, 0);
	struct open_how how = { .flags = O_RDONLY, .mode = 0600 };
	T(syscall(SYS_openat2, dir, "f", &how, sizeof how));
	how = (struct open_how){ .flags = O_CREAT | O_RDWR, .mode = 010000 };
	T(syscall(SYS_openat2, dir, "new", &how, sizeof how));
	how.mode = 0600;
	T(syscall(SYS_openat2, dir, "new", &how, sizeof how) >= 0);
	how = (struct open_how){ .flags = O_RDONLY };
	T(syscall(SYS_openat2, dir, "f", &how, 8));
	T(syscall(SYS_openat2, dir, "f", &how, 23));
	T(syscall(SYS_openat2, dir, "f", NULL, sizeof how));
	struct { struct open_how how; unsigned long more; } big = { how, 0 };
	T(syscall(SYS_openat2, dir, "f", &big, sizeof big) >= 0);
	big.more = 1;
	T(syscall(SYS_openat2, dir, "f", &big, sizeof big));
	T(syscall(SYS_openat2, dir, "f", &how, 1ul << 20));
	/* a creation below the root stays there */
	how = (struct open_how){ .flags = O_CREAT | O_RDWR, .mode = 0600, .resolve = RESOLVE_IN_ROOT };
	T(syscall(SYS_openat2, dir, "/../../made", &how, sizeof how) >= 0);
	T(access("d/made", F_OK));
	return 0;
}
