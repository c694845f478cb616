/*
 * wait4 and waitid: encodings of exit, signal, stop and continue, WNOHANG, WUNTRACED, WCONTINUED,
 * WNOWAIT, selection by pid and group, ECHILD, SIGCHLD ignored, siginfo and rusage.
 */
#include "check.h"
#include <sys/resource.h>

static pid_t spawn_exit(int code)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit(code);
	return pid;
}

static pid_t spawn_pause(void)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static const char *code_name(int code)
{
	static const char *const names[] = { "?", "EXITED", "KILLED", "DUMPED", "TRAPPED", "STOPPED", "CONTINUED" };
	return code >= 1 && code <= 6 ? names[code] : "none";
}

static void say_info(const char *what, const siginfo_t *i, pid_t pid)
{
	SAY("%s: signo %s code %s status %d pid %s uid %d", what, i->si_signo ? sig_name(i->si_signo) : "0",
	    code_name(i->si_code), i->si_status, i->si_pid == pid ? "right" : i->si_pid ? "wrong" : "0",
	    i->si_uid);
}

static void by_waitid(void)
{
	siginfo_t info;
	SAY("-- waitid");
	pid_t pid = spawn_exit(3);
	memset(&info, 0xff, sizeof info);
	T(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
	say_info("nowait", &info, pid);
	T(waitid(P_PID, pid, &info, WEXITED));
	say_info("exited", &info, pid);
	T(waitid(P_PID, pid, &info, WEXITED));
	pid = spawn_pause();
	memset(&info, 0xff, sizeof info);
	T(waitid(P_PID, pid, &info, WEXITED | WNOHANG));
	say_info("nohang", &info, pid);
	kill(pid, SIGSTOP);
	T(waitid(P_PID, pid, &info, WSTOPPED));
	say_info("stopped", &info, pid);
	kill(pid, SIGCONT);
	T(waitid(P_ALL, 0, &info, WCONTINUED));
	say_info("continued", &info, pid);
	kill(pid, SIGKILL);
	T(waitid(P_PGID, 0, &info, WEXITED));
	say_info("killed", &info, pid);
	T(waitid(P_ALL, 0, &info, WEXITED));
	T(waitid(P_ALL, 0, &info, 0));
	T(waitid(P_ALL, 0, &info, WNOHANG));
	T(waitid(P_ALL, 0, &info, WEXITED | 0x100));
	T(waitid(P_PID, 0, &info, WEXITED));
	T(waitid(99, 0, &info, WEXITED));
	T(waitid(P_PID, -1, &info, WEXITED));
	pid = spawn_exit(4);
	T(waitid(P_PID, pid, NULL, WEXITED));
	int pidfd;
	pid = spawn_exit(5);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	T(waitid(P_PIDFD, pidfd, &info, WEXITED));
	say_info("pidfd", &info, pid);
	close(pidfd);
}

int main(void)
{
	int status;
	pid_t pid;
	T(waitpid(-1, &status, 0));
	T(waitpid(1234567, &status, 0));
	T(waitpid(-1234567, &status, 0));
	T(waitpid(-1, &status, 0x40));
	T(waitpid(INT_MIN, &status, 0));
	static const int codes[] = { 0, 1, 127, 255, 256, 257, -1 };
	for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		waitpid(spawn_exit(codes[i]), &status, 0);
		SAY("_exit(%d) gives %#x", codes[i], status);
	}
	static const int signals[] = { SIGTERM, SIGKILL, SIGHUP, SIGSEGV, SIGABRT, SIGPIPE, SIGUSR1, 40 };
	for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		pid = spawn_pause();
		kill(pid, signals[i]);
		waitpid(pid, &status, 0);
		SAY("signal %d gives %#x", signals[i], status);
	}
	pid = spawn_pause();
	T(waitpid(pid, &status, WNOHANG));
	kill(pid, SIGSTOP);
	IS(waitpid(pid, &status, WUNTRACED) == pid);
	SAY("stop gives %#x", status);
	T(waitpid(pid, &status, WUNTRACED | WNOHANG));
	kill(pid, SIGCONT);
	IS(waitpid(pid, &status, WCONTINUED) == pid);
	SAY("continue gives %#x", status);
	T(waitpid(pid, &status, WCONTINUED | WNOHANG));
	/* TSTP stops nobody in an orphaned group: give it one that is not */
	MUST(setpgid(pid, pid));
	kill(pid, SIGTSTP);
	IS(waitpid(pid, &status, WUNTRACED) == pid);
	say_status("TSTP", status);
	/* a stopped process can be killed */
	kill(pid, SIGKILL);
	say_status("killed while stopped", reap(pid));
	/* any child, in the order of their deaths */
	pid_t a = spawn_exit(1);
	wait_state(a, "Z");
	pid_t b = spawn_exit(2);
	wait_state(b, "Z");
	IS(wait(&status) == a);
	IS(wait(&status) == b);
	/* groups */
	a = spawn_pause();
	b = spawn_pause();
	MUST(setpgid(a, a));
	MUST(setpgid(b, a));
	T(waitpid(0, &status, WNOHANG));
	T(waitpid(-a, &status, WNOHANG));
	kill(-a, SIGTERM);
	IS(waitpid(-a, &status, 0) > 0);
	IS(waitpid(-a, &status, 0) > 0);
	T(waitpid(-a, &status, 0));
	/* another's child */
	CHILD("not my child") {
		T(waitpid(getppid(), &status, 0));
	} END;
	/* rusage */
	struct rusage ru;
	memset(&ru, 0xff, sizeof ru);
	IS(wait4(spawn_exit(0), &status, 0, &ru) > 0);
	IS(ru.ru_utime.tv_sec == 0 && ru.ru_minflt >= 0);
	/* ignoring SIGCHLD: children vanish, wait sleeps until the last is gone, then ECHILD */
	signal(SIGCHLD, SIG_IGN);
	spawn_exit(1);
	spawn_exit(2);
	T(wait(&status));
	signal(SIGCHLD, SIG_DFL);
	struct sigaction sa = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	sigaction(SIGCHLD, &sa, NULL);
	spawn_exit(1);
	T(wait(&status));
	signal(SIGCHLD, SIG_DFL);
	by_waitid();
	return 0;
}
