/*
 * Renames are one step for everybody: while two names change places again and again, in one folder or in two, each of them
 * is always there, `..` of what moves is one of the two folders, and a listing shows a name that moves once.
 * On one CPU little can happen.
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/sysmacros.h>

#define ROUNDS 20000

static atomic_int stop;
static const char *one, *two;

static void *exchanges(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++)
		MUST(syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, two, 2));
	stop = 1;
	return NULL;
}

static void *moves(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		MUST(rename("x/this is the first long name", "x/this is the second long name"));
		MUST(rename("x/this is the second long name", "x/this is the first long name"));
	}
	stop = 1;
	return NULL;
}

static ino_t inode(const char *path)
{
	struct stat st;
	MUST(stat(path, &st));
	return st.st_ino;
}

/* How often one of the names was not there, and how often what moves was in neither folder. */
static void exchange(const char *what, const char *a, const char *b)
{
	pthread_t other;
	long missed = 0, lost = 0, astray = 0;
	ino_t x = inode("x"), y = inode("y");
	char link[64], path[PATH_MAX], here[PATH_MAX];
	int dir = (int)MUST(open(a, O_RDONLY | O_DIRECTORY));
	one = a;
	two = b;
	MUST(getcwd(here, sizeof here) ? 0 : -1);
	snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
	stop = 0;
	MUST(pthread_create(&other, NULL, exchanges, NULL) ? -1 : 0);
	while (!stop) {
		struct stat st;
		missed += stat(a, &st) != 0;
		missed += stat(b, &st) != 0;
		lost += fstatat(dir, "..", &st, 0) != 0 || (st.st_ino != x && st.st_ino != y);
		ssize_t len = readlink(link, path, sizeof path - 1);
		path[len > 0 ? len : 0] = 0;
		const char *rest = strncmp(path, here, strlen(here)) ? "" : path + strlen(here) + 1;
		astray += strcmp(rest, a) && strcmp(rest, b);
	}
	pthread_join(other, NULL);
	close(dir);
	SAY("%s: %ld times missed, %ld times nowhere, %ld times a path of neither", what, missed, lost, astray);
}

static void list(void)
{
	static char buffer[4096];
	pthread_t other;
	long wrong = 0, rounds = 0;
	stop = 0;
	MUST(pthread_create(&other, NULL, moves, NULL) ? -1 : 0);
	while (!stop) {
		int dir = (int)MUST(open("x", O_RDONLY | O_DIRECTORY)), names = 0;
		long len = MUST(syscall(SYS_getdents64, dir, buffer, sizeof buffer));
		for (long at = 0; at < len; at += *(unsigned short *)(buffer + at + 16))
			names += strstr(buffer + at + 19, "long name") != NULL;
		wrong += names != 1;
		rounds++;
		close(dir);
	}
	pthread_join(other, NULL);
	IS(rounds > 0);
	SAY("a name that moves is listed another number of times than once: %ld", wrong);
}

int main(void)
{
	scratch();
	MUST(mkdir("x", 0755));
	MUST(mkdir("y", 0755));
	MUST(mkdir("x/a", 0755));
	MUST(mkdir("x/b", 0755));
	MUST(mkdir("y/b", 0755));
	exchange("in one folder", "x/a", "x/b");
	exchange("in two", "x/a", "y/b");
	write_file("x/this is the first long name", "");
	list();
	return 0;
}
