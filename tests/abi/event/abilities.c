/*
 * What only some kinds of files can do: O_DIRECT at open and later, O_ASYNC by fcntl and by ioctl, and splice out of them. The
 * signal that O_ASYNC and F_SETSIG give for a byte out of band, beside SIGURG.
 */
#include "check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static void tried(const char *what, int fd)
{
	int on = 1, off = 0, ends[2];
	MUST(fd);
	int flags = fcntl(fd, F_GETFL);
	fcntl(fd, F_SETFL, flags | O_ASYNC);
	int async = fcntl(fd, F_GETFL) & O_ASYNC;
	int set = ioctl(fd, FIOASYNC, &on), e = errno;
	int cleared = ioctl(fd, FIOASYNC, &off);
	printf("%s: O_ASYNC %s, FIOASYNC %s and %d", what, async ? "kept" : "not kept", set ? err_name(e) : "ok", cleared);
	int direct = fcntl(fd, F_SETFL, flags | O_DIRECT);
	printf(", O_DIRECT %s", direct ? err_name(errno) : fcntl(fd, F_GETFL) & O_DIRECT ? "kept" : "not kept");
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	MUST(pipe2(ends, O_NONBLOCK));
	ssize_t n = splice(fd, NULL, ends[1], NULL, 16, SPLICE_F_NONBLOCK);
	SAY(", splice %s", n < 0 ? err_name(errno) : "ok");
	close(ends[0]);
	close(ends[1]);
	close(fd);
}

static void opened(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_DIRECT);
	SAY("%s with O_DIRECT: %s", path, fd < 0 ? err_name(errno) : "ok");
	close(fd);
}

static volatile sig_atomic_t urgent;
static siginfo_t chosen;

static void on_urgent(int signal)
{
	(void)signal;
	urgent++;
}

/* Bytes in band have reasons of their own. */
static void on_chosen(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_code == POLL_PRI)
		chosen = *info;
}

static void told(void)
{
	int pair[2];
	struct sigaction plain = { .sa_handler = on_urgent }, act = { .sa_sigaction = on_chosen, .sa_flags = SA_SIGINFO };
	sigaction(SIGURG, &plain, NULL);
	/* What Linux tells of all else, without a signal of one's own. */
	signal(SIGIO, SIG_IGN);
	sigaction(SIGRTMIN, &act, NULL);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	int copy = dup(pair[1]);
	MUST(fcntl(pair[1], F_SETOWN, getpid()));
	MUST(fcntl(pair[1], F_SETSIG, SIGRTMIN));
	for (int round = 0; round < 5; round++) {
		memset(&chosen, 0, sizeof chosen);
		urgent = 0;
		T(send(pair[0], "X", 1, MSG_OOB));
		SAY("round %d: SIGURG %d, chosen %d, code %d, band %#lx, %s", round, urgent, chosen.si_signo == SIGRTMIN,
		    chosen.si_code, chosen.si_band, chosen.si_fd == copy ? "by the copy" : "by nothing");
		if (round == 0)
			MUST(fcntl(copy, F_SETFL, O_ASYNC));
		if (round == 1)
			MUST(fcntl(pair[1], F_SETOWN, 0));
		if (round == 2)
			MUST(fcntl(pair[1], F_SETOWN, getpid()));
		if (round == 3)
			MUST(fcntl(pair[1], F_SETSIG, 0));
	}
	close(copy);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	int ends[2], pair[2];
	sigset_t none;
	sigemptyset(&none);
	scratch();
	MUST(pipe2(ends, 0));
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair));
	tried("pipe", ends[0]);
	tried("socket", pair[0]);
	tried("TCP", socket(AF_INET, SOCK_STREAM, 0));
	tried("eventfd", eventfd(7, EFD_NONBLOCK));
	struct itimerspec soon = { { 0, 1 }, { 0, 1 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	timerfd_settime(timer, 0, &soon, NULL);
	tried("timerfd", timer);
	tried("epoll", epoll_create1(0));
	tried("signalfd", signalfd(-1, &none, SFD_NONBLOCK));
	tried("inotify", inotify_init1(IN_NONBLOCK));
	tried("file", open("file", O_RDWR | O_CREAT, 0600));
	tried("folder", open(".", O_RDONLY));
	tried("zero", open("/dev/zero", O_RDONLY));
	tried("random", open("/dev/random", O_RDONLY));
	tried("terminal", open("/dev/ptmx", O_RDWR | O_NOCTTY));
	tried("pidfd", (int)syscall(SYS_pidfd_open, getpid(), 0));
	MUST(mkfifo("fifo", 0600));
	tried("fifo", open("fifo", O_RDWR | O_NONBLOCK));
	opened("file");
	opened("fifo");
	opened(".");
	opened("/dev/null");
	opened("/dev/random");
	opened("/dev/ptmx");
	opened("/proc");
	opened("/proc/self/stat");
	opened("/proc/sys/kernel/pid_max");
	int path = (int)OK(open("fifo", O_PATH | O_DIRECT));
	close(path);
	told();
	return 0;
}
