/*
 * kill: permissions (same user, root, SIGCONT in the session), groups, 0 as a probe, errors, signals to
 * zombies and to stopped processes, and what SIGCONT and SIGSTOP undo.
 */
#include "check.h"

static pid_t pauser(uid_t uid)
{
	int fds[2];
	char c;
	MUST(pipe(fds));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		if (uid)
			MUST(setresuid(uid, uid, uid));
		write(fds[1], "r", 1);
		for (;;)
			pause();
	}
	read(fds[0], &c, 1);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

int main(void)
{
	int status;
	T(kill(getpid(), 0));
	T(kill(getpid(), 65));
	T(kill(getpid(), -1));
	T(kill(999999999, 0));
	T(kill(-999999999, SIGTERM));
	T(kill(INT_MIN, SIGTERM));
	T(kill(999999999, 99));
	pid_t root = pauser(0), user = pauser(1000), other = pauser(1001);
	CHILD("as uid 1000") {
		MUST(setresuid(1000, 1000, 1000));
		T(kill(root, 0));
		T(kill(root, SIGTERM));
		T(kill(other, SIGTERM));
		T(kill(other, SIGCONT));
		T(kill(user, 0));
		T(kill(user, SIGTERM));
		T(kill(1, 0));
		T(kill(getppid(), SIGKILL));
	} END;
	say_status("user", reap(user));
	user = pauser(1000);
	CHILD("real 1000, effective 0") {
		MUST(setresuid(1000, 0, 0));
		T(kill(other, 0));
	} END;
	CHILD("real 0, effective 1000") {
		MUST(setresuid(0, 1000, 0));
		T(kill(other, 0));
		T(kill(user, 0));
		T(kill(root, 0));
	} END;
	CHILD("another session: no SIGCONT") {
		setsid();
		MUST(setresuid(1000, 1000, 1000));
		T(kill(other, SIGCONT));
	} END;
	/* groups */
	MUST(setpgid(root, root));
	MUST(setpgid(user, root));
	CHILD("group, as uid 1000") {
		MUST(setresuid(1000, 1000, 1000));
		T(kill(-root, SIGTERM));
	} END;
	say_status("user in the group", reap(user));
	T(waitpid(root, &status, WNOHANG));
	T(kill(-root, SIGTERM));
	say_status("root in the group", reap(root));
	T(kill(-root, 0));
	/* a zombie takes signals and does nothing */
	pid_t z = (pid_t)MUST(fork());
	if (z == 0)
		_exit(3);
	wait_state(z, "Z");
	T(kill(z, SIGKILL));
	say_status("zombie", reap(z));
	T(kill(z, 0));
	/* stop, then terminate: TERM waits for CONT, KILL does not */
	kill(other, SIGSTOP);
	waitpid(other, &status, WUNTRACED);
	kill(other, SIGTERM);
	sleep_ms(20);
	T(waitpid(other, &status, WNOHANG | WUNTRACED));
	IS(wait_state(other, "T"));
	kill(other, SIGCONT);
	say_status("continued", reap(other));
	/* SIGCONT discards pending stops and the reverse, even when blocked */
	sigset_t all, pending;
	sigfillset(&all);
	CHILD("stop and continue") {
		sigprocmask(SIG_SETMASK, &all, NULL);
		kill(getpid(), SIGTSTP);
		sigpending(&pending);
		SAY("TSTP pending %d", sigismember(&pending, SIGTSTP));
		kill(getpid(), SIGCONT);
		sigpending(&pending);
		SAY("TSTP pending %d CONT pending %d", sigismember(&pending, SIGTSTP), sigismember(&pending, SIGCONT));
		signal(SIGCONT, SIG_DFL);
		kill(getpid(), SIGTTIN);
		sigpending(&pending);
		SAY("TTIN pending %d CONT pending %d", sigismember(&pending, SIGTTIN), sigismember(&pending, SIGCONT));
	} END;
	/* kill(-1) as a user reaches only the user's own */
	pid_t a = pauser(2000), b = pauser(2001);
	CHILD("kill(-1) as uid 2000") {
		MUST(setresuid(2000, 2000, 2000));
		T(kill(-1, SIGTERM));
	} END;
	say_status("a", reap(a));
	T(waitpid(b, &status, WNOHANG));
	kill(b, SIGKILL);
	say_status("b", reap(b));
	/* tgkill to oneself is synchronous */
	signal(SIGUSR1, SIG_IGN);
	T(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1));
	return 0;
}
