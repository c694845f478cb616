/*
 * The listener of SECCOMP_RET_USER_NOTIF: answers, errors, going on with the call, descriptors for who asks, poll; who
 * is interrupted or killed while it asks; a listener that closes, and filters that nobody has any more; bad input.
 */
#include "rights.h"
#include "filters.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

static int listener;
static struct seccomp_notif got;

static void listen_to(unsigned flags, long number)
{
	listener = answer_with(SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, number, SECCOMP_RET_USER_NOTIF);
}

static pid_t asking(long a)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		errno = 0;
		long result = syscall(SYS_getppid, a, 2, 3, 4, 5, 6);
		_exit(result < 0 ? errno : (int)result);
	}
	return pid;
}

static int receive(void)
{
	memset(&got, 0, sizeof got);
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &got);
}

static int respond(__u64 id, __s64 val, int error, unsigned flags)
{
	struct seccomp_notif_resp resp = { .id = id, .val = val, .error = error, .flags = flags };
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

static int valid(__u64 id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

static int give(__u64 id, int fd, unsigned at, unsigned flags, unsigned fd_flags)
{
	struct seccomp_notif_addfd addfd = { .id = id, .flags = flags, .srcfd = (unsigned)fd, .newfd = at, .newfd_flags = fd_flags };
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &addfd);
}

static short ready(void)
{
	struct pollfd p = { .fd = listener, .events = POLLIN | POLLOUT };
	poll(&p, 1, 0);
	return p.revents;
}

static void answers(void)
{
	IS(listener > 0);
	IS(fcntl(listener, F_GETFD) == FD_CLOEXEC);
	SAY("flags %#x", fcntl(listener, F_GETFL) & ~O_LARGEFILE);
	char link[64], name[64] = "";
	snprintf(link, sizeof link, "/proc/self/fd/%d", listener);
	readlink(link, name, sizeof name - 1);
	SAY("%s", name);
	SAY("poll %#x", ready());
	pid_t pid = asking(0x1100000022L);
	MUST(receive());
	IS(got.pid == (unsigned)pid);
	SAY("nr %d arch %#x args %#llx %llu %llu flags %u", got.data.nr, got.data.arch, got.data.args[0], got.data.args[1],
	    got.data.args[5], got.flags);
	SAY("poll %#x", ready());
	T(valid(got.id));
	T(valid(got.id + 1));
	T(respond(got.id + 1, 0, 0, 0));
	T(respond(got.id, 0, 0, 2));
	T(respond(got.id, 1, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE));
	T(respond(got.id, 0, -1, SECCOMP_USER_NOTIF_FLAG_CONTINUE));
	T(respond(got.id, 33, 0, 0));
	say_status("a value", reap(pid));
	T(valid(got.id));
	T(respond(got.id, 33, 0, 0));
	pid = asking(0);
	MUST(receive());
	T(respond(got.id, 0, -EXDEV, 0));
	IS(WEXITSTATUS(reap(pid)) == EXDEV);
	pid = asking(0);
	MUST(receive());
	T(respond(got.id, 9, -EXDEV, 0));
	IS(WEXITSTATUS(reap(pid)) == EXDEV);
	pid = asking(0);
	MUST(receive());
	T(respond(got.id, 0, 44, 0));
	say_status("a positive error", reap(pid));
	pid = asking(0);
	MUST(receive());
	T(respond(got.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE));
	IS(WEXITSTATUS(reap(pid)) == (getpid() & 0xff));
}

static void bad(void)
{
	T(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, NULL));
	got.flags = 1;
	T(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &got));
	T(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, NULL));
	T(ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, NULL));
	T(ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 2));
	T(ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1));
	T(ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 0));
	T(ioctl(listener, 0, 0));
	T(ioctl(listener, 0x5401, &got));
	T(read(listener, &got, 1));
	T(write(listener, &got, 1));
	T(lseek(listener, 0, SEEK_SET));
	T(answer_with(SECCOMP_FILTER_FLAG_NEW_LISTENER, SYS_getpgrp, SECCOMP_RET_USER_NOTIF));
	/* What it could not be told of, it can take again. */
	pid_t pid = asking(0);
	char *page = pages(1);
	struct pollfd p = { .fd = listener, .events = POLLIN };
	poll(&p, 1, -1);
	mprotect(page, PAGE, PROT_READ);
	T(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, page));
	SAY("poll %#x", ready());
	MUST(receive());
	T(respond(got.id, 3, 0, 0));
	say_status("taken twice", reap(pid));
}

static void descriptors(void)
{
	int event = MUST(eventfd(0, 0));
	struct seccomp_notif_addfd large[2] = { 0 };
	T(give(1, event, 0, 0, 0));
	T(give(1, -1, 0, 0, 0));
	T(give(1, event, 5, 0, 0));
	T(give(1, event, 0, 4, 0));
	T(give(1, event, 0, 0, O_NONBLOCK));
	T(ioctl(listener, SECCOMP_IOW(3, char[23]), large));
	T(ioctl(listener, SECCOMP_IOW(3, char[4096]), large));
	T(ioctl(listener, SECCOMP_IOW(3, char[48]), large));
	large[1].flags = 1;
	T(ioctl(listener, SECCOMP_IOW(3, char[48]), large));
	T(ioctl(listener, SECCOMP_IOW(3, char[24]), NULL));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		/* Said at the end only: the parent says something meanwhile. */
		uint64_t one = 1;
		long first = syscall(SYS_getppid);
		int wrote = write(100, &one, 8) == 8, cloexec = fcntl(100, F_GETFD) == FD_CLOEXEC;
		long fd = syscall(SYS_getppid);
		SAY("%ld %d %d", first, wrote, cloexec);
		IS(write((int)fd, &one, 8) == 8);
		IS(fcntl((int)fd, F_GETFD) == 0);
		fflush(stdout);
		_exit(0);
	}
	MUST(receive());
	T(give(got.id, event, 100, SECCOMP_ADDFD_FLAG_SETFD, O_CLOEXEC));
	T(give(got.id, event, 100, SECCOMP_ADDFD_FLAG_SETFD, O_CLOEXEC));
	T(give(got.id, event, 1 << 30, SECCOMP_ADDFD_FLAG_SETFD, 0));
	T(give(got.id, event, 1 << 30, SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND, 0));
	IS(give(got.id, event, 0, 0, 0) > 0);
	IS(respond(got.id, 66, 0, 0) == 0);
	IS(give(got.id, event, 0, 0, 0) == -1);
	MUST(receive());
	fflush(stdout);
	int sent = give(got.id, event, 0, SECCOMP_ADDFD_FLAG_SEND, 0);
	say_status("it", reap(pid));
	IS(sent > 0);
	uint64_t sum = 0;
	read(event, &sum, 8);
	SAY("written to it: %d", (int)sum);
	close(event);
}

static void handled(int sig)
{
	(void)sig;
}

static pid_t interruptible(int flags)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		struct sigaction act = { .sa_handler = handled, .sa_flags = flags };
		sigaction(SIGUSR1, &act, NULL);
		errno = 0;
		long result = syscall(SYS_getppid);
		_exit(result < 0 ? errno : (int)result);
	}
	return pid;
}

static void interrupted(void)
{
	pid_t pid = interruptible(0);
	MUST(receive());
	wait_state(pid, "S");
	kill(pid, SIGUSR1);
	IS(WEXITSTATUS(reap(pid)) == EINTR);
	T(respond(got.id, 0, 0, 0));
	pid = interruptible(SA_RESTART);
	MUST(receive());
	__u64 first = got.id;
	wait_state(pid, "S");
	kill(pid, SIGUSR1);
	MUST(receive());
	IS(got.id == first + 1);
	T(valid(first));
	T(respond(got.id, 12, 0, 0));
	say_status("asked again", reap(pid));
	pid = asking(0);
	MUST(receive());
	kill(pid, SIGKILL);
	say_status("killed", reap(pid));
	T(respond(got.id, 0, 0, 0));
	pid = asking(0);
	struct pollfd p = { .fd = listener, .events = POLLIN };
	poll(&p, 1, -1);
	kill(pid, SIGKILL);
	reap(pid);
	SAY("poll %#x", ready());
	T(receive());
}

static void wait_killable(void)
{
	CHILD("only death ends it once it was taken") {
		listen_to(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, SYS_getppid);
		pid_t pid = interruptible(0);
		MUST(receive());
		wait_state(pid, "D");
		kill(pid, SIGUSR1);
		T(respond(got.id, 15, 0, 0));
		say_status("a signal does not", reap(pid));
		pid = interruptible(0);
		MUST(receive());
		kill(pid, SIGKILL);
		say_status("a kill does", reap(pid));
		pid = interruptible(0);
		MUST(receive());
		kill(pid, SIGTERM);
		say_status("a signal that ends it does", reap(pid));
		pid = interruptible(0);
		struct pollfd p = { .fd = listener, .events = POLLIN };
		poll(&p, 1, -1);
		wait_state(pid, "S");
		kill(pid, SIGUSR1);
		IS(WEXITSTATUS(reap(pid)) == EINTR);
		fflush(stdout);
	} END;
}

static void *asks(void *arg)
{
	(void)arg;
	return (void *)syscall(SYS_getppid);
}

static void closing(void)
{
	pid_t pid = asking(0);
	MUST(receive());
	__u64 id = got.id;
	pid_t other = asking(0);
	wait_state(other, "S");
	/* One that nobody has heard of: whoever comes for it finds nothing. */
	kill(other, SIGKILL);
	reap(other);
	T(receive());
	T(respond(id, 1, 0, 0));
	reap(pid);
}

static void closed(void)
{
	CHILD("a listener that is closed") {
		listen_to(0, SYS_getpgrp);
		close(listener);
		T(syscall(SYS_getpgrp));
		fflush(stdout);
	} END;
	CHILD("closed while somebody asks") {
		pthread_t thread;
		void *result;
		listen_to(0, SYS_getppid);
		MUST(pthread_create(&thread, NULL, asks, NULL));
		MUST(receive());
		close(listener);
		pthread_join(thread, &result);
		SAY("%ld", (long)result);
		fflush(stdout);
	} END;
	CHILD("nobody has the filter any more") {
		int pair[2];
		socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			listen_to(0, SYS_getppid);
			send_fds(pair[0], "x", 1, &listener, 1, 0);
			pause();
		}
		char byte, control[CMSG_SPACE(sizeof(int))];
		struct iovec io = { &byte, 1 };
		struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
		MUST(recvmsg(pair[1], &m, 0));
		memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof listener);
		SAY("poll %#x", ready());
		kill(pid, SIGKILL);
		struct pollfd p = { .fd = listener };
		poll(&p, 1, -1);
		SAY("poll %#x", p.revents);
		T(receive());
		reap(pid);
		fflush(stdout);
	} END;
}

static void *listens(void *arg)
{
	(void)arg;
	for (int n = 0; n < 2; n++) {
		MUST(receive());
		respond(got.id, 40 + n, 0, 0);
	}
	return NULL;
}

static volatile int go;

static void *waits(void *arg)
{
	while (!go)
		sched_yield();
	return asks(arg);
}

static void synchronised(void)
{
	CHILD("TSYNC with a listener") {
		pthread_t thread;
		MUST(pthread_create(&thread, NULL, waits, NULL));
		listen_to(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SYS_getppid);
		go = 1;
		MUST(receive());
		T(respond(got.id, 50, 0, 0));
		void *result;
		pthread_join(thread, &result);
		SAY("it got %ld", (long)result);
		fflush(stdout);
	} END;
	CHILD("answers from a thread that has the filter") {
		pthread_t thread;
		listen_to(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SYS_getppid);
		MUST(pthread_create(&thread, NULL, listens, NULL));
		T(syscall(SYS_getppid));
		T(syscall(SYS_getppid));
		pthread_join(thread, NULL);
		fflush(stdout);
	} END;
}

/* Many ask at once, and each gets its own answer. */
static void many(void)
{
	enum { ASKING = 30 };
	pid_t pids[ASKING];
	for (int n = 0; n < ASKING; n++)
		pids[n] = asking(n);
	for (int n = 0; n < ASKING; n++) {
		MUST(receive());
		MUST(respond(got.id, (__s64)got.data.args[0] + 1, 0, 0));
	}
	int right = 0;
	for (int n = 0; n < ASKING; n++)
		right += WEXITSTATUS(reap(pids[n])) == n + 1;
	SAY("%d right", right);
}

int main(void)
{
	wait_killable();
	synchronised();
	closed();
	listen_to(0, SYS_getppid);
	answers();
	bad();
	descriptors();
	interrupted();
	closing();
	many();
	return 0;
}
