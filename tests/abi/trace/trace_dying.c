/*
 * trace_dying: who is on its way to its end, a thread or a process, may be traced anew until it has ended. Then it is refused
 * (EPERM), and /proc says so (Z). A thread that ended is a zombie until its tracer has seen that.
 */
#include "trace.h"
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#define FILES 30000
/* Tries until one is seen between its memory's end and its own, which takes that it is preempted there. */
#define TRIES 300

/* What the status says: the state's letter, or 0 if there is none; and whether memory is gone and a tracer there. */
static char status_of(int pid, int tid, int *has_memory, int *is_traced)
{
	char path[64], text[4096];
	snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *state = strstr(text, "State:\t"), *tracer = strstr(text, "TracerPid:\t");
	*has_memory = strstr(text, "VmSize:") != NULL;
	*is_traced = tracer && atoi(tracer + 11) != 0;
	return state ? state[7] : 0;
}

static int dying, refused_alive;

/* Whether it was seized; `dying` if its memory was gone then. */
static int seized(int pid, int tid)
{
	int memory = 1, traced;
	char state = status_of(pid, tid, &memory, &traced);
	int was_dying = state && !memory && !strchr("ZX", state);
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) == 0) {
		dying += was_dying;
		return 1;
	}
	state = errno == EPERM ? status_of(pid, tid, &memory, &traced) : 0;
	if (state && !strchr("ZX", state))
		refused_alive++;
	return 0;
}

/* How a task ended that is waited for, which stands as `state` before. */
static void end_of(const char *what, int pid, int tid, int *told)
{
	siginfo_t info = { 0 };
	int memory, traced, status = -1;
	MUST(waitid(P_PID, tid, &info, WEXITED | WNOWAIT | __WALL));
	char state = status_of(pid, tid, &memory, &traced);
	pid_t got = waitpid(tid, &status, __WALL);
	if (!(*told)++)
		SAY("%s: state %c, %s, status %#x", what, state, got == tid ? "its end" : "no end", status);
}

/* Descriptors of its own, which go when its memory has gone. */
static void open_many(void)
{
	for (int i = 0; i < FILES; i++)
		MUST(dup(0));
}

static void process(void)
{
	int told = 0, memory = 1, traced;
	for (int i = 0; i < TRIES && !dying; i++) {
		pid_t child = (pid_t)MUST(fork());
		if (child == 0) {
			open_many();
			_exit(7);
		}
		for (memory = 1; memory && status_of(child, child, &memory, &traced) != 'Z';)
			;
		if (seized(child, child))
			end_of("a process", child, child, &told);
		else
			MUST(waitpid(child, NULL, 0));
	}
	SAY("processes: seized on their way: %s, refused before their end: %d", dying ? "yes" : "no", refused_alive);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0)
		_exit(0);
	wait_state(child, "Z");
	T(ptrace(PTRACE_SEIZE, child, 0, 0));
	MUST(waitpid(child, NULL, 0));
}

static int said[2];

static void *brief(void *argument)
{
	MUST(unshare(CLONE_FILES));
	open_many();
	pid_t tid = gettid();
	MUST(write(said[1], &tid, sizeof tid));
	return argument;
}

static void threads(void)
{
	int told = 0, memory = 1, traced;
	pid_t tid;
	MUST(pipe(said));
	dying = refused_alive = 0;
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		pthread_t thread;
		for (;;)
			if (pthread_create(&thread, NULL, brief, NULL) == 0)
				pthread_join(thread, NULL);
	}
	for (int i = 0; i < TRIES && !dying; i++) {
		MUST(read(said[0], &tid, sizeof tid));
		for (memory = 1; memory && status_of(child, tid, &memory, &traced);)
			;
		if (seized(child, tid))
			end_of("a thread", child, tid, &told);
	}
	MUST(kill(child, SIGKILL));
	SAY("threads: seized on their way: %s, refused before their end: %d", dying ? "yes" : "no", refused_alive);
	stop_of("the process", child);
}

static void *stays(void *argument)
{
	for (;;)
		pause();
	return argument;
}

static void leader(void)
{
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		pthread_t thread;
		pthread_create(&thread, NULL, stays, NULL);
		syscall(SYS_exit, 3);
	}
	T(wait_state(child, "Z"));
	T(ptrace(PTRACE_SEIZE, child, 0, 0));
	MUST(kill(child, SIGKILL));
	stop_of("the process", child);
}

int main(void)
{
	MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ FILES + 100, FILES + 100 }));
	process();
	threads();
	leader();
	return 0;
}
