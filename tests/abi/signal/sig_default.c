/*
 * The default action of every signal: terminate, ignore, stop or continue; and of those that would dump core
 * the status says so only when a core was written (the limit is 0 here).
 */
#include "check.h"
#include <sys/resource.h>

int main(void)
{
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	for (int sig = 1; sig <= 64; sig++) {
		int status;
		if (sig == 32 || sig == 33)	/* kept by the C library */
			continue;
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			setpgid(0, 0);
			kill(getpid(), sig);
			_exit(0);
		}
		setpgid(pid, pid);
		waitpid(pid, &status, WUNTRACED);
		if (WIFSTOPPED(status)) {
			SAY("%d: stopped by %d", sig, WSTOPSIG(status));
			kill(pid, SIGCONT);
			waitpid(pid, &status, WCONTINUED);
			if (WIFCONTINUED(status))
				waitpid(pid, &status, 0);
		}
		SAY("%d: status %#x", sig, status);
	}
	return 0;
}
