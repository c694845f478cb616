/* trace.h: what the programs about ptrace share. */
#ifndef ALEA_ABI_TRACE_H
#define ALEA_ABI_TRACE_H

#include "../check.h"
#include <elf.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

/* Waits for a tracee and prints what became of it. */
static UNUSED int stop_of(const char *what, pid_t pid)
{
	int status = -1;
	pid_t got = waitpid(pid, &status, __WALL);
	if (got < 0) {
		printf("%s: %s\n", what, err_name(errno));
		return -1;
	}
	if (!WIFSTOPPED(status)) {
		say_status(what, status);
		return status;
	}
	printf("%s: stopped by %s%s, event %d\n", what, sig_name(WSTOPSIG(status) & 0x7f),
	       WSTOPSIG(status) & 0x80 ? " (call)" : "", status >> 16);
	return status;
}

/* What PTRACE_GETEVENTMSG gives. */
static UNUSED unsigned long message_of(pid_t pid)
{
	unsigned long message = 0;
	MUST(ptrace(PTRACE_GETEVENTMSG, pid, 0, &message));
	return message;
}

/* Lets a tracee go on to its next stop, which is printed. */
static UNUSED void go(pid_t pid, const char *what)
{
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_of(what, pid);
}

/* A child that is traced by its parent, and has stopped itself. */
#define TRACED(pid, ...) \
	pid_t pid = (pid_t)MUST(fork()); \
	if (pid == 0) { \
		MUST(ptrace(PTRACE_TRACEME, 0, 0, 0)); \
		raise(SIGSTOP); \
		__VA_ARGS__; \
		_exit(0); \
	} \
	stop_of("the child", pid)

#endif
