/*
 * typescript: a shell on a pseudo-terminal of its own, as telnetd and script start one, relayed to the
 * terminal that this was started from, which is raw meanwhile. What the shell prints goes to a file too.
 *
 * usage: typescript [FILE]      its exit status is the shell's
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void put(int fd, const char *bytes, ssize_t count)
{
	while (count > 0) {
		ssize_t n = write(fd, bytes, (size_t)count);
		if (n < 0 && errno != EINTR) {
			perror("typescript: write");
			return;
		}
		if (n > 0) {
			bytes += n;
			count -= n;
		}
	}
}

/* Until the shell's side is closed by all who had it. */
static void relay(int master, int file)
{
	struct pollfd both[2] = { { 0, POLLIN, 0 }, { master, POLLIN, 0 } };
	char bytes[4096];
	for (;;) {
		if (poll(both, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			perror("typescript: poll");
			return;
		}
		if (both[1].revents) {
			ssize_t n = read(master, bytes, sizeof bytes);
			if (n <= 0)
				return;
			put(1, bytes, n);
			if (file >= 0)
				put(file, bytes, n);
		}
		if (both[0].revents) {
			ssize_t n = read(0, bytes, sizeof bytes);
			if (n <= 0)
				return;
			put(master, bytes, n);
		}
	}
}

int main(int argc, char **argv)
{
	struct termios cooked, raw;
	struct winsize size;
	int master, file = -1, status = 0;
	if (argc > 1 && (file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) < 0) {
		perror(argv[1]);
		return 1;
	}
	if (tcgetattr(0, &cooked) != 0 || ioctl(0, TIOCGWINSZ, &size) != 0) {
		perror("typescript: not a terminal");
		return 1;
	}
	pid_t pid = forkpty(&master, NULL, &cooked, &size);
	if (pid < 0) {
		perror("typescript: forkpty");
		return 1;
	}
	if (pid == 0) {
		execl("/bin/sh", "sh", "-i", NULL);
		perror("typescript: /bin/sh");
		_exit(127);
	}
	raw = cooked;
	cfmakeraw(&raw);
	tcsetattr(0, TCSANOW, &raw);
	relay(master, file);
	tcsetattr(0, TCSADRAIN, &cooked);
	waitpid(pid, &status, 0);
	printf("typescript: the shell has ended\n");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
