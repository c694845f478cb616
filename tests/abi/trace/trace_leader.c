/*
 * trace_leader: a traced leader that ends while another thread goes on: its tracer gets the signal at once, though `wait` finds
 * the leader only when the other one is gone. Debuggers sleep until a signal comes, and look for zombies then.
 */
#include "trace.h"
#include <pthread.h>

static pid_t leader, thread;
static int go_on[2];

static void *waits(void *argument)
{
	char c;
	MUST(read(go_on[0], &c, 1));
	syscall(SYS_exit, 5);
	return argument;
}

/* The signal that comes within so many milliseconds. */
static void told(const char *what, long ms)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	siginfo_t info;
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
	if (sigtimedwait(&set, &info, &time) < 0)
		printf("%s: %s\n", what, err_name(errno));
	else
		printf("%s: of the %s, code %d, status %d\n", what,
		       info.si_pid == leader ? "leader" : info.si_pid == thread ? "thread" : "?", info.si_code, info.si_status);
}

static void ends(const char *name, long options)
{
	SAY("-- %s", name);
	MUST(pipe(go_on));
	pthread_t other;
	TRACED(pid, { pthread_create(&other, NULL, waits, NULL); syscall(SYS_exit, 3); });
	leader = pid;
	MUST(ptrace(PTRACE_SETOPTIONS, leader, 0, PTRACE_O_TRACECLONE | options));
	go(leader, "clone");
	thread = (pid_t)message_of(leader);
	stop_of("the new one", thread);
	MUST(ptrace(PTRACE_CONT, thread, 0, 0));
	told("before", 0);
	MUST(ptrace(PTRACE_CONT, leader, 0, 0));
	if (options & PTRACE_O_TRACEEXIT) {
		stop_of("the leader's end", leader);
		told("its stop", 0);
		MUST(ptrace(PTRACE_CONT, leader, 0, 0));
	}
	told("the leader ends", 5000);
	wait_state(leader, "Z");
	T(waitpid(leader, NULL, WNOHANG | __WALL));
	MUST(write(go_on[1], "x", 1));
	if (options & PTRACE_O_TRACEEXIT) {
		stop_of("the thread's end", thread);
		told("its stop", 0);
		MUST(ptrace(PTRACE_CONT, thread, 0, 0));
	}
	stop_of("the thread", thread);
	stop_of("the leader", leader);
	told("at the end", 0);
	close(go_on[0]);
	close(go_on[1]);
}

int main(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL));
	ends("a leader ends", 0);
	ends("a leader ends, with a stop before", PTRACE_O_TRACEEXIT);
	return 0;
}
