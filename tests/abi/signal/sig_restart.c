/*
 * Signals that interrupt: SA_RESTART goes on with read, wait, futex and flock, and never with poll, select,
 * epoll_wait, pause, nanosleep (which gives the time left) or sigsuspend; without SA_RESTART all give EINTR.
 */
#include "check.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

/* Shared with the child. */
static volatile struct { int runs, word; } *shared;
#define runs (shared->runs)

static void on_alarm(int s) { runs++; }

static int fds[2], epfd;
static pid_t kid;

/*
 * A child sends one SIGALRM as soon as this process sleeps in its call. Once the handler has run and
 * the process sleeps again, something makes the call end by itself.
 */
static void arm(int flags)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = flags };
	sigaction(SIGALRM, &sa, NULL);
	runs = 0;
	fflush(stdout);
	kid = (pid_t)MUST(fork());
	if (kid == 0) {
		wait_state(getppid(), "S");
		kill(getppid(), SIGALRM);
		while (!runs)
			sleep_ms(1);
		wait_state(getppid(), "S");
		write(fds[1], "x", 1);
		syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
		_exit(5);
	}
}

static void done(void)
{
	char drain[16];
	int status;
	kill(kid, SIGKILL);
	while (waitpid(kid, &status, 0) < 0 && errno == EINTR)
		;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	while (read(fds[0], drain, 16) > 0)
		;
	fcntl(fds[0], F_SETFL, 0);
}

static int wait_by_select(void)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	return select(fds[0] + 1, &set, NULL, NULL, NULL);
}

#define TRY(call) do { arm(flags); long r_ = (call); int e_ = errno; \
	SAY("%s: %s, handler ran %d", #call, r_ < 0 ? err_name(e_) : r_ > 1 ? "pid" : r_ ? "1" : "0", runs); \
	done(); } while (0)

int main(void)
{
	char c;
	struct epoll_event ev = { .events = EPOLLIN };
	MUST(pipe(fds));
	shared = (void *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	epfd = (int)MUST(epoll_create1(0));
	MUST(epoll_ctl(epfd, EPOLL_CTL_ADD, fds[0], &ev));
	for (int i = 0; i < 2; i++) {
		int flags = i ? SA_RESTART : 0, status;
		struct pollfd p = { fds[0], POLLIN, 0 };
		struct timespec forever = { LONG_MS / 1000, 0 }, left = { 999, 9 };
		SAY("-- %s", i ? "SA_RESTART" : "no SA_RESTART");
		TRY(read(fds[0], &c, 1));
		TRY(waitpid(kid, &status, 0));
		TRY(poll(&p, 1, LONG_MS));
		TRY(poll(&p, 1, -1));
		TRY(wait_by_select());
		TRY(epoll_wait(epfd, &ev, 1, LONG_MS));
		TRY(pause());
		TRY(nanosleep(&forever, &left));
		IS(left.tv_sec < LONG_MS / 1000);
		TRY(-(long)(errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &forever, NULL)));
		TRY(syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, &forever, NULL, 0));
		TRY(sigsuspend(&(sigset_t){ 0 }));
	}
	/* a partial write is returned as such */
	static char big[1 << 20];
	int wp[2];
	MUST(pipe(wp));
	arm(SA_RESTART);
	SAY("write of 1 MiB to a pipe of 64 KiB: %ld", (long)write(wp[1], big, sizeof big));
	done();
	/* an ignored or default-ignored signal interrupts nothing */
	signal(SIGALRM, SIG_IGN);
	struct itimerval it = { { 0, 0 }, { 0, 20000 } };
	struct timespec ms60 = { 0, 60000000 };
	setitimer(ITIMER_REAL, &it, NULL);
	T(nanosleep(&ms60, NULL));
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	sigaction(SIGALRM, &sa, NULL);
	/* stop and continue do not interrupt a read */
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		long n = read(fds[0], &c, 1);
		_exit(n == 1 ? 1 : 2);
	}
	wait_state(pid, "S");
	kill(pid, SIGSTOP);
	int status;
	waitpid(pid, &status, WUNTRACED);
	kill(pid, SIGCONT);
	sleep_ms(20);
	write(fds[1], "x", 1);
	say_status("read over stop and continue", reap(pid));
	return 0;
}
