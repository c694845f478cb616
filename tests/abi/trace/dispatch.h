/* dispatch.h: what the programs about system-call user dispatch share. */
#ifndef ALEA_ABI_DISPATCH_H
#define ALEA_ABI_DISPATCH_H

#include "trace.h"
#include <sys/prctl.h>
#include <ucontext.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define SET_CONFIG 0x4210
#define GET_CONFIG 0x4211

struct config {
	unsigned long long mode, selector, offset, len;
};

static int dispatch(long mode, unsigned long offset, unsigned long len, volatile char *byte)
{
	return prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, offset, len, byte);
}

static void catch_sigsys(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };
	sigaction(SIGSYS, &act, NULL);
}

/* What a tracer reads; the byte is its if it is where the tracer has it, too. */
static void shown(pid_t pid, const char *what, volatile char *byte)
{
	struct config config = { 9, 9, 9, 9 };
	long result = ptrace(GET_CONFIG, pid, sizeof(config), &config);
	SAY("%s: %ld, mode %llu, byte %s, offset %llu, length %llu", what, result, config.mode,
	    config.selector == (unsigned long)byte ? "its" : config.selector ? "another" : "none", config.offset, config.len);
}

#endif
