/*
 * Sessions and process groups: setsid, setpgid's rules (leaders, other sessions, children that have exec'd), getpgid,
 * getsid, and orphaned groups, whose stopped members get SIGHUP and SIGCONT.
 */
#include "check.h"

static volatile int hups, conts;

static void on_hup(int s) { hups++; }
static void on_cont(int s) { conts++; }

int main(int argc, char **argv)
{
	if (argc > 1) {
		write(30, "x", 1);
		for (;;)
			pause();
	}
	int fds[2];
	char c;
	MUST(pipe(fds));
	CHILD("in a session of its own") {
		pid_t me = getpid();
		T(setsid() == me);
		T(setsid());
		IS(getsid(0) == me && getpgrp() == me && getpgid(0) == me);
		T(setpgid(0, 0));
		T(setpgid(0, me));
		pid_t kid = (pid_t)MUST(fork());
		if (kid == 0)
			for (;;)
				pause();
		T(setpgid(kid, kid));
		IS(getpgid(kid) == kid);
		IS(getsid(kid) == me);
		T(setpgid(kid, me));
		T(setpgid(kid, 999999));
		T(setpgid(kid, -1));
		T(setpgid(kid, kid));
		T(setpgid(kid, 0));
		T(setpgid(999999999, 0));
		T(setpgid(-1, 0));
		T(getpgid(999999999));
		T(getsid(999999999));
		T(setpgid(getppid(), 0));
		kill(kid, SIGKILL);
		reap(kid);
		/* after exec it is too late */
		kid = (pid_t)MUST(fork());
		if (kid == 0) {
			dup2(fds[1], 30);
			execl("/proc/self/exe", "x", "child", NULL);
			_exit(127);
		}
		read(fds[0], &c, 1);
		T(setpgid(kid, kid));
		kill(kid, SIGKILL);
		reap(kid);
		/* another session's process */
		kid = (pid_t)MUST(fork());
		if (kid == 0) {
			setsid();
			write(fds[1], "x", 1);
			for (;;)
				pause();
		}
		read(fds[0], &c, 1);
		T(setpgid(kid, me));
		IS(getsid(kid) == kid);
		kill(kid, SIGKILL);
		reap(kid);
		/* a leader's group may be joined by its children only while it exists */
		kid = (pid_t)MUST(fork());
		if (kid == 0) {
			T(setpgid(0, 0));
			T(setsid());
			_exit(0);
		}
		reap(kid);
		T(setpgid(0, kid));
	} END;
	/* an orphaned, stopped group */
	CHILD("orphaned group") {
		setsid();
		pid_t middle = (pid_t)MUST(fork());
		if (middle == 0) {
			pid_t kid = (pid_t)MUST(fork());
			if (kid == 0) {
				setpgid(0, 0);
				signal(SIGHUP, on_hup);
				signal(SIGCONT, on_cont);
				write(fds[1], "r", 1);
				raise(SIGSTOP);
				while (!hups || !conts)
					sleep_ms(1);
				SAY("stopped orphan got HUP %d CONT %d", hups, conts);
				/* in an orphaned group TSTP, TTIN and TTOU do not stop */
				raise(SIGTSTP);
				SAY("TSTP did not stop it");
				write(fds[1], "d", 1);
				_exit(0);
			}
			setpgid(kid, kid);
			int status;
			waitpid(kid, &status, WUNTRACED);
			say_status("kid", status);
			_exit(0);
		}
		reap(middle);
		read(fds[0], &c, 1);
		read(fds[0], &c, 1);
	} END;
	return 0;
}
