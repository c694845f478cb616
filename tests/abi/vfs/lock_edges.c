/*
 * Locks at their edges: descriptors that are closed while a request waits, F_OFD_GETLK for what one has oneself, ranges at
 * both ends of a file, arguments that are no lock, descriptor tables that are shared and left.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>

static int fd;

static struct flock range(int type, int whence, long start, long length)
{
	struct flock l = { .l_type = (short)type, .l_whence = (short)whence, .l_start = start, .l_len = length };
	return l;
}

static long set(int file, int cmd, int type, long start, long length)
{
	struct flock l = range(type, SEEK_SET, start, length);
	return fcntl(file, cmd, &l);
}

static void get(int file, int cmd, int type, long start, long length)
{
	struct flock l = range(type, SEEK_SET, start, length);
	errno = 0;
	long result = fcntl(file, cmd, &l);
	SAY("get %d from %ld, %ld long: %s, type %d, %ld, %ld, pid %s", type, start, length, result ? err_name(errno) : "done",
	    l.l_type, (long)l.l_start, (long)l.l_len, l.l_pid == getpid() ? "me" : l.l_pid == -1 ? "-1" : l.l_pid ? "other" : "0");
}

struct waiter { int file, cmd, error; long result; };

static void *waits(void *arg)
{
	struct waiter *w = arg;
	errno = 0;
	w->result = w->cmd ? set(w->file, w->cmd, F_WRLCK, 10, 1) : flock(w->file, LOCK_EX);
	w->error = errno;
	return NULL;
}

/* The descriptor is closed while the request waits; the holder, another process, gives up then. */
static void closed_meanwhile(const char *name, int cmd, int keep)
{
	int go[2], ready[2];
	char c;
	MUST(pipe(go));
	MUST(pipe(ready));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		int own = (int)MUST(open("f", O_RDWR));
		MUST(cmd ? set(own, cmd == F_SETLKW ? F_SETLK : F_OFD_SETLK, F_WRLCK, 10, 1) : flock(own, LOCK_EX));
		MUST(write(ready[1], "x", 1));
		MUST(read(go[0], &c, 1));
		_exit(0);
	}
	MUST(read(ready[0], &c, 1));
	struct waiter w = { .file = (int)MUST(open("f", O_RDWR)), .cmd = cmd };
	int kept = keep ? dup(w.file) : -1;
	if (cmd == F_SETLKW)
		MUST(set(w.file, F_SETLK, F_WRLCK, 90, 1));
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, waits, &w) ? -1 : 0);
	sleep_ms(60);
	close(w.file);
	MUST(write(go[1], "x", 1));
	reap(pid);
	pthread_join(thread, NULL);
	SAY("%s%s: %ld %s", name, keep ? ", another descriptor is left" : "", w.result, w.result ? err_name(w.error) : "");
	CHILD("  who looks then") {
		int other = (int)MUST(open("f", O_RDWR));
		T(cmd ? set(other, F_OFD_SETLK, F_WRLCK, 10, 1) : flock(other, LOCK_EX | LOCK_NB));
		T(set(other, F_OFD_SETLK, F_WRLCK, 90, 1));
	} END;
	close(kept);
	close(go[0]);
	close(go[1]);
	close(ready[0]);
	close(ready[1]);
}

static void own_locks(void)
{
	int other = (int)MUST(open("f", O_RDWR));
	T(set(fd, F_OFD_SETLK, F_WRLCK, 10, 10));
	T(set(fd, F_OFD_SETLK, F_RDLCK, 30, 0));
	T(set(fd, F_SETLK, F_RDLCK, 2, 2));
	get(fd, F_OFD_GETLK, F_UNLCK, 0, 0);
	get(fd, F_OFD_GETLK, F_UNLCK, 15, 1);
	get(fd, F_OFD_GETLK, F_UNLCK, 25, 0);
	get(fd, F_OFD_GETLK, F_UNLCK, 0, 5);
	get(other, F_OFD_GETLK, F_UNLCK, 0, 0);
	get(other, F_OFD_GETLK, F_RDLCK, 0, 0);
	get(other, F_OFD_GETLK, F_WRLCK, 25, 10);
	get(other, F_OFD_GETLK, F_WRLCK, 0, 5);
	get(fd, F_GETLK, F_UNLCK, 0, 0);
	get(fd, F_GETLK, F_WRLCK, 0, 0);
	T(set(fd, F_OFD_SETLK, F_UNLCK, 0, 0));
	T(set(fd, F_SETLK, F_UNLCK, 0, 0));
	close(other);
}

static void edges(void)
{
	static const struct { int type, whence; long start, length; } list[] = {
		{ F_WRLCK, SEEK_SET, LONG_MAX, 0 }, { F_WRLCK, SEEK_SET, LONG_MAX, 1 }, { F_WRLCK, SEEK_SET, LONG_MAX, 2 },
		{ F_WRLCK, SEEK_SET, LONG_MAX - 1, 2 }, { F_WRLCK, SEEK_SET, 0, LONG_MAX }, { F_WRLCK, SEEK_SET, 1, LONG_MAX },
		{ F_WRLCK, SEEK_SET, 0, -1 }, { F_WRLCK, SEEK_SET, 1, -1 }, { F_WRLCK, SEEK_SET, 5, -6 }, { F_WRLCK, SEEK_SET, 5, LONG_MIN },
		{ F_WRLCK, SEEK_SET, -1, 0 }, { F_WRLCK, SEEK_SET, LONG_MIN, LONG_MIN }, { F_WRLCK, SEEK_END, -10, 0 },
		{ F_WRLCK, SEEK_END, -11, 0 }, { F_WRLCK, SEEK_END, LONG_MAX, 0 }, { F_WRLCK, SEEK_CUR, LONG_MAX, 0 },
		{ F_WRLCK, SEEK_END, 0, -10 }, { F_WRLCK, 3, 0, 0 }, { F_WRLCK, -1, 0, 0 }, { F_WRLCK, SEEK_DATA, 0, 0 }, { 3, SEEK_SET, 0, 0 },
		{ F_EXLCK, SEEK_SET, 0, 0 }, { F_SHLCK, SEEK_SET, 0, 0 }, { -1, SEEK_SET, 0, 0 }, { F_WRLCK | 32, SEEK_SET, 0, 0 },
		{ F_UNLCK, SEEK_SET, -1, 0 }, { F_UNLCK, SEEK_SET, LONG_MAX, 2 }, { F_UNLCK, 3, 0, 0 },
	};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		for (int ofd = 0; ofd < 2; ofd++) {
			struct flock l = range(list[i].type, list[i].whence, list[i].start, list[i].length);
			errno = 0;
			long result = fcntl(fd, ofd ? F_OFD_SETLK : F_SETLK, &l);
			SAY("%zu%s: %s", i, ofd ? " ofd" : "", result ? err_name(errno) : "done");
			if (!ofd && result == 0 && list[i].type != F_UNLCK) {
				fflush(stdout);
				pid_t pid = (pid_t)MUST(fork());
				if (pid == 0) {
					get(fd, F_GETLK, F_WRLCK, 0, 0);
					_exit(0);
				}
				reap(pid);
			}
			set(fd, ofd ? F_OFD_SETLK : F_SETLK, F_UNLCK, 0, 0);
		}
	}
	struct flock l = range(F_WRLCK, SEEK_SET, 0, 0);
	l.l_pid = 1;
	T(fcntl(fd, F_SETLK, &l));
	T(fcntl(fd, F_OFD_SETLK, &l));
	T(fcntl(fd, F_OFD_GETLK, &l));
	T(fcntl(fd, F_SETLK, NULL));
	T(fcntl(fd, F_GETLK, NON_CANONICAL));
	T(set(fd, F_SETLK, F_UNLCK, 0, 0));
}

static void no_locks(void)
{
	int none = (int)T(open("f", O_ACCMODE)) , path = (int)MUST(open("f", O_PATH)), only = (int)MUST(open("f", O_RDONLY)),
	    writes = (int)MUST(open("f", O_WRONLY));
	int list[] = { -1, 999, path, only, writes, 0 };
	(void)none;
	T(none < 0 ? 0 : flock(none, LOCK_EX | LOCK_NB));
	T(none < 0 ? 0 : flock(none, LOCK_UN));
	T(none < 0 ? 0 : set(none, F_SETLK, F_RDLCK, 0, 0));
	for (int i = 0; i < 5; i++) {
		SAY("descriptor %d", i);
		T(flock(list[i], 0));
		T(flock(list[i], 99));
		T(flock(list[i], 32));
		T(flock(list[i], 32 | 64));
		T(flock(list[i], LOCK_SH | LOCK_EX));
		T(flock(list[i], LOCK_UN | LOCK_SH));
		T(flock(list[i], LOCK_SH | LOCK_NB));
		T(flock(list[i], LOCK_EX | LOCK_NB));
		T(flock(list[i], LOCK_UN | LOCK_NB));
		T(set(list[i], F_SETLK, F_RDLCK, 0, 0));
		T(set(list[i], F_SETLK, F_WRLCK, 0, 0));
		T(set(list[i], F_SETLK, F_UNLCK, 0, 0));
		T(set(list[i], F_OFD_SETLK, F_RDLCK, 0, 0));
		T(set(list[i], F_OFD_SETLK, F_WRLCK, 0, 0));
		T(set(list[i], F_OFD_SETLK, F_UNLCK, 0, 0));
		T(set(list[i], F_GETLK, F_WRLCK, 0, 0));
	}
	close(none);
	close(path);
	close(only);
	close(writes);
}

static int shares(void *unused)
{
	(void)unused;
	return set(fd, F_SETLK, F_WRLCK, 40, 1) != 0;
}

static void *leaves(void *unused)
{
	(void)unused;
	T(set(fd, F_SETLK, F_WRLCK, 50, 1));
	T(unshare(CLONE_FILES));
	T(set(fd, F_SETLK, F_WRLCK, 50, 1));
	T(set(fd, F_SETLK, F_WRLCK, 60, 1));
	get(fd, F_GETLK, F_WRLCK, 50, 1);
	close(fd);
	return NULL;
}

static void tables(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pthread_t thread;
	pid_t pid = (pid_t)MUST(clone(shares, stack + sizeof stack, CLONE_FILES | CLONE_VM | SIGCHLD, NULL));
	say_status("a child with the same table", reap(pid));
	get(fd, F_GETLK, F_WRLCK, 0, 0);
	CHILD("another one looks") {
		get(fd, F_GETLK, F_WRLCK, 0, 0);
		T(set(fd, F_SETLK, F_WRLCK, 40, 1));
	} END;
	T(set(fd, F_SETLK, F_UNLCK, 40, 1));
	MUST(pthread_create(&thread, NULL, leaves, NULL) ? -1 : 0);
	pthread_join(thread, NULL);
	T(set(fd, F_SETLK, F_WRLCK, 60, 1));
	CHILD("another one looks") {
		get(fd, F_GETLK, F_WRLCK, 50, 1);
	} END;
	T(set(fd, F_SETLK, F_UNLCK, 0, 0));
}

int main(void)
{
	scratch();
	write_file("f", "0123456789");
	fd = (int)MUST(open("f", O_RDWR));
	own_locks();
	edges();
	no_locks();
	for (int keep = 0; keep < 2; keep++) {
		closed_meanwhile("F_SETLKW", F_SETLKW, keep);
		closed_meanwhile("F_OFD_SETLKW", F_OFD_SETLKW, keep);
		closed_meanwhile("flock", 0, keep);
	}
	tables();
	return 0;
}
