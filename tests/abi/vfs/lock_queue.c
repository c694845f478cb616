/*
 * Locks of files of all sorts: of those who wait, who has waited longest gets the lock first, on several CPUs too; but nobody waits
 * for one who cannot have it yet, nor for one who gave up.
 */
#include "check.h"
#include <sys/file.h>

#define WAITERS 8

enum sort { FLOCK, OFD, POSIX };

static enum sort sort;

/* flock, or the same by a lock on all bytes. */
static int set_lock(int fd, int kind)
{
	struct flock lock = { .l_type = kind & LOCK_UN ? F_UNLCK : kind & LOCK_SH ? F_RDLCK : F_WRLCK };
	if (sort == FLOCK)
		return flock(fd, kind);
	if (sort == OFD)
		return fcntl(fd, kind & LOCK_NB ? F_OFD_SETLK : F_OFD_SETLKW, &lock);
	return fcntl(fd, kind & LOCK_NB ? F_SETLK : F_SETLKW, &lock);
}

struct shared {
	volatile int order[WAITERS], got;
};

static struct shared *shared;
static pid_t waiters[WAITERS];
static char path[] = "file";

static int open_file(void)
{
	return (int)MUST(open(path, O_RDWR));
}

/* Notes that a waiter has the lock. */
static void note(int number)
{
	shared->order[__atomic_fetch_add(&shared->got, 1, __ATOMIC_SEQ_CST)] = number;
}

/* A child that waits for the lock, notes that it has it, and keeps it until it is killed or, if not told to keep it, lets it go. */
static void wait_for(int number, int kind, int keeps)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		int fd = open_file();
		MUST(set_lock(fd, kind));
		note(number);
		if (keeps)
			pause();
		_exit(0);
	}
	waiters[number] = pid;
	wait_state(pid, "S");
}

static void end(int number)
{
	kill(waiters[number], SIGKILL);
	reap(waiters[number]);
}

static void has(const char *when)
{
	sleep_ms(150);
	printf("%s:", when);
	for (int number = 0; number < WAITERS; number++)
		for (int i = 0; i < shared->got; i++)
			if (shared->order[i] == number)
				printf(" %d", number);
	putchar('\n');
}

static void begin(const char *what)
{
	SAY("-- %s, sort %d", what, sort);
	shared->got = 0;
}

static void in_order(void)
{
	begin("in the order in which they came");
	int fd = open_file();
	MUST(set_lock(fd, LOCK_EX));
	for (int i = 0; i < WAITERS; i++)
		wait_for(i, LOCK_EX, 0);
	has("held");
	MUST(set_lock(fd, LOCK_UN));
	for (int i = 0; i < WAITERS; i++)
		reap(waiters[i]);
	for (int i = 0; i < shared->got; i++)
		printf("%d ", shared->order[i]);
	putchar('\n');
	close(fd);
}

static void behind(void)
{
	begin("behind one that wants it for itself");
	int fd = open_file(), other = open_file();
	MUST(set_lock(fd, LOCK_EX));
	wait_for(0, LOCK_EX, 1);
	wait_for(1, LOCK_SH, 1);
	wait_for(2, LOCK_SH, 1);
	wait_for(3, LOCK_EX, 1);
	MUST(set_lock(fd, LOCK_SH));
	has("shared");
	/* Who asks anew need not wait either. */
	T(set_lock(other, LOCK_SH | LOCK_NB));
	T(set_lock(other, LOCK_UN));
	end(0);
	has("the first is gone");
	MUST(set_lock(fd, LOCK_UN));
	end(1);
	has("one of the sharers is gone");
	end(2);
	has("both");
	end(3);
	close(fd);
	close(other);
}

static void nothing(int sig UNUSED)
{
}

static void gives_up(void)
{
	begin("given up");
	int fd = open_file();
	MUST(set_lock(fd, LOCK_SH));
	struct sigaction act = { .sa_handler = nothing };
	sigaction(SIGUSR1, &act, NULL);
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		int own = open_file();
		T(set_lock(own, LOCK_EX));
		fflush(stdout);
		T(set_lock(own, LOCK_SH));
		fflush(stdout);
		pause();
	}
	wait_state(pid, "S");
	wait_for(0, LOCK_EX, 1);
	kill(pid, SIGUSR1);
	has("interrupted");
	kill(pid, SIGKILL);
	reap(pid);
	MUST(set_lock(fd, LOCK_UN));
	has("free");
	end(0);
	close(fd);
}

/* Of one open file, a thread's wish does not stand in the way of another's. */
static void one_file(void)
{
	begin("one open file");
	int fd = open_file(), own = open_file();
	MUST(set_lock(fd, LOCK_EX));
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		waiters[i] = (pid_t)MUST(fork());
		if (waiters[i] == 0) {
			MUST(set_lock(own, i ? LOCK_SH : LOCK_EX));
			note(i);
			pause();
		}
		wait_state(waiters[i], "S");
	}
	MUST(set_lock(fd, LOCK_UN));
	has("released");
	end(0);
	end(1);
	close(fd);
	close(own);
}

int main(void)
{
	scratch();
	close((int)MUST(open(path, O_CREAT | O_RDWR, 0600)));
	shared = (void *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	for (sort = FLOCK; sort <= POSIX; sort++) {
		in_order();
		if (sort == POSIX)
			break;
		behind();
		gives_up();
		one_file();
	}
	return 0;
}
