/*
 * objects: what Alea's kernel holds, by /proc/alea/objects, before and after a piece of work.
 *
 * Counts of objects (tasks, open files, timers, ...) must come back exactly; of dentries and inodes the kernel makes
 * some of its own when they are first used, which a second run does not do again. Blocks of the heap and pages (`heap_SIZE`,
 * `pages_USE`) include what is kept on purpose: tables that have grown, what is remembered of a program for its next
 * start. So those count as left only if there are more every time the work is done again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OBJECT_KINDS 64
/* What ends does so a little after who waited for it was told: a task on its own stack, a mount's last file. */
#define OBJECTS_PATIENCE_MS 1500
/* What may stay mostly does when something is used for the first time: it is worth no more once the rest has come back. */
#define MAY_STAY_PATIENCE_MS 100

struct objects {
	int kinds;
	struct { char name[32]; long number; } of[OBJECT_KINDS];
};

/* No kinds where there is no such file: on Linux. */
static void objects_read(struct objects *to)
{
	static char text[4096];
	int fd = open("/proc/alea/objects", O_RDWR | O_CLOEXEC);
	/* what is kept for a while only is let go of first */
	ssize_t length = fd >= 0 && write(fd, "1", 1) == 1 ? pread(fd, text, sizeof text - 1, 0) : 0;
	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = 0;
	to->kinds = 0;
	for (char *line = text; *line && to->kinds < OBJECT_KINDS; to->kinds++) {
		char *end = strchr(line, '\n'), *space = strchr(line, ' ');
		if (!end || !space)
			break;
		snprintf(to->of[to->kinds].name, sizeof to->of[0].name, "%.*s", (int)(space - line), line);
		to->of[to->kinds].number = atol(space);
		line = end + 1;
	}
}

/* How many there are of one kind now; 0 where there is no such file. */
__attribute__((unused)) static long objects_number(const char *name)
{
	struct objects now;
	objects_read(&now);
	for (int i = 0; i < now.kinds; i++)
		if (strcmp(now.of[i].name, name) == 0)
			return now.of[i].number;
	return 0;
}

static int objects_exact(const char *name)
{
	return strncmp(name, "heap_", 5) != 0 && strncmp(name, "pages_", 6) != 0;
}

/* Of a line of which only more than once was is memory that is held: bytes of one. */
static long objects_bytes_of(const char *name)
{
	if (strncmp(name, "heap_", 5) == 0)
		return atol(name + 5);
	return strncmp(name, "pages_", 6) == 0 && strcmp(name, "pages_kept") != 0 ? 4096 : 0;
}

/* The bytes that the kernel holds: all but the rooms that it keeps for good, what is free in its slabs and what caches have. */
__attribute__((unused)) static long objects_bytes(const struct objects *objects)
{
	long bytes = 0;
	for (int i = 0; i < objects->kinds; i++)
		bytes += objects->of[i].number * objects_bytes_of(objects->of[i].name);
	return bytes;
}

/* One line of what `alea.fail_alloc` did: empty where it is off, and on Linux. */
__attribute__((unused)) static const char *fail_alloc_told(void)
{
	static char line[256];
	char text[200];
	int fd = open("/proc/alea/fail_alloc", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	if (fd >= 0)
		close(fd);
	line[0] = 0;
	text[length > 0 ? length : 0] = 0;
	if (text[0] && strncmp(text, "on 0\n", 5) != 0) {
		for (char *at = text; *at; at++)
			if (*at == '\n')
				*at = at[1] ? ' ' : 0;
		snprintf(line, sizeof line, "fail_alloc: %s\n", text);
	}
	return line;
}

/* Whether the first use of something may leave one for good: the kernel's own mounts, and what it remembers. */
static int objects_may_stay(const char *name)
{
	return !objects_exact(name) || !strcmp(name, "dentries") || !strcmp(name, "tmpfs_inodes");
}

/*
 * Reads until there is no more of any kind than before, or the patience ends: whether all came back. For kinds of which
 * something may stay it waits no longer than so many milliseconds.
 */
static int objects_wait(const struct objects *before, struct objects *after, int may_stay_ms)
{
	struct timespec nap = { 0, 5000000 };
	for (int waited = 0;; waited += 5) {
		int more = 0, may_stay = 0;
		objects_read(after);
		for (int i = 0; i < before->kinds && i < after->kinds; i++)
			if (after->of[i].number > before->of[i].number)
				++*(objects_may_stay(before->of[i].name) ? &may_stay : &more);
		if (more + may_stay == 0)
			return 1;
		if (waited >= (more ? OBJECTS_PATIENCE_MS : may_stay_ms))
			return 0;
		nanosleep(&nap, NULL);
	}
}

/* After work of which allocations failed, so that doing it again would be other work: `--- left: NAME +MORE` for objects. */
__attribute__((unused)) static void objects_check_once(const struct objects *before)
{
	struct objects after;
	objects_wait(before, &after, 0);
	for (int i = 0; i < before->kinds && i < after.kinds; i++)
		if (after.of[i].number > before->of[i].number && !objects_may_stay(before->of[i].name))
			printf("--- left: %s %+ld\n", before->of[i].name, after.of[i].number - before->of[i].number);
	fflush(stdout);
}

/* How often the work is done again while something that may stay has grown each time. */
#define OBJECTS_AGAIN 5

/*
 * Does the work, and again when something did not come back; `again` must do the same. Prints `--- left: NAME
 * +MORE` for what is left, of memory as much as was left each time; returns how many kinds of objects are left.
 */
__attribute__((unused)) static int objects_check(const struct objects *first, void (*again)(const void *), const void *what)
{
	struct objects before = *first, after;
	long growth[OBJECT_KINDS];
	int left = 0;
	if (objects_wait(&before, &after, MAY_STAY_PATIENCE_MS))
		return 0;
	for (int i = 0; i < before.kinds; i++)
		growth[i] = after.of[i].number - before.of[i].number;
	for (int run = 0; run < OBJECTS_AGAIN; run++) {
		int doubtful = 0;
		for (int i = 0; i < before.kinds; i++)
			doubtful += growth[i] > 0 && objects_may_stay(before.of[i].name);
		if (doubtful == 0)
			break;
		before = after;
		again(what);
		/* before something is said to be left it has all the time */
		objects_wait(&before, &after, run + 1 == OBJECTS_AGAIN ? OBJECTS_PATIENCE_MS : MAY_STAY_PATIENCE_MS);
		for (int i = 0; i < before.kinds; i++)
			if (objects_may_stay(before.of[i].name) && after.of[i].number - before.of[i].number < growth[i])
				growth[i] = after.of[i].number - before.of[i].number;
	}
	for (int i = 0; i < before.kinds; i++)
		if (growth[i] > 0) {
			printf("--- left: %s %+ld\n", before.of[i].name, growth[i]);
			left++;
		}
	fflush(stdout);
	return left;
}
