/*
 * fd_lent.c: a file is in use while its descriptor is closed, passed on, or put in another's place: by the same task (through a ring),
 * by a thread that came meanwhile, by one that is just leaving. In the end nothing holds any file: readers see the end, writers EPIPE.
 */
#include "../uring.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>

enum { ROUNDS = 300 };

static char bytes[64];

/* Whether the last one to have the end of a pipe has closed it. */
static void ended(const char *what, int in)
{
	char byte;
	ssize_t got;
	while ((got = read(in, &byte, 1)) > 0)
		;
	SAY("%s: %s", what, got == 0 ? "the end" : err_name(errno));
	close(in);
}

/* One task alone. */
static void alone(void)
{
	int p[2], q[2];
	MUST(pipe(p));
	MUST(pipe2(q, O_NONBLOCK));
	for (int i = 0; i < ROUNDS; i++) {
		int other = (int)MUST(dup(p[1]));
		MUST(write(other, "abc", 3));
		MUST(dup2(q[1], other));
		MUST(write(other, "d", 1));
		MUST(read(p[0], bytes, 3));
		MUST(close(other));
		MUST(read(q[0], bytes, 1));
	}
	close(p[1]);
	ended("alone", p[0]);
	close(q[0]);
	T(write(q[1], "x", 1));
	close(q[1]);
}

static void *closes(void *arg)
{
	int *fds = arg;
	for (int i = 0; i < 20; i++) {
		dup2(fds[1], fds[2]);
		close(fds[2]);
	}
	dup2(fds[0], fds[2]);
	return NULL;
}

/* A thread closes a descriptor and puts others in its place while the first one uses it; with each round it is alone again. */
static void threads(void)
{
	int p[2], q[2], odd = 0;
	MUST(pipe2(p, O_NONBLOCK));
	MUST(pipe2(q, O_NONBLOCK));
	int fds[3] = { p[1], q[1], (int)MUST(dup(p[1])) };
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		MUST(write(fds[2], "a", 1));
		errno = pthread_create(&thread, NULL, closes, fds);
		MUST(errno ? -1 : 0);
		for (int j = 0; j < 20; j++) {
			ssize_t put = write(fds[2], "b", 1);
			odd += put != 1 && errno != EBADF && errno != EAGAIN;
		}
		pthread_join(thread, NULL);
		while (read(p[0], bytes, sizeof bytes) > 0 || read(q[0], bytes, sizeof bytes) > 0)
			;
	}
	SAY("odd results: %d", odd);
	close(fds[2]);
	close(p[1]);
	close(q[1]);
	ended("a thread, first pipe", p[0]);
	ended("a thread, second pipe", q[0]);
}

static void *reads(void *arg)
{
	char byte;
	ssize_t got = read(*(int *)arg, &byte, 1);
	return (void *)got;
}

/* One waits in a read while the other closes the descriptor and leaves. */
static void leaves(void)
{
	int p[2];
	MUST(pipe(p));
	pthread_t thread;
	void *got;
	errno = pthread_create(&thread, NULL, reads, &p[0]);
	MUST(errno ? -1 : 0);
	usleep(20000);
	MUST(close(p[0]));
	MUST(write(p[1], "x", 1));
	pthread_join(thread, &got);
	SAY("read %ld of a descriptor that was closed", (long)got);
	signal(SIGPIPE, SIG_IGN);
	T(write(p[1], "y", 1));
	close(p[1]);
}

/* A ring closes what its other entries use, in the same call, and files beside. */
static void rings(void)
{
	struct ring r = ring(16);
	int left = 0;
	int p[2], q[2];
	MUST(pipe(q));
	for (int i = 0; i < ROUNDS; i++) {
		MUST(pipe(p));
		rw(&r, IORING_OP_WRITE, 1, p[1], "abcd", 4)->flags = IOSQE_IO_LINK;
		next(&r, IORING_OP_CLOSE, 2)->fd = p[1];
		rw(&r, IORING_OP_READ, 3, p[0], bytes, 4)->flags = IOSQE_IO_LINK;
		next(&r, IORING_OP_CLOSE, 4)->fd = p[0];
		next(&r, IORING_OP_NOP, 5);
		MUST(enter(r.fd, 5, 5, IORING_ENTER_GETEVENTS));
		left += (int)ready(&r) - 5;
		*number(&r, r.p.cq_off.head) += ready(&r);
	}
	SAY("completions too many: %d", left);
	/* A read that waits keeps its file, whose descriptor the ring closes. */
	rw(&r, IORING_OP_READ, 6, q[0], bytes, 4);
	next(&r, IORING_OP_CLOSE, 7)->fd = q[0];
	next(&r, IORING_OP_CLOSE, 8)->fd = r.fd;
	T(enter(r.fd, 3, 2, IORING_ENTER_GETEVENTS));
	MUST(write(q[1], "four", 4));
	settle(&r, 3);
	T(write(q[1], "five", 4));
	close(q[1]);
	ring_close(&r);
}

/* A call that brings new descriptors while it uses a socket. */
static void passed(void)
{
	int sv[2], p[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	MUST(pipe(p));
	for (int i = 0; i < ROUNDS; i++) {
		char room[CMSG_SPACE(4 * sizeof(int))] = { 0 };
		struct iovec one = { bytes, 1 };
		struct msghdr msg = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(4 * sizeof(int));
		memcpy(CMSG_DATA(c), (int[]){ p[1], sv[0], sv[1], p[1] }, 4 * sizeof(int));
		MUST(sendmsg(sv[0], &msg, 0));
		MUST(recvmsg(sv[1], &msg, 0));
		c = CMSG_FIRSTHDR(&msg);
		for (int j = 0; j < 4; j++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + j * sizeof fd, sizeof fd);
			MUST(close(fd));
		}
	}
	close(p[1]);
	ended("passed on", p[0]);
	close(sv[0]);
	ended("the socket", sv[1]);
}

/* A child that shares the descriptors for the length of a vfork closes one. */
static void vforked(void)
{
	int p[2];
	MUST(pipe(p));
	for (int i = 0; i < 50; i++) {
		int other = (int)MUST(dup(p[1]));
		long child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
		if (child == 0) {
			close(other);
			_exit(0);
		}
		MUST(child);
		ssize_t put = write(other, "z", 1);
		if (put == 1)
			MUST(read(p[0], bytes, 1));
		MUST(waitpid((pid_t)child, NULL, 0));
		if (close(other) == 0)
			SAY("not closed");
	}
	close(p[1]);
	ended("a child with the same descriptors", p[0]);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	alone();
	threads();
	leaves();
	rings();
	passed();
	vforked();
	return 0;
}
