/*
 * F_SETOWN names a process, a thread or a group, not its number: who gets the number later is not told, and F_GETOWN says nobody. A
 * number that somebody has can be named as of any kind, and counts once he is of that kind.
 */
#include "told.h"
#include <pthread.h>

#define MOST "/proc/sys/kernel/pid_max"

static int p[2];

static void shown(const char *what)
{
	struct f_owner_ex ex = { -1, -1 };
	int old = (int)syscall(SYS_fcntl, p[0], F_GETOWN, 0);
	int r = fcntl(p[0], F_GETOWN_EX, &ex);
	SAY("%s: F_GETOWN %s, F_GETOWN_EX %d: type %d, %s", what, old == 0 ? "none" : old < 0 ? "a group" : "one", r, ex.type, ex.pid ? "one" : "none");
}

/* So few numbers that each comes again soon. */
static void few_numbers(int above)
{
	FILE *f = fopen(MOST, "w");
	if (!f || fprintf(f, "%d\n", above + 300) < 0 || fclose(f) != 0) {
		SAY("SETUP " MOST);
		_exit(99);
	}
}

/* A child that waits for a signal and says with its status whether one came: asked to end by the byte 'e'. */
static pid_t child_told(int in, int out)
{
	pid_t child = (pid_t)MUST(fork());
	if (child)
		return child;
	char c;
	siginfo_t info;
	MUST(read(in, &c, 1));
	if (c == 'g') {
		MUST(setpgid(0, 0));
		MUST(write(out, "r", 1));
		MUST(read(in, &c, 1));
	}
	_exit(c == 'e' ? told_take(&info, 0) > 0 : 98);
}

/* Numbers below 300 come once. */
static void pass_reserved(void)
{
	pid_t child;
	do {
		child = (pid_t)MUST(fork());
		if (child == 0)
			_exit(0);
		MUST(waitpid(child, NULL, 0));
	} while (child < 310);
}

/* Ends children until one has this number, who stays. */
static pid_t again(pid_t number, int in, int out)
{
	for (int tries = 0; tries < 20000; tries++) {
		pid_t child = child_told(in, out);
		if (child == number)
			return child;
		MUST(kill(child, SIGKILL));
		MUST(waitpid(child, NULL, 0));
	}
	SAY("SETUP the number does not come again");
	_exit(99);
}

static void named(int kind, const char *what)
{
	int in[2], out[2], status;
	char c;
	MUST(pipe(in));
	MUST(pipe(out));
	pid_t child = child_told(in[0], out[1]);
	few_numbers(child);
	if (kind == F_OWNER_PGRP) {
		MUST(write(in[1], "g", 1));
		MUST(read(out[0], &c, 1));
	}
	struct f_owner_ex ex = { kind, child };
	MUST(fcntl(p[0], F_SETOWN_EX, &ex));
	shown(what);
	MUST(write(p[1], "a", 1));
	MUST(write(in[1], "e", 1));
	MUST(waitpid(child, &status, 0));
	SAY("%s: told %d", what, WEXITSTATUS(status));
	shown("after its end");
	IS(again(child, in[0], out[1]) == child);
	if (kind == F_OWNER_PGRP) {
		MUST(write(in[1], "g", 1));
		MUST(read(out[0], &c, 1));
	}
	shown("another has its number");
	MUST(write(p[1], "a", 1));
	MUST(write(in[1], "e", 1));
	MUST(waitpid(child, &status, 0));
	SAY("another has its number: told %d", WEXITSTATUS(status));
	for (int at = 0; at < 2; at++) {
		close(in[at]);
		close(out[at]);
	}
}

/* A number that is used, though by none of that kind. */
static void of_another_kind(void)
{
	int in[2], out[2], status;
	char c;
	MUST(pipe(in));
	MUST(pipe(out));
	pid_t child = child_told(in[0], out[1]);
	OK(fcntl(p[0], F_SETOWN, -child));
	shown("a group that is none");
	MUST(write(p[1], "a", 1));
	MUST(write(in[1], "g", 1));
	MUST(read(out[0], &c, 1));
	shown("the process has made it");
	MUST(write(p[1], "a", 1));
	MUST(write(in[1], "e", 1));
	MUST(waitpid(child, &status, 0));
	SAY("the process has made it: told %d", WEXITSTATUS(status));
	shown("it is gone");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile pid_t thread_id;

static void *other(void *arg)
{
	thread_id = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

static void threads(void)
{
	pthread_t thread;
	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, other, NULL);
	while (!thread_id)
		sleep_ms(1);
	OK(fcntl(p[0], F_SETOWN, thread_id));
	shown("a thread as a process");
	MUST(write(p[1], "a", 1));
	told_within("a thread as a process", p[0], 0);
	struct f_owner_ex ex = { F_OWNER_TID, thread_id };
	OK(fcntl(p[0], F_SETOWN_EX, &ex));
	shown("a thread");
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	while (syscall(SYS_tgkill, getpid(), thread_id, 0) == 0)
		sleep_ms(1);
	shown("its end");
}

int main(void)
{
	char most[32] = "";
	setbuf(stdout, NULL);
	told_begin();
	MUST(pipe(p));
	MUST(fcntl(p[0], F_SETSIG, told));
	MUST(fcntl(p[0], F_SETFL, O_ASYNC));
	int fd = (int)MUST(open(MOST, O_RDWR));
	ssize_t len = MUST(read(fd, most, sizeof most));
	threads();
	pass_reserved();
	of_another_kind();
	named(F_OWNER_PID, "a process");
	named(F_OWNER_PGRP, "a group");
	named(F_OWNER_TID, "a first thread");
	MUST(pwrite(fd, most, (size_t)len, 0));
	return 0;
}
