/*
 * sig_chooses: a signal for a process of which a thread stands for its tracer is taken by one that does not, at once; one
 * that all others block waits for the one that stands.
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static int said[2];

static void on_signal(int number)
{
	char who = gettid() == getpid() ? 'L' : 'O';
	MUST(write(said[1], number == SIGUSR2 && who == 'L' ? "l" : &who, 1));
}

static void *other(void *blocks)
{
	sigset_t set;
	sigemptyset(&set);
	if (blocks)
		sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	MUST(write(said[1], "+", 1));
	for (;;)
		pause();
	return NULL;
}

static void heard(const char *what)
{
	struct pollfd p = { said[0], POLLIN, 0 };
	char c = '-';
	if (poll(&p, 1, 500) == 1)
		MUST(read(said[0], &c, 1));
	SAY("%s: %s", what, c == 'L' || c == 'l' ? "the leader" : c == 'O' ? "another thread" : c == '+' ? "a start" : "nobody");
}

int main(void)
{
	int status;
	MUST(pipe(said));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		pthread_t t;
		struct sigaction act = { .sa_handler = on_signal };
		sigaction(SIGUSR1, &act, NULL);
		sigaction(SIGUSR2, &act, NULL);
		for (long i = 0; i < 3; i++)
			if (pthread_create(&t, NULL, other, (void *)1))
				_exit(9);
		for (;;)
			pause();
	}
	for (int i = 0; i < 3; i++)
		heard("thread");
	MUST(ptrace(PTRACE_SEIZE, child, 0, 0));
	MUST(ptrace(PTRACE_INTERRUPT, child, 0, 0));
	T(waitpid(child, &status, __WALL) == child);
	SAY("status %#x", status);
	for (int i = 0; i < 3; i++) {
		T(kill(child, SIGUSR1));
		heard("one for all");
	}
	T(kill(child, SIGUSR2));
	heard("one that the others block");
	T(syscall(SYS_tgkill, child, child, SIGUSR1));
	heard("one for the thread that stands");
	MUST(ptrace(PTRACE_CONT, child, 0, 0));
	/* It stops for each that it takes now. */
	for (int i = 0; i < 2; i++) {
		T(waitpid(child, &status, __WALL) == child);
		SAY("stopped by %s", sig_name(WSTOPSIG(status)));
		MUST(ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status)));
	}
	heard("then");
	heard("then");
	heard("then");
	MUST(kill(child, SIGKILL));
	while (waitpid(child, &status, __WALL) != child)
		;
	SAY("status %#x", status);
	return 0;
}
