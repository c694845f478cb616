/*
 * uring_asleep.c: a thread goes on with what it has submitted though it sleeps in another call: what a pipe gets is read, a registered
 * eventfd is told, and the call goes on as if nothing had been; also where the ring asks for no interruptions.
 */
#include "uring.h"
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/prctl.h>

static struct ring r;
static int fed[2], awaited[2], lock_file, lock_holder, queue, empty_epoll;
static unsigned word;
static pid_t child, sleeper_tid;
static char got[8];
static int was_read;

static void by_read(void)
{
	char c;
	T(read(awaited[0], &c, 1));
}

static void by_futex(void)
{
	T(syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0));
}

static void by_poll(void)
{
	struct pollfd p = { .fd = awaited[0], .events = POLLIN };
	T(poll(&p, 1, 20000));
}

static void by_wait(void)
{
	int status;
	IS(waitpid(child, &status, 0) == child);
	say_status("child", status);
}

static void by_lock(void)
{
	T(flock(lock_file, LOCK_EX));
	T(flock(lock_file, LOCK_UN));
}

static void by_message(void)
{
	struct { long type; char text[4]; } m;
	T(msgrcv(queue, &m, 4, 0, 0));
}

static void by_epoll(void)
{
	struct epoll_event e;
	T(epoll_wait(empty_epoll, &e, 1, 20000));
}

static void by_sleep(void)
{
	struct timespec begin, whole = { 0, 400000000 };
	clock_gettime(CLOCK_MONOTONIC, &begin);
	T(nanosleep(&whole, NULL));
	IS(elapsed_ms(&begin) >= 400);
}

static void end_write(void)
{
	MUST(write(awaited[1], "x", 1));
}

static void end_futex(void)
{
	word = 1;
	MUST(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0));
}

static void end_child(void)
{
	MUST(kill(child, SIGTERM));
}

static void end_lock(void)
{
	MUST(flock(lock_holder, LOCK_UN));
}

static void end_message(void)
{
	struct { long type; char text[4]; } m = { 1, "abc" };
	MUST(msgsnd(queue, &m, 4, 0));
}

static void end_nothing(void) { }

static const struct way {
	const char *name;
	void (*sleep)(void), (*end)(void);
} *way, ways[] = {
	{ "read", by_read, end_write },       { "futex", by_futex, end_futex }, { "poll", by_poll, end_write },
	{ "waitpid", by_wait, end_child },    { "flock", by_lock, end_lock },   { "msgrcv", by_message, end_message },
	{ "nanosleep", by_sleep, end_nothing }, { "epoll_wait", by_epoll, end_nothing },
};

/* Gives the pipe a byte once the other thread sleeps, and looks whether it was read though that thread goes on sleeping. */
static void *feed(void *unused)
{
	(void)unused;
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", sleeper_tid);
	while (state_in(path) != 'S')
		sleep_ms(1);
	sleep_ms(20);
	MUST(write(fed[1], "y", 1));
	int patience = 3000;
	while (!ready(&r) && patience--)
		sleep_ms(1);
	was_read = ready(&r) == 1;
	sleep_ms(20);
	way->end();
	return NULL;
}

static void prepare(void)
{
	child = (pid_t)MUST(fork());
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	word = 0;
	MUST(flock(lock_holder, LOCK_EX));
}

static void asleep(unsigned flags)
{
	r = ring_with(8, flags, 0);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		way = &ways[i];
		printf("%s\n", way->name);
		prepare();
		rw(&r, IORING_OP_READ, i, fed[0], got, 8);
		MUST(enter(r.fd, 1, 0, 0));
		pthread_t feeder;
		IS(pthread_create(&feeder, NULL, feed, NULL) == 0);
		way->sleep();
		pthread_join(feeder, NULL);
		IS(was_read);
		take(&r);
		if (way->sleep != by_wait) {
			kill(child, SIGKILL);
			reap(child);
		}
		if (way->sleep == by_poll)
			MUST(read(awaited[0], got, 1));
		MUST(flock(lock_holder, LOCK_UN));
	}
	ring_close(&r);
}

/* What liburing's ce593a6c480a does: the eventfd of the ring is read while nothing is complete. */
static void eventfds(unsigned flags)
{
	r = ring_with(8, flags, 0);
	int event = (int)MUST(eventfd(0, 0));
	MUST(reg(r.fd, IORING_REGISTER_EVENTFD, &event, 1));
	awaited[0] = event;
	way = &(struct way){ "eventfd", NULL, end_nothing };
	rw(&r, IORING_OP_READ, 9, fed[0], got, 8);
	MUST(enter(r.fd, 1, 0, 0));
	pthread_t feeder;
	IS(pthread_create(&feeder, NULL, feed, NULL) == 0);
	unsigned long count = 0;
	T(read(event, &count, 8));
	IS(count == 1);
	pthread_join(feeder, NULL);
	IS(was_read);
	take(&r);
	close(event);
	ring_close(&r);
}

int main(void)
{
	scratch();
	sleeper_tid = (pid_t)syscall(SYS_gettid);
	MUST(pipe(fed));
	lock_file = (int)MUST(open("lock", O_RDWR | O_CREAT, 0600));
	lock_holder = (int)MUST(open("lock", O_RDWR));
	empty_epoll = (int)MUST(epoll_create1(0));
	queue = (int)MUST(msgget(IPC_PRIVATE, 0600));
	for (int coop = 0; coop < 2; coop++) {
		SAY("-- %s", coop ? "COOP_TASKRUN" : "plain");
		MUST(pipe(awaited));
		asleep(coop ? IORING_SETUP_COOP_TASKRUN : 0);
		eventfds(coop ? IORING_SETUP_COOP_TASKRUN : 0);
	}
	MUST(msgctl(queue, IPC_RMID, NULL));
	return 0;
}
