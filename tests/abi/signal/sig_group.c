/* A signal to a process group, or to everybody, reaches all of a pipeline before one of them runs: on one CPU its reader dies of the
 * signal, and never sees the end of the pipe that its writer's death makes. */
#include "check.h"

#include <sched.h>

enum { ROUNDS = 300 };

static pid_t member(pid_t group, int keep, int drop)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid)
		return pid;
	char byte;
	MUST(setpgid(0, group));
	close(drop);
	/* The writer sleeps for ever, the reader ends well at the end of the pipe. */
	if (fcntl(keep, F_GETFL) == O_WRONLY)
		for (;;)
			pause();
	_exit(read(keep, &byte, 1) == 0 ? 0 : 1);
}

/* How many readers of `ROUNDS` pipelines die of the signal, sent to their group or to all that the caller may kill. */
static int killed_readers(int all)
{
	int killed = 0;
	for (int i = 0; i < ROUNDS; i++) {
		int ends[2];
		MUST(pipe(ends));
		pid_t writer = member(0, ends[1], ends[0]);
		MUST(setpgid(writer, writer));
		pid_t reader = member(writer, ends[0], ends[1]);
		close(ends[0]);
		close(ends[1]);
		MUST(wait_state(writer, "S") && wait_state(reader, "S") ? 0 : -1);
		MUST(kill(all ? -1 : -writer, SIGTERM));
		int status;
		MUST(waitpid(writer, NULL, 0));
		MUST(waitpid(reader, &status, 0));
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
	}
	return killed;
}

int main(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	MUST(sched_setaffinity(0, sizeof one, &one));
	SAY("readers that died of the group's signal: %d of %d", killed_readers(0), ROUNDS);
	/* Nobody else has this user. */
	MUST(setresuid(12345, 12345, 12345));
	SAY("readers that died of everybody's signal: %d of %d", killed_readers(1), ROUNDS);
	return 0;
}
