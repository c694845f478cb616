/*
 * trace_ends: a tracee that is killed in each of its states, with and without PTRACE_O_TRACEEXIT: one that was asked for
 * stops at its end even if it was killed, and no further kill ends that stop. PTRACE_KILL, PTRACE_DETACH in each state,
 * a signal given at an event, tracers that end with their tracees in such stops.
 */
#include "trace.h"
#include <pthread.h>
#include <sys/prctl.h>

static void *sleeper(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* A tracee that sleeps in pause once it goes on. */
static pid_t tracee(long options)
{
	TRACED(pid, for (;;) pause());
	MUST(ptrace(PTRACE_SETOPTIONS, pid, 0, options));
	return pid;
}

/* Its stop at the end, then its end. */
static void last_stop(pid_t pid)
{
	int status = stop_of("the end", pid);
	if (!WIFSTOPPED(status))
		return;
	printf("it says %#lx\n", message_of(pid));
	MUST(kill(pid, SIGKILL));
	sleep_ms(50);
	T(waitpid(pid, NULL, WNOHANG | __WALL));
	go(pid, "after it");
}

enum state { STANDS, SLEEPS, IN_A_CALL, STATES };
static const char *const names[] = { "stands", "sleeps", "stands in a call" };

static pid_t in_state(enum state state, long options)
{
	pid_t pid = tracee(options);
	if (state == SLEEPS) {
		MUST(ptrace(PTRACE_CONT, pid, 0, 0));
		wait_state(pid, "S");
	}
	if (state == IN_A_CALL) {
		MUST(ptrace(PTRACE_SYSCALL, pid, 0, 0));
		stop_of("a call", pid);
	}
	return pid;
}

static void kills(void)
{
	for (enum state state = STANDS; state < STATES; state++)
		for (int asks = 0; asks < 2; asks++) {
			SAY("-- killed where it %s%s", names[state], asks ? ", with a stop at the end" : "");
			pid_t pid = in_state(state, asks ? PTRACE_O_TRACEEXIT : 0);
			MUST(kill(pid, SIGKILL));
			last_stop(pid);
		}
	for (enum state state = STANDS; state < STATES; state++) {
		SAY("-- PTRACE_KILL where it %s", names[state]);
		pid_t pid = in_state(state, PTRACE_O_TRACEEXIT);
		T(ptrace(PTRACE_KILL, pid, 0, 0));
		if (state == SLEEPS)
			MUST(kill(pid, SIGKILL));
		last_stop(pid);
	}
}

static void detaches(void)
{
	for (enum state state = STANDS; state < STATES; state++) {
		SAY("-- detached where it %s", names[state]);
		pid_t pid = in_state(state, PTRACE_O_TRACEEXIT);
		T(ptrace(PTRACE_DETACH, pid, 0, (long)SIGTERM));
		if (state == SLEEPS)
			MUST(kill(pid, SIGKILL));
		stop_of("the end", pid);
	}
	SAY("-- detached at its end");
	pid_t pid = tracee(PTRACE_O_TRACEEXIT);
	MUST(kill(pid, SIGKILL));
	stop_of("the end", pid);
	T(ptrace(PTRACE_DETACH, pid, 0, 0));
	stop_of("after it", pid);
}

static void gives(void)
{
	SAY("-- a signal given at an event is lost");
	TRACED(pid, { pid_t child = fork(); if (child == 0) _exit(0); waitpid(child, NULL, 0); _exit(7); });
	MUST(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEFORK | PTRACE_O_TRACEEXIT));
	go(pid, "fork");
	pid_t child = (pid_t)message_of(pid);
	MUST(ptrace(PTRACE_CONT, pid, 0, (long)SIGTERM));
	stop_of("the new one", child);
	MUST(ptrace(PTRACE_DETACH, child, 0, 0));
	stop_of("its parent", pid);
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_of("the end", pid);
	MUST(ptrace(PTRACE_CONT, pid, 0, (long)SIGTERM));
	stop_of("after it", pid);
	SAY("-- and given at a call it is not");
	pid = in_state(IN_A_CALL, 0);
	MUST(ptrace(PTRACE_CONT, pid, 0, (long)SIGTERM));
	stop_of("the signal", pid);
	MUST(ptrace(PTRACE_CONT, pid, 0, (long)SIGTERM));
	stop_of("the end", pid);
}

/* Two threads, both traced: each has a stop at its end. */
static void threads(void)
{
	SAY("-- two threads");
	pthread_t thread;
	TRACED(pid, { pthread_create(&thread, NULL, sleeper, NULL); pause(); });
	MUST(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT));
	go(pid, "clone");
	pid_t tid = (pid_t)message_of(pid);
	stop_of("the new one", tid);
	MUST(ptrace(PTRACE_CONT, tid, 0, 0));
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	MUST(kill(pid, SIGKILL));
	stop_of("the thread", tid);
	stop_of("the leader", pid);
	go(tid, "the thread is gone");
	go(pid, "the leader is gone");
}

/* Two that trace each other: a kill of both ends both. */
static int circle(long options)
{
	int ready[2];
	MUST(pipe(ready));
	pid_t a = (pid_t)MUST(fork());
	if (a == 0) {
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		pid_t b = (pid_t)MUST(fork());
		if (b == 0) {
			MUST(ptrace(PTRACE_SEIZE, getppid(), 0, options));
			pid_t none = 0;
			MUST(write(ready[1], &none, sizeof none));
			for (;;)
				pause();
		}
		MUST(ptrace(PTRACE_SEIZE, b, 0, options));
		MUST(write(ready[1], &b, sizeof b));
		for (;;)
			pause();
	}
	/* each writes a word when it traces the other: which comes first is chance */
	pid_t words[2];
	for (int i = 0; i < 2; i++)
		MUST(read(ready[0], &words[i], sizeof words[i]) == sizeof words[i] ? 0 : -1);
	pid_t b = words[0] ? words[0] : words[1];
	kill(b, SIGKILL);
	kill(a, SIGKILL);
	return reap(a);
}

/* Many that stand in all states when their tracer ends: none is left. */
static void crowd(long options)
{
	int alive[2];
	MUST(pipe(alive));
	pid_t tracer = (pid_t)MUST(fork());
	if (tracer == 0) {
		for (int i = 0; i < 240; i++) {
			pid_t pid = (pid_t)MUST(fork());
			if (pid == 0) {
				MUST(ptrace(PTRACE_TRACEME, 0, 0, 0));
				raise(SIGSTOP);
				for (;;)
					pause();
			}
			MUST(waitpid(pid, NULL, __WALL));
			MUST(ptrace(PTRACE_SETOPTIONS, pid, 0, options));
			if (i % 3 == 0)
				MUST(kill(pid, SIGKILL));
			if (i % 3 == 1)
				MUST(ptrace(PTRACE_SYSCALL, pid, 0, 0));
		}
		_exit(0);
	}
	close(alive[1]);
	say_status("the tracer", reap(tracer));
	if (!(options & PTRACE_O_EXITKILL)) {
		/* Those that nobody killed go on, and hold the pipe: this one ends them. */
		DIR *dir = opendir("/proc");
		for (struct dirent *d; (d = readdir(dir));) {
			char path[300], text[64] = "";
			snprintf(path, sizeof path, "/proc/%s/comm", d->d_name);
			int fd = open(path, O_RDONLY);
			if (fd < 0)
				continue;
			read(fd, text, sizeof text - 1);
			close(fd);
			if (atoi(d->d_name) > 1 && atoi(d->d_name) != getpid() && strcmp(text, "crowd\n") == 0)
				kill(atoi(d->d_name), SIGKILL);
		}
		closedir(dir);
	}
	char byte;
	IS(read(alive[0], &byte, 1) == 0);
	close(alive[0]);
}

int main(void)
{
	kills();
	detaches();
	gives();
	threads();
	SAY("-- a circle of tracers");
	int status = circle(0);
	say_status("the first", status);
	/* With stops at their ends Linux 6.12 leaves both standing for ever, and has no such file. */
	if (access("/proc/alea", F_OK) == 0 && circle(PTRACE_O_TRACEEXIT) != status)
		SAY("the first did not end");
	prctl(PR_SET_NAME, "crowd");
	SAY("-- a crowd whose tracer ends");
	crowd(PTRACE_O_TRACEEXIT);
	SAY("-- and takes it along");
	crowd(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
	return 0;
}
