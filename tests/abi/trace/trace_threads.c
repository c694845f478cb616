/*
 * trace_threads: the threads of a process are traced one by one: each begins with a stop, ends with a report of its own,
 * and stops alone; exec by one of them leaves one with the leader's number.
 */
#include "trace.h"
#include <pthread.h>

static volatile int go_on;

static void *brief(void *argument)
{
	return argument;
}

static void *killer(void *argument)
{
	(void)argument;
	raise(SIGUSR1);
	return NULL;
}

static void *execer(void *argument)
{
	(void)argument;
	execl("/proc/self/exe", "trace_threads", "x", NULL);
	_exit(98);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 40;
	pthread_t thread;

	SAY("-- a thread");
	TRACED(a, { pthread_create(&thread, NULL, brief, NULL); while (!go_on) usleep(1000); pthread_join(thread, NULL); _exit(5); });
	MUST(ptrace(PTRACE_SETOPTIONS, a, 0, PTRACE_O_TRACECLONE));
	go(a, "clone");
	pid_t tid = (pid_t)message_of(a);
	stop_of("the new one", tid);
	T(waitpid(tid, NULL, WNOHANG));
	go(tid, "its end");
	T(waitpid(tid, NULL, __WALL));
	T(ptrace(PTRACE_CONT, tid, 0, 0));
	long word = ptrace(PTRACE_PEEKDATA, a, &go_on, 0);
	MUST(ptrace(PTRACE_POKEDATA, a, &go_on, word | 1));
	go(a, "the end of all");

	SAY("-- a thread's signal stops it alone");
	TRACED(b, { signal(SIGUSR1, SIG_IGN); pthread_create(&thread, NULL, killer, NULL); pthread_join(thread, NULL); sleep_ms(300); _exit(6); });
	MUST(ptrace(PTRACE_SETOPTIONS, b, 0, PTRACE_O_TRACECLONE));
	go(b, "clone");
	tid = (pid_t)message_of(b);
	stop_of("the new one", tid);
	MUST(ptrace(PTRACE_CONT, b, 0, 0));
	go(tid, "raise");
	T(waitpid(b, NULL, WNOHANG | __WALL));
	go(tid, "its end");
	stop_of("the end of all", b);

	SAY("-- all die at once");
	TRACED(c, { pthread_create(&thread, NULL, brief, NULL); pause(); });
	MUST(ptrace(PTRACE_SETOPTIONS, c, 0, PTRACE_O_TRACECLONE));
	go(c, "clone");
	tid = (pid_t)message_of(c);
	stop_of("the new one", tid);
	kill(c, SIGKILL);
	stop_of("the thread", tid);
	stop_of("the leader", c);

	SAY("-- the leader leaves first");
	TRACED(d, { pthread_create(&thread, NULL, killer, NULL); syscall(SYS_exit, 3); });
	MUST(ptrace(PTRACE_SETOPTIONS, d, 0, PTRACE_O_TRACECLONE));
	go(d, "clone");
	tid = (pid_t)message_of(d);
	stop_of("the new one", tid);
	MUST(ptrace(PTRACE_CONT, d, 0, 0));
	sleep_ms(50);
	T(waitpid(d, NULL, WNOHANG | __WALL));
	go(tid, "raise");
	T(waitpid(d, NULL, WNOHANG | __WALL));
	go(tid, "the thread's end");
	stop_of("the leader's", d);

	SAY("-- a thread calls exec");
	TRACED(e, { pthread_create(&thread, NULL, execer, NULL); pause(); });
	MUST(ptrace(PTRACE_SETOPTIONS, e, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC));
	go(e, "clone");
	tid = (pid_t)message_of(e);
	stop_of("the new one", tid);
	MUST(ptrace(PTRACE_CONT, e, 0, 0));
	MUST(ptrace(PTRACE_CONT, tid, 0, 0));
	stop_of("exec", e);
	IS(message_of(e) == (unsigned long)tid);
	T(waitpid(tid, NULL, WNOHANG | __WALL));
	go(e, "the end");

	SAY("-- a thread that nobody traces calls exec: the leader's tracer has nobody any more");
	TRACED(f, { pthread_create(&thread, NULL, execer, NULL); pause(); });
	go(f, "the end");
	T(waitpid(-1, NULL, WNOHANG | __WALL));

	SAY("-- the leader's tracer is another process");
	int told[2], gone[2];
	MUST(pipe(told));
	MUST(pipe(gone));
	pid_t g = (pid_t)MUST(fork());
	if (g == 0) {
		pid_t parent = getppid(), tracer = (pid_t)MUST(fork());
		char byte;
		if (tracer == 0) {
			MUST(ptrace(PTRACE_SEIZE, getppid(), 0, 0));
			MUST(write(told[1], "x", 1));
			T(waitpid(-1, NULL, __WALL));
			_exit(parent == 0);
		}
		MUST(read(told[0], &byte, 1));
		pthread_create(&thread, NULL, execer, NULL);
		pause();
	}
	/* Until the tracer has said what it saw. */
	char nothing;
	MUST(close(gone[1]));
	IS(read(gone[0], &nothing, 1) == 0);
	stop_of("the end", g);
	return 0;
}
