/*
 * clone: which combinations of flags are refused, what CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_PARENT,
 * CLONE_SIGHAND and the tid flags share or write, exit signals other than SIGCHLD and __WCLONE.
 */
#include "check.h"
#include <linux/sched.h>
#include <sched.h>

static char stack[65536] __attribute__((aligned(16)));
static volatile int shared;
static int tid_word = -1, ptid = -1;

static long raw_clone(unsigned long flags, void *sp, int *parent_tid, int *child_tid)
{
	return syscall(SYS_clone, flags, sp, parent_tid, child_tid, 0);
}

static int body(void *arg)
{
	shared = 7;
	return (int)(long)arg;
}

static int files(void *arg)
{
	close(*(int *)arg);
	return 0;
}

static int folder(void *arg)
{
	umask(0777);
	return chdir("/");
}

static int waits(void *arg)
{
	sleep_ms(30);
	return 0;
}

/* A structure with bytes that nobody knows, at the end of what can be read. */
static void too_long(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(munmap(pages + 4096, 4096));
	memset(pages + 4096 - 8, 1, 8);
	T(syscall(SYS_clone3, pages + 4096 - 96, 96));
	T(syscall(SYS_clone3, pages + 4096 - 96, 104));
	T(syscall(SYS_clone3, pages + 4096 - 96, 88 + 4096));
	T(syscall(SYS_clone3, pages + 4096 - 80, 96));
	memset(pages + 4096 - 8, 0, 8);
	T(syscall(SYS_clone3, pages + 4096 - 96, 104));
	T(syscall(SYS_clone3, pages + 4096 - 80, 88));
	munmap(pages, 4096);
}

int main(void)
{
	char here[128], *top = stack + sizeof stack;
	int fd;
	scratch();
	getcwd(here, sizeof here);
	T(raw_clone(CLONE_THREAD | SIGCHLD, top, NULL, NULL));
	T(raw_clone(CLONE_SIGHAND | SIGCHLD, top, NULL, NULL));
	T(raw_clone(CLONE_THREAD | CLONE_SIGHAND | SIGCHLD, top, NULL, NULL));
	T(raw_clone(CLONE_FS | CLONE_NEWNS | SIGCHLD, top, NULL, NULL));
	T(raw_clone(CLONE_PIDFD | CLONE_DETACHED | SIGCHLD, NULL, &ptid, NULL));
	T(syscall(SYS_clone3, NULL, 64));
	T(syscall(SYS_clone3, KERNEL_ADDRESS, 64));
	struct clone_args args = { .exit_signal = SIGCHLD };
	T(syscall(SYS_clone3, &args, 8));
	args.flags = 0xff;
	T(syscall(SYS_clone3, &args, sizeof args));
	args.flags = 0;
	args.stack = (unsigned long)stack;
	T(syscall(SYS_clone3, &args, sizeof args));
	args.stack = 0;
	args.exit_signal = 65;
	T(syscall(SYS_clone3, &args, sizeof args));
	too_long();
	args.exit_signal = SIGCHLD;
	args.flags = CLONE_PARENT_SETTID;
	args.parent_tid = (unsigned long)&ptid;
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		_exit(3);
	IS(ptid == pid);
	say_status("clone3", reap(pid));

	pid = clone(body, top, CLONE_VM | SIGCHLD, (void *)4);
	say_status("CLONE_VM", reap(pid));
	SAY("shared %d", shared);
	shared = 0;
	pid = clone(body, top, SIGCHLD, (void *)4);
	say_status("no CLONE_VM", reap(pid));
	SAY("shared %d", shared);

	fd = (int)MUST(dup(1));
	pid = clone(files, top, CLONE_VM | CLONE_FILES | SIGCHLD, &fd);
	say_status("CLONE_FILES", reap(pid));
	T(fcntl(fd, F_GETFD));
	fd = (int)MUST(dup(1));
	pid = clone(files, top, CLONE_VM | SIGCHLD, &fd);
	say_status("no CLONE_FILES", reap(pid));
	T(fcntl(fd, F_GETFD));

	pid = clone(folder, top, CLONE_FS | SIGCHLD, NULL);
	say_status("CLONE_FS", reap(pid));
	char now[128];
	SAY("cwd %s, umask %o", getcwd(now, sizeof now), umask(022));
	MUST(chdir(here));
	pid = clone(folder, top, SIGCHLD, NULL);
	say_status("no CLONE_FS", reap(pid));
	IS(strcmp(getcwd(now, sizeof now), here) == 0);
	SAY("umask %o", umask(022));

	/* the tid words */
	pid = (pid_t)raw_clone(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, NULL, &ptid, &tid_word);
	if (pid == 0)
		_exit(tid_word == getpid() && ptid == getpid() ? 0 : 1);
	IS(ptid == pid);
	say_status("tids in the child", reap(pid));
	SAY("parent's child_tid word %d", tid_word);
	pid = clone(waits, top, CLONE_VM | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, NULL,
		    NULL, NULL, &tid_word);
	reap(pid);
	SAY("cleared %d", tid_word);
	pid = (pid_t)raw_clone(CLONE_PARENT_SETTID | SIGCHLD, NULL, KERNEL_ADDRESS, NULL);
	if (pid == 0)
		_exit(0);
	IS(pid > 0);
	reap(pid);

	/* other exit signals: only __WCLONE or __WALL see such a child */
	int status;
	signal(SIGUSR2, SIG_IGN);
	pid = (pid_t)raw_clone(SIGUSR2, NULL, NULL, NULL);
	if (pid == 0)
		_exit(6);
	T(waitpid(pid, &status, 0));
	IS(waitpid(pid, &status, __WCLONE) == pid);
	say_status("__WCLONE", status);
	pid = (pid_t)raw_clone(0, NULL, NULL, NULL);
	if (pid == 0)
		_exit(8);
	IS(waitpid(pid, &status, __WALL) == pid);
	say_status("no exit signal", status);

	/* CLONE_PARENT: a sibling */
	int fds[2];
	MUST(pipe(fds));
	CHILD("makes a sibling") {
		pid_t sibling = (pid_t)raw_clone(CLONE_PARENT | SIGCHLD, NULL, NULL, NULL);
		if (sibling == 0)
			_exit(12);
		write(fds[1], &sibling, sizeof sibling);
	} END;
	read(fds[0], &pid, sizeof pid);
	say_status("sibling", reap(pid));
	/* pidfd */
	int pidfd = -1;
	pid = (pid_t)raw_clone(CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL);
	if (pid == 0)
		for (;;)
			pause();
	IS(pidfd >= 0);
	T(fcntl(pidfd, F_GETFD));
	T(syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0));
	say_status("pidfd child", reap(pid));
	T(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0));
	T(syscall(SYS_pidfd_open, 999999999, 0));
	T(syscall(SYS_pidfd_open, getpid(), 0x10));
	return 0;
}
