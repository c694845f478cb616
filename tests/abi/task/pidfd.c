/*
 * pidfds: opened by number or given by clone and clone3, readable once the process has ended, waited for and signalled
 * through, of one process for ever; descriptors taken from another process; every error.
 */
#include "check.h"
#include <linux/sched.h>
#include <poll.h>
#include <sys/epoll.h>

static long pidfd_open_(int pid, unsigned flags) { return syscall(SYS_pidfd_open, pid, flags); }
static long pidfd_send(int fd, int sig, siginfo_t *info, unsigned flags)
{
	return syscall(SYS_pidfd_send_signal, fd, sig, info, flags);
}
static long pidfd_getfd_(int pidfd, int fd, unsigned flags) { return syscall(SYS_pidfd_getfd, pidfd, fd, flags); }

static pid_t child(void)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static int ready(int fd)
{
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	poll(&p, 1, 0);
	return p.revents;
}

static void opening(void)
{
	pid_t pid = child();
	SAY("-- opening");
	T(pidfd_open_(0, 0));
	T(pidfd_open_(-1, 0));
	T(pidfd_open_(999999999, 0));
	T(pidfd_open_(pid, 1));
	int fd = (int)OK(pidfd_open_(pid, 0));
	T(fcntl(fd, F_GETFD));
	char c;
	T(read(fd, &c, 1));
	T(write(fd, &c, 1));
	SAY("events %#x", ready(fd));
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0);
	T(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	T(epoll_wait(ep, &ev, 1, 0));
	kill(pid, SIGKILL);
	T(epoll_wait(ep, &ev, 1, LONG_MS));
	SAY("events %#x", ready(fd));
	T(pidfd_send(fd, SIGTERM, NULL, 0));
	int late = (int)OK(pidfd_open_(pid, 0));
	siginfo_t info = { 0 };
	T(waitid(P_PIDFD, fd, &info, WEXITED | WNOWAIT));
	SAY("code %d status %d pid right %d", info.si_code, info.si_status, info.si_pid == pid);
	T(waitid(P_PIDFD, late, &info, WEXITED));
	T(waitid(P_PIDFD, fd, &info, WEXITED));
	T(pidfd_send(fd, 0, NULL, 0));
	T(pidfd_open_(pid, 0));
	T(pidfd_getfd_(fd, 0, 0));
	IS(ready(fd) & POLLIN);
	close(fd);
	close(late);
	close(ep);
}

static void waiting(void)
{
	SAY("-- waiting");
	siginfo_t info = { 0 };
	T(waitid(P_PIDFD, -1, &info, WEXITED));
	T(waitid(P_PIDFD, 999, &info, WEXITED));
	T(waitid(P_PIDFD, 1, &info, WEXITED));
	int self = (int)MUST(pidfd_open_(getpid(), 0));
	T(waitid(P_PIDFD, self, &info, WEXITED));
	pid_t pid = child();
	int fd = (int)MUST(pidfd_open_(pid, O_NONBLOCK));
	T(waitid(P_PIDFD, fd, &info, WEXITED));
	T(waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG));
	kill(pid, SIGSTOP);
	fcntl(fd, F_SETFL, 0);
	T(waitid(P_PIDFD, fd, &info, WSTOPPED));
	SAY("code %d status %d", info.si_code, info.si_status);
	kill(pid, SIGKILL);
	T(waitid(P_PIDFD, fd, &info, WEXITED));
	close(fd);
	close(self);
}

static void signals(void)
{
	SAY("-- signals");
	pid_t pid = child();
	int fd = (int)MUST(pidfd_open_(pid, 0)), self = (int)MUST(pidfd_open_(getpid(), 0));
	siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	T(pidfd_send(fd, 0, NULL, 0));
	T(pidfd_send(fd, 65, NULL, 0));
	T(pidfd_send(fd, 0, NULL, 8));
	T(pidfd_send(fd, 0, NULL, 3));
	T(pidfd_send(1, 0, NULL, 0));
	T(pidfd_send(999, 0, NULL, 0));
	T(pidfd_send(fd, SIGUSR2, &info, 0));
	info.si_code = SI_USER;
	T(pidfd_send(fd, SIGUSR1, &info, 0));
	T(pidfd_send(fd, SIGUSR1, NON_CANONICAL, 0));
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	info.si_value.sival_int = 77;
	T(pidfd_send(self, SIGUSR1, &info, 0));
	siginfo_t got = { 0 };
	T(sigwaitinfo(&set, &got));
	SAY("code %d value %d", got.si_code, got.si_value.sival_int);
	T(pidfd_send(self, SIGUSR1, NULL, 0));
	T(sigwaitinfo(&set, &got));
	SAY("code %d pid mine %d", got.si_code, got.si_pid == getpid());
	CHILD("as uid 1000") {
		MUST(setuid(1000));
		T(pidfd_send(fd, SIGTERM, NULL, 0));
		T(pidfd_getfd_(fd, 0, 0));
	} END;
	T(pidfd_send(fd, SIGKILL, NULL, 0));
	say_status("killed", reap(pid));
	close(fd);
	close(self);
}

static void descriptors(void)
{
	SAY("-- descriptors");
	int fds[2];
	MUST(pipe(fds));
	pid_t pid = child();
	int fd = (int)MUST(pidfd_open_(pid, 0));
	close(fds[1]);
	T(pidfd_getfd_(fd, 999, 0));
	T(pidfd_getfd_(fd, fds[1], 1));
	T(pidfd_getfd_(1, 0, 0));
	int theirs = (int)OK(pidfd_getfd_(fd, fds[1], 0));
	T(fcntl(theirs, F_GETFD));
	T(write(theirs, "x", 1));
	char c = 0;
	T(read(fds[0], &c, 1));
	kill(pid, SIGKILL);
	wait_state(pid, "Z");
	T(pidfd_getfd_(fd, fds[1], 0));
	reap(pid);
	close(fd);
	close(theirs);
	close(fds[0]);
}

static void clones(void)
{
	SAY("-- clone and clone3");
	int fd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uint64_t)&fd };
	fflush(stdout);
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		_exit(fcntl(fd, F_GETFD) == -1 ? 3 : 4);
	IS(pid > 0);
	T(fcntl(fd, F_GETFD));
	siginfo_t info = { 0 };
	T(waitid(P_PIDFD, fd, &info, WEXITED));
	SAY("status %d", info.si_status);
	close(fd);
	args.pidfd = 8;
	T(syscall(SYS_clone3, &args, sizeof args));
	T(waitid(P_ALL, 0, &info, WEXITED));
	args.pidfd = (uint64_t)&fd;
	args.flags |= CLONE_DETACHED;
	T(syscall(SYS_clone3, &args, sizeof args));
	int both = 0;
	T(syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, NULL, &both, NULL, 0));
	struct rlimit_ { unsigned long soft, hard; } none = { 3, 4096 };
	CHILD("no descriptor left") {
		syscall(SYS_prlimit64, 0, 7, &none, NULL);
		args.flags = CLONE_PIDFD;
		T(syscall(SYS_clone3, &args, sizeof args));
	} END;
}

int main(void)
{
	opening();
	waiting();
	signals();
	descriptors();
	clones();
	return 0;
}
