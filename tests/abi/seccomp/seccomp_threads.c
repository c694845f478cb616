/*
 * Filters and the threads beside the one that installs them: TSYNC against strict mode and against threads that come, go and
 * execute; whose death is whose under KILL_THREAD; tracers and listeners that go while a call waits for them.
 */
#include "check.h"
#include "filters.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>

static volatile int go, stop, bad;

static long gettid_(void)
{
	return syscall(SYS_gettid);
}

static void *is_strict(void *tid)
{
	__atomic_store_n((volatile long *)tid, gettid_(), __ATOMIC_SEQ_CST);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	go = 1;
	char byte;
	while (!stop)
		;
	read(-1, &byte, 1);
	syscall(SYS_getppid);
	go = 2;
	syscall(SYS_exit, 0);
	return NULL;
}

static void beside_strict(void)
{
	CHILD("TSYNC beside a thread in strict mode") {
		pthread_t thread;
		static volatile long tid;
		MUST(pthread_create(&thread, NULL, is_strict, (void *)&tid));
		while (!go)
			sched_yield();
		long got = answer_with(SECCOMP_FILTER_FLAG_TSYNC, SYS_getpgid, SECCOMP_RET_ERRNO | 77);
		SAY("%s", got == tid ? "that thread" : got == 0 ? "0" : "another");
		T(answer_with(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SYS_getpgid, SECCOMP_RET_ERRNO | 77));
		SAY("%d", prctl(PR_GET_SECCOMP));
		stop = 1;
		sleep_ms(300);
		SAY("it went on: %d", go);
		fflush(stdout);
	} END;
}

static void *lives(void *arg)
{
	(void)arg;
	while (!stop)
		if (go && syscall(SYS_getpgid, 0) != -1)
			bad = 1;
	return NULL;
}

static void *makes(void *arg)
{
	pthread_t thread;
	while (!stop) {
		if (pthread_create(&thread, NULL, arg ? makes : lives, NULL) == 0 && !stop)
			sched_yield();
		if (arg)
			pthread_detach(thread);
		else {
			int filtered = go;
			pid_t pid = vfork();
			if (pid == 0) {
				if (filtered && syscall(SYS_getpgid, 0) != -1)
					bad = 1;
				_exit(0);
			}
			reap(pid);
			pthread_detach(thread);
			return NULL;
		}
	}
	return NULL;
}

static void in_a_storm(void)
{
	CHILD("TSYNC while threads come and go") {
		no_new_privs();
		pthread_attr_t small;
		pthread_attr_init(&small);
		pthread_attr_setstacksize(&small, 32768);
		for (int round = 0; round < 8; round++) {
			pthread_t threads[4];
			for (int n = 0; n < 4; n++)
				MUST(pthread_create(&threads[n], &small, n & 1 ? lives : makes, NULL));
			for (int n = 0; n < 5; n++) {
				MUST(answer_with(SECCOMP_FILTER_FLAG_TSYNC, SYS_getpgid, SECCOMP_RET_ERRNO | 77));
				go = 1;
			}
			sleep_ms(5);
			stop = 1;
			for (int n = 0; n < 4; n++)
				pthread_join(threads[n], NULL);
			sleep_ms(5);
			stop = 0;
		}
		IS(!bad);
		fflush(stdout);
	} END;
}

static void *executes(void *arg)
{
	char *const args[] = { "/proc/self/exe", "over", NULL };
	(void)arg;
	while (!go)
		;
	execv(args[0], args);
	return NULL;
}

static void over_exec(void)
{
	int right = 0, status;
	for (int round = 0; round < 20; round++) {
		fflush(stdout);
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			pthread_t thread;
			no_new_privs();
			MUST(answer_with(SECCOMP_FILTER_FLAG_TSYNC, SYS_getpgid, SECCOMP_RET_ERRNO | 77));
			MUST(pthread_create(&thread, NULL, executes, NULL));
			go = 1;
			for (;;)
				answer_with(SECCOMP_FILTER_FLAG_TSYNC, SYS_getpgrp, SECCOMP_RET_ERRNO | 77);
		}
		status = reap(pid);
		right += WIFEXITED(status) && WEXITSTATUS(status) == 77;
	}
	SAY("executed under filters: %d", right);
}

static void *dies(void *arg)
{
	/* The first to go tells how the process ended, so it waits for the leader if it is to be the last. */
	while (arg && state_in("/proc/self/stat") != 'Z')
		sleep_ms(1);
	syscall(SYS_getppid);
	return NULL;
}

static void *leader_gone(void *arg)
{
	(void)arg;
	while (state_in("/proc/self/stat") != 'Z')
		sleep_ms(1);
	SAY("the leader is dead");
	if (arg)
		exit(7);
	fflush(stdout);
	syscall(SYS_exit, 5);
	return NULL;
}

static void deaths(void)
{
	CHILD("a thread dies alone") {
		pthread_t thread;
		MUST(answer_with(0, SYS_getppid, SECCOMP_RET_KILL_THREAD));
		MUST(pthread_create(&thread, NULL, dies, NULL));
		wait_threads(0);
		SAY("still there");
		fflush(stdout);
		_exit(4);
	} END;
	CHILD("the leader dies, the last one exits") {
		pthread_t thread;
		MUST(pthread_create(&thread, NULL, leader_gone, NULL));
		MUST(answer_with(0, SYS_getppid, SECCOMP_RET_KILL_THREAD));
		syscall(SYS_getppid);
	} END;
	CHILD("the leader dies, the last one ends the process") {
		pthread_t thread;
		MUST(pthread_create(&thread, NULL, leader_gone, &thread));
		MUST(answer_with(0, SYS_getppid, SECCOMP_RET_KILL_THREAD));
		syscall(SYS_getppid);
	} END;
	CHILD("the leader exits, and the last one dies") {
		pthread_t thread;
		MUST(answer_with(0, SYS_getppid, SECCOMP_RET_KILL_THREAD));
		MUST(pthread_create(&thread, NULL, dies, &thread));
		syscall(SYS_exit, 3);
	} END;
	CHILD("a thread kills all") {
		pthread_t thread;
		MUST(answer_with(0, SYS_getppid, SECCOMP_RET_KILL_PROCESS));
		MUST(pthread_create(&thread, NULL, dies, NULL));
		pause();
	} END;
	CHILD("the child of vfork dies") {
		MUST(answer_with(0, SYS_getppid, SECCOMP_RET_KILL_THREAD));
		pid_t pid = vfork();
		if (pid == 0) {
			syscall(SYS_getppid);
			_exit(0);
		}
		say_status("it", reap(pid));
		fflush(stdout);
	} END;
}

/* The tracer dies while its tracee is in the stop of a filter. */
static void tracer_dies(int options, const char *what)
{
	int ready[2];
	char byte;
	MUST(pipe(ready));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(answer_with(0, SYS_getppid, SECCOMP_RET_TRACE | 9));
		read(ready[0], &byte, 1);
		errno = 0;
		long got = syscall(SYS_getppid);
		_exit(got == -1 ? errno : 100);
	}
	pid_t tracer = (pid_t)MUST(fork());
	if (tracer == 0) {
		MUST(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESECCOMP | options));
		write(ready[1], "x", 1);
		int status;
		waitpid(pid, &status, __WALL);
		_exit(status >> 16);
	}
	say_status("the tracer", reap(tracer));
	say_status(what, reap(pid));
	close(ready[0]);
	close(ready[1]);
}

static int listener;

static void *closes(void *arg)
{
	while (!go)
		;
	close(listener);
	return arg;
}

static void *asks(void *arg)
{
	(void)arg;
	errno = 0;
	long got = syscall(SYS_getppid);
	return (void *)(got == -1 ? (long)errno : got);
}

static void *gives(void *arg)
{
	struct seccomp_notif_addfd addfd = { .id = *(__u64 *)arg, .srcfd = 0, .flags = SECCOMP_ADDFD_FLAG_SEND };
	return (void *)(long)ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &addfd);
}

static void listeners(void)
{
	CHILD("a listener is closed while threads ask") {
		int right = 0;
		listener = answer_with(SECCOMP_FILTER_FLAG_NEW_LISTENER, SYS_getppid, SECCOMP_RET_USER_NOTIF);
		pthread_t asking[8], closing;
		for (int n = 0; n < 8; n++)
			MUST(pthread_create(&asking[n], NULL, asks, NULL));
		MUST(pthread_create(&closing, NULL, closes, NULL));
		struct seccomp_notif got = { 0 };
		MUST(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &got));
		go = 1;
		pthread_join(closing, NULL);
		for (int n = 0; n < 8; n++) {
			void *result;
			pthread_join(asking[n], &result);
			right += (long)result == ENOSYS;
		}
		SAY("ENOSYS: %d", right);
		fflush(stdout);
	} END;
	CHILD("descriptors for who dies") {
		listener = answer_with(SECCOMP_FILTER_FLAG_NEW_LISTENER, SYS_getppid, SECCOMP_RET_USER_NOTIF);
		int settled = 0, late = 0;
		for (int n = 0; n < 60; n++) {
			fflush(stdout);
			pid_t pid = (pid_t)MUST(fork());
			if (pid == 0) {
				close(listener);
				for (;;)
					asks(NULL);
			}
			static struct seccomp_notif got;
			memset(&got, 0, sizeof got);
			/* What the last one asked before it died may be heard of, and not be there. */
			while (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &got) == -1)
				if (errno != ENOENT)
					MUST(-1);
			pthread_t thread;
			__u64 id = got.id;
			void *result;
			MUST(pthread_create(&thread, NULL, gives, &id));
			for (volatile int spin = 0; spin < n * 500; spin++)
				;
			kill(pid, SIGKILL);
			reap(pid);
			pthread_join(thread, &result);
			settled++;
			errno = 0;
			late += ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == -1 && errno == ENOENT;
		}
		SAY("settled %d, not valid %d", settled, late);
		fflush(stdout);
	} END;
	CHILD("a listener that is given away by itself") {
		listener = answer_with(SECCOMP_FILTER_FLAG_NEW_LISTENER, SYS_getppid, SECCOMP_RET_USER_NOTIF);
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			close(listener);
			int own = (int)syscall(SYS_getppid);
			/* It has its own listener now, and asks itself: only a kill ends that. */
			struct pollfd p = { .fd = own, .events = POLLIN | POLLOUT };
			if (poll(&p, 1, 0) != 0)
				_exit(2);
			alarm(1);
			syscall(SYS_getppid);
			_exit(1);
		}
		struct seccomp_notif got = { 0 };
		MUST(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &got));
		struct seccomp_notif_addfd addfd = { .id = got.id, .srcfd = (unsigned)listener, .flags = SECCOMP_ADDFD_FLAG_SEND };
		IS(ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &addfd) > 0);
		close(listener);
		say_status("it", reap(pid));
		fflush(stdout);
	} END;
	CHILD("the last user of the filter") {
		int pipe_[2], second;
		MUST(pipe(pipe_));
		listener = -1;
		pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
		if (pid == 0) {
			int got = answer_with(SECCOMP_FILTER_FLAG_NEW_LISTENER, SYS_getppid, SECCOMP_RET_USER_NOTIF);
			write(pipe_[1], &got, sizeof got);
			struct sock_filter allow[] = { RETURN(SECCOMP_RET_ALLOW) };
			install(0, allow, LEN(allow));
			second = fork();
			if (second == 0)
				pause();
			write(pipe_[1], &second, sizeof second);
			_exit(0);
		}
		MUST(read(pipe_[0], &listener, sizeof listener));
		int set = epoll_create1(0);
		struct epoll_event event = { .events = EPOLLIN | EPOLLET };
		MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
		say_status("it", reap(pid));
		T(epoll_wait(set, &event, 1, 0));
		/* Its child has it still. */
		MUST(read(pipe_[0], &second, sizeof second));
		kill(second, SIGKILL);
		T(epoll_wait(set, &event, 1, LONG_MS));
		SAY("%#x", event.events);
		fflush(stdout);
	} END;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		(void)argv;
		errno = 0;
		return syscall(SYS_getpgid, 0) == -1 ? errno : 1;
	}
	beside_strict();
	in_a_storm();
	over_exec();
	deaths();
	tracer_dies(0, "whose tracer died");
	tracer_dies(PTRACE_O_EXITKILL, "whose tracer died, EXITKILL");
	tracer_dies(PTRACE_O_TRACESYSGOOD, "whose tracer died, SYSGOOD");
	listeners();
	return 0;
}
