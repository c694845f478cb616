/*
 * alea-trace: shows the system calls of a program, as the kernel records them in /proc/alea/trace. The program is never stopped:
 * what arguments point to was copied when the call began. What the rings had no room for is said.
 *
 * usage: alea-trace [-c] [-f] [-T] [-e NAMES] [-s BYTES] [-b KIB] [-o FILE] PROGRAM [ARGS...]
 *        alea-trace -R FILE [-f | -a] [-p POINTS] [-b KIB] PROGRAM [ARGS...]
 *
 *   -c        count calls, errors and time instead
 *   -f        children too
 *   -T        show how long each call took
 *   -e NAMES  only these calls, as in read,write
 *   -s BYTES  how much of buffers is shown; 32
 *   -b KIB    each CPU's ring
 *   -o FILE   write there, not to standard error
 *   -R FILE   write the records as they are, for `cargo xtask trace`; -a: of all tasks; -p: of these tracepoints
 *
 * Its exit status is the program's; 126 or 127 if there is none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "trace_args.h"
#include "trace_calls.h"
#include "trace_record.h"
#include "trace_tasks.h"

static struct {
	int count, follow, times, all;
	const char *names, *out, *raw, *points, *strings, *kib;
} asked = { .points = NULL, .strings = "32", .kib = NULL };

static FILE *to;
static uint64_t hertz = 1, lost_altogether;
static int many;

/* The program, until it has executed what it is to be: what it does before is this tool's. */
static int starting;

__attribute__((noreturn, format(printf, 2, 3))) static void fail(int status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("alea-trace: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(status);
}

static double seconds(uint64_t ticks)
{
	return (double)ticks / (double)hertz;
}

/* ---- Showing calls ---- */

static struct line line;

static void begin_line(int tid)
{
	line.used = 0;
	if (many)
		add(&line, "[pid %5d] ", tid);
}

static void end_line(void)
{
	fprintf(to, "%.*s\n", (int)line.used, line.text);
}

/* What argument `arg` pointed to, in what stands behind the words of a record. */
static struct bytes copied(const uint64_t *words, size_t len, unsigned arg)
{
	struct bytes found = { 0 };
	for (size_t at = 0; at < len;) {
		size_t bytes = words[at] >> 16, step = 1 + (bytes + 7) / 8;
		if (at + step > len)
			break;
		if ((words[at] & 0xff) == arg)
			found = (struct bytes){ (const unsigned char *)&words[at + 1], bytes, words[at] >> 8 & 1 };
		at += step;
	}
	return found;
}

static const char *name_of(uint32_t number)
{
	static char unknown[32];
	if (number < 512 && calls[number].name)
		return calls[number].name;
	snprintf(unknown, sizeof unknown, "syscall_%#x", number);
	return unknown;
}

static const char *args_of(uint32_t number)
{
	return number < 512 && calls[number].args ? calls[number].args : "xxxxxx";
}

/* Arguments from `first` on. With `ended`, the ones that the call fills are there; without, it stops before them. */
static unsigned add_args(const struct task *task, const uint64_t *ended, size_t ended_len, unsigned first)
{
	const char *kinds = args_of(task->number);
	unsigned arg = first;
	for (; kinds[arg]; arg++) {
		if (!ended && is_output(kinds[arg]))
			break;
		if (arg)
			add(&line, ", ");
		struct bytes bytes = copied(task->copied, task->copied_len, arg);
		if (ended && is_output(kinds[arg]))
			bytes = copied(ended, ended_len, arg);
		add_arg(&line, kinds[arg], task->args[arg], &bytes);
	}
	return arg;
}

static void add_result(uint32_t number, int64_t result)
{
	const char *name = name_of(number);
	int is_address = !strcmp(name, "mmap") || !strcmp(name, "brk") || !strcmp(name, "mremap") || !strcmp(name, "shmat");
	if (line.used < 40)
		add(&line, "%*s", (int)(40 - line.used) - 1, "");
	if (result <= -512 && result >= -516)
		add(&line, " = ? (to be restarted)");
	else if (result < 0 && result >= -4095)
		add(&line, " = -1 %s (%s)", strerrorname_np((int)-result) ?: "?", strerror((int)-result));
	else if (is_address)
		add(&line, " = %#llx", (unsigned long long)result);
	else
		add(&line, " = %lld", (long long)result);
}

/* A call that goes on is shown as far as it is known. */
static void show_unfinished(struct task *task)
{
	if (task->tid == starting)
		return;
	begin_line(task->tid);
	add(&line, "%s(", name_of(task->number));
	task->shown = 1 + add_args(task, NULL, 0, 0);
	add(&line, " <unfinished ...>");
	end_line();
}

static void show_call(struct task *task, int64_t result, const uint64_t *ended, size_t ended_len, uint64_t ticks)
{
	begin_line(task->tid);
	if (task->shown)
		add(&line, "<... %s resumed>", name_of(task->number));
	else
		add(&line, "%s(", name_of(task->number));
	add_args(task, ended, ended_len, task->shown ? task->shown - 1 : 0);
	add(&line, ")");
	add_result(task->number, result);
	if (asked.times)
		add(&line, " <%.6f>", seconds(ticks));
	end_line();
}

/* Its end will not be seen. */
static void show_endless(struct task *task)
{
	if (asked.count || task->shown)
		return;
	begin_line(task->tid);
	add(&line, "%s(", name_of(task->number));
	static const uint64_t none;
	add_args(task, &none, 0, 0);
	add(&line, ") = ?");
	end_line();
}

/* ---- Counting ---- */

static struct tally {
	uint64_t calls, errors, ticks;
} tallies[512];

static void count(uint32_t number, int64_t result, uint64_t ticks)
{
	struct tally *tally = &tallies[number < 512 ? number : 511];
	tally->calls++;
	tally->errors += result < 0 && result >= -4095;
	tally->ticks += ticks;
}

static int slower(const void *a, const void *b)
{
	uint64_t left = tallies[*(const int *)a].ticks, right = tallies[*(const int *)b].ticks;
	return left < right ? 1 : left > right ? -1 : *(const int *)a - *(const int *)b;
}

static void show_counts(void)
{
	static int order[512];
	struct tally sum = { 0 };
	int used = 0;
	for (int i = 0; i < 512; i++)
		if (tallies[i].calls) {
			order[used++] = i;
			sum.calls += tallies[i].calls, sum.errors += tallies[i].errors, sum.ticks += tallies[i].ticks;
		}
	qsort(order, (size_t)used, sizeof *order, slower);
	const char *rule = "------ ----------- ----------- --------- --------- ----------------";
	fprintf(to, "%% time     seconds  usecs/call     calls    errors syscall\n%s\n", rule);
	for (int i = 0; i <= used; i++) {
		struct tally *one = i < used ? &tallies[order[i]] : &sum;
		char errors[24] = "";
		if (one->errors)
			snprintf(errors, sizeof errors, "%llu", (unsigned long long)one->errors);
		if (i == used)
			fprintf(to, "%s\n", rule);
		fprintf(to, "%6.2f %11.6f %11.0f %9llu %9s %s\n", sum.ticks ? 100.0 * (double)one->ticks / (double)sum.ticks : 0.0,
			seconds(one->ticks), one->calls ? 1e6 * seconds(one->ticks) / (double)one->calls : 0.0,
			(unsigned long long)one->calls, errors, i < used ? name_of((uint32_t)order[i]) : "total");
	}
}

/* ---- Records ---- */

static void entered(const struct record *record)
{
	struct task *task = task_of(record->tid);
	if (task->in_call && task->tid != starting)
		show_endless(task);
	task->in_call = 1, task->shown = 0;
	task->number = (uint32_t)record->words[2], task->start = record->words[1];
	if (asked.count)
		return;
	memcpy(task->args, record->words + 3, sizeof task->args);
	task->copied_len = record->len - 9;
	memcpy(task->copied, record->words + 9, task->copied_len * sizeof(uint64_t));
}

static void left(const struct record *record)
{
	struct task *task = task_of(record->tid);
	uint32_t number = (uint32_t)record->words[2];
	int64_t result = (int64_t)record->words[3];
	if (!task->in_call || task->number != number)
		return;
	uint64_t ticks = record->words[1] - task->start;
	task->in_call = 0;
	if (task->tid == starting)
		return;
	if (asked.count)
		count(number, result, ticks);
	else
		show_call(task, result, record->words + 4, record->len - 4, ticks);
}

/* One that is told of when it has ended. */
static void made(const struct record *record)
{
	struct task *task = task_of(record->tid);
	if (task->in_call || task->tid == starting)
		return;
	task->shown = 0, task->copied_len = 0;
	task->number = (uint32_t)record->words[3], task->start = record->words[2];
	for (size_t arg = 0; arg < 6; arg++)
		task->args[arg] = 5 + arg < record->len ? record->words[5 + arg] : 0;
	int64_t result = (int64_t)record->words[4];
	uint64_t ticks = record->words[1] - task->start;
	if (asked.count)
		count(task->number, result, ticks);
	else
		show_call(task, result, record->words, 0, ticks);
}

static void ended(const struct record *record)
{
	struct task *task = task_of(record->tid);
	int status = (int)record->words[2];
	if (task->in_call)
		asked.count ? count(task->number, 0, record->words[1] - task->start) : show_endless(task);
	if (!asked.count) {
		begin_line(record->tid);
		if (WIFEXITED(status))
			add(&line, "+++ exited with %d +++", WEXITSTATUS(status));
		else {
			add(&line, "+++ killed by ");
			add_signal(&line, (uint64_t)WTERMSIG(status));
			add(&line, WCOREDUMP(status) ? " (core dumped) +++" : " +++");
		}
		end_line();
	}
	forget(record->tid);
}

static void seen(const struct record *record)
{
	switch (record->kind) {
	case ENTER:
		entered(record);
		break;
	case LEAVE:
		left(record);
		break;
	case CALL:
		made(record);
		break;
	case FORK:
		many |= asked.follow;
		break;
	case EXEC:
		if (record->tid == starting)
			starting = 0;
		renamed((int)record->words[2], record->tid);
		break;
	case EXIT:
		ended(record);
		break;
	case LOST:
		lost_altogether += record->words[2];
		fprintf(to, "alea-trace: %llu records were lost here\n", (unsigned long long)record->words[2]);
		break;
	case LEFT:
		begin_line(record->tid);
		add(&line, "+++ traced no more: the program is not the user's to look into +++");
		end_line();
		forget(record->tid);
		break;
	}
}

/* ---- The program and the session ---- */

static void command(int fd, const char *format, const char *value)
{
	char text[4096];
	int len = snprintf(text, sizeof text, format, value);
	if (len >= (int)sizeof text || write(fd, text, (size_t)len) != len)
		fail(126, "/proc/alea/trace refuses `%.*s`: %s", len > 60 ? 60 : len, text, strerror(errno));
}

/* The file that the shell would execute. */
static char *find(const char *name)
{
	const char *path = getenv("PATH") ?: "/bin:/usr/bin";
	if (strchr(name, '/'))
		return strdup(name);
	for (;; path++) {
		size_t len = strcspn(path, ":");
		char *file;
		if (asprintf(&file, "%.*s%s%s", (int)len, path, len ? "/" : "", name) < 0)
			fail(126, "no memory");
		struct stat st;
		if (!access(file, X_OK) && !stat(file, &st) && S_ISREG(st.st_mode))
			return file;
		free(file);
		path += len;
		if (!*path)
			fail(127, "%s: not found", name);
	}
}

/* The program waits until somebody writes to `*gate`. */
static pid_t launch(char **argv, int *gate)
{
	int ends[2];
	char *file = find(argv[0]);
	if (pipe2(ends, O_CLOEXEC))
		fail(126, "pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid < 0)
		fail(126, "fork: %s", strerror(errno));
	if (!pid) {
		char go;
		close(ends[1]);
		if (read(ends[0], &go, 1) != 1)
			_exit(126);
		execv(file, argv);
		int error = errno;
		dprintf(2, "alea-trace: %s: %s\n", file, strerror(error));
		_exit(error == ENOENT ? 127 : 126);
	}
	close(ends[0]);
	free(file);
	*gate = ends[1];
	return pid;
}

static void configure(int fd, pid_t pid)
{
	char number[16];
	if (asked.kib)
		command(fd, "size %s\n", asked.kib);
	if (asked.names)
		command(fd, "calls %s\n", asked.names);
	command(fd, "strings %s\n", asked.count ? "0" : asked.strings);
	command(fd, "follow %s\n", asked.follow ? "1" : "0");
	command(fd, "points %s\n", asked.points ?: "calls,fork,exec,exit");
	snprintf(number, sizeof number, "%d", (int)pid);
	if (asked.all)
		command(fd, "all\n%s", "");
	else
		command(fd, "trace %s\n", number);
}

static void follow(int fd)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		uint64_t now = __rdtsc();
		ssize_t got = take(fd, &now, &hertz);
		const struct record *record;
		/* One that another CPU wrote a moment ago may come with the next reading. */
		while ((record = next_record(got > 0 ? now - hertz / 1000 : UINT64_MAX)))
			seen(record);
		if (!got)
			return;
		if (!asked.count)
			each_waiting(now - hertz / 10, show_unfinished);
		fflush(to);
	}
}

static int usage(void)
{
	fputs("usage: alea-trace [-c] [-f] [-T] [-e NAMES] [-s BYTES] [-b KIB] [-o FILE] PROGRAM [ARGS...]\n"
	      "       alea-trace -R FILE [-f | -a] [-p POINTS] [-b KIB] PROGRAM [ARGS...]\n", stderr);
	return 126;
}

/* The status of the program becomes that of this one, be it a signal. */
static int end_as(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int option, gate, status = 0;
	while ((option = getopt(argc, argv, "+cfTae:s:b:o:R:p:")) != -1)
		switch (option) {
		case 'c': asked.count = 1; break;
		case 'f': asked.follow = 1; break;
		case 'T': asked.times = 1; break;
		case 'a': asked.all = 1; break;
		case 'e': asked.names = !strncmp(optarg, "trace=", 6) ? optarg + 6 : optarg; break;
		case 's': asked.strings = optarg; break;
		case 'b': asked.kib = optarg; break;
		case 'o': asked.out = optarg; break;
		case 'R': asked.raw = optarg; break;
		case 'p': asked.points = optarg; break;
		default: return usage();
		}
	if (optind == argc || (!asked.raw && (asked.all || asked.points)))
		return usage();
	int fd = open("/proc/alea/trace", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(126, "/proc/alea/trace: %s", strerror(errno));
	to = asked.out ? fopen(asked.out, "we") : stderr;
	if (!to)
		fail(126, "%s: %s", asked.out, strerror(errno));
	static char buffer[1 << 16];
	setvbuf(to, buffer, _IOFBF, sizeof buffer);
	pid_t pid = launch(argv + optind, &gate);
	int raw = asked.raw ? begin_raw(asked.raw) : -1;
	configure(fd, pid);
	starting = pid;
	signal(SIGINT, SIG_IGN), signal(SIGQUIT, SIG_IGN);
	if (write(gate, "", 1) != 1)
		fail(126, "the program is gone");
	if (asked.raw)
		status = keep_raw(fd, raw, asked.all ? pid : 0);
	else
		follow(fd);
	if (!asked.raw || !asked.all)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	if (asked.count)
		show_counts();
	if (lost_altogether)
		fprintf(to, "alea-trace: %llu records were lost: -b makes room for more\n", (unsigned long long)lost_altogether);
	if (fclose(to))
		fail(126, "%s: %s", asked.out ?: "standard error", strerror(errno));
	return end_as(status);
}
