/*
 * abi-run: runs the ABI programs of /usr/lib/alea/abi one after the other, on Alea and on Linux.
 *
 * For each: a line `=== NAME`, the program's own output, and a line `--- exit N`, `--- signal N` or
 * `--- timeout`; at the end `abi-end COUNT`. Each runs in a session of its own with an empty standard
 * input, and whatever it leaves behind is killed before the next.
 *
 * On Alea, as init, it then compares what the kernel holds (/proc/alea/objects) with before: `--- left: NAME +MORE` for
 * each kind of object or memory of which there is more (see objects.h). A run for that comparison prints `--- again`, and then
 * what the first one printed, its end too: the host compares. Linux has no such file, and is not asked. With alea.abi_again=N every
 * program is run N times more.
 *
 * As init, on both: `--- left: /NAME` for what a program has left in the root folder, where the next one would meet it.
 *
 * usage: abi-run [GLOB...]      or as init: rdinit=/usr/lib/alea/abi-run alea.abi=GLOB,GLOB
 * As init it mounts proc, devpts and a tmpfs on /tmp, and powers off at the end. alea.abi_after=NAME
 * leaves out all programs up to NAME: how the host goes on after one that took the kernel down.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
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
#include "sysv.h"

#define DIR_ABI "/usr/lib/alea/abi"
/* far more than any program takes on a busy machine, less than the patience of the host */
#define SECONDS 120
#define MOST 512
#define MOUNTS 64

/* No status of waitpid: the program was killed for its time. */
#define TIMED_OUT (-1)

/* Another limit, by alea.abi_seconds=N. */
static int seconds = SECONDS;

/* How often each program is run again whatever it leaves, by alea.abi_again=N. */
static int always_again;

/* Mounts that there are between programs, without /tmp. */
static int mounts_wanted;

static int chosen(const char *name, char **globs, int count)
{
	for (int i = 0; i < count; i++)
		if (fnmatch(globs[i], name, 0) == 0)
			return 1;
	return count == 0;
}

static int no_dots(const struct dirent *d) { return d->d_name[0] != '.'; }

static void start(const char *name)
{
	char path[512];
	setsid();
	int fd = open("/dev/null", O_RDONLY);
	dup2(fd, 0);
	if (fd > 2)
		close(fd);
	snprintf(path, sizeof path, DIR_ABI "/%s", name);
	char *const argv[] = { (char *)name, NULL };
	char *const envp[] = { "PATH=/bin:/sbin:/usr/bin:/usr/sbin", NULL };
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(path, argv, envp);
	printf("abi-run: %s: %s\n", path, strerror(errno));
	fflush(stdout);
	_exit(127);
}

/* Kills and reaps what a program has left: as init everything, otherwise its session's group. */
static void sweep(pid_t pid)
{
	if (getpid() == 1) {
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
	} else {
		kill(-pid, SIGKILL);
	}
}

/* The mount points, in the order of the mounts. */
static int mount_points(char points[MOUNTS][256])
{
	char line[1024];
	int count = 0;
	FILE *file = fopen("/proc/self/mounts", "r");
	while (file && count < MOUNTS && fgets(line, sizeof line, file))
		count += sscanf(line, "%*s %255s", points[count]) == 1;
	if (file)
		fclose(file);
	return count;
}

/* What the root folder holds between programs. */
static struct dirent **root_wanted;
static int root_count;

static int no_root_wanted(const struct dirent *d)
{
	for (int i = 0; i < root_count; i++)
		if (strcmp(root_wanted[i]->d_name, d->d_name) == 0)
			return 0;
	return 1;
}

/* Tells what a program has left in the root folder, and takes it away. */
static void check_root(void)
{
	struct dirent **more;
	int count = scandir("/", &more, no_root_wanted, alphasort);
	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];
		printf("--- left: /%s\n", more[i]->d_name);
		snprintf(path, sizeof path, "/%s", more[i]->d_name);
		remove(path);
	}
}

/* As init: takes away System V objects, what a program has mounted, and empties /tmp. None of it is a leak; the rest is. */
static void clean_up(void)
{
	static char points[MOUNTS][256];
	if (getpid() != 1)
		return;
	sysv_remove_all();
	umount2("/tmp", MNT_DETACH);
	int count = mount_points(points);
	for (; count > mounts_wanted; count--)
		umount2(points[count - 1], MNT_DETACH);
	mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777");
	check_root();
}

/* A line for how a program ended. */
static void tell_end(int status)
{
	if (status == TIMED_OUT)
		printf("--- timeout\n");
	else if (WIFEXITED(status))
		printf("--- exit %d\n", WEXITSTATUS(status));
	else
		printf("--- signal %d\n", WTERMSIG(status));
	fflush(stdout);
}

/* Runs a program, and tells how it ended. */
static void run_once(const char *name)
{
	struct timespec tick = { 0, 20000000 };
	int status = 0, left = seconds * 50;
	pid_t pid = fork();
	if (pid < 0) {
		printf("abi-run: fork: %s\n", strerror(errno));
		tell_end(TIMED_OUT);
		return;
	}
	if (pid == 0)
		start(name);
	/* SIGCHLD is blocked: the wait below ends at once when the child does */
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	pid_t got;
	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && left > 0)
		if (sigtimedwait(&chld, NULL, &tick) < 0)
			left--;
	if (got == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		status = TIMED_OUT;
	}
	tell_end(status);
	sweep(pid);
	clean_up();
}

/* A run that prints or ends otherwise has done other work: it says nothing of a leak, and is a fault of its own. */
static void run_again(const void *name)
{
	printf("--- again\n");
	fflush(stdout);
	run_once(name);
}

static void run(const char *name)
{
	struct objects before;
	printf("=== %s\n", name);
	fflush(stdout);
	objects_read(&before);
	run_once(name);
	for (int i = 0; i < always_again; i++)
		run_again(name);
	if (getpid() == 1 && fail_alloc_told()[0]) {
		objects_check_once(&before);
		printf("%s", fail_alloc_told());
	} else if (getpid() == 1) {
		objects_check(&before, run_again, name);
	}
}

static void mount_one(const char *type, const char *where, const char *options)
{
	mkdir(where, 0755);
	if (mount(type, where, type, 0, options) != 0 && errno != EBUSY)
		printf("abi-run: mount %s: %s\n", where, strerror(errno));
}

/* Makes the system what the programs expect, and turns alea.abi= into globs. */
static int set_up(char **globs, const char **after)
{
	static char cmdline[4096];
	int count = 0;
	mount_one("proc", "/proc", NULL);
	if (access("/dev/urandom", F_OK) != 0 || access("/dev/ptmx", F_OK) != 0)
		mount_one("devtmpfs", "/dev", NULL);
	mount_one("devpts", "/dev/pts", "mode=620,ptmxmode=666");
	static char points[MOUNTS][256];
	mounts_wanted = mount_points(points);
	mount_one("tmpfs", "/tmp", "mode=1777");
	root_count = scandir("/", &root_wanted, NULL, NULL);
	int fd = open("/proc/cmdline", O_RDONLY);
	if (fd < 0 || read(fd, cmdline, sizeof cmdline - 1) < 0)
		return 0;
	close(fd);
	for (char *word = strtok(cmdline, " \n"); word; word = strtok(NULL, " \n")) {
		if (strncmp(word, "alea.abi_after=", 15) == 0)
			*after = word + 15;
		if (strncmp(word, "alea.abi_seconds=", 17) == 0)
			seconds = atoi(word + 17);
		if (strncmp(word, "alea.abi_again=", 15) == 0)
			always_again = atoi(word + 15);
		if (strncmp(word, "alea.abi=", 9) != 0)
			continue;
		for (char *glob = word + 9; glob && *glob && count < MOST;) {
			globs[count++] = glob;
			glob = strchr(glob, ',');
			if (glob)
				*glob++ = 0;
		}
	}
	return count;
}

int main(int argc, char **argv)
{
	char *mine[MOST], **globs = argv + 1;
	const char *after = "";
	int count = argc - 1, ran = 0, init = getpid() == 1;
	struct dirent **list;
	sigset_t chld;
	if (init) {
		globs = mine;
		count = set_up(mine, &after);
	}
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	int n = scandir(DIR_ABI, &list, no_dots, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		if (strcmp(name, after) > 0 && chosen(name, globs, count)) {
			run(name);
			ran++;
		}
	}
	printf("%sabi-end %d\n", fail_alloc_told(), ran);
	fflush(stdout);
	if (init) {
		sync();
		reboot(RB_POWER_OFF);
		perror("abi-run: power off");
		for (;;)
			pause();
	}
	return ran == 0;
}
