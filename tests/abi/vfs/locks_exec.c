/*
 * A record lock survives exec, also while another process looks through the folder of descriptors and the status of the one
 * that has it. On one CPU little can happen.
 */
#include "check.h"
#include <sched.h>

#define EXECS 40

static int is_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
	MUST(fcntl(fd, F_GETLK, &lock));
	return lock.l_type != F_UNLCK;
}

/* Executes this program until the count is done; then its input ends when it may go. */
static void again(int left)
{
	char text[16], end;
	if (left == 0) {
		MUST(write(1, "e", 1));
		MUST(read(0, &end, 1));
		_exit(0);
	}
	snprintf(text, sizeof text, "%d", left - 1);
	MUST(execl("/proc/self/exe", "locks_exec", text, NULL));
}

static void look_at(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	while (dir && readdir(dir))
		;
	if (dir)
		closedir(dir);
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	read_file(path);
}

int main(int argc, char **argv)
{
	int hold[2], over[2];
	char end;
	if (argc > 1)
		again(atoi(argv[1]));
	scratch();
	int fd = (int)MUST(open("f", O_RDWR | O_CREAT, 0600));
	MUST(pipe(hold));
	MUST(pipe2(over, O_NONBLOCK));
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
		MUST(dup2(hold[0], 0));
		MUST(dup2(over[1], 1));
		for (int other = 3; other < 20; other++)
			close(other);
		MUST(fcntl((int)MUST(open("f", O_RDWR)), F_SETLK, &lock));
		again(EXECS);
	}
	close(hold[0]);
	close(over[1]);
	while (!is_locked(fd))
		sched_yield();
	while (read(over[0], &end, 1) != 1)
		look_at(pid);
	IS(is_locked(fd));
	close(hold[1]);
	say_status("it", reap(pid));
	IS(!is_locked(fd));
	return 0;
}
