/*
 * A user traces his process at the moment at which it executes a set-user-id program: either it was traced before, and has no other
 * rights than he, or the program has its owner's rights, and he may not trace it any more. On one CPU little can happen.
 */
#include "check.h"
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#define ROUNDS 600
#define USER 1000

static atomic_int *begun;

/* The program: how it was executed. */
enum { FREE, TRACED, BOTH };

static int is_traced(void)
{
	const char *at = strstr(read_file("/proc/self/status"), "TracerPid:\t");
	return at != NULL && atoi(at + 11) != 0;
}

static void wait_ns(long ns)
{
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &to);
	while ((to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec < ns);
}

static int one_round(long ns)
{
	atomic_store(begun, 0);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(prctl(PR_SET_DUMPABLE, 1));
		atomic_store(begun, 1);
		execl("f", "f", "look", NULL);
		_exit(3);
	}
	while (!atomic_load(begun))
		;
	wait_ns(ns);
	ptrace(PTRACE_SEIZE, pid, NULL, NULL);
	return WEXITSTATUS(reap(pid));
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		int root = geteuid() == 0;
		/* It takes so long that the tracer is there, if it comes at all. */
		for (int i = 0; i < 50; i++)
			sched_yield();
		return is_traced() ? root ? BOTH : TRACED : FREE;
	}
	int seen[4] = { 0 };
	begun = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	scratch();
	int from = (int)MUST(open("/proc/self/exe", O_RDONLY)), to = (int)MUST(open("f", O_WRONLY | O_CREAT, 0755));
	struct stat st;
	MUST(fstat(from, &st));
	void *image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, from, 0);
	IS(write(to, image, (size_t)st.st_size) == st.st_size);
	close(to);
	MUST(chmod("f", 04755));
	CHILD("the user") {
		MUST(setresgid(USER, USER, USER));
		MUST(setresuid(USER, USER, USER));
		MUST(prctl(PR_SET_DUMPABLE, 1));
		for (int i = 0; i < ROUNDS; i++)
			seen[one_round(i % 100 * 20000L) & 3]++;
		IS(seen[3] == 0);
		SAY("traced with root's rights: %s", seen[BOTH] == 0 ? "never" : "now and then");
	} END;
	return 0;
}
