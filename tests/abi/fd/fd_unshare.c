/*
 * fd_unshare.c: CLOSE_RANGE_UNSHARE by a task that shares its descriptors with nobody: the table stays the same, and with it the record
 * locks; by one that shares them, the other keeps its own.
 */
#include "check.h"
#include <fcntl.h>
#include <sched.h>

static int file;

/* Whether another process finds the file locked. */
static void locked(const char *what)
{
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		MUST(fcntl(file, F_GETLK, &lock));
		SAY("%s: %s", what, lock.l_type == F_UNLCK ? "free" : lock.l_pid == getppid() ? "locked" : "locked by a stranger");
		fflush(stdout);
		_exit(0);
	}
	MUST(waitpid(child, NULL, 0));
}

static long range(unsigned first, unsigned last, unsigned flags)
{
	return syscall(SYS_close_range, first, last, flags);
}

int main(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	file = (int)MUST(open("fd_unshare_file", O_RDWR | O_CREAT | O_TRUNC, 0600));
	int other = (int)MUST(dup(1));
	MUST(fcntl(file, F_SETLK, &lock));
	locked("before");
	T(range(1000, 2000, 2));
	locked("nothing closed, unshared");
	T(range((unsigned)other, (unsigned)other, 2));
	locked("another closed, unshared");
	T(fcntl(other, F_GETFD));
	/* Shared with a child: its table is its own from then on. */
	fflush(stdout);
	long child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		long done = range((unsigned)file, (unsigned)file, 2);
		_exit(done != 0 || fcntl(file, F_GETFD) != -1);
	}
	MUST(child);
	int status;
	MUST(waitpid((pid_t)child, &status, 0));
	SAY("the child: %d", status);
	T(fcntl(file, F_GETFD));
	locked("a child that shared them, unshared");
	MUST(close((int)MUST(dup(file))));
	locked("a descriptor of it closed");
	unlink("fd_unshare_file");
	return 0;
}
