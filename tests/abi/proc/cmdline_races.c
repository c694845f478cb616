/*
 * /proc/PID/cmdline of a process that executes itself again and again, each time with other arguments: it is that of one program or
 * of the next, or empty for a moment, and never shows what else is in memory. On one CPU little can happen.
 */
#include "check.h"
#include <sys/personality.h>

#define MOST 400

/* Executes itself with `count` arguments and as much environment the other way round. */
static void go_on(int left)
{
	static char room[600][16];
	char *argv[600], *envp[600];
	int count = left % 2 ? 300 : 10, n = 0;
	snprintf(room[0], 16, "%d", left);
	argv[n++] = "arg";
	argv[n++] = room[0];
	while (n < count)
		argv[n++] = "arg";
	argv[n] = NULL;
	n = 0;
	while (n < 310 - count)
		envp[n++] = "environment=1";
	envp[n] = NULL;
	execve("/proc/self/exe", argv, envp);
	_exit(2);
}

static int is_whole(const char *text, ssize_t length)
{
	for (ssize_t at = 0; at < length; at += (ssize_t)strlen(text + at) + 1)
		if (strcmp(text + at, "arg") != 0 && atoi(text + at) == 0)
			return 0;
	return text[length - 1] == 0;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		int left = atoi(argv[1]);
		if (left > 1)
			go_on(left - 1);
		_exit(0);
	}
	char path[64], text[8192];
	long broken = 0;
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		/* All have their arguments at about the same place. */
		MUST(personality(ADDR_NO_RANDOMIZE));
		go_on(MOST);
	}
	snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	int begun = 0;
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		int fd = open(path, O_RDONLY);
		ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
		close(fd);
		if (length > 0) {
			text[length] = 0;
			begun |= strcmp(text, "arg") == 0;
			broken += begun && !is_whole(text, length);
		}
	}
	SAY("broken: %s", broken == 0 ? "never" : "now and then");
	return 0;
}
