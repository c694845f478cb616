/*
 * Ends in the midst of things: threads that wait at a queue whose descriptor another closes, whose process exits or becomes another
 * program, while others send, ask to be told and unlink; what is told to a process that is going, and urgent bytes to sockets that
 * are closed meanwhile.
 */
#include "check.h"
#include <linux/netlink.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#define ROUNDS 120

static int queue, pair[2];

static int k_open(const char *name, int flags)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	return (int)syscall(SYS_mq_open, name, flags, 0600, &attr);
}

static void *waits(void *arg)
{
	char text[8];
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += until.tv_nsec < 990000000 ? 5000000 : 0;
	for (int i = 0; i < 20; i++)
		arg ? (void)mq_timedsend(queue, "x", 1, (unsigned)i, &until) : (void)mq_timedreceive(queue, text, 8, NULL, &until);
	return NULL;
}

static void *asks(void *arg)
{
	char cookie[32] = "cookie";
	for (int i = 0; i < 20; i++) {
		int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
		struct sigevent event = { .sigev_notify = i % 2 ? SIGEV_THREAD : SIGEV_SIGNAL, .sigev_signo = i % 2 ? nl : SIGURG,
					  .sigev_value.sival_ptr = cookie };
		syscall(SYS_mq_notify, queue, &event);
		close(nl);
	}
	(void)arg;
	return NULL;
}

static void *urges(void *arg)
{
	char c;
	(void)arg;
	for (int i = 0; i < 20; i++) {
		send(pair[i % 2], "ab", 2, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL);
		fcntl(pair[0], F_SETOWN, getpid());
		recv(pair[0], &c, 1, i % 3 ? MSG_OOB : MSG_DONTWAIT);
		recv(pair[1], &c, 1, MSG_DONTWAIT | (i % 4 ? 0 : MSG_PEEK));
	}
	return NULL;
}

static void child(int round)
{
	static void *(*const acts[])(void *) = { waits, waits, asks, urges };
	pthread_t threads[4];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, acts[i], (void *)(i % 2));
	for (int i = 0; i < round % 9; i++)
		sched_yield();
	switch (round % 4) {
	case 0:
		close(queue);
		close(pair[round % 2]);
		_exit(0);
	case 1:
		execl("/proc/self/exe", "again", "over", NULL);
		_exit(1);
	case 2:
		syscall(SYS_mq_unlink, "ends");
		kill(getpid(), SIGKILL);
		break;
	default:
		close(pair[0]);
		close(pair[1]);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		_exit(0);
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 0;
	/* Children that ended in another way; what was wrong with the queue after them. */
	int bad = 0, left = 0, asked = 0, full = 0;
	char text[8];
	for (int i = 0; i < ROUNDS; i++) {
		queue = (int)MUST(k_open("ends", O_CREAT | O_RDWR));
		pid_t pids[2];
		for (int n = 0; n < 2; n++)
			if ((pids[n] = (pid_t)MUST(fork())) == 0)
				child(i + n);
		for (int n = 0; n < 2; n++) {
			int status = reap(pids[n]);
			bad += status != 0 && status != SIGKILL;
		}
		/* Whoever asked to be told is gone, and nobody waits. */
		struct timespec past = { 1, 0 };
		struct sigevent none = { .sigev_notify = SIGEV_NONE };
		while (mq_timedreceive(queue, text, 8, NULL, &past) >= 0)
			;
		left += errno != ETIMEDOUT;
		asked += syscall(SYS_mq_notify, queue, &none) != 0;
		full += mq_timedsend(queue, "x", 1, 0, &past) != 0;
		close(queue);
	}
	mq_unlink("/ends");
	SAY("%d bad, %d left, %d asked, %d full", bad, left, asked, full);
	return 0;
}
