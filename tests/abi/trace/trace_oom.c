/*
 * trace_oom: a process that stands at its end for a tracer, and has not given its memory back, does not keep others from
 * getting memory: who takes all there is is killed, and the system goes on.
 */
#include "trace.h"

/* Takes memory until it is killed. */
static void take_all(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);
	write(fd, "1000", 4);
	close(fd);
	for (;;) {
		char *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			raise(SIGKILL);
		memset(p, 1, 4 << 20);
	}
}

int main(void)
{
	TRACED(pid, for (;;) pause());
	MUST(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXIT));
	MUST(kill(pid, SIGKILL));
	stop_of("the end", pid);
	CHILD("who takes all memory") {
		take_all();
	} END;
	/* Where memory was needed it may have gone on by itself. */
	errno = 0;
	IS(ptrace(PTRACE_CONT, pid, 0, 0) == 0 || errno == ESRCH);
	stop_of("after it", pid);
	return 0;
}
