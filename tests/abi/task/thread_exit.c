/*
 * Ends of threaded processes: a main thread that leaves first, exit_group and exec from another thread,
 * a fatal signal in one thread, fork in a thread (only that one goes on in the child), and the robust
 * list that marks a dead owner's mutex.
 */
#include "check.h"
#include <pthread.h>

static int fds[2];

static void *late(void *arg)
{
	char c;
	read(fds[0], &c, 1);
	/* glibc aborts a thread that still unwinds its stack when exit has run the destructors */
	if (!wait_state(getpid(), "Z"))
		SAY("the main thread does not end");
	SAY("the other thread goes on");
	exit(7);
}

static void *calls_exit(void *arg)
{
	_exit(8);
}

static void *execs(void *arg)
{
	execl("/proc/self/exe", "thread_exit", "child", NULL);
	_exit(127);
}

static void *crashes(void *arg)
{
	*(volatile int *)8 = 1;
	return NULL;
}

static void *forks(void *arg)
{
	pid_t pid = fork();
	if (pid == 0) {
		/* the main thread is not here: nobody else writes */
		sleep_ms(30);
		_exit(syscall(SYS_gettid) == getpid() ? 9 : 1);
	}
	say_status("forked in a thread", reap(pid));
	return NULL;
}

static void *forever(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static void *leaves(void *arg)
{
	syscall(SYS_exit, 3);
	return NULL;
}

static pthread_mutex_t *robust;

static void *dies_holding(void *arg)
{
	pthread_mutex_lock(robust);
	return NULL;
}

static void start(void *(*f)(void *))
{
	pthread_t t;
	pthread_create(&t, NULL, f, NULL);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		char path[64];
		SAY("after exec: tid is pid %d", syscall(SYS_gettid) == getpid());
		snprintf(path, sizeof path, "/proc/self/task");
		struct stat st;
		stat(path, &st);
		SAY("threads left %ld", (long)st.st_nlink - 2);
		return 10;
	}
	CHILD("main leaves first") {
		start(late);
		pthread_exit(NULL);
	} END;
	CHILD("exit_group in a thread") {
		start(forever);
		start(calls_exit);
		for (;;)
			pause();
	} END;
	CHILD("exec in a thread") {
		start(forever);
		start(forever);
		start(execs);
		for (;;)
			pause();
	} END;
	CHILD("crash in a thread") {
		start(forever);
		start(crashes);
		for (;;)
			pause();
	} END;
	CHILD("fork in a thread") {
		pthread_t t;
		pthread_create(&t, NULL, forks, NULL);
		pthread_join(t, NULL);
	} END;
	/* the last thread's status is that of the process: exit(3) of the main thread comes first */
	CHILD("exit of the only threads") {
		start(leaves);
		wait_threads(0);
		syscall(SYS_exit, 4);
	} END;
	/* a zombie leader with a living thread is not reaped */
	MUST(pipe(fds));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		start(late);
		syscall(SYS_exit, 2);
	}
	IS(wait_state(pid, "Z"));
	T(waitpid(pid, NULL, WNOHANG));
	fflush(stdout);
	write(fds[1], "c", 1);
	say_status("then", reap(pid));
	/* robust mutexes, in this process and across processes */
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	robust = (pthread_mutex_t *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	pthread_mutex_init(robust, &attr);
	pthread_t t;
	pthread_create(&t, NULL, dies_holding, NULL);
	pthread_join(t, NULL);
	SAY("lock after a dead thread: %s", err_name(pthread_mutex_lock(robust)));
	T(pthread_mutex_consistent(robust));
	T(pthread_mutex_unlock(robust));
	CHILD("dies with the lock") {
		pthread_mutex_lock(robust);
		kill(getpid(), SIGKILL);
	} END;
	SAY("lock after a dead process: %s", err_name(pthread_mutex_lock(robust)));
	T(pthread_mutex_unlock(robust));
	SAY("lock after no consistent: %s", err_name(pthread_mutex_lock(robust)));
	void *head;
	size_t len = 0;
	T(syscall(SYS_get_robust_list, 0, &head, &len));
	SAY("length %zu", len);
	T(syscall(SYS_set_robust_list, head, 23));
	T(syscall(SYS_get_robust_list, 999999999, &head, &len));
	return 0;
}
