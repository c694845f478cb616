/*
 * Locks: flock (shared, exclusive, per open file, converted, released at last close) and fcntl record locks
 * (ranges, splitting, conflicts, deadlock, released by any close), and open-file-description locks.
 */
#include "check.h"
#include <sys/file.h>

static long set(int fd, int type, long start, long len, int cmd)
{
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };
	return fcntl(fd, cmd, &l);
}

static void ask(int fd, int type, long start, long len)
{
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = len };
	if (fcntl(fd, F_GETLK, &l) != 0)
		SAY("getlk: %s", err_name(errno));
	else if (l.l_type == F_UNLCK)
		SAY("getlk %ld+%ld: free", start, len);
	else
		SAY("getlk %ld+%ld: type %d at %ld+%ld, parent's %d", start, len, l.l_type, (long)l.l_start, (long)l.l_len,
		    l.l_pid == getppid());
}

int main(void)
{
	scratch();
	write_file("f", "0123456789");
	int a = (int)MUST(open("f", O_RDWR)), b = (int)MUST(open("f", O_RDWR)), ro = (int)MUST(open("f", O_RDONLY));
	T(flock(a, LOCK_SH));
	T(flock(b, LOCK_SH | LOCK_NB));
	T(flock(b, LOCK_EX | LOCK_NB));
	T(flock(a, LOCK_UN));
	T(flock(b, LOCK_EX | LOCK_NB));
	T(flock(ro, LOCK_SH | LOCK_NB));
	T(flock(a, 0));
	T(flock(a, 99));
	T(flock(99, LOCK_SH));
	int copy = dup(b);
	T(flock(copy, LOCK_EX | LOCK_NB));
	close(b);
	T(flock(a, LOCK_SH | LOCK_NB));
	close(copy);
	T(flock(a, LOCK_SH | LOCK_NB));
	T(flock(a, LOCK_UN));
	/* a blocked flock is granted */
	b = (int)MUST(open("f", O_RDWR));
	flock(b, LOCK_EX);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit(flock(a, LOCK_EX) == 0 ? 0 : 1);
	IS(wait_state(pid, "S"));
	flock(b, LOCK_UN);
	say_status("blocked flock", reap(pid));
	/* record locks */
	T(set(a, F_WRLCK, 2, 3, F_SETLK));
	T(set(b, F_WRLCK, 2, 3, F_SETLK));
	T(set(ro, F_WRLCK, 8, 1, F_SETLK));
	T(set(a, F_RDLCK, 6, 0, F_SETLK));
	T(set(a, 9, 0, 1, F_SETLK));
	T(set(a, F_RDLCK, -1, 1, F_SETLK));
	CHILD("child") {
		ask(a, F_WRLCK, 0, 2);
		ask(a, F_WRLCK, 0, 0);
		ask(a, F_RDLCK, 3, 1);
		ask(a, F_RDLCK, 7, 1);
		ask(a, F_WRLCK, 1000, 1);
		T(set(a, F_RDLCK, 4, 1, F_SETLK));
		T(set(a, F_RDLCK, 6, 2, F_SETLK));
		T(set(a, F_WRLCK, 0, 2, F_SETLK));
	} END;
	/* unlocking the middle splits */
	T(set(a, F_WRLCK, 0, 10, F_SETLK));
	T(set(a, F_UNLCK, 3, 4, F_SETLK));
	CHILD("split") {
		ask(a, F_WRLCK, 0, 10);
		ask(a, F_WRLCK, 3, 4);
		ask(a, F_WRLCK, 5, 5);
	} END;
	/* closing any descriptor of the file drops them all */
	close(open("f", O_RDONLY));
	CHILD("after close") {
		ask(a, F_WRLCK, 0, 0);
	} END;
	/* waiting */
	T(set(a, F_WRLCK, 0, 1, F_SETLK));
	pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit(set(a, F_WRLCK, 0, 1, F_SETLKW) == 0 ? 0 : 1);
	IS(wait_state(pid, "S"));
	T(set(a, F_UNLCK, 0, 1, F_SETLK));
	say_status("blocked setlk", reap(pid));
	/* deadlock is found */
	int go[2], back[2];
	char c;
	MUST(pipe(go));
	MUST(pipe(back));
	T(set(a, F_WRLCK, 0, 1, F_SETLK));
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		set(a, F_WRLCK, 1, 1, F_SETLK);
		write(back[1], "x", 1);
		set(a, F_WRLCK, 0, 1, F_SETLKW);
		_exit(0);
	}
	read(back[0], &c, 1);
	wait_state(pid, "S");
	T(set(a, F_WRLCK, 1, 1, F_SETLKW));
	T(set(a, F_UNLCK, 0, 0, F_SETLK));
	say_status("other side", reap(pid));
	/* open file description locks */
	T(set(a, F_WRLCK, 0, 1, F_OFD_SETLK));
	T(set(b, F_WRLCK, 0, 1, F_OFD_SETLK));
	T(set(b, F_WRLCK, 0, 1, F_SETLK));
	close(a);
	T(set(b, F_WRLCK, 0, 1, F_OFD_SETLK));
	return 0;
}
