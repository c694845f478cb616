/*
 * POSIX message queues in use by many at once: no message is lost, made twice or given out of turn, who waits goes on, and a
 * queue's end, a close, an exit or a signal in the midst of it leaves nothing behind; where memory fails, a call fails whole.
 */
#include "check.h"
#include "failing.h"
#include <linux/netlink.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SENDERS 4
#define RECEIVERS 4
#define EACH 400
#define ROUNDS 150

static int k_open(const char *name, int flags, void *attr)
{
	return (int)syscall(SYS_mq_open, name, flags, 0600, attr);
}

static int k_notify(int q, const void *event)
{
	return (int)syscall(SYS_mq_notify, q, event);
}

static int fresh(const char *name, int flags, long most, long size)
{
	struct mq_attr attr = { .mq_maxmsg = most, .mq_msgsize = size };
	syscall(SYS_mq_unlink, name);
	return (int)MUST(k_open(name, O_CREAT | O_EXCL | O_RDWR | flags, &attr));
}

static long held(int q)
{
	struct mq_attr attr;
	MUST(mq_getattr(q, &attr));
	return attr.mq_curmsgs;
}

static int queue;
static unsigned char seen[SENDERS * EACH];
static int bad;

static void nothing(int signal)
{
	(void)signal;
}

static void *sends(void *arg)
{
	int from = (int)(long)arg * EACH;
	for (int i = 0; i < EACH; i++) {
		int number = from + i;
		while (mq_send(queue, (char *)&number, sizeof number, (unsigned)i % 3) != 0)
			if (errno != EINTR)
				__atomic_add_fetch(&bad, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Every few, a wait is too short, and every few more are made without waiting. */
static void *receives(void *arg)
{
	long got = 0;
	(void)arg;
	for (unsigned i = 0;; i++) {
		int number = -2;
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		if (i % 4)
			until.tv_sec += 1000;
		ssize_t n = mq_timedreceive(queue, (char *)&number, 8, NULL, &until);
		if (n < 0 && (errno == EINTR || errno == ETIMEDOUT))
			continue;
		if (n == 0)
			return (void *)got;
		if (n != sizeof number || number < 0 || number >= SENDERS * EACH || __atomic_add_fetch(&seen[number], 1, __ATOMIC_RELAXED) != 1)
			__atomic_add_fetch(&bad, 1, __ATOMIC_RELAXED);
		got++;
	}
}

static void crowd(void)
{
	pthread_t senders[SENDERS], receivers[RECEIVERS];
	long all = 0;
	queue = fresh("crowd", 0, 3, 8);
	struct sigaction act = { .sa_handler = nothing };
	sigaction(SIGALRM, &act, NULL);
	struct itimerval timer = { { 0, 2000 }, { 0, 2000 } }, off = { 0 };
	setitimer(ITIMER_REAL, &timer, NULL);
	for (long i = 0; i < RECEIVERS; i++)
		pthread_create(&receivers[i], NULL, receives, NULL);
	for (long i = 0; i < SENDERS; i++)
		pthread_create(&senders[i], NULL, sends, (void *)i);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(senders[i], NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	for (int i = 0; i < RECEIVERS; i++)
		while (mq_send(queue, "", 0, 0) != 0)
			;
	for (int i = 0; i < RECEIVERS; i++) {
		void *got;
		pthread_join(receivers[i], &got);
		all += (long)got;
	}
	SAY("crowd: %ld of %d, %d bad, %ld left", all, SENDERS * EACH, bad, held(queue));
	close(queue);
	mq_unlink("/crowd");
}

/* Each receives what it was sent, through its own queue, while names come and go. */
static void *churns(void *arg)
{
	char name[20];
	snprintf(name, sizeof name, "churn%d", (int)(long)arg % 2);
	for (int i = 0; i < ROUNDS; i++) {
		struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 8 };
		int q = k_open(name, O_CREAT | O_RDWR | O_NONBLOCK, &attr);
		if (q < 0 && errno != ENOENT)
			__atomic_add_fetch(&bad, 1, __ATOMIC_RELAXED);
		char text[8];
		mq_send(q, "x", 1, 0);
		mq_receive(q, text, 8, NULL);
		syscall(SYS_mq_unlink, name);
		close(q);
	}
	return NULL;
}

static void churn(void)
{
	pthread_t threads[4];
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churns, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	SAY("churn: %d bad", bad);
}

/* A process that waits, or asked to be told, is killed while another sends. */
static void killed(void)
{
	int lost = 0, twice = 0;
	for (int i = 0; i < ROUNDS / 3; i++) {
		int q = fresh("killed", O_NONBLOCK, 2, 8);
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			char text[8];
			struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
			struct mq_attr blocks = { 0 };
			k_notify(q, &event);
			int mine = k_open("killed", O_RDWR, NULL);
			mq_setattr(mine, &blocks, NULL);
			if (i % 3)
				for (;;)
					mq_receive(mine, text, 8, NULL);
			for (;;)
				k_notify(q, &event);
		}
		for (int n = 0; n < i % 7; n++)
			sched_yield();
		int sent = mq_send(q, "x", 1, 0) == 0;
		if (i % 2)
			sched_yield();
		kill(pid, SIGKILL);
		reap(pid);
		sent += mq_send(q, "y", 1, 0) == 0;
		long left = held(q);
		twice += left > sent;
		lost += sent == 2 && left < 1;
		struct sigevent event = { .sigev_notify = SIGEV_NONE };
		if (k_notify(q, &event) != 0 || k_notify(q, NULL) != 0)
			bad++;
		close(q);
	}
	mq_unlink("/killed");
	SAY("killed: %d lost, %d twice, %d bad", lost, twice, bad);
}

static int stop;

static void *asks(void *arg)
{
	int nl = (int)MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
	char cookie[32] = "cookie", text[40];
	struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_signo = nl, .sigev_value.sival_ptr = cookie };
	long asked = 0, came = 0;
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		asked += k_notify(queue, &event) == 0;
		while (recv(nl, text, sizeof text, 0) == 32)
			came++;
	}
	k_notify(queue, NULL);
	/* What another thread took away is on its way still. */
	struct pollfd one = { nl, POLLIN, 0 };
	while (came < asked && poll(&one, 1, LONG_MS) == 1)
		while (recv(nl, text, sizeof text, 0) == 32)
			came++;
	close(nl);
	return (void *)(came == asked ? 0L : 1L);
}

static void *ends(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		close(dup(queue));
		k_notify(queue, NULL);
	}
	return NULL;
}

static void notes(void)
{
	pthread_t threads[4];
	char text[8];
	queue = fresh("notes", O_NONBLOCK, 2, 8);
	pthread_create(&threads[0], NULL, asks, NULL);
	pthread_create(&threads[1], NULL, asks, NULL);
	pthread_create(&threads[2], NULL, ends, NULL);
	for (int i = 0; i < ROUNDS * 20; i++) {
		mq_send(queue, "x", 1, 0);
		mq_receive(queue, text, 8, NULL);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	long wrong = 0;
	for (int i = 0; i < 3; i++) {
		void *result;
		pthread_join(threads[i], &result);
		wrong += (long)result;
	}
	SAY("notes: %ld wrong", wrong);
	close(queue);
	mq_unlink("/notes");
}

/* A message that comes while a poll begins is seen by it. */
static void *slowly(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		while (mq_send(queue, "x", 1, 0) != 0)
			sched_yield();
	return NULL;
}

static void polled(void)
{
	pthread_t thread;
	char text[8];
	int got = 0, e = (int)MUST(epoll_create1(0));
	queue = fresh("polled", O_NONBLOCK, 1, 8);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	MUST(epoll_ctl(e, EPOLL_CTL_ADD, queue, &event));
	pthread_create(&thread, NULL, slowly, NULL);
	while (got < ROUNDS && epoll_wait(e, &event, 1, LONG_MS) == 1)
		while (mq_receive(queue, text, 8, NULL) >= 0)
			got++;
	pthread_join(thread, NULL);
	SAY("polled: %d of %d", got, ROUNDS);
	close(e);
	close(queue);
	mq_unlink("/polled");
}

/* Where memory fails. */
static int one = -1, nl = -1;
static char cookie[32] = "cookie";

static void no_queue(void)
{
	mq_unlink("/memory");
	if (one >= 0)
		close(one);
	one = -1;
}
static long act_open(void)
{
	struct mq_attr attr = { .mq_maxmsg = 8, .mq_msgsize = 16 };
	return one = k_open("memory", O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK, &attr);
}
static int not_made(void)
{
	return k_open("memory", O_RDWR, NULL) == -1 && errno == ENOENT;
}
static int is_made(long result)
{
	return result >= 0 && held(one) == 0;
}

static void empty(void)
{
	char text[16];
	while (mq_receive(one, text, sizeof text, NULL) >= 0)
		;
	k_notify(one, NULL);
	while (recv(nl, text, sizeof text, MSG_DONTWAIT) > 0)
		;
}
static long act_send(void)
{
	return mq_send(one, "0123456789abcdef", 16, 1);
}
static int none_sent(void)
{
	return held(one) == 0;
}
static int is_sent(long result)
{
	char text[16] = "";
	return result == 0 && mq_receive(one, text, sizeof text, NULL) == 16 && memcmp(text, "0123456789abcdef", 16) == 0;
}

static long act_notify(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_signo = nl, .sigev_value.sival_ptr = cookie };
	return k_notify(one, &event);
}
static int not_asked(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	return k_notify(one, &event) == 0 && k_notify(one, NULL) == 0;
}
static int is_asked(long result)
{
	char text[40];
	return result == 0 && mq_send(one, "x", 1, 0) == 0 && recv(nl, text, sizeof text, MSG_DONTWAIT) == 32 && text[31] == 1;
}

static void ask_first(void)
{
	empty();
	if (act_notify() != 0)
		bad++;
}
/* Telling needs no memory: only the message does. */
static int is_told(long result)
{
	char text[40];
	return is_sent(result) && recv(nl, text, sizeof text, MSG_DONTWAIT) == 32;
}

static void fill(void)
{
	empty();
	while (act_send() == 0)
		;
}
static long act_wait(void)
{
	struct timespec past = { 1, 0 };
	struct mq_attr blocks = { 0 }, again = { .mq_flags = O_NONBLOCK };
	mq_setattr(one, &blocks, NULL);
	int result = mq_timedsend(one, "x", 1, 0, &past), e = errno;
	mq_setattr(one, &again, NULL);
	errno = e;
	return result == -1 && e == ETIMEDOUT ? 8 : result;
}
static int is_full(long result)
{
	return result == 8 && held(one) == 8;
}
static int still_full(void)
{
	return held(one) == 8;
}

static void memory(void)
{
	static const struct call calls[] = {
		{ "open", no_queue, act_open, not_made, is_made },
		{ "send", empty, act_send, none_sent, is_sent },
		{ "notify", empty, act_notify, not_asked, is_asked },
		{ "tell", ask_first, act_send, none_sent, is_told },
		{ "wait", fill, act_wait, still_full, is_full },
	};
	nl = (int)MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	failing_begin();
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		fail_each(&calls[i]);
	empty();
	no_queue();
	close(nl);
}

/* All that a user may have, which goes with him. */
static void hoard(void)
{
	CHILD("a user") {
		char text[64] = "", name[20];
		int queues = 0, messages = 0;
		struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = 64 };
		MUST(setresuid(1000, 1000, 1000));
		for (; queues < 300; queues++) {
			snprintf(name, sizeof name, "hoard%d", queues);
			int q = k_open(name, O_CREAT | O_EXCL | O_RDWR | O_NONBLOCK, &attr);
			if (q < 0)
				break;
			while (mq_send(q, text, sizeof text, (unsigned)messages % 5) == 0)
				messages++;
			syscall(SYS_mq_unlink, name);
		}
		SAY("%d queues, %d messages, then %s", queues, messages, err_name(errno));
		fflush(stdout);
	} END;
	CHILD("again") {
		MUST(setresuid(1000, 1000, 1000));
		struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = 8192 - 96 };
		OK(k_open("hoard", O_CREAT | O_EXCL | O_RDWR, &attr));
		T(mq_unlink("/hoard"));
		fflush(stdout);
	} END;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	crowd();
	churn();
	killed();
	notes();
	polled();
	hoard();
	memory();
	return 0;
}
