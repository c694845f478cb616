/*
 * The foreground group of a terminal is a group, not its number: who gets the number once the group is gone gets no signals from there.
 */
#include "check.h"
#include <sys/ioctl.h>
#include <termios.h>

#define MOST "/proc/sys/kernel/pid_max"

/* So few numbers that each comes again soon. */
static void few_numbers(int above)
{
	FILE *f = fopen(MOST, "w");
	if (!f || fprintf(f, "%d\n", above + 300) < 0 || fclose(f) != 0) {
		SAY("SETUP " MOST);
		_exit(99);
	}
}

int main(void)
{
	int ready[2], go[2], status;
	char most[32] = "", c;
	pid_t group = 0;
	setbuf(stdout, NULL);
	int fd = (int)MUST(open(MOST, O_RDWR));
	ssize_t len = MUST(read(fd, most, sizeof most));
	int master = (int)MUST(posix_openpt(O_RDWR | O_NOCTTY));
	MUST(grantpt(master));
	MUST(unlockpt(master));
	MUST(pipe(ready));
	MUST(pipe(go));
	pid_t leader = (pid_t)MUST(fork());
	if (leader == 0) {
		MUST(setsid());
		int slave = (int)MUST(open(ptsname(master), O_RDWR));
		signal(SIGTTOU, SIG_IGN);
		group = (pid_t)MUST(fork());
		if (group == 0) {
			pause();
			_exit(0);
		}
		MUST(setpgid(group, group));
		MUST(tcsetpgrp(slave, group));
		MUST(kill(group, SIGKILL));
		MUST(waitpid(group, NULL, 0));
		MUST(write(ready[1], &group, sizeof group));
		MUST(read(go[0], &c, 1));
		_exit(0);
	}
	MUST(read(ready[0], &group, sizeof group));
	few_numbers(group);
	pid_t again = 0;
	for (int tries = 0; tries < 20000 && again != group; tries++) {
		again = (pid_t)MUST(fork());
		if (again == 0) {
			signal(SIGINT, SIG_DFL);
			setpgid(0, 0);
			pause();
			_exit(0);
		}
		if (again != group) {
			MUST(kill(again, SIGKILL));
			MUST(waitpid(again, NULL, 0));
		}
	}
	if (again != group) {
		SAY("SETUP the number does not come again");
		return 99;
	}
	while (getpgid(again) != again)
		sleep_ms(1);
	MUST(write(master, "\003", 1));
	sleep_ms(300);
	int r = waitpid(again, &status, WNOHANG);
	SAY("who has the number now: %s", r == 0 ? "lives" : WIFSIGNALED(status) ? sig_name(WTERMSIG(status)) : "?");
	kill(again, SIGKILL);
	MUST(write(go[1], "e", 1));
	MUST(waitpid(leader, &status, 0));
	MUST(pwrite(fd, most, (size_t)len, 0));
	return 0;
}
