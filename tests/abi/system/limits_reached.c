/*
 * Tasks until there is no room: RLIMIT_NPROC and the memory of a thread's stack end in EAGAIN, exec with other threads
 * running, and signals to processes that are ending. Nothing of this may disturb anybody else.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

static void forks(void)
{
	struct rlimit rl = { 20, 20 };
	MUST(setrlimit(RLIMIT_NPROC, &rl));
	MUST(setresuid(4321, 4321, 4321));
	int n = 0, p[2];
	pid_t pid;
	MUST(pipe(p));
	while ((pid = fork()) > 0)
		n++;
	if (pid == 0) {
		char c;
		close(p[1]);
		read(p[0], &c, 1);
		_exit(0);
	}
	SAY("%d forks, then %s", n, err_name(errno));
	T(vfork());
	pthread_t t;
	SAY("thread: %s", err_name(pthread_create(&t, NULL, (void *(*)(void *))abs, NULL)));
	close(p[1]);
	close(p[0]);
	while (wait(NULL) > 0)
		n--;
	SAY("%d left", n);
	pid = fork();
	if (pid == 0)
		_exit(0);
	IS(pid > 0);
	reap(pid);
}

static int hold[2];
static void *holder(void *arg)
{
	char c;
	read(hold[0], &c, 1);
	return arg;
}

static void threads(void)
{
	struct rlimit rl = { 30, 30 };
	static pthread_t t[100];
	MUST(setrlimit(RLIMIT_NPROC, &rl));
	MUST(setresuid(4322, 4322, 4322));
	MUST(pipe(hold));
	int n = 0, e;
	while (n < 100 && (e = pthread_create(&t[n], NULL, holder, NULL)) == 0)
		n++;
	SAY("%d threads, then %s", n, err_name(e));
	close(hold[1]);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	IS(pthread_create(&t[0], NULL, holder, NULL) == 0);
	pthread_join(t[0], NULL);
}

static void *busy(void *arg)
{
	char c;
	int p[2];
	for (;;) {
		switch ((long)arg % 4) {
		case 0:
			if (pipe(p) == 0) {
				write(p[1], "x", 1);
				read(p[0], &c, 1);
				close(p[0]);
				close(p[1]);
			}
			break;
		case 1: {
			void *m = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			memset(m, 1, 65536);
			munmap(m, 65536);
			break;
		}
		case 2: {
			pid_t pid = fork();
			if (pid == 0)
				_exit(0);
			waitpid(pid, NULL, 0);
			break;
		}
		default:
			sched_yield();
		}
	}
	return NULL;
}

static void execs(void)
{
	for (int i = 0; i < 40; i++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			pthread_t t;
			for (long k = 0; k < 6; k++)
				pthread_create(&t, NULL, busy, (void *)k);
			if (i % 2)
				sched_yield();
			if (i % 3 == 0) {
				/* From a thread that is not the leader, which ends. */
				pid_t v = vfork();
				if (v == 0)
					execl("/proc/self/exe", "self", "quiet", (char *)NULL);
			}
			execl("/proc/self/exe", "self", "quiet", (char *)NULL);
			_exit(98);
		}
		int status = reap(pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
			say_status("exec", status);
	}
	SAY("execs done");
}

static void dying(void)
{
	for (int i = 0; i < 60; i++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			pthread_t t;
			for (long k = 0; k < 4; k++)
				pthread_create(&t, NULL, busy, (void *)k);
			for (int k = 0; k < i % 7; k++)
				sched_yield();
			_exit(5);
		}
		int sent = 0;
		static const int sigs[] = { 0, SIGCONT, SIGURG, SIGWINCH, SIGCHLD };
		for (int k = 0; k < 200; k++)
			if (kill(pid, sigs[k % 5]) == 0)
				sent++;
		/* It is there until it is waited for. */
		if (sent != 200)
			SAY("lost after %d", sent);
		int status = reap(pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 5)
			say_status("dying", status);
		if (kill(pid, 0) == 0)
			SAY("still there");
	}
	SAY("deaths done");
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 7;
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHILD("forks") { forks(); } END;
	CHILD("threads") { threads(); } END;
	CHILD("execs") { execs(); } END;
	CHILD("dying") { dying(); } END;
	return 0;
}
