/* TIOCSPGRP with the number of a process that leads no group: Linux takes it if the process is of the session. */
#define _GNU_SOURCE
#include "check.h"
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <signal.h>

int main(void)
{
	setbuf(stdout, NULL);
	int m = (int)MUST(posix_openpt(O_RDWR | O_NOCTTY));
	MUST(grantpt(m)); MUST(unlockpt(m));
	if (fork() == 0) {
		int ends[2], fg = 0;
		MUST(setsid());
		int s = (int)MUST(open(ptsname(m), O_RDWR));
		signal(SIGTTOU, SIG_IGN);
		MUST(pipe(ends));
		int child = (int)MUST(fork());
		if (child == 0) {
			char c;
			close(ends[1]);
			if (read(ends[0], &c, 1) == 1) {
				MUST(setpgid(0, 0));
				SAY("child is in the foreground: %d", tcgetpgrp(s) == getpid());
			}
			_exit(0);
		}
		T(ioctl(s, TIOCSPGRP, &child));
		T(ioctl(s, TIOCGPGRP, &fg));
		SAY("it is the child: %d", fg == child);
		int other = getppid();
		T(ioctl(s, TIOCSPGRP, &other));
		other = 0;
		T(ioctl(s, TIOCSPGRP, &other));
		other = 1;
		T(ioctl(s, TIOCSPGRP, &other));
		MUST(write(ends[1], "", 1));
		wait(NULL);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
