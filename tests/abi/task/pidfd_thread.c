/*
 * pidfds of threads: PIDFD_THREAD and CLONE_PIDFD with CLONE_THREAD; readable when the thread ends, signals go
 * to the thread, and the number may be another's afterwards.
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#define PIDFD_THREAD O_EXCL

static long open_(int pid, unsigned flags) { return syscall(SYS_pidfd_open, pid, flags); }
static long send_(int fd, int sig, unsigned flags) { return syscall(SYS_pidfd_send_signal, fd, sig, NULL, flags); }
static int tid(void) { return (int)syscall(SYS_gettid); }

static int revents(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	poll(&p, 1, 0);
	return p.revents;
}

static volatile int started, go, got;
static void handler(int sig) { (void)sig; got = tid(); }

static void *thread(void *arg)
{
	started = tid();
	while (!go)
		sleep_ms(1);
	return arg;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	struct sigaction sa = { .sa_handler = handler };
	sigaction(SIGUSR1, &sa, NULL);
	pthread_t t;
	pthread_create(&t, NULL, thread, NULL);
	while (!started)
		sleep_ms(1);
	T(open_(started, 0));
	T(open_(started, 1));
	T(open_(0, PIDFD_THREAD));
	T(open_(999999999, PIDFD_THREAD));
	int fd = (int)MUST(open_(started, PIDFD_THREAD)), own = (int)MUST(open_(getpid(), PIDFD_THREAD));
	IS((fcntl(fd, F_GETFL) & O_EXCL) != 0);
	IS(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	IS(revents(fd) == 0);
	IS(revents(own) == 0);
	T(send_(fd, 0, 0));
	T(send_(fd, SIGUSR1, 0));
	for (int i = 0; i < LONG_MS && !got; i++)
		sleep_ms(1);
	IS(got == started);
	got = 0;
	T(send_(own, SIGUSR1, 0));
	IS(got == getpid());
	T(send_(fd, 0, 3));
	siginfo_t si;
	T(waitid((idtype_t)3, (id_t)fd, &si, WEXITED));
	go = 1;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	T(poll(&p, 1, LONG_MS));
	pthread_join(t, NULL);
	IS((revents(fd) & POLLIN) != 0);
	T(send_(fd, 0, 0));
	T(send_(fd, SIGUSR1, 2));
	IS(revents(own) == 0);
	/* The leader ends, the process does not. */
	go = 0;
	int hold[2];
	char c;
	MUST(pipe(hold));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		started = 0;
		pthread_create(&t, NULL, thread, NULL);
		while (!started)
			sleep_ms(1);
		read(hold[0], &c, 1);
		syscall(SYS_exit, 0);
	}
	int all = (int)MUST(open_(pid, 0)), leader = (int)MUST(open_(pid, PIDFD_THREAD));
	MUST(write(hold[1], "x", 1));
	struct pollfd q = { .fd = leader, .events = POLLIN }, r = { .fd = all, .events = POLLIN };
	IS(revents(leader) == 0);
	IS(revents(all) == 0);
	T(send_(all, SIGKILL, 0));
	T(poll(&r, 1, LONG_MS));
	T(poll(&q, 1, LONG_MS));
	say_status("process", reap(pid));
	IS((revents(leader) & POLLIN) != 0);
	T(open_(pid, PIDFD_THREAD));
	return 0;
}
