/*
 * A thread has four debug registers: its tracer sets addresses while another thread opens events of breakpoints on it. Of eight who ask
 * four get one, whoever comes first, and no more.
 */
#include "perf.h"
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#define TURNS 150
static volatile long watched;
static pthread_barrier_t barrier;
static pid_t child;
static int fds[4], opened, other_errors;

static void *opener(void *arg)
{
	struct perf_event_attr attr = software(0);
	(void)arg;
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.bp_type = HW_BREAKPOINT_W;
	attr.bp_addr = (unsigned long)&watched;
	attr.bp_len = 8;
	attr.exclude_kernel = 1;
	for (int turn = 0; turn < TURNS; turn++) {
		pthread_barrier_wait(&barrier);
		opened = 0;
		for (int n = 0; n < 4; n++) {
			int fd = perf(&attr, child, -1, -1, 0);
			if (fd >= 0)
				fds[opened++] = fd;
			else if (errno != ENOSPC)
				other_errors++;
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int more = 0, less = 0;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, opener, NULL);
	for (int turn = 0; turn < TURNS; turn++) {
		int set = 0;
		child = (pid_t)MUST(fork());
		if (child == 0) {
			ptrace(PTRACE_TRACEME, 0, 0, 0);
			raise(SIGSTOP);
			_exit(0);
		}
		MUST(waitpid(child, NULL, 0));
		pthread_barrier_wait(&barrier);
		for (size_t n = 0; n < 4; n++) {
			if (ptrace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg) + 8 * n, &watched) == 0)
				set++;
			else if (errno != ENOSPC)
				other_errors++;
		}
		pthread_barrier_wait(&barrier);
		more += set + opened > 4;
		less += set + opened < 4;
		for (int n = 0; n < opened; n++)
			close(fds[n]);
		kill(child, SIGKILL);
		MUST(waitpid(child, NULL, 0));
	}
	pthread_join(thread, NULL);
	IS(more == 0);
	IS(less == 0);
	IS(other_errors == 0);
	return 0;
}
