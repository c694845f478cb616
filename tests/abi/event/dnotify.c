/*
 * F_NOTIFY: which changes of a directory send a signal, how often, what it carries, who gets it, and what ends a watch.
 */
#include "check.h"
#include <pthread.h>
#include <sys/syscall.h>

#define DIR_ "/tmp/dnotify"
#define KIND(at) (1u << (at))
static const char *const names[] = { "ACCESS", "MODIFY", "CREATE", "DELETE", "RENAME", "ATTRIB" };
static int watched[6];
static int notice; /* the signal */

static int take(siginfo_t *info)
{
	sigset_t set;
	struct timespec now = { 0 };
	sigemptyset(&set);
	sigaddset(&set, notice);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGCHLD);
	return sigtimedwait(&set, info, &now);
}

/* All signals that are there, by the descriptor that they name. */
static void drain(const char *what)
{
	siginfo_t info;
	int counts[6] = { 0 }, others = 0;
	while (take(&info) > 0) {
		int at = 0;
		while (at < 6 && watched[at] != info.si_fd)
			at++;
		if (at < 6 && info.si_signo == notice && info.si_code == POLL_MSG)
			counts[at]++;
		else
			others++;
	}
	printf("%s:", what);
	for (int at = 0; at < 6; at++)
		if (counts[at])
			printf(" %s %d", names[at], counts[at]);
	if (others)
		printf(" others %d", others);
	printf("\n");
}

#define DO(call) do { MUST(call); drain(#call); } while (0)

static void kinds(void)
{
	for (int at = 0; at < 6; at++) {
		watched[at] = (int)MUST(open(DIR_, O_RDONLY | O_DIRECTORY));
		MUST(fcntl(watched[at], F_SETSIG, notice));
		MUST(fcntl(watched[at], F_NOTIFY, (int)(KIND(at) | DN_MULTISHOT)));
	}
	drain("before");
	int fd = (int)MUST(open(DIR_ "/a", O_CREAT | O_RDWR, 0600));
	drain("create");
	DO(write(fd, "text", 4));
	DO(lseek(fd, 0, SEEK_SET));
	char c;
	DO(read(fd, &c, 1));
	DO(ftruncate(fd, 1));
	DO(fchmod(fd, 0644));
	DO(close(fd));
	DO(truncate(DIR_ "/a", 0));
	DO(chown(DIR_ "/a", 1, 1));
	DO(utimensat(AT_FDCWD, DIR_ "/a", NULL, 0));
	DO(link(DIR_ "/a", DIR_ "/b"));
	DO(symlink("a", DIR_ "/s"));
	DO(rename(DIR_ "/b", DIR_ "/c"));
	DO(rename(DIR_ "/c", "/tmp/dnotify.c"));
	DO(rename("/tmp/dnotify.c", DIR_ "/c"));
	DO(rename(DIR_ "/c", DIR_ "/s"));
	DO(mkdir(DIR_ "/d", 0700));
	fd = (int)MUST(open(DIR_ "/d/deep", O_CREAT | O_RDWR, 0600));
	drain("create deeper");
	DO(write(fd, "x", 1));
	close(fd);
	DO(unlink(DIR_ "/d/deep"));
	DO(chmod(DIR_ "/d", 0755));
	DO(rename(DIR_ "/d", DIR_ "/e"));
	DO(rmdir(DIR_ "/e"));
	DO(chmod(DIR_, 0755));
	char entries[1024];
	int dir = (int)MUST(open(DIR_, O_RDONLY | O_DIRECTORY));
	drain("open");
	DO(syscall(SYS_getdents64, dir, entries, sizeof entries));
	DO(close(dir));
	DO(mkfifo(DIR_ "/f", 0600));
	DO(unlink(DIR_ "/f"));
	DO(unlink(DIR_ "/a"));
	for (int at = 0; at < 6; at++)
		close(watched[at]);
	DO(unlink(DIR_ "/s"));
}

static void touch(const char *name)
{
	char path[64];
	snprintf(path, sizeof path, DIR_ "/%s", name);
	close((int)MUST(open(path, O_CREAT | O_WRONLY, 0600)));
	unlink(path);
}

static int dir_for(unsigned mask)
{
	int fd = (int)MUST(open(DIR_, O_RDONLY | O_DIRECTORY));
	MUST(fcntl(fd, F_SETSIG, notice));
	watched[0] = fd;
	T(fcntl(fd, F_NOTIFY, (int)mask));
	return fd;
}

static void lives(void)
{
	for (int at = 0; at < 6; at++)
		watched[at] = -1;
	int fd = dir_for(DN_CREATE | DN_DELETE);
	touch("once");
	drain("one shot");
	T(fcntl(fd, F_NOTIFY, DN_CREATE));
	T(fcntl(fd, F_NOTIFY, DN_DELETE));
	touch("merged");
	drain("two requests, one watch");
	T(fcntl(fd, F_NOTIFY, DN_CREATE));
	T(fcntl(fd, F_NOTIFY, (int)(DN_DELETE | DN_MULTISHOT)));
	touch("more");
	touch("more");
	drain("one of them for ever");
	T(fcntl(fd, F_NOTIFY, 0));
	touch("none");
	drain("ended by 0");
	T(fcntl(fd, F_NOTIFY, (int)(DN_CREATE | DN_MULTISHOT)));
	T(fcntl(fd, F_NOTIFY, (int)DN_MULTISHOT));
	touch("none");
	drain("ended by MULTISHOT alone");
	T(fcntl(fd, F_NOTIFY, 0x40));
	touch("none");
	drain("a bit that means nothing");

	T(fcntl(fd, F_NOTIFY, (int)(DN_CREATE | DN_MULTISHOT)));
	int copy = (int)MUST(dup(fd));
	watched[1] = copy;
	T(fcntl(copy, F_NOTIFY, DN_CREATE));
	touch("copy");
	drain("by the descriptor that asked last");
	close(copy);
	touch("copy");
	drain("ended by the close of a copy");

	T(fcntl(fd, F_NOTIFY, (int)(DN_CREATE | DN_MULTISHOT)));
	CHILD("closes its own") { close(fd); } END;
	drain("a child went");
	touch("child");
	drain("the parent's is there");
	int end[2];
	MUST(pipe(end));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		char c;
		close(end[1]);
		_exit(read(end[0], &c, 1) != 0);
	}
	close(fd);
	touch("closed");
	drain("closed here, open in a child");
	close(end[1]);
	close(end[0]);
	say_status("child", reap(child));
	while (take(&(siginfo_t){ 0 }) > 0)
		;

	mkdir(DIR_ "/gone", 0700);
	fd = (int)MUST(open(DIR_ "/gone", O_RDONLY | O_DIRECTORY));
	watched[0] = fd;
	MUST(fcntl(fd, F_SETSIG, notice));
	T(fcntl(fd, F_NOTIFY, (int)(0x3f | DN_MULTISHOT)));
	rmdir(DIR_ "/gone");
	drain("the directory goes");
	close(fd);
}

static void owners(void)
{
	siginfo_t info;
	int fd = (int)MUST(open(DIR_, O_RDONLY | O_DIRECTORY));
	watched[0] = fd;
	T(fcntl(fd, F_GETOWN));
	T(fcntl(fd, F_NOTIFY, (int)(DN_CREATE | DN_MULTISHOT)));
	IS(fcntl(fd, F_GETOWN) == getpid());
	T(fcntl(fd, F_GETSIG));
	touch("plain");
	touch("plain");
	IS(take(&info) == SIGIO);
	SAY("code %d, pid %d, band %ld, fd %d", info.si_code, info.si_pid, info.si_band, info.si_fd);
	IS(take(&info) < 0);
	T(fcntl(fd, F_SETSIG, SIGCHLD));
	touch("child");
	IS(take(&info) == SIGCHLD);
	SAY("code %d, band %ld", info.si_code, info.si_band);
	T(fcntl(fd, F_SETSIG, notice));
	T(fcntl(fd, F_SETOWN, -getpgrp()));
	touch("group");
	IS(take(&info) == notice);
	SAY("code %d, band %ld", info.si_code, info.si_band);
	struct f_owner_ex owner = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };
	T(fcntl(fd, F_SETOWN_EX, &owner));
	touch("thread");
	IS(take(&info) == notice);
	T(fcntl(fd, F_SETOWN, 0));
	touch("nobody");
	IS(take(&info) < 0);
	T(fcntl(fd, F_NOTIFY, (int)(DN_CREATE | DN_MULTISHOT)));
	IS(fcntl(fd, F_GETOWN) == getpid());
	close(fd);

	chmod(DIR_, 0777);
	pid_t parent = getpid();
	CHILD("another user") {
		MUST(setresgid(1000, 1000, 1000));
		MUST(setresuid(1000, 1000, 1000));
		int own = dir_for(DN_CREATE | DN_MULTISHOT);
		T(fcntl(own, F_SETOWN, parent));
		touch("mine");
		IS(take(&(siginfo_t){ 0 }) < 0);
	} END;
	int got = take(&info);
	IS(got == SIGCHLD && info.si_code == CLD_EXITED);
	IS(take(&info) < 0);
}

/* A descriptor is closed while a watch is made through it: none may be left when all are closed. */
static void *close_them(void *stop)
{
	for (unsigned round = 0; !__atomic_load_n((int *)stop, __ATOMIC_RELAXED); round++)
		close(20 + (int)(round % 4));
	return NULL;
}

static void *change(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		touch("race");
	return NULL;
}

static void races(void)
{
	int stop = 0;
	pthread_t threads[2];
	int dir = (int)MUST(open(DIR_, O_RDONLY | O_DIRECTORY));
	MUST(pthread_create(&threads[0], NULL, close_them, &stop));
	MUST(pthread_create(&threads[1], NULL, change, &stop));
	for (int round = 0; round < 3000; round++) {
		int fd = 20 + round % 4;
		dup2(dir, fd);
		fcntl(fd, F_NOTIFY, (int)(DN_CREATE | DN_DELETE | (round & 1 ? DN_MULTISHOT : 0)));
	}
	stop = 1;
	for (int at = 0; at < 2; at++)
		pthread_join(threads[at], NULL);
	for (int fd = 20; fd < 24; fd++)
		close(fd);
	/* The last close through this table ended the watch, though the directory is open. */
	while (take(&(siginfo_t){ 0 }) > 0)
		;
	touch("after");
	IS(take(&(siginfo_t){ 0 }) < 0);
	close(dir);
}

int main(void)
{
	sigset_t set;
	notice = SIGRTMIN + 1;
	sigemptyset(&set);
	sigaddset(&set, notice);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	mkdir(DIR_, 0700);
	int file = (int)MUST(open(DIR_ "/file", O_CREAT | O_RDWR, 0600));
	T(fcntl(file, F_NOTIFY, DN_CREATE));
	T(fcntl(file, F_NOTIFY, 0));
	T(fcntl(99, F_NOTIFY, DN_CREATE));
	int path = (int)MUST(open(DIR_, O_PATH));
	T(fcntl(path, F_NOTIFY, DN_CREATE));
	close(path);
	close(file);
	unlink(DIR_ "/file");
	kinds();
	lives();
	owners();
	races();
	rmdir(DIR_);
	return 0;
}
