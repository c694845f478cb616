/*
 * fork and vfork: what the child inherits and what it does not (pid, pending signals, timers, locks),
 * the shared file offset, and that a vfork parent waits until the child execs or exits.
 */
#include "check.h"
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>

static void on_usr1(int s) {}

int main(int argc, char **argv)
{
	if (argc > 1)
		return atoi(argv[1]);
	scratch();
	pid_t parent = getpid();
	CHILD("ids") {
		IS(getpid() != parent);
		IS(getppid() == parent);
		IS(syscall(SYS_gettid) == getpid());
		IS(getpgrp() == getpgid(parent));
		IS(getsid(0) == getsid(parent));
	} END;
	/* file offset is shared, descriptor flags are copied */
	write_file("f", "0123456789");
	int fd = (int)MUST(open("f", O_RDWR | O_CLOEXEC));
	CHILD("offset") {
		T(lseek(fd, 4, SEEK_SET));
		T(fcntl(fd, F_GETFD));
		T(fcntl(fd, F_SETFD, 0));
		T(close(open("f", O_RDONLY)));
	} END;
	T(lseek(fd, 0, SEEK_CUR));
	T(fcntl(fd, F_GETFD));
	/* cwd, umask and signal state are copied; pending signals are not */
	sigset_t set, pending;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGUSR1, on_usr1);
	kill(parent, SIGUSR1);
	CHILD("signals") {
		sigpending(&pending);
		T(sigismember(&pending, SIGUSR1));
		sigprocmask(SIG_BLOCK, NULL, &set);
		T(sigismember(&set, SIGUSR1));
		struct sigaction sa;
		sigaction(SIGUSR1, NULL, &sa);
		IS(sa.sa_handler == on_usr1);
	} END;
	sigpending(&pending);
	T(sigismember(&pending, SIGUSR1));
	/* interval timers are not inherited, rlimits and nice are */
	struct itimerval it = { { 0, 0 }, { 100, 0 } }, left;
	setitimer(ITIMER_REAL, &it, NULL);
	T(nice(3));
	CHILD("timers") {
		getitimer(ITIMER_REAL, &left);
		IS(left.it_value.tv_sec == 0 && left.it_value.tv_usec == 0);
		T(nice(0));
		struct tms t;
		times(&t);
		SAY("children's time %ld", (long)t.tms_cutime);
	} END;
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	/* record locks are not inherited */
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	T(fcntl(fd, F_SETLK, &lock));
	CHILD("locks") {
		T(fcntl(fd, F_SETLK, &lock));
		struct flock ask = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
		T(fcntl(fd, F_GETLK, &ask));
		IS(ask.l_pid == parent);
	} END;
	/* an orphan gets another parent */
	int fds[2];
	MUST(pipe(fds));
	CHILD("middle") {
		pid_t middle = getpid();
		if (MUST(fork()) == 0) {
			while (getppid() == middle)
				sleep_ms(1);
			write(fds[1], getppid() != parent || parent == 1 ? "1" : "0", 1);
			_exit(0);
		}
	} END;
	char c = 0;
	T(read(fds[0], &c, 1));
	SAY("orphan's parent is another: %c", c);
	/* vfork */
	volatile int shared = 1;
	pid_t pid = vfork();
	if (pid == 0) {
		shared = 2;
		_exit(5);
	}
	say_status("vfork child", reap(pid));
	SAY("shared %d", shared);
	pid = vfork();
	if (pid == 0) {
		shared = 3;
		execl("/proc/self/exe", "x", "9", NULL);
		_exit(127);
	}
	SAY("after vfork exec: shared %d", shared);
	say_status("vfork exec", reap(pid));
	/* RLIMIT_NPROC holds for users, not for root */
	CHILD("nproc") {
		struct rlimit one = { 0, 0 };
		setrlimit(RLIMIT_NPROC, &one);
		MUST(setuid(4321));
		T(fork());
	} END;
	return 0;
}
