/*
 * Calls that give a descriptor when there is none left: they have done nothing. A file is neither made nor emptied, no end of
 * a fifo has been opened, no child and no filter is there.
 */
#include "check.h"
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#ifndef O_TMPFILE
#define O_TMPFILE (020000000 | O_DIRECTORY)
#endif

static long child_with_pidfd(void)
{
	int pidfd = -7;
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (unsigned long)&pidfd, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		_exit(0);
	return pid;
}

static long listens(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

int main(void)
{
	struct stat st;
	struct rlimit was, none;
	scratch();
	write_file("full", "contents");
	MUST(mkfifo("fifo", 0600));
	int watch = (int)MUST(inotify_init1(IN_NONBLOCK)), sv[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	getrlimit(RLIMIT_NOFILE, &was);
	none = was;
	int last = (int)MUST(dup(0));
	close(last);
	none.rlim_cur = (rlim_t)last;
	MUST(inotify_add_watch(watch, ".", IN_ALL_EVENTS));
	pid_t reader = (pid_t)MUST(fork());
	if (reader == 0) {
		int fd = open("fifo", O_RDONLY);
		_exit(fd < 0);
	}
	IS(wait_state(reader, "S"));
	char events[4096];
	MUST(setrlimit(RLIMIT_NOFILE, &none));
	T(open("full", O_WRONLY | O_TRUNC));
	T(open("made", O_WRONLY | O_CREAT, 0600));
	T(open("made", O_WRONLY | O_CREAT | O_EXCL, 0600));
	T(open(".", O_RDWR | O_TMPFILE, 0600));
	T(open("missing", O_RDONLY));
	T(open("missing/below", O_RDONLY));
	T(open("full", O_RDONLY | O_DIRECTORY));
	T(open("full", O_CREAT | O_DIRECTORY, 0600));
	T(open("", O_RDONLY));
	T(open(NON_CANONICAL, O_RDONLY));
	T(open("fifo", O_WRONLY | O_NONBLOCK));
	T(creat("made", 0600));
	T(access("made", F_OK));
	T(stat("full", &st));
	IS(st.st_size == 8);
	T(read(watch, events, sizeof events));
	IS(waitpid(reader, NULL, WNOHANG) == 0);
	T(child_with_pidfd());
	kill(reader, SIGKILL);
	T(waitpid(-1, NULL, 0) == reader);
	T(waitpid(-1, NULL, 0));
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	T(listens());
	T(prctl(PR_GET_SECCOMP));
	T(memfd_create("m", 0));
	T(socket(AF_UNIX, SOCK_STREAM, 0));
	T(pipe(sv));
	MUST(setrlimit(RLIMIT_NOFILE, &was));
	IS(open("full", O_RDONLY) == last);
	return 0;
}
