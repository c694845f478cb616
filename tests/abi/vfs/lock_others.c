/*
 * Locks of what is no regular file: directories, fifos, devices and pipes have them, too, and lose them when they are closed.
 */
#include "check.h"
#include <sys/file.h>

static long record(int fd, int cmd, int type)
{
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = 3, .l_len = 4 };
	long result = fcntl(fd, cmd, &l);
	if (cmd == F_GETLK && result == 0)
		SAY("F_GETLK: type %d, start %ld, length %ld, holder %s", l.l_type, (long)l.l_start, (long)l.l_len,
		    l.l_type == F_UNLCK ? "none" : l.l_pid == getppid() ? "parent" : "another");
	return result;
}

static void whole(int one, int other)
{
	T(flock(one, LOCK_EX | LOCK_NB));
	T(flock(other, LOCK_EX | LOCK_NB));
	T(flock(other, LOCK_SH | LOCK_NB));
	T(flock(one, LOCK_SH));
	T(flock(other, LOCK_SH | LOCK_NB));
	T(flock(one, LOCK_UN));
	T(flock(other, LOCK_EX | LOCK_NB));
	T(flock(one, LOCK_SH | LOCK_NB));
	close(other);
	T(flock(one, LOCK_EX | LOCK_NB));
	T(flock(one, LOCK_UN));
}

static void records(const char *path, int flags, int type)
{
	int fd = (int)MUST(open(path, flags));
	T(record(fd, F_SETLK, type));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		int mine = (int)MUST(open(path, flags));
		T(record(mine, F_GETLK, F_WRLCK));
		T(record(mine, F_SETLK, type));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	int second = (int)MUST(open(path, flags));
	close(second);
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		T(record((int)MUST(open(path, flags)), F_GETLK, F_WRLCK));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	close(fd);
}

int main(void)
{
	int ends[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	MUST(mkdir("d", 0700));
	MUST(mkfifo("p", 0600));

	SAY("a directory");
	whole((int)MUST(open("d", O_RDONLY)), (int)MUST(open("d", O_RDONLY)));
	records("d", O_RDONLY, F_RDLCK);
	T(record((int)MUST(open("d", O_RDONLY)), F_SETLK, F_WRLCK));

	SAY("a fifo");
	whole((int)MUST(open("p", O_RDWR)), (int)MUST(open("p", O_RDWR)));
	records("p", O_RDWR, F_WRLCK);

	SAY("a device");
	whole((int)MUST(open("/dev/null", O_RDWR)), (int)MUST(open("/dev/null", O_RDWR)));
	records("/dev/null", O_RDWR, F_WRLCK);

	SAY("both ends of a pipe");
	MUST(pipe(ends));
	whole(ends[0], ends[1]);
	MUST(rmdir("d"));
	MUST(unlink("p"));
	return 0;
}
