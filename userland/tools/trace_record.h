/* The records of /proc/alea/trace (docs/using.md): how they are read, and in which order they are looked at. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOW = 1, LOST, ENTER, LEAVE, SWITCH, WAKEUP, FAULT, PHASE, DRAW, RESEED, LOCK, FORK, EXEC, EXIT, LEFT, CALL };

struct record {
	int kind, cpu, tid;
	size_t len;
	const uint64_t *words;
};

/* What was read and not looked at: `first` to `used` of `ring`, in order up to `sorted`. */
static uint64_t *held;
static size_t held_used, held_room;
static struct record *order;
static size_t order_at, order_used, order_room;

static void *grown(void *old, size_t size)
{
	void *new = realloc(old, size);
	if (!new)
		abort();
	return new;
}

/* By time; what is of one CPU stays in its order. */
static int earlier(const void *a, const void *b)
{
	const struct record *left = a, *right = b;
	if (left->words[1] != right->words[1])
		return left->words[1] < right->words[1] ? -1 : 1;
	return left->words < right->words ? -1 : left->words > right->words;
}

/* What has been looked at goes; pointers of `order` follow. */
static void compact(void)
{
	static uint64_t *other;
	static size_t other_room;
	if (other_room < held_room)
		other = grown(other, (other_room = held_room) * sizeof *other);
	size_t used = 0, kept = 0;
	for (size_t i = order_at; i < order_used; i++) {
		struct record one = order[i];
		memcpy(other + used, one.words, one.len * sizeof *other);
		one.words = other + used;
		used += one.len;
		order[kept++] = one;
	}
	uint64_t *swap = held;
	held = other, other = swap;
	size_t room = held_room;
	held_room = other_room, other_room = room;
	held_used = used, order_used = kept, order_at = 0;
}

/* How long `take` waits for records. */
enum { LOOK_EVERY_MS = 50 };

/*
 * Reads what is there, waiting for it a while: how many bytes came, 0 when nobody is traced any more, -1 when nothing stood in
 * the rings all that time.
 */
static ssize_t take(int fd, uint64_t *now, uint64_t *hertz)
{
	enum { ONCE = 1 << 16 };
	poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, LOOK_EVERY_MS);
	compact();
	if (held_room < held_used + ONCE) {
		size_t room = held_used + 2 * ONCE;
		uint64_t *new = grown(NULL, room * sizeof *new);
		if (held_used)
			memcpy(new, held, held_used * sizeof *new);
		for (size_t i = 0; i < order_used; i++)
			order[i].words = new + (order[i].words - held);
		free(held);
		held = new, held_room = room;
	}
	ssize_t got;
	do
		got = read(fd, held + held_used, ONCE * sizeof *held);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno == EAGAIN)
		return -1;
	if (got < 0) {
		perror("alea-trace: /proc/alea/trace");
		exit(126);
	}
	int before = order_used ? order[order_used - 1].cpu : -1, mixed = 0;
	for (size_t end = held_used + (size_t)got / sizeof *held; held_used < end;) {
		const uint64_t *words = held + held_used;
		struct record one = { (int)(words[0] & 0xff), (int)(words[0] >> 8 & 0xff), (int)(words[0] >> 32),
			(size_t)(words[0] >> 16 & 0xffff), words };
		held_used += one.len;
		if (one.kind == NOW) {
			*now = words[1], *hertz = words[2];
			continue;
		}
		mixed |= before >= 0 && one.cpu != before;
		before = one.cpu;
		if (order_used == order_room)
			order = grown(order, (order_room = order_room * 2 + 1024) * sizeof *order);
		order[order_used++] = one;
	}
	if (mixed)
		qsort(order, order_used, sizeof *order, earlier);
	return got;
}

/* The next one from before `until`, if there is one. */
static const struct record *next_record(uint64_t until)
{
	if (order_at == order_used || order[order_at].words[1] >= until)
		return NULL;
	return &order[order_at++];
}

/* ---- Records as they are ---- */

static void put_whole(int fd, const void *bytes, size_t len)
{
	for (const char *at = bytes; len;) {
		ssize_t put = write(fd, at, len);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			perror("alea-trace: write");
			exit(126);
		}
		at += put, len -= (size_t)put;
	}
}

/* A file that begins with a line for each task that there is: its number, its process, its name. */
static int begin_raw(const char *name)
{
	char folder[4096];
	for (const char *at = name; (at = strchr(at + 1, '/'));) {
		snprintf(folder, sizeof folder, "%.*s", (int)(at - name), name);
		mkdir(folder, 0755);
	}
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	DIR *processes = opendir("/proc");
	if (fd < 0 || !processes) {
		perror(name);
		exit(126);
	}
	dprintf(fd, "alea-trace 1\n");
	for (struct dirent *process; (process = readdir(processes));) {
		char path[600], comm[32] = "";
		if (process->d_name[0] < '1' || process->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/task", process->d_name);
		DIR *tasks = opendir(path);
		if (!tasks)
			continue;
		for (struct dirent *task; (task = readdir(tasks));) {
			if (task->d_name[0] == '.')
				continue;
			snprintf(path, sizeof path, "/proc/%.20s/task/%.20s/comm", process->d_name, task->d_name);
			int name_of = open(path, O_RDONLY | O_CLOEXEC);
			ssize_t len = name_of < 0 ? -1 : read(name_of, comm, sizeof comm - 1);
			if (name_of >= 0)
				close(name_of);
			if (len > 0)
				dprintf(fd, "task %s %s %.*s", task->d_name, process->d_name, (int)len, comm);
		}
		closedir(tasks);
	}
	closedir(processes);
	dprintf(fd, "\n");
	return fd;
}

/* Until nobody is traced any more, or, where all are, until `program` has ended: its status then. */
static int keep_raw(int from, int into, pid_t program)
{
	static char bytes[1 << 20];
	int status = 0, over = 0;
	if (program)
		fcntl(from, F_SETFL, O_NONBLOCK);
	for (;;) {
		ssize_t got = read(from, bytes, sizeof bytes);
		if (got > 0) {
			put_whole(into, bytes, (size_t)got);
			/* The last of what stood in the rings when the program had ended. */
			if (over && got < (ssize_t)sizeof bytes / 2)
				break;
			continue;
		}
		if (got < 0 && errno != EAGAIN && errno != EINTR) {
			perror("alea-trace: /proc/alea/trace");
			exit(126);
		}
		if (!got || over)
			break;
		over = waitpid(program, &status, WNOHANG) == program;
		if (!over)
			nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
	close(into);
	return status;
}
