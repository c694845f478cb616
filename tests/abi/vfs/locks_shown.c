/*
 * /proc/locks: each sort of lock, its kind, its holder and range, and below it the requests that wait for it; a request
 * that another request is in the way of stands below that one.
 */
#include "check.h"
#include <sys/file.h>
#include <sys/sysmacros.h>

enum { MOST = 16 };

static pid_t pids[MOST];
static int many;
static struct stat file;

/* The lines of our file, without numbers that differ between two runs. */
static void show(const char *when)
{
	char line[256], place[64];
	FILE *f = fopen("/proc/locks", "r");
	SAY("%s:", when);
	if (!f) {
		SAY("no /proc/locks: %s", err_name(errno));
		return;
	}
	snprintf(place, sizeof place, "%02x:%02x:%lu", major(file.st_dev), minor(file.st_dev), (unsigned long)file.st_ino);
	while (fgets(line, sizeof line, f)) {
		char *rest = strchr(line, ':'), *at = strstr(line, place), who[16] = "?";
		int pid = 0, end = 0;
		if (!rest || !at || at[strlen(place)] != ' ')
			continue;
		char *number = at - 1;
		while (number > line && number[-1] != ' ')
			number--;
		sscanf(number, "%d %n", &pid, &end);
		if (pid == -1)
			strcpy(who, "-1");
		else if (pid == getpid())
			strcpy(who, "me");
		for (int i = 0; i < many; i++)
			if (pids[i] == pid)
				snprintf(who, sizeof who, "child %d", i);
		*number = '\0';
		printf("  #%s%s FILE%s", rest, who, at + strlen(place));
	}
	fclose(f);
}

enum sort { POSIX, OFD, WHOLE };

static long lock(int fd, enum sort sort, int kind, long start, long length, int waits)
{
	struct flock l = { .l_type = (short)kind, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
	if (sort == WHOLE)
		return flock(fd, (kind == F_WRLCK ? LOCK_EX : LOCK_SH) | (waits ? 0 : LOCK_NB));
	if (sort == OFD)
		return fcntl(fd, waits ? F_OFD_SETLKW : F_OFD_SETLK, &l);
	return fcntl(fd, waits ? F_SETLKW : F_SETLK, &l);
}

/* A child that asks for a lock, and sleeps if it must wait for it. */
static void child(enum sort sort, int kind, long start, long length)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		int fd = (int)MUST(open("f", O_RDWR));
		lock(fd, sort, kind, start, length, 1);
		pause();
		_exit(0);
	}
	pids[many++] = pid;
	sleep_ms(60);
}

static void end(int first)
{
	kill(pids[first], SIGKILL);
	waitpid(pids[first], NULL, 0);
	sleep_ms(60);
}

static void end_all(void)
{
	for (int i = 0; i < many; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	many = 0;
	sleep_ms(60);
}

int main(void)
{
	scratch();
	int fd = (int)MUST(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600));
	MUST(fstat(fd, &file));
	show("nothing");

	T(lock(fd, POSIX, F_WRLCK, 10, 10, 0));
	show("a record");
	T(lock(fd, POSIX, F_RDLCK, 10, 0, 0));
	show("to the end, shared");
	child(POSIX, F_WRLCK, 15, 1);
	child(POSIX, F_RDLCK, 12, 2);
	show("a writer waits, a reader does not");
	T(lock(fd, POSIX, F_UNLCK, 0, 0, 0));
	sleep_ms(60);
	end_all();
	show("nothing again");

	T(lock(fd, OFD, F_WRLCK, 0, 0, 0));
	child(OFD, F_WRLCK, 5, 5);
	child(POSIX, F_RDLCK, 100, 1);
	show("of an open file, two wait");
	T(lock(fd, OFD, F_UNLCK, 0, 0, 0));
	end_all();

	T(lock(fd, WHOLE, F_WRLCK, 0, 0, 0));
	child(WHOLE, F_WRLCK, 0, 0);
	child(WHOLE, F_WRLCK, 0, 0);
	child(WHOLE, F_RDLCK, 0, 0);
	show("flock, and three wait, each for the one before");
	end(1);
	show("one of them has gone");
	end(2);
	T(flock(fd, LOCK_UN));
	sleep_ms(60);
	show("who waited has it");
	end_all();
	show("at the end");
	return 0;
}
