/*
 * O_ASYNC of both ends of a pseudo-terminal and of inotify: a line or a byte comes, there is room again, the other end closes; whom a
 * terminal without an owner tells.
 */
#include "told.h"
#include <sys/inotify.h>
#include <termios.h>

static int BASE;
#define WITHIN 30
static char bytes[1 << 14];

static int open_both(int s[2])
{
	int unlock = 0, number;
	char path[32];
	s[0] = (int)MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK));
	MUST(ioctl(s[0], TIOCSPTLCK, &unlock));
	MUST(ioctl(s[0], TIOCGPTN, &number));
	snprintf(path, sizeof path, "/dev/pts/%d", number);
	s[1] = (int)MUST(open(path, O_RDWR | O_NOCTTY | O_NONBLOCK));
	return 0;
}

static void raw(int fd)
{
	struct termios t;
	MUST(tcgetattr(fd, &t));
	cfmakeraw(&t);
	MUST(tcsetattr(fd, TCSANOW, &t));
}

static void slaves(void)
{
	int s[2];
	open_both(s);
	BASE = s[1];
	asks(s[1]);
	TOLD(write(s[0], "a", 1));
	TOLD(write(s[0], "b\n", 2));
	TOLD(write(s[0], "c\nd\n", 4));
	TOLD(read(s[1], bytes, sizeof bytes));
	tcflush(s[1], TCIFLUSH);
	raw(s[1]);
	TOLD(write(s[0], "a", 1));
	TOLD(write(s[0], "b", 1));
	TOLD(read(s[1], bytes, sizeof bytes));
	TOLD(write(s[1], "out", 3));
	TOLD(close(s[0]));
	close(s[1]);
}

static void masters(void)
{
	int s[2];
	open_both(s);
	raw(s[1]);
	BASE = s[0];
	asks(s[0]);
	TOLD(write(s[1], "out", 3));
	TOLD(write(s[1], "out", 3));
	TOLD(read(s[0], bytes, sizeof bytes));
	TOLD(write(s[0], "in", 2));
	TOLD(close(s[1]));
	close(s[0]);
}

static void owners(void)
{
	int s[2], p[2];
	open_both(s);
	IS(fcntl(s[1], F_GETOWN) == 0);
	MUST(fcntl(s[1], F_SETSIG, told));
	MUST(fcntl(s[1], F_SETFL, O_ASYNC | O_NONBLOCK));
	IS(fcntl(s[1], F_GETOWN) == getpid());
	raw(s[1]);
	BASE = s[1];
	TOLD(write(s[0], "a", 1));
	MUST(fcntl(s[1], F_SETFL, O_NONBLOCK));
	TOLD(write(s[0], "a", 1));
	close(s[0]);
	close(s[1]);
	MUST(pipe(p));
	MUST(fcntl(p[0], F_SETFL, O_ASYNC));
	IS(fcntl(p[0], F_GETOWN) == 0);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		setsid();
		open_both(s);
		MUST(ioctl(s[1], TIOCSCTTY, 0));
		MUST(fcntl(s[1], F_SETFL, O_ASYNC | O_NONBLOCK));
		IS(fcntl(s[1], F_GETOWN) == -getpid());
		MUST(fcntl(s[0], F_SETFL, O_ASYNC | O_NONBLOCK));
		IS(fcntl(s[0], F_GETOWN) == getpid());
		IS(fcntl(s[0], F_GETOWN) == -getpid());
		fflush(stdout);
		_exit(0);
	}
	MUST(waitpid(child, NULL, 0));
}

static void watches(void)
{
	int fd = (int)MUST(inotify_init1(IN_NONBLOCK));
	MUST(inotify_add_watch(fd, "/tmp", IN_CREATE | IN_DELETE));
	BASE = fd;
	asks(fd);
	int made = open("/tmp/async.made", O_CREAT | O_RDWR, 0600);
	told_within("created", BASE, WITHIN);
	TOLD(unlink("/tmp/async.made"));
	TOLD(close(made));
	close(fd);
}

int main(void)
{
	setbuf(stdout, NULL);
	told_begin();
	slaves();
	masters();
	owners();
	watches();
	return 0;
}
