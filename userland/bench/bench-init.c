/*
 * bench-init: the init of a benchmark boot (rdinit=/usr/lib/alea/bench-init), on Alea and on Linux.
 *
 * Its first act is to write `alea: first user instruction` to the console, which ends the host's
 * measurement of the boot. Then it mounts proc, reports the memory in use with one shell resident
 * (`meminfo TOTAL_KIB AVAILABLE_KIB`), runs `bench` with what the kernel command line names, and
 * powers off. Knobs: alea.bench=GLOB,GLOB  alea.bench_reps=N  alea.bench_quick  alea.settle=SECONDS
 *
 * A kernel is given `alea.settle` seconds to end its start: Linux goes on with work of its own, and
 * before it has refined the TSC's frequency its clock may run at half speed under -icount.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARKER "alea: first user instruction\n"
#define BENCH "/usr/lib/alea/bench"

static char *const environment[] = { "PATH=/bin:/sbin:/usr/bin:/usr/sbin", NULL };

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(1);
}

/* An initramfs without /dev/console leaves init with no descriptors at all. */
static void find_console(void)
{
	mkdir("/dev", 0755);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	int fd = open("/dev/console", O_RDWR);
	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
}

static size_t slurp(const char *path, char *into, size_t room)
{
	size_t have = 0;
	int fd = open(path, O_RDONLY);
	if (fd >= 0) {
		ssize_t n;
		while ((n = read(fd, into + have, room - 1 - have)) > 0)
			have += (size_t)n;
		close(fd);
	}
	into[have] = 0;
	return have;
}

static long kib_of(const char *meminfo, const char *key)
{
	const char *at = strstr(meminfo, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

/* Reports memory while a shell waits for input, as it does after a plain boot. */
static void report_memory(void)
{
	static char text[8192];
	static char *const argv[] = { "sh", "-c", "echo; read line", NULL };
	int in[2], out[2];
	char c;
	if (pipe(in) != 0 || pipe(out) != 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		execve("/bin/sh", argv, environment);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	int resident = read(out[0], &c, 1) == 1;
	slurp("/proc/meminfo", text, sizeof text);
	close(in[1]);
	close(out[0]);
	waitpid(pid, NULL, 0);
	if (resident)
		printf("meminfo %ld %ld\n", kib_of(text, "MemTotal:"), kib_of(text, "MemAvailable:"));
	else
		printf("meminfo: no shell\n");
	fflush(stdout);
}

/* Turns the knobs on the kernel command line into arguments for bench. */
static void bench_arguments(char *cmdline, char **argv)
{
	int n = 0;
	argv[n++] = "bench";
	for (char *word = strtok(cmdline, " \n"); word; word = strtok(NULL, " \n")) {
		if (strncmp(word, "alea.bench=", 11) == 0) {
			argv[n++] = "--filter";
			argv[n++] = word + 11;
		} else if (strncmp(word, "alea.bench_reps=", 16) == 0) {
			argv[n++] = "--reps";
			argv[n++] = word + 16;
		} else if (strncmp(word, "alea.settle=", 12) == 0) {
			sleep((unsigned int)strtoul(word + 12, NULL, 10));
		} else if (strcmp(word, "alea.bench_quick") == 0) {
			argv[n++] = "--quick";
		}
		if (n > 12)
			break;
	}
	argv[n] = NULL;
}

int main(void)
{
	static char cmdline[4096];
	char *argv[16];
	int status = -1;
	if (write(1, MARKER, sizeof MARKER - 1) < 0) {
		find_console();
		say(MARKER);
	}
	mkdir("/proc", 0555);
	if (mount("proc", "/proc", "proc", 0, NULL) != 0 && errno != EBUSY)
		perror("bench-init: mount /proc");
	slurp("/proc/cmdline", cmdline, sizeof cmdline);
	bench_arguments(cmdline, argv);
	report_memory();
	pid_t pid = fork();
	if (pid == 0) {
		execve(BENCH, argv, environment);
		perror("bench-init: " BENCH);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	if (status != 0)
		printf("bench-init: bench ended with status %#x\n", status);
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	perror("bench-init: power off");
	for (;;)
		pause();
}
