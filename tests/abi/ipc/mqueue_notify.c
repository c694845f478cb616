/*
 * mq_notify: who is told of the first message of an empty queue, by which signal with which details or by which message to a
 * socket, and what ends that: being told, asking for the end, a close, another program.
 */
#include "check.h"
#include <linux/netlink.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/prctl.h>

static int k_notify(int q, const void *event)
{
	return (int)syscall(SYS_mq_notify, q, event);
}

static struct sigevent by(int how, int signal, long value)
{
	struct sigevent event;
	memset(&event, 0, sizeof event);
	event.sigev_notify = how;
	event.sigev_signo = signal;
	event.sigev_value.sival_ptr = (void *)value;
	return event;
}

static mqd_t q;

static void shown(const char *what)
{
	char text[200];
	ssize_t n = pread(q, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = 0;
	char *pid = strstr(text, "NOTIFY_PID:");
	if (pid && atoi(pid + 11) == getpid())
		strcpy(pid + 11, "me\n");
	printf("%s: %s", what, text);
}

static void put(void)
{
	MUST(mq_send(q, "x", 1, 0));
}

static void drain(void)
{
	char text[8];
	struct timespec past = { 0, 0 };
	while (mq_timedreceive(q, text, 8, NULL, &past) >= 0)
		;
}

static void pending(const char *what)
{
	siginfo_t info;
	sigset_t set;
	sigfillset(&set);
	struct timespec zero = { 0, 0 };
	int signal = sigtimedwait(&set, &info, &zero);
	if (signal < 0)
		SAY("%s: no signal", what);
	else
		SAY("%s: %s code %d value %#lx errno %d from %s uid %u", what, sig_name(signal), info.si_code,
		    (long)info.si_value.sival_ptr, info.si_errno, info.si_pid == getpid() ? "me" : "another", info.si_uid);
}

static void refusals(void)
{
	SAY("-- refusals");
	struct sigevent event = by(SIGEV_SIGNAL, SIGUSR1, 0);
	T(k_notify(-1, &event));
	T(k_notify(0, &event));
	T(k_notify(0, NULL));
	T(k_notify(q, NULL));
	T(k_notify(q, KERNEL_ADDRESS));
	event = by(SIGEV_SIGNAL, 65, 0);
	T(k_notify(-1, &event));
	event = by(SIGEV_SIGNAL, -1, 0);
	T(k_notify(-1, &event));
	event = by(SIGEV_THREAD_ID, SIGUSR1, 0);
	T(k_notify(q, &event));
	event = by(3, SIGUSR1, 0);
	T(k_notify(q, &event));
	char cookie[32] = "cookie";
	event = by(SIGEV_THREAD, -1, (long)cookie);
	T(k_notify(q, &event));
	event = by(SIGEV_THREAD, -1, (long)KERNEL_ADDRESS);
	T(k_notify(q, &event));
	event = by(SIGEV_THREAD, q, (long)cookie);
	T(k_notify(q, &event));
	int pair[2], udp = socket(AF_INET, SOCK_DGRAM, 0);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	event = by(SIGEV_THREAD, pair[0], (long)cookie);
	T(k_notify(q, &event));
	event = by(SIGEV_THREAD, udp, (long)cookie);
	T(k_notify(q, &event));
	int nl = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	event = by(SIGEV_THREAD, nl, (long)cookie);
	T(k_notify(-1, &event));
	T(k_notify(0, &event));
	close(nl);
	close(udp);
	close(pair[0]);
	close(pair[1]);
}

static void *one_received(void *arg)
{
	char text[8];
	(void)arg;
	return (void *)(long)mq_receive(q, text, 8, NULL);
}

static void signals(void)
{
	SAY("-- signals");
	struct sigevent event = by(SIGEV_SIGNAL, SIGUSR1, 0x1234567890);
	T(k_notify(q, &event));
	shown("asked");
	T(k_notify(q, &event));
	put();
	pending("first");
	shown("told");
	T(k_notify(q, &event));
	put();
	pending("second");
	drain();
	shown("still");
	put();
	pending("first again");
	drain();
	event = by(SIGEV_SIGNAL, SIGRTMIN + 1, 7);
	T(k_notify(q, &event));
	T(k_notify(q, NULL));
	shown("not any more");
	put();
	pending("nobody asked");
	drain();
	event = by(SIGEV_SIGNAL, 0, 7);
	T(k_notify(q, &event));
	shown("no signal");
	put();
	pending("no signal");
	shown("told");
	drain();
	event = by(SIGEV_NONE, SIGUSR1, 7);
	T(k_notify(q, &event));
	shown("none");
	put();
	pending("none");
	shown("told");
	drain();
	/* Somebody waits: nobody is told. */
	event = by(SIGEV_SIGNAL, SIGUSR1, 9);
	T(k_notify(q, &event));
	pthread_t thread;
	pthread_create(&thread, NULL, one_received, NULL);
	wait_threads(1);
	put();
	pthread_join(thread, NULL);
	pending("received at once");
	shown("still");
	CHILD("from a child") {
		T(k_notify(q, &event));
		T(k_notify(q, NULL));
		put();
		fflush(stdout);
	} END;
	pending("from a child");
	drain();
	/* A close of any descriptor of the queue by the process. */
	T(k_notify(q, &event));
	int other = dup(q);
	shown("asked");
	close(other);
	shown("closed another");
	T(k_notify(q, &event));
	CHILD("closes in a child") {
		close(q);
	} END;
	shown("closed in a child");
	T(dup2(0, dup(q)) >= 0 ? 0 : -1);
	shown("replaced by dup2");
	drain();
}

/* In another program: is the notification of the first one there, and comes the signal? */
static void afterwards(int kept)
{
	q = kept;
	sigset_t set;
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	shown("after exec");
	put();
	pending("after exec");
	shown("told");
	drain();
}

static void other_programs(void)
{
	SAY("-- another program");
	struct sigevent event = by(SIGEV_SIGNAL, SIGUSR1, 3);
	char number[12];
	CHILD("kept open") {
		snprintf(number, sizeof number, "%d", q);
		T(k_notify(q, &event));
		fcntl(q, F_SETFD, 0);
		fflush(stdout);
		execl("/proc/self/exe", "again", number, NULL);
		_exit(98);
	} END;
	shown("ended");
	CHILD("closed by exec") {
		T(k_notify(q, &event));
		int kept = dup(q);
		snprintf(number, sizeof number, "%d", kept);
		fflush(stdout);
		execl("/proc/self/exe", "again", number, NULL);
		_exit(98);
	} END;
	CHILD("exit") {
		T(k_notify(q, &event));
		fflush(stdout);
	} END;
	shown("ended");
}

static void cookie_of(const char *what, int nl)
{
	unsigned char text[64];
	struct sockaddr_nl from;
	struct iovec iov = { text, sizeof text };
	struct msghdr msg = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(nl, &msg, MSG_DONTWAIT);
	if (n < 0)
		SAY("%s: %s", what, err_name(errno));
	else
		SAY("%s: %zd bytes \"%.10s\" ... %d, from %u groups %u, name of %u, flags %#x", what, n, text, text[31], from.nl_pid,
		    from.nl_groups, msg.msg_namelen, msg.msg_flags);
}

static void sockets(void)
{
	SAY("-- sockets");
	char cookie[33] = "a cookie of thirty-two bytes....";
	int nl = (int)MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	struct sigevent event = by(SIGEV_THREAD, nl, (long)cookie);
	T(k_notify(q, &event));
	shown("asked");
	T(k_notify(q, &event));
	cookie_of("busy", nl);
	struct pollfd one = { nl, POLLIN, 0 };
	T(poll(&one, 1, 0));
	put();
	T(poll(&one, 1, 0));
	cookie_of("first", nl);
	cookie_of("and no more", nl);
	shown("told");
	drain();
	T(k_notify(q, &event));
	T(k_notify(q, NULL));
	cookie_of("asked for the end", nl);
	T(k_notify(q, &event));
	close(dup(q));
	cookie_of("closed", nl);
	T(k_notify(q, &event));
	close(nl);
	shown("its socket is closed");
	put();
	shown("told");
	drain();
}

static sem_t told;
static int value;

static void in_a_thread(union sigval got)
{
	value = got.sival_int;
	sem_post(&told);
}

static void threads(void)
{
	SAY("-- threads");
	struct sigevent event = by(SIGEV_THREAD, 0, 0);
	event.sigev_notify_function = in_a_thread;
	event.sigev_value.sival_int = 42;
	sem_init(&told, 0, 0);
	T(mq_notify(q, &event));
	put();
	sem_wait(&told);
	SAY("value %d", value);
	drain();
	event.sigev_value.sival_int = 43;
	T(mq_notify(q, &event));
	put();
	sem_wait(&told);
	SAY("value %d", value);
	drain();
	T(mq_notify(q, &event));
	T(mq_notify(q, NULL));
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		afterwards(atoi(argv[1]));
		return 0;
	}
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	sigset_t set;
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 8 };
	mq_unlink("/notify");
	q = (mqd_t)MUST(mq_open("/notify", O_RDWR | O_CREAT | O_EXCL, 0600, &attr));
	refusals();
	signals();
	other_programs();
	sockets();
	threads();
	mq_unlink("/notify");
	return 0;
}
