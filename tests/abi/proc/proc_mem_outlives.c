/*
 * proc_mem_outlives: /proc/PID/mem that was opened is about the memory, not about who had it then: it reads and writes for as long
 * as anybody has that memory, and is empty from then on. Debuggers open it once, by a thread that may end before the others.
 */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>

static char said[8] = "first";
static int ready[2], stays[2], ends[2];
static volatile pid_t other;

static void *waits(void *argument)
{
	char c;
	other = (pid_t)syscall(SYS_gettid);
	MUST(write(ready[1], "x", 1));
	MUST(read(argument ? stays[0] : ends[0], &c, 1));
	syscall(SYS_exit, 0);
	return NULL;
}

static int mem_of(pid_t pid, pid_t tid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task/%d/mem", pid, tid);
	return (int)MUST(open(path, O_RDWR));
}

static void look(const char *when, int fd)
{
	char bytes[sizeof said] = "";
	ssize_t got = pread(fd, bytes, sizeof bytes, (long)said);
	printf("%s: read %s, \"%s\"", when, got < 0 ? err_name(errno) : got ? "something" : "nothing", bytes);
	ssize_t put = pwrite(fd, "second", 7, (long)said);
	printf(", write %s\n", put < 0 ? err_name(errno) : put ? "something" : "nothing");
}

static void await(void)
{
	char c;
	MUST(read(ready[0], &c, 1));
}

/* A process of two threads of which the leader, or the other one, ends first. */
static void threads(int leader_first)
{
	SAY("-- the %s ends first", leader_first ? "leader" : "thread");
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		pthread_t thread;
		char c;
		pthread_create(&thread, NULL, waits, (void *)(long)leader_first);
		MUST(read(leader_first ? ends[0] : stays[0], &c, 1));
		syscall(SYS_exit, 0);
	}
	await();
	int fd = mem_of(pid, pid);
	pid_t tid;
	MUST(pread(fd, &tid, sizeof tid, (long)&other));
	int of_thread = mem_of(pid, tid);
	int fd_first = leader_first ? fd : of_thread;
	look("both are there", fd_first);
	MUST(write(ends[1], "x", 1));
	if (leader_first) {
		wait_state(pid, "Z");
	} else {
		char path[64];
		snprintf(path, sizeof path, "/proc/%d/task/%d", pid, tid);
		while (access(path, F_OK) == 0)
			sleep_ms(5);
	}
	look("one is gone", fd_first);
	MUST(write(stays[1], "x", 1));
	MUST(waitpid(pid, NULL, 0));
	look("both are gone", fd);
	look("both are gone", of_thread);
	close(fd);
	close(of_thread);
}

static void execs(void)
{
	SAY("-- another program");
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char c;
		MUST(read(stays[0], &c, 1));
		execl("/proc/self/exe", "again", NULL);
		_exit(1);
	}
	int fd = mem_of(pid, pid);
	look("before", fd);
	MUST(write(stays[1], "x", 1));
	await();
	look("after", fd);
	MUST(kill(pid, SIGKILL));
	MUST(waitpid(pid, NULL, 0));
	close(fd);
}

/* A child in its parent's memory that outlives it. */
static void shares(void)
{
	SAY("-- a child in the same memory");
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		if (vfork() == 0) {
			other = getpid();
			MUST(write(ready[1], "x", 1));
			for (;;)
				pause();
		}
		_exit(0);
	}
	await();
	int fd = mem_of(pid, pid);
	MUST(kill(pid, SIGKILL));
	MUST(waitpid(pid, NULL, 0));
	look("its parent is gone", fd);
	pid_t child;
	MUST(pread(fd, &child, sizeof child, (long)&other));
	MUST(kill(child, SIGKILL));
	while (kill(child, 0) == 0 && wait_state(child, "Z") == 0)
		sleep_ms(5);
	look("it is gone, too", fd);
	close(fd);
}

int main(int argc, char **argv)
{
	(void)argc;
	if (!strcmp(argv[0], "again")) {
		/* The pipe is where it was. */
		MUST(write(4, "x", 1));
		pause();
		return 0;
	}
	MUST(pipe(ready));
	MUST(pipe(stays));
	MUST(pipe(ends));
	if (ready[1] != 4)
		MUST(dup2(ready[1], 4));
	threads(1);
	threads(0);
	execs();
	shares();
	return 0;
}
