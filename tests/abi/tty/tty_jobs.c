/*
 * Job control on a pseudo-terminal: becoming its session's leader, /dev/tty, foreground groups, ^C ^\ ^Z to the
 * foreground only, SIGTTIN and SIGTTOU for the background, EIO when TTIN is ignored, SIGWINCH, SIGHUP at hang-up, TIOCNOTTY.
 */
#include "check.h"
#include <sys/ioctl.h>
#include <termios.h>

static int m, s;
static volatile int winches, hups, ints;

static void on_winch(int x) { winches++; }
static void on_hup(int x) { hups++; }
static void on_int(int x) { ints++; }

static void wait_for(volatile int *what)
{
	for (int i = 0; i < LONG_MS / 5 && !*what; i++)
		sleep_ms(5);
}

static pid_t job(void (*body)(void))
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		setpgid(0, 0);
		close(m);
		signal(SIGINT, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		signal(SIGWINCH, SIG_DFL);
		body();
		_exit(0);
	}
	setpgid(pid, pid);
	return pid;
}

static void reads(void)
{
	char c;
	long n = read(s, &c, 1);
	SAY("background read: %s", n < 0 ? err_name(errno) : "data");
}

static void reads_blocked(void)
{
	signal(SIGTTIN, SIG_IGN);
	reads();
}

static void writes(void)
{
	long n = write(s, "bg", 2);
	SAY("background write: %s", n < 0 ? err_name(errno) : "ok");
}

static void sets(void)
{
	struct termios t;
	tcgetattr(s, &t);
	SAY("background tcsetattr: %s", tcsetattr(s, TCSANOW, &t) < 0 ? err_name(errno) : "ok");
}

static void sets_ignoring(void)
{
	signal(SIGTTOU, SIG_IGN);
	sets();
	T(tcsetpgrp(s, getpgrp()));
}

static void takes_front(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, NULL);
	T(tcsetpgrp(s, getpgrp()));
	IS(tcgetpgrp(s) == getpgrp());
}

static void waits(void)
{
	for (;;)
		pause();
}

static void stop_status(const char *what, pid_t pid)
{
	int status = 0;
	waitpid(pid, &status, WUNTRACED);
	say_status(what, status);
}

static void leader(void)
{
	int n = -1, lock = 0, status;
	char name[32];
	m = (int)MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	MUST(ioctl(m, TIOCGPTN, &n));
	MUST(ioctl(m, TIOCSPTLCK, &lock));
	snprintf(name, sizeof name, "/dev/pts/%d", n);
	T(open("/dev/tty", O_RDWR));
	s = (int)MUST(open(name, O_RDWR | O_NOCTTY));
	T(tcgetpgrp(s));
	T(open("/dev/tty", O_RDWR));
	T(ioctl(s, TIOCSCTTY, 0));
	T(close(open("/dev/tty", O_RDWR)));
	IS(tcgetpgrp(s) == getpgrp());
	IS(tcgetsid(s) == getpid());
	T(ioctl(s, TIOCSCTTY, 0));
	T(tcsetpgrp(s, 999999));
	T(tcsetpgrp(s, getppid()));
	T(tcsetpgrp((int)open("/dev/null", O_RDWR), getpgrp()));

	pid_t pid = job(reads);
	stop_status("reads", pid);
	kill(pid, SIGKILL);
	reap(pid);
	say_status("reads, ignoring TTIN", reap(job(reads_blocked)));
	say_status("writes", reap(job(writes)));
	pid = job(sets);
	stop_status("sets", pid);
	kill(pid, SIGKILL);
	reap(pid);
	struct termios t;
	tcgetattr(s, &t);
	t.c_lflag |= TOSTOP;
	tcsetattr(s, TCSANOW, &t);
	pid = job(writes);
	stop_status("writes with TOSTOP", pid);
	kill(pid, SIGKILL);
	reap(pid);
	t.c_lflag &= ~(tcflag_t)TOSTOP;
	tcsetattr(s, TCSANOW, &t);
	say_status("sets, ignoring TTOU", reap(job(sets_ignoring)));
	/* the last took the foreground: take it back */
	takes_front();

	/* keys go to the foreground group only */
	signal(SIGINT, on_int);
	pid_t back = job(waits), front = job(waits);
	T(tcsetpgrp(s, front));
	wait_state(front, "S");
	write(m, "\003", 1);
	say_status("^C", reap(front));
	SAY("leader's ints %d", ints);
	T(waitpid(back, &status, WNOHANG));
	front = job(waits);
	tcsetpgrp(s, front);
	wait_state(front, "S");
	write(m, "\032", 1);
	stop_status("^Z", front);
	tcsetpgrp(s, getpgrp());
	tcsetpgrp(s, front);
	kill(-front, SIGCONT);
	waitpid(front, &status, WCONTINUED);
	say_status("fg", status);
	write(m, "\034", 1);
	say_status("^\\", reap(front));
	/* ISIG off: a byte like any other */
	tcsetpgrp(s, getpgrp());
	tcgetattr(s, &t);
	t.c_lflag &= ~(tcflag_t)(ISIG | ECHO);
	tcsetattr(s, TCSANOW, &t);
	write(m, "\003\n", 2);
	char buf[8];
	T(read(s, buf, 8));
	t.c_lflag |= ISIG;
	tcsetattr(s, TCSANOW, &t);
	/* ^C flushes what was typed; NOFLSH keeps it */
	ints = 0;
	write(m, "typed\003x\n", 8);
	wait_for(&ints);
	T(read(s, buf, 8));
	SAY("ints %d", ints);
	/* signals by ioctl */
	ints = 0;
	T(ioctl(m, TIOCSIG, SIGINT));
	wait_for(&ints);
	SAY("ints %d", ints);
	/* window changes */
	signal(SIGWINCH, on_winch);
	struct winsize w = { 10, 20, 0, 0 };
	ioctl(m, TIOCSWINSZ, &w);
	wait_for(&winches);
	SAY("winches %d", winches);
	ioctl(m, TIOCSWINSZ, &w);
	sleep_ms(20);
	SAY("same size: winches %d", winches);
	/* hang-up: the leader gets HUP and CONT, the foreground group only when the leader goes */
	front = job(waits);
	tcsetpgrp(s, front);
	signal(SIGHUP, on_hup);
	close(m);
	wait_for(&hups);
	SAY("leader's hups %d", hups);
	sleep_ms(20);
	T(waitpid(front, &status, WNOHANG));
	T(waitpid(back, &status, WNOHANG));
	T(read(s, buf, 1));
	T(open("/dev/tty", O_RDWR));
	kill(back, SIGKILL);
	reap(back);
	kill(front, SIGKILL);
	reap(front);
}

static void gives_up(void)
{
	int n = -1, lock = 0;
	char name[32];
	m = (int)MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	MUST(ioctl(m, TIOCGPTN, &n));
	MUST(ioctl(m, TIOCSPTLCK, &lock));
	snprintf(name, sizeof name, "/dev/pts/%d", n);
	/* a session leader without a terminal gets the first it opens */
	s = (int)MUST(open(name, O_RDWR));
	T(close(open("/dev/tty", O_RDWR)));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		T(ioctl(s, TIOCNOTTY, 0));
		T(open("/dev/tty", O_RDWR));
		_exit(0);
	}
	say_status("a member gives it up", reap(pid));
	T(close(open("/dev/tty", O_RDWR)));
	signal(SIGHUP, on_hup);
	T(ioctl(s, TIOCNOTTY, 0));
	T(open("/dev/tty", O_RDWR));
	SAY("hups %d", hups);
}

int main(void)
{
	CHILD("leader") {
		setsid();
		leader();
	} END;
	CHILD("gives up") {
		setsid();
		gives_up();
	} END;
	return 0;
}
