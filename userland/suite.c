/*
 * suite: runs BusyBox's own tests as process 1, on Alea and on Linux alike, and watches over them.
 *
 * The tests are started by /suite/run (tests/busybox/run.sh). What they print comes through a pipe and
 * leaves on the console as lines that the host can tell from everything else there:
 *   suite-begin PASS FREE_KIB             before each of suite.passes= passes
 *   suite-applet NAME                     whose tests follow, if the script says it
 *   suite-result PASS|FAIL|SKIPPED|UNTESTED: NAME
 *   suite-detail TEXT                     what a failed test printed, and its diff; with the shell's tests
 *                                         all of them come last, each after a line `=== TEST.fail`
 *   suite-hung SECONDS PROCESSES          these were killed; the next result is that of the hung test
 *   suite-end PASS STATUS FREE_KIB        the script's exit status; everything it left has been removed
 *   suite-done
 *
 * A test that gives no result for suite.limit= seconds is killed: first the processes of the test, then,
 * as long as no result comes, the script that runs it, and so on upwards. Words suite.NAME=VALUE of the
 * kernel's command line are passed to the script as SUITE_NAME=VALUE.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "objects.h"
#include "suite_copy.h"

#define SCRIPT "/suite/run"
#define LINE 4096	/* bytes of a line that are looked at */
#define HELD 65536	/* bytes kept of what a test prints before its result */
#define DETAILS 300	/* lines told about one failed test */
#define AGAIN 60	/* seconds between one killing and the next, wider one */
#define PROCESSES 4096
/* Generations below process 1: the script, runtest, an applet's tests, and below those the test itself. */
#define TEST_DEPTH 4

static char held[HELD];
static size_t held_length;
static int details_left, tell_all;
static time_t last_result;

static time_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void on_child(int signal) { (void)signal; }

/* Prints one line of a test, with what could disturb a terminal made visible. */
static void tell_detail(const char *text, size_t length)
{
	if (details_left-- <= 0)
		return;
	fputs("suite-detail ", stdout);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = text[i];
		if (c == '\t' || (c >= ' ' && c != 0x7f))
			putchar(c);
		else
			printf("\\x%02x", c);
	}
	putchar('\n');
}

static void tell_held(void)
{
	for (char *line = held, *end; line < held + held_length; line = end + 1) {
		end = memchr(line, '\n', held + held_length - line);
		tell_detail(line, end - line);
	}
	held_length = 0;
}

static void tell_result(const char *kind, const char *name)
{
	last_result = now();
	printf("suite-result %s: %s\n", kind, name);
	if (strcmp(kind, "FAIL") == 0) {
		details_left = DETAILS;
		tell_held();
	} else {
		held_length = 0;
		details_left = tell_all ? DETAILS : 0;
	}
}

/*
 * The lines of shell/ash_test/run-all: `ash-FOLDER/NAME: ok` or `fail`. When a test is killed, what the
 * shell says of it comes between the name's colon and the result.
 */
static int is_ash_result(const char *line)
{
	static char name[LINE];
	const char *slash = strchr(line, '/'), *colon = slash ? strchr(slash, ':') : NULL;
	if (strncmp(line, "ash-", 4) == 0 && colon && !memchr(line, ' ', colon - line)) {
		snprintf(name, sizeof name, "%.*s", (int)(colon - line), line);
		line = colon + 1;
	}
	int ok = strcmp(line, " ok") == 0;
	if (!name[0] || (!ok && strcmp(line, " fail") != 0))
		return 0;
	tell_result(ok ? "PASS" : "FAIL", name);
	name[0] = 0;
	return 1;
}

static void take_line(char *line, size_t length)
{
	static const char *const kinds[] = { "PASS", "FAIL", "SKIPPED", "UNTESTED" };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		size_t n = strlen(kinds[i]);
		if (strncmp(line, kinds[i], n) == 0 && strncmp(line + n, ": ", 2) == 0) {
			tell_result(kinds[i], line + n + 2);
			return;
		}
	}
	if (is_ash_result(line))
		return;
	if (strncmp(line, "suite-applet ", 13) == 0) {
		puts(line);
		return;
	}
	/* after the shell's tests the script shows what those that failed have left */
	if (strncmp(line, "=== ash-", 8) == 0)
		details_left = DETAILS;
	/* runtest -v separates the tests by such a line */
	if (strncmp(line, "======================", 22) == 0 && !tell_all)
		details_left = 0;
	if (details_left > 0) {
		tell_detail(line, length);
	} else if (held_length + length + 1 <= HELD) {
		memcpy(held + held_length, line, length);
		held[held_length + length] = '\n';
		held_length += length + 1;
	}
}

/* Reads what there is, and takes every whole line. */
static void take_output(int fd)
{
	static char line[LINE];
	static size_t length;
	char buffer[4096];
	ssize_t n;
	while ((n = read(fd, buffer, sizeof buffer)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buffer[i] == '\n') {
				line[length] = 0;
				take_line(line, length);
				length = 0;
			} else if (length < LINE - 1) {
				line[length++] = buffer[i];
			}
		}
	}
	fflush(stdout);
}

struct process {
	pid_t pid, parent;
	char name[32];
};

static struct process processes[PROCESSES];
static int process_count;

static void list_processes(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	process_count = 0;
	while (proc && (entry = readdir(proc)) && process_count < PROCESSES) {
		struct process *p = &processes[process_count];
		char path[300], stat[512], *from, *to;
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, stat, sizeof stat - 1);
		if (fd >= 0)
			close(fd);
		stat[n > 0 ? n : 0] = 0;
		from = strchr(stat, '(');
		to = strrchr(stat, ')');
		if (!from || !to || sscanf(to + 1, " %*c %d", &p->parent) != 1)
			continue;
		p->pid = atoi(stat);
		snprintf(p->name, sizeof p->name, "%.*s", (int)(to - from - 1), from + 1);
		process_count++;
	}
	if (proc)
		closedir(proc);
}

/* How many generations below process 1; one that nobody of the script's owns counts as deep. */
static int depth(pid_t pid, pid_t script)
{
	int generations = 0;
	while (pid > 1 && generations < PROCESSES) {
		pid_t parent = 0, child = pid;
		for (int i = 0; i < process_count; i++)
			if (processes[i].pid == pid)
				parent = processes[i].parent;
		generations++;
		pid = parent;
		if (pid == 1 && child != script)
			return PROCESSES;
	}
	return pid == 1 ? generations : 0;
}

static void kill_from(int least, pid_t script, int waited)
{
	list_processes();
	printf("suite-hung %d", waited);
	for (int i = 0; i < process_count; i++) {
		if (depth(processes[i].pid, script) >= least) {
			printf(" %d(%s)", processes[i].pid, processes[i].name);
			kill(processes[i].pid, SIGKILL);
		}
	}
	printf("\n");
	fflush(stdout);
}

static pid_t start(const char *what, int output)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	int null = open("/dev/null", O_RDONLY);
	dup2(null, 0);
	dup2(output, 1);
	dup2(output, 2);
	closefrom(3);
	execl("/bin/busybox", "sh", SCRIPT, what, (char *)NULL);
	_exit(127);
}

/* Runs the script to its end and returns its status as wait(2) gives it. */
static int run(const char *what, int limit)
{
	int ends[2], status = -1, least = TEST_DEPTH;
	sigset_t waiting;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		perror("suite: pipe");
		return -1;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	last_result = now();
	time_t quiet_since = last_result, deadline = last_result + limit;
	pid_t script = start(what, ends[1]), pid;
	if (script < 0)
		perror("suite: fork");
	close(ends[1]);
	sigemptyset(&waiting);
	for (int running = script > 0; running;) {
		struct pollfd wait = { .fd = ends[0], .events = POLLIN };
		struct timespec second = { 1, 0 };
		if (ppoll(&wait, 1, &second, &waiting) > 0) {
			take_output(ends[0]);
			/* nobody holds the other end: only children are waited for now */
			if (wait.revents == POLLHUP)
				nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
		}
		int one;
		while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
			if (pid == script) {
				status = one;
				running = 0;
			}
		}
		if (last_result != quiet_since) {
			quiet_since = last_result;
			deadline = last_result + limit;
			least = TEST_DEPTH;
		}
		if (running && now() >= deadline) {
			kill_from(least, script, (int)(now() - quiet_since));
			deadline = now() + AGAIN;
			if (least > 1)
				least--;
		}
	}
	take_output(ends[0]);
	close(ends[0]);
	return status;
}

/* Free memory in KiB, once it no longer changes. */
static long free_memory(void)
{
	long before = -1, free = 0;
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	if (fd >= 0) {
		(void)!write(fd, "3\n", 2);
		close(fd);
	}
	for (int tries = 0; tries < 50 && free != before; tries++) {
		char line[256];
		before = free;
		nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
		FILE *meminfo = fopen("/proc/meminfo", "r");
		while (meminfo && fgets(line, sizeof line, meminfo))
			if (sscanf(line, "MemFree: %ld kB", &free) == 1)
				break;
		if (meminfo)
			fclose(meminfo);
	}
	return free;
}

/* Removes what a pass has left: processes, then the file systems it wrote to. */
static void sweep(void)
{
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	static const char *const mounts[] = { "/bb", "/tmp" };
	for (int i = 0; i < 2; i++)
		if (umount2(mounts[i], MNT_DETACH) != 0)
			printf("suite: umount %s: %s\n", mounts[i], strerror(errno));
}

/* Whether a list that commas separate has a word. */
static int has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; at; at = strchr(at, ','), at += at != NULL)
		if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length]))
			return 1;
	return 0;
}

/*
 * A pass while allocations fail: whatever lacks memory ends its shell, so each applet's tests have a shell of their own. A test
 * that did not begin for that may do so in another pass.
 */
static int run_failing(int limit)
{
	int status = 0;
	if (prepare() != 0)
		printf("suite: the tests cannot be copied: %s\n", strerror(errno));
	char *only = getenv("SUITE_applets") ? strdup(getenv("SUITE_applets")) : NULL;
	const char *form = getenv("SUITE_form");
	DIR *dir = opendir(form && strcmp(form, "ash") == 0 ? "/bb/shell/ash_test" : "/bb/testsuite");
	struct dirent *entry;
	while (dir && (entry = readdir(dir))) {
		char name[256];
		snprintf(name, sizeof name, "%s", entry->d_name);
		char *end = strstr(name, ".tests");
		if (end)
			*end = 0;
		if (name[0] == '.' || (!end && entry->d_type != DT_DIR) || (end && end[6]) || (only && !has_word(only, name)))
			continue;
		setenv("SUITE_applets", name, 1);
		status = run("prepared", limit);
		kill(-1, SIGKILL);
	}
	if (dir)
		closedir(dir);
	if (only)
		setenv("SUITE_applets", only, 1);
	else
		unsetenv("SUITE_applets");
	free(only);
	return status;
}

/* What there is more of than after the first pass, but for what is kept on purpose. */
static void tell_left(const struct objects *first)
{
	struct objects now;
	objects_wait(first, &now, 0);
	for (int i = 0; i < first->kinds && i < now.kinds; i++)
		if (now.of[i].number > first->of[i].number && !objects_may_stay(first->of[i].name))
			printf("suite-left %s %+ld\n", first->of[i].name, now.of[i].number - first->of[i].number);
}

/* Puts the words suite.NAME=VALUE of the command line into the environment. */
static void read_command_line(void)
{
	static char line[4096];
	int fd = open("/proc/cmdline", O_RDONLY);
	if (fd < 0 || read(fd, line, sizeof line - 1) < 0)
		perror("suite: /proc/cmdline");
	close(fd);
	for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
		char name[64], *value = strchr(word, '=');
		if (strncmp(word, "suite.", 6) != 0 || !value)
			continue;
		*value++ = 0;
		snprintf(name, sizeof name, "SUITE_%s", word + 6);
		setenv(name, value, 1);
	}
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);
	return text ? atoi(text) : otherwise;
}

int main(void)
{
	sigset_t child;
	struct sigaction action = { .sa_handler = on_child };
	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	static char buffer[65536];
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	if (mount("proc", "/proc", "proc", 0, NULL) != 0)
		perror("suite: /proc");
	read_command_line();
	tell_all = getenv("SUITE_verbose") != NULL;
	details_left = DETAILS;
	int limit = number("SUITE_limit", 600), passes = number("SUITE_passes", 1);
	/* while allocations fail, a few times: each makes those of the links that the ones before could not */
	int failing = fail_alloc_told()[0] != 0, tries = failing ? 100 : 1, wanted = failing ? 4 : 1;
	struct objects first = { 0 };
	for (; tries > 0 && wanted > 0; tries--)
		wanted -= run("setup", limit) == 0;
	if (wanted > 0)
		printf("suite: the set-up failed\n");
	for (int pass = 1; pass <= passes; pass++) {
		printf("suite-begin %d %ld\n", pass, free_memory());
		fflush(stdout);
		details_left = DETAILS;
		int status = failing ? run_failing(limit) : run("tests", limit);
		sweep();
		printf("suite-end %d %d %ld\n", pass, WIFEXITED(status) ? WEXITSTATUS(status) : 256,
		       free_memory());
		fflush(stdout);
		if (failing && pass == 1)
			objects_read(&first);
	}
	tell_left(&first);
	printf("%ssuite-done\n", fail_alloc_told());
	fflush(stdout);
	reboot(RB_POWER_OFF);
	perror("suite: power off");
	for (;;)
		pause();
}
