/*
 * An operation on files that fails for want of memory leaves all as it was: rename and exchange with names of any length,
 * moving and binding a mount, inotify_init, mounting. Here nothing fails; with allocations that fail
 * (`cargo xtask abi undone --fail-alloc 20,1,2`) a line that begins with `--- broken` is a fault.
 */
#include "check.h"
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#define OLD "from/a name that does not fit into the place of a short one"
#define NEW "to/another name that does not fit into the place of a short one"

/* With no memory of its own: that could fail, too. */
static void broken(const char *what)
{
	char line[200] = "--- broken: ";
	strncat(line, what, 180);
	strcat(line, "\n");
	if (write(1, line, strlen(line)) < 0)
		_exit(98);
}

#define HOLDS(fact) ((fact) ? 0 : (broken(#fact), 1))

/* Looks as often as it takes to have an answer that does not come from a want of memory. */
static int look(const char *path, struct stat *st)
{
	struct stat own;
	int result;
	do
		result = stat(path, st ? st : &own);
	while (result != 0 && errno == ENOMEM);
	return result == 0;
}

static nlink_t links(const char *path)
{
	struct stat st = { 0 };
	look(path, &st);
	return st.st_nlink;
}

static dev_t device(const char *path)
{
	struct stat st = { 0 };
	look(path, &st);
	return st.st_dev;
}

static void again(int (*act)(void))
{
	for (int i = 0; i < 10000 && act() != 0; i++)
		;
}

static int back(void)
{
	return rename(NEW, OLD);
}

static void renames(void)
{
	int done = 0;
	for (int i = 0; i < 1000; i++) {
		nlink_t from = links("from"), to = links("to");
		if (rename(OLD, NEW) == 0) {
			done++;
			if (HOLDS(!look(OLD, NULL)) | HOLDS(look(NEW, NULL)) | HOLDS(links("from") == from - 1) |
			    HOLDS(links("to") == to + 1))
				return;
			again(back);
		} else if (HOLDS(errno == ENOMEM) | HOLDS(look(OLD, NULL)) | HOLDS(!look(NEW, NULL)) |
			   HOLDS(links("from") == from) | HOLDS(links("to") == to)) {
			return;
		}
	}
	SAY("renames: %s", done ? "some" : "none");
}

static int home(void)
{
	return mount("m2", "m1", NULL, MS_MOVE, NULL);
}

static void moves(void)
{
	int done = 0;
	dev_t one = device("m1"), two = device("m2");
	for (int i = 0; i < 1000; i++) {
		if (mount("m1", "m2", NULL, MS_MOVE, NULL) == 0) {
			done++;
			if (HOLDS(device("m2") == one) | HOLDS(device("m1") == two))
				return;
			again(home);
			if (HOLDS(device("m1") == one))
				return;
		} else if (HOLDS(errno == ENOMEM) | HOLDS(device("m1") == one) | HOLDS(device("m2") == two)) {
			return;
		}
	}
	SAY("moves: %s", done ? "some" : "none");
}

static int unbind(void)
{
	return umount2("m2", MNT_DETACH);
}

static void binds(void)
{
	int done = 0;
	dev_t one = device("m1"), two = device("m2"), below = device("m1/below");
	for (int i = 0; i < 1000; i++) {
		if (mount("m1", "m2", NULL, MS_BIND | MS_REC, NULL) == 0) {
			done++;
			if (HOLDS(device("m2") == one) | HOLDS(device("m2/below") == below))
				return;
			again(unbind);
		} else if (HOLDS(errno == ENOMEM) | HOLDS(device("m2") == two)) {
			return;
		}
	}
	SAY("binds: %s", done ? "some" : "none");
}

static void watchers(void)
{
	int done = 0;
	for (int i = 0; i < 2000; i++) {
		int fd = inotify_init();
		if (fd >= 0) {
			done++;
			close(fd);
		} else if (HOLDS(errno == ENOMEM)) {
			return;
		}
	}
	SAY("inotify: %s", done ? "some" : "none");
}

static int away(void)
{
	return umount2("m3", MNT_DETACH);
}

static void mounts(void)
{
	int done = 0;
	dev_t first = 0;
	for (int i = 0; i < 500; i++) {
		if (mount("x", "m3", "tmpfs", 0, NULL) == 0) {
			done++;
			dev_t now = device("m3");
			first = first ? first : now;
			if (HOLDS(minor(now) <= minor(first) + 1))
				return;
			again(away);
		} else if (HOLDS(errno == ENOMEM)) {
			return;
		}
	}
	SAY("mounts: %s", done ? "some" : "none");
}

int main(void)
{
	static void (*const parts[])(void) = { renames, moves, binds, watchers, mounts };
	scratch();
	MUST(mount("tmpfs", ".", "tmpfs", 0, NULL));
	MUST(chdir(scratch_path));
	MUST(mkdir("from", 0755));
	MUST(mkdir("to", 0755));
	MUST(mkdir(OLD, 0755));
	MUST(mkdir("m1", 0755));
	MUST(mkdir("m2", 0755));
	MUST(mkdir("m3", 0755));
	MUST(mount("one", "m1", "tmpfs", 0, NULL));
	MUST(mkdir("m1/below", 0755));
	MUST(mount("two", "m1/below", "tmpfs", 0, NULL));
	/* So many mounts that one more may need memory for the table of all. */
	for (int i = 0; i < 12; i++) {
		char name[8];
		snprintf(name, sizeof name, "e%d", i);
		MUST(mkdir(name, 0755));
		MUST(mount("more", name, "tmpfs", 0, NULL));
	}
	for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		CHILD("a part") {
			parts[i]();
			fflush(stdout);
		} END;
	}
	MUST(chdir("/"));
	MUST(umount2(scratch_path, MNT_DETACH));
	return 0;
}
