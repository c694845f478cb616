/*
 * A directory of very many entries: each is found, listed once and only once, also while others come and go, in a time
 * that does not grow with the square of their number.
 */
#include "check.h"
#include <sys/mount.h>

/*
 * As many as fit a slow machine's patience; `dir_big 1000000` does a million, for which the file system it works in
 * needs as many inodes.
 */
static int wanted = 30000;

static unsigned char *seen;

static const char *name(int i)
{
	static char text[64];
	snprintf(text, sizeof text, "d/an-entry-with-a-longer-name-%d", i);
	return text;
}

/* Lists the directory; `each` may change it meanwhile. */
static void list(const char *what, void (*each)(int))
{
	int entries = 0, twice = 0, strange = 0, count = 0;
	DIR *dir = opendir("d");
	memset(seen, 0, wanted);
	for (struct dirent *d; (d = readdir(dir));) {
		int i;
		entries++;
		if (sscanf(d->d_name, "an-entry-with-a-longer-name-%d", &i) != 1 || i < 0 || i >= wanted) {
			strange++;
			continue;
		}
		twice += seen[i];
		seen[i] = 1;
		if (each)
			each(i);
	}
	closedir(dir);
	for (int i = 0; i < wanted; i++)
		count += seen[i];
	SAY("%s: %d entries, %d of ours, %d twice, %d others", what, entries, count, twice, strange);
}

static void remove_odd(int i)
{
	if (i % 2)
		MUST(unlink(name(i)));
}

static void rename_forth(int i)
{
	char to[64];
	if (i % 100 == 0) {
		snprintf(to, sizeof to, "d/renamed-%d", i);
		MUST(rename(name(i), to));
		MUST(rename(to, name(i)));
	}
}

int main(int argc, char **argv)
{
	struct stat st;
	int there = 0;
	scratch();
	if (argc > 1) {
		wanted = atoi(argv[1]);
		MUST(mkdir("m", 0755));
		MUST(mount("tmpfs", "m", "tmpfs", 0, "nr_inodes=0,size=0"));
		MUST(chdir("m"));
	}
	seen = calloc(wanted, 1);
	MUST(mkdir("d", 0755));
	for (int i = 0; i < wanted; i++)
		MUST(mknod(name(i), S_IFREG | 0600, 0));
	T(mknod(name(wanted / 2), S_IFREG | 0600, 0));
	for (int i = 0; i < wanted; i++)
		there += lstat(name(i), &st) == 0;
	SAY("%d found", there);
	T(lstat(name(wanted), &st));
	T(rmdir("d"));
	list("all", NULL);
	list("half of them removed meanwhile", remove_odd);
	list("the other half", NULL);
	list("some renamed twice meanwhile", rename_forth);
	/* a position that was told is found again after half of what is before it is gone */
	DIR *dir = opendir("d");
	for (int i = 0; i < 5000; i++)
		readdir(dir);
	long here = telldir(dir);
	struct dirent *d = readdir(dir);
	char next[256];
	snprintf(next, sizeof next, "%s", d ? d->d_name : "");
	seekdir(dir, here);
	d = readdir(dir);
	IS(d && strcmp(d->d_name, next) == 0);
	rewinddir(dir);
	int again = 0;
	while (readdir(dir))
		again++;
	SAY("%d from the start", again);
	closedir(dir);
	for (int i = 0; i < wanted; i += 2)
		MUST(unlink(name(i)));
	list("none", NULL);
	T(rmdir("d"));
	return 0;
}
