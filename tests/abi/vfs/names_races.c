/*
 * The names of one file in two folders come and go on two CPUs at the same moment; each name after the first counts as an
 * inode of the tmpfs, and in the end there are as many free ones as at the beginning. On one CPU little can happen.
 */
#include "check.h"
#include "meet.h"
#include <pthread.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#define ROUNDS 500

static void (*halves[2])(void);

static void *second(void *unused)
{
	(void)unused;
	for (int i = 1; i <= ROUNDS; i++) {
		meet(1, 2 * i);
		halves[1]();
		meet(1, 2 * i + 1);
	}
	return NULL;
}

static long free_inodes(void)
{
	struct statfs st;
	MUST(statfs("m", &st));
	return (long)st.f_ffree;
}

/* `prepare`, then both halves at once, then `clean`, again and again. */
static void races(const char *what, void (*prepare)(void), void (*one)(void), void (*two)(void), void (*clean)(void))
{
	pthread_t other;
	long before = free_inodes();
	halves[0] = one;
	halves[1] = two;
	at_start[0] = at_start[1] = 0;
	MUST(pthread_create(&other, NULL, second, NULL) ? -1 : 0);
	for (int i = 1; i <= ROUNDS; i++) {
		prepare();
		meet(0, 2 * i);
		halves[0]();
		meet(0, 2 * i + 1);
		clean();
	}
	pthread_join(other, NULL);
	long lost = before - free_inodes();
	SAY("%s: %s", what, lost == 0 ? "all inodes are back" : lost > 0 ? "inodes are lost" : "more inodes than before");
}

static int file;

static void make_two(void)
{
	close((int)MUST(open("m/a/f", O_WRONLY | O_CREAT | O_EXCL, 0600)));
	MUST(link("m/a/f", "m/b/f"));
}

static void make_one(void)
{
	close((int)MUST(open("m/a/f", O_WRONLY | O_CREAT | O_EXCL, 0600)));
}

static void make_nameless(void)
{
	file = (int)MUST(open("m", O_WRONLY | O_TMPFILE, 0600));
}

static void make_three(void)
{
	make_two();
	close((int)MUST(open("m/b/g", O_WRONLY | O_CREAT | O_EXCL, 0600)));
}

static void take_a(void)
{
	MUST(unlink("m/a/f"));
}

static void take_b(void)
{
	MUST(unlink("m/b/f"));
}

static void link_b(void)
{
	link("m/a/f", "m/b/f");
}

static void name_a(void)
{
	linkat(file, "", AT_FDCWD, "m/a/f", AT_EMPTY_PATH);
}

static void name_b(void)
{
	linkat(file, "", AT_FDCWD, "m/b/f", AT_EMPTY_PATH);
}

static void replace_b(void)
{
	MUST(rename("m/b/g", "m/b/f"));
}

static void clean(void)
{
	unlink("m/a/f");
	unlink("m/b/f");
}

static void clean_nameless(void)
{
	close(file);
	clean();
}

int main(void)
{
	alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	scratch();
	MUST(mkdir("m", 0755));
	MUST(mount("tmpfs", "m", "tmpfs", 0, "nr_inodes=100"));
	MUST(mkdir("m/a", 0755));
	MUST(mkdir("m/b", 0755));
	races("two names go", make_two, take_a, take_b, clean);
	races("one name goes and another comes", make_one, take_a, link_b, clean);
	races("one name goes and another is replaced", make_three, take_a, replace_b, clean);
	races("two first names", make_nameless, name_a, name_b, clean_nameless);
	MUST(umount("m"));
	return 0;
}
