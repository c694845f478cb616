/*
 * A limit of CPU time is set for a process that has ended and was not reaped yet: it can be, and nothing watches it then. On Alea a
 * timer that is still armed shows when the program has ended.
 */
#include "check.h"
#include <sys/resource.h>

int main(void)
{
	struct rlimit old, wanted = { 1000000, 2000000 };
	siginfo_t info;
	pid_t child = (pid_t)MUST(fork());
	if (child == 0)
		_exit(0);
	MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	T(prlimit(child, RLIMIT_CPU, &wanted, NULL));
	T(prlimit(child, RLIMIT_CPU, NULL, &old));
	IS(old.rlim_cur == wanted.rlim_cur && old.rlim_max == wanted.rlim_max);
	say_status("child", reap(child));
	T(prlimit(child, RLIMIT_CPU, NULL, &old));
	return 0;
}
