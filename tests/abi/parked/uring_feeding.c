/*
 * uring_feeding.c: a poll that comes again and again of the eventfd that the ring itself tells, also by an epoll: it does not feed itself for
 * ever, though another thread takes all completions, and the process can be killed.
 */
#include "uring.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static struct ring r;
static volatile int over;

static unsigned take_all(int quiet)
{
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	unsigned count = 0;
	while (ready(&r)) {
		unsigned head = *number(&r, r.p.cq_off.head);
		struct io_uring_cqe *cqe = &cqes[head & (r.p.cq_entries - 1)];
		if (!quiet)
			say_cqe(cqe->user_data, cqe->res, cqe->flags);
		__atomic_store_n(number(&r, r.p.cq_off.head), head + 1, __ATOMIC_RELEASE);
		count++;
	}
	return count;
}

static void *takes(void *unused)
{
	while (!over)
		take_all(1);
	return unused;
}

static void begin(unsigned flags, int by_epoll)
{
	r = ring_with(8, flags, 0);
	int counter = (int)MUST(eventfd(0, EFD_NONBLOCK)), watched = counter;
	MUST(reg(r.fd, IORING_REGISTER_EVENTFD, &counter, 1));
	if (by_epoll) {
		struct epoll_event e = { .events = EPOLLIN | EPOLLET };
		watched = (int)MUST(epoll_create1(0));
		MUST(epoll_ctl(watched, EPOLL_CTL_ADD, counter, &e));
	}
	rw(&r, IORING_OP_POLL_ADD, 1, watched, NULL, IORING_POLL_ADD_MULTI)->poll32_events = POLLIN;
	MUST(enter(r.fd, 1, 0, 0));
}

static void feeds(const char *name, unsigned flags, int by_epoll)
{
	SAY("-- %s", name);
	begin(flags, by_epoll);
	next(&r, IORING_OP_NOP, 2);
	MUST(enter(r.fd, 1, 0, IORING_ENTER_GETEVENTS));
	for (int i = 0; i < 20; i++)
		enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS);
	unsigned count = take_all(1);
	SAY("%s", count < 4 ? "a few" : count < 16 ? "some" : "all that there is room for");
	for (int i = 0; i < 20; i++)
		enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS);
	SAY("then %u", take_all(1));
	ring_close(&r);
}

/* What others tell is told of again and again, but not what a ring has told. */
static void by_others(void)
{
	struct ring other = ring(8);
	uint64_t n = 1;
	int counter = (int)MUST(eventfd(0, EFD_NONBLOCK));
	SAY("-- another ring's");
	r = ring(8);
	MUST(reg(other.fd, IORING_REGISTER_EVENTFD, &counter, 1));
	rw(&r, IORING_OP_POLL_ADD, 1, counter, NULL, IORING_POLL_ADD_MULTI)->poll32_events = POLLIN;
	MUST(enter(r.fd, 1, 0, 0));
	for (int i = 0; i < 2; i++) {
		MUST(write(counter, &n, 8));
		MUST(enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
		take_all(0);
		MUST(read(counter, &n, 8));
		n = 1;
	}
	next(&other, IORING_OP_NOP, 2);
	MUST(enter(other.fd, 1, 0, 0));
	MUST(enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	take_all(0);
	MUST(read(counter, &n, 8));
	n = 1;
	MUST(write(counter, &n, 8));
	enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS);
	SAY("then %u", take_all(0));
	ring_close(&r);
	ring_close(&other);
}

/* Another thread takes what comes, so that there is always room. */
static void killed(unsigned flags, int by_epoll)
{
	fflush(stdout);
	int said[2];
	char c;
	MUST(pipe(said));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		pthread_t t;
		begin(flags, by_epoll);
		pthread_create(&t, NULL, takes, NULL);
		write(said[1], "x", 1);
		for (;;) {
			next(&r, IORING_OP_NOP, 2);
			enter(r.fd, 1, 0, IORING_ENTER_GETEVENTS);
			write(said[1], "y", 1);
			sleep_ms(50);
		}
	}
	close(said[1]);
	MUST(read(said[0], &c, 1));
	int times = 0;
	struct pollfd p = { said[0], POLLIN, 0 };
	while (times < 5 && poll(&p, 1, 5000) == 1 && read(said[0], &c, 1) == 1)
		times++;
	SAY("%d times", times);
	kill(child, SIGKILL);
	say_status("child", reap(child));
	close(said[0]);
}

int main(void)
{
	feeds("an eventfd", 0, 0);
	feeds("an eventfd, later", IORING_SETUP_COOP_TASKRUN, 0);
	feeds("an eventfd, when entered", IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER, 0);
	feeds("an epoll", 0, 1);
	by_others();
	killed(0, 0);
	killed(IORING_SETUP_COOP_TASKRUN, 0);
	killed(IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER, 0);
	killed(0, 1);
	return 0;
}
