/*
 * Waiting for signals: sigsuspend, sigtimedwait, sigwaitinfo, pause, signalfd, pselect's and ppoll's mask:
 * what they return, what they take, and that the mask comes back.
 */
#include "check.h"
#include <poll.h>
#include <sys/select.h>
#include <sys/signalfd.h>

static volatile int runs;

static void count(int s) { runs++; }

static void sender(int sig, long ms)
{
	pid_t to = getpid();
	fflush(stdout);
	if (MUST(fork()) == 0) {
		sleep_ms(ms);
		kill(to, sig);
		_exit(0);
	}
}

int main(void)
{
	sigset_t set, none, now;
	siginfo_t info;
	struct timespec t0 = { 0, 0 }, ms20 = { 0, 20000000 }, bad = { 0, -1 }, from;
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	signal(SIGUSR1, count);
	signal(SIGUSR2, count);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* sigsuspend */
	raise(SIGUSR1);
	T(sigsuspend(&none));
	SAY("runs %d", runs);
	sigprocmask(SIG_BLOCK, NULL, &now);
	SAY("still blocked %d", sigismember(&now, SIGUSR1));
	sender(SIGUSR2, 30);
	T(sigsuspend(&none));
	SAY("runs %d", runs);
	/* sigtimedwait */
	T(sigtimedwait(&set, &info, &t0));
	clock_gettime(CLOCK_MONOTONIC, &from);
	T(sigtimedwait(&set, &info, &ms20));
	IS(elapsed_ms(&from) >= 20);
	T(sigtimedwait(&set, &info, &bad));
	raise(SIGUSR2);
	raise(SIGUSR1);
	T(sigtimedwait(&set, &info, &t0));
	T(sigtimedwait(&set, NULL, NULL));
	SAY("runs %d", runs);
	sender(SIGUSR1, 30);
	T(sigwaitinfo(&set, &info));
	SAY("signo %d code %d", info.si_signo, info.si_code);
	int got = 0;
	sender(SIGUSR2, 20);
	T(sigwait(&set, &got));
	SAY("got %d", got);
	/* another signal interrupts it */
	signal(SIGHUP, count);
	sender(SIGHUP, 20);
	T(sigtimedwait(&set, &info, &(struct timespec){ 2, 0 }));
	/* a signal in the set is taken although it is ignored by default */
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	while (sigtimedwait(&set, NULL, &t0) > 0)
		;
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit(7);
	T(sigwaitinfo(&set, &info));
	SAY("code %d status %d pid right %d", info.si_code, info.si_status, info.si_pid == pid);
	reap(pid);
	/* signalfd */
	struct signalfd_siginfo si[2];
	int fd = (int)T(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
	T(read(fd, si, sizeof si));
	struct pollfd p = { fd, POLLIN, 0 };
	T(poll(&p, 1, 0));
	raise(SIGUSR1);
	sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 5 });
	T(poll(&p, 1, 0));
	SAY("revents %#x", p.revents);
	T(read(fd, si, 100));
	T(read(fd, si, sizeof si));
	SAY("first %u code %d", si[0].ssi_signo, si[0].ssi_code);
	T(read(fd, si, sizeof si));
	SAY("second %u value %d", si[0].ssi_signo, si[0].ssi_int);
	raise(SIGUSR1);
	raise(SIGUSR2);
	T(read(fd, si, sizeof si));
	SAY("both %u %u", si[0].ssi_signo, si[1].ssi_signo);
	T(read(fd, si, sizeof si));
	T(signalfd(fd, &none, 0));
	T(signalfd(1, &set, 0));
	T(signalfd(-1, &set, 0x10));
	T(write(fd, si, sizeof si));
	close(fd);
	/* ppoll and pselect swap the mask */
	runs = 0;
	raise(SIGUSR1);
	T(ppoll(NULL, 0, &(struct timespec){ 1, 0 }, &none));
	SAY("runs %d", runs);
	raise(SIGUSR2);
	T(pselect(0, NULL, NULL, NULL, &(struct timespec){ 1, 0 }, &none));
	SAY("runs %d", runs);
	raise(SIGUSR2);
	T(ppoll(NULL, 0, &ms20, NULL));
	SAY("runs %d", runs);
	sigprocmask(SIG_BLOCK, NULL, &now);
	SAY("blocked %d", sigismember(&now, SIGUSR1));
	return 0;
}
