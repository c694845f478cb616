/*
 * A call that gives a descriptor takes its number first: while open waits for the other end of a fifo and accept for a
 * connection, nobody else gets that number, and it is no file yet: EBADF, EBUSY for dup2, skipped by close_range, free in a
 * fork's copy. A call that fails gives it back, and one whose caller has none left has done nothing. Numbers that could not
 * be told the caller were never files.
 */
#include "check.h"
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

static int listener, last;
static volatile pid_t waiter;
static struct rlimit was;

static void *open_fifo(void *arg)
{
	int *got = arg;
	waiter = (pid_t)syscall(SYS_gettid);
	*got = open("fifo", O_WRONLY | O_CLOEXEC);
	if (*got < 0)
		*got = -errno;
	return NULL;
}

static void *accept_one(void *arg)
{
	int *got = arg;
	waiter = (pid_t)syscall(SYS_gettid);
	*got = accept(listener, NULL, NULL);
	if (*got < 0)
		*got = -errno;
	return NULL;
}

static void caught(int sig)
{
}

/* Waits for the thread as a child does, whose descriptors are its own. */
static void is_waiting(void)
{
	while (waiter == 0)
		sched_yield();
	CHILD("the thread waits") {
		_exit(!wait_state(waiter, "S"));
	} END;
	waiter = 0;
}

/* Nothing but the thread's own call makes a file of number `last`. */
static void is_reserved(void)
{
	char path[64];
	struct stat st;
	int other;
	snprintf(path, sizeof path, "/proc/self/fd/%d", last);
	T(fcntl(last, F_GETFD));
	T(fcntl(last, F_SETFD, FD_CLOEXEC));
	T(fstat(last, &st));
	T(ioctl(last, FIONCLEX));
	T(access(path, F_OK));
	T(close(last));
	T(dup2(last, last));
	T(dup2(0, last));
	T(dup3(0, last, O_CLOEXEC));
	T(syscall(SYS_close_range, last, last, 0));
	T(syscall(SYS_close_range, last, ~0u, 0));
	T(close(last));
	other = dup(0);
	IS(other == last + 1);
	close(other);
	other = fcntl(0, F_DUPFD, last);
	IS(other == last + 1);
	close(other);
	CHILD("a fork has its own") {
		IS(fcntl(last, F_GETFD) == -1);
		IS(dup(0) == last);
		T(dup2(0, last) == last);
		T(close(last));
	} END;
}

static void limit(int most)
{
	struct rlimit r = was;
	r.rlim_cur = (rlim_t)most;
	MUST(setrlimit(RLIMIT_NOFILE, &r));
}

static void opens(void)
{
	pthread_t thread;
	int got = 0, fd;
	SAY("open of a fifo that nobody reads");
	pthread_create(&thread, NULL, open_fifo, &got);
	is_waiting();
	is_reserved();
	limit(last + 1);
	T(dup(0));
	T(open("made", O_WRONLY | O_CREAT, 0600));
	T(access("made", F_OK));
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	SAY("%s", err_name(-got));
	IS((fd = dup(0)) == last);
	T(fcntl(fd, F_GETFD));
	close(fd);
	limit((int)was.rlim_cur);
	pthread_create(&thread, NULL, open_fifo, &got);
	is_waiting();
	/* A flag for the whole range holds for files that are to come, until they come. */
	T(syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC));
	fd = open("fifo", O_RDONLY);
	pthread_join(thread, NULL);
	IS(got == last);
	IS(fd == last + 1);
	T(fcntl(got, F_GETFD));
	close(got);
	close(fd);
}

static int caller(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int fd = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(connect(fd, (struct sockaddr *)&name, sizeof name));
	return fd;
}

static void accepts(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "socket" };
	pthread_t thread;
	int got = 0, flags;
	SAY("accept");
	listener = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(bind(listener, (struct sockaddr *)&name, sizeof name));
	MUST(listen(listener, 4));
	last = (int)MUST(dup(0));
	close(last);
	pthread_create(&thread, NULL, accept_one, &got);
	is_waiting();
	is_reserved();
	MUST(syscall(SYS_close_range, last, last, CLOSE_RANGE_CLOEXEC));
	int fd = caller();
	pthread_join(thread, NULL);
	IS(got == last);
	IS(fd == last + 1);
	T(flags = fcntl(got, F_GETFD));
	T(write(fd, "x", 1));
	char c;
	T(read(got, &c, 1));
	close(got);
	close(fd);
	SAY("with none left, the connection stays");
	fd = caller();
	IS(fd == last);
	limit(last + 1);
	T(accept(listener, NULL, NULL));
	limit((int)was.rlim_cur);
	T(accept(listener, NULL, NULL) == last + 1);
	close(last + 1);
	close(fd);
	close(listener);
}

/* Both numbers are written before anybody can use them, so a bad address leaves no trace. */
static void pairs(void)
{
	SAY("pairs");
	last = (int)MUST(dup(0));
	close(last);
	T(pipe(NON_CANONICAL));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, NON_CANONICAL));
	IS(dup(0) == last);
	close(last);
	int fds[2] = { -7, -7 };
	limit(last + 1);
	T(pipe(fds));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, NON_CANONICAL));
	T(socketpair(AF_INET, SOCK_STREAM, 0, fds));
	T(socketpair(AF_UNIX, SOCK_STREAM, 99, fds));
	T(pipe(NON_CANONICAL));
	SAY("%d %d", fds[0], fds[1]);
	limit((int)was.rlim_cur);
	IS(dup(0) == last);
	close(last);
}

static volatile int stop;

static void *takes(void *arg)
{
	while (!stop) {
		int fd = dup(0);
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

/* At the edge, against a thread that takes and gives back the last number. */
static void edge(void)
{
	pthread_t thread;
	int failed = 0, made = 0;
	SAY("at the edge");
	limit(last + 1);
	pthread_create(&thread, NULL, takes, NULL);
	for (int i = 0; i < 20000; i++) {
		int fd = open("new", O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd >= 0) {
			close(fd);
			MUST(unlink("new"));
			continue;
		}
		failed++;
		if (unlink("new") == 0)
			made++;
	}
	stop = 1;
	pthread_join(thread, NULL);
	limit((int)was.rlim_cur);
	SAY("made without a descriptor: %d", made);
}

int main(void)
{
	scratch();
	MUST(mkfifo("fifo", 0600));
	MUST(getrlimit(RLIMIT_NOFILE, &was));
	struct sigaction action = { .sa_handler = caught };
	MUST(sigaction(SIGUSR1, &action, NULL));
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	last = (int)MUST(dup(0));
	close(last);
	opens();
	accepts();
	pairs();
	edge();
	return 0;
}
