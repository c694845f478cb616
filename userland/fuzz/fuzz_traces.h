/*
 * fuzz_traces.h: tracers that attack each other. A few processes, with threads, attach to each other, seize, interrupt, step,
 * set registers and memory, and kill, while they call, fork, execute, exit, dump core and put filters on themselves; any of
 * them may be stopped for a tracer that is itself stopped or dead.
 */
#ifndef ALEA_FUZZ_TRACES_H
#define ALEA_FUZZ_TRACES_H

#include "fuzz_calls.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define TRACE_PLACES 12

/* The numbers of the tasks that take part, in memory that all of them share. */
static volatile pid_t *trace_pids;

/* A filter that answers random calls in a random way, and mostly lets them through. */
static void put_filter(void)
{
	static const unsigned actions[] = { 0x7fff0000, 0x7ffc0000, 0x7ff00001, 0x00050000, 0x00030000, 0x00000000, 0x80000000 };
	struct sock_filter code[] = {
		{ 0x20, 0, 0, 0 },
		{ 0x15, 0, 1, (unsigned)below(450) },
		{ 0x06, 0, 0, actions[below(COUNT(actions))] },
		{ 0x06, 0, 0, 0x7fff0000 },
	};
	struct sock_fprog program = { (unsigned short)(one_in(8) ? below(5) : COUNT(code)), code };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	syscall(317 /* seccomp */, 1, below(64), &program);
}

static void trace_request(pid_t pid)
{
	static const long requests[] = {
		PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_LISTEN, PTRACE_CONT, PTRACE_CONT, PTRACE_CONT, PTRACE_SYSCALL,
		PTRACE_SYSCALL, PTRACE_SINGLESTEP, PTRACE_DETACH, PTRACE_KILL, PTRACE_SETOPTIONS, PTRACE_SETOPTIONS, 31 /* SYSEMU */,
		32 /* SYSEMU_SINGLESTEP */, PTRACE_GETSIGINFO, PTRACE_GETEVENTMSG, PTRACE_TRACEME,
	};
	static u64 words[512];
	struct iovec buffer = { words, below(sizeof words) };
	long request = requests[below(COUNT(requests))], data = 0;
	TELL("[%d] ptrace %#lx of %d\n", getpid(), request, pid);
	switch (below(10)) {
	case 0: ptrace(PTRACE_GETREGSET, pid, below(3) ? 1 : 0x202L, &buffer); return;
	case 1:
		if (ptrace(PTRACE_GETREGSET, pid, one_in(2) ? 1L : one_in(2) ? 2L : 0x202L, &buffer) == 0) {
			words[below(COUNT(words))] = draw();
			ptrace(PTRACE_SETREGSET, pid, one_in(2) ? 1L : one_in(2) ? 2L : 0x202L, &buffer);
		}
		return;
	case 2: ptrace(PTRACE_POKEUSER, pid, below(130) * 8, draw() >> below(64)); return;
	case 3: ptrace(PTRACE_POKEDATA, pid, one_in(2) ? (u64)words : draw() >> below(64), draw()); return;
	default: break;
	}
	if (request == PTRACE_SETOPTIONS || request == PTRACE_SEIZE)
		data = (long)(draw() & 0x1003ff);
	else if (request == PTRACE_GETSIGINFO || request == PTRACE_GETEVENTMSG)
		data = (long)words;
	else if (one_in(3))
		data = (long)below(65);
	ptrace(request, pid, 0, data);
}

static void trace_step(void)
{
	volatile pid_t *place = &trace_pids[below(TRACE_PLACES)];
	/* Who is init, or nobody, is not a target: it is what starts the rounds. */
	pid_t pid = *place > 1 ? *place : getpid();
	int status;
	switch (below(24)) {
	case 0: *place = (pid_t)syscall(SYS_gettid); break;
	case 1: {
		pid_t child = fork();
		if (child == 0) {
			trace_pids[below(TRACE_PLACES)] = getpid();
			for (int i = 0; i < 20; i++)
				trace_step();
			_exit(0);
		}
		*place = child > 0 ? child : 0;
		break;
	}
	case 2: kill(pid, one_in(2) ? SIGSTOP : SIGCONT); break;
	case 3: kill(pid, one_in(6) ? SIGKILL : (int)below(65)); break;
	case 4: syscall(SYS_tgkill, pid, pid, one_in(2) ? SIGTRAP : SIGSTOP); break;
	case 5: usleep((useconds_t)below(500)); break;
	case 6:
		if (one_in(8))
			execl("/proc/self/exe", "fuzz", "true", NULL);
		break;
	case 7:
		if (one_in(10))
			put_filter();
		break;
	case 8:
		if (one_in(12))
			raise(one_in(2) ? SIGQUIT : SIGSEGV);
		break;
	case 9: case 10: case 11: case 12: waitpid(-1, &status, WNOHANG | __WALL); break;
	case 13:
		if (one_in(4))
			one_call();
		break;
	default: trace_request(pid); break;
	}
}

static void *trace_thread(void *seed)
{
	state = (u64)seed;
	trace_pids[below(TRACE_PLACES)] = (pid_t)syscall(SYS_gettid);
	for (int i = 0; i < 300; i++)
		trace_step();
	return NULL;
}

static void traces(void)
{
	struct rlimit core = { one_in(2) ? 0 : one_in(2) ? 5000 : 4 << 20, RLIM_INFINITY };
	setrlimit(RLIMIT_CORE, &core);
	trace_pids = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (trace_pids == MAP_FAILED)
		return;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			state ^= draw() + (u64)i;
			pthread_t t;
			if (one_in(2))
				pthread_create(&t, NULL, trace_thread, (void *)draw());
			trace_thread((void *)draw());
			_exit(0);
		}
	trace_thread((void *)draw());
}

#endif
