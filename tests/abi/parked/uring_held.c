/*
 * A ring while an open of a fifo that it was asked for waits for the other end: a process that shares the ring, and enters it or
 * returns from a call, can be killed.
 */
#include "uring.h"
#include <pthread.h>

static struct ring r;

static void *opens(void *unused)
{
	(void)unused;
	struct io_uring_sqe *sqe = next(&r, IORING_OP_OPENAT, 1);
	sqe->fd = AT_FDCWD;
	sqe->addr = (unsigned long)"fifo";
	sqe->open_flags = O_RDONLY;
	enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS);
	return NULL;
}

/* Whether a child that was killed is gone soon. */
static int ends(pid_t pid)
{
	kill(pid, SIGKILL);
	for (int i = 0; i < 400; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return 1;
		sleep_ms(5);
	}
	return 0;
}

int main(void)
{
	pthread_t thread;
	scratch();
	MUST(mkfifo("fifo", 0600));
	r = ring(8);
	MUST(pthread_create(&thread, NULL, opens, NULL) ? -1 : 0);
	sleep_ms(100);
	pid_t enters = (pid_t)MUST(fork());
	if (enters == 0) {
		enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS);
		_exit(0);
	}
	pid_t registers = (pid_t)MUST(fork());
	if (registers == 0) {
		int event = -1;
		reg(r.fd, IORING_REGISTER_EVENTFD, &event, 1);
		_exit(0);
	}
	sleep_ms(100);
	SAY("who enters is gone: %s", ends(enters) ? "yes" : "no");
	SAY("who registers is gone: %s", ends(registers) ? "yes" : "no");
	int writer = (int)MUST(open("fifo", O_WRONLY));
	pthread_join(thread, NULL);
	IS(number(&r, r.p.cq_off.tail)[0] == 1);
	close(writer);
	return 0;
}
