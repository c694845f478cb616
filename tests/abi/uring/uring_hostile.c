/*
 * uring_hostile.c: rings that are used as nobody should: over exec, with ten thousand requests in flight when they are closed, from
 * two threads at once, with buffers that go away under a request, told by each other in circles, and beyond RLIMIT_MEMLOCK.
 */
#include "uring.h"
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

static struct ring r;
static int ends[2];

/* Again from the start, as the program behind exec: the ring is there, its memory is not, and may be mapped anew. */
static int after_exec(int fd)
{
	struct ring again = { .fd = fd, .p = { .sq_entries = 4, .cq_entries = 8 } };
	T(fcntl(fd, F_GETFD));
	OK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING));
	T(reg(again.fd, IORING_REGISTER_PERSONALITY, NULL, 0));
	/* What the program before waited for was cancelled, or is now. */
	T(enter(fd, 0, 1, IORING_ENTER_GETEVENTS));
	unsigned *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	IS(words[3] - words[2] == 1);
	return 0;
}

static void over_exec(void)
{
	SAY("-- exec");
	char got[4], number[16];
	MUST(pipe(ends));
	r = ring(4);
	MUST(fcntl(r.fd, F_SETFD, 0));
	snprintf(number, sizeof number, "%d", r.fd);
	CHILD("with a ring")
		rw(&r, IORING_OP_READ, 1, ends[0], got, 4);
		struct ring own = ring(4);
		MUST(fcntl(own.fd, F_SETFD, 0));
		rw(&own, IORING_OP_READ, 1, ends[0], got, 4);
		MUST(enter(own.fd, 1, 0, 0));
		snprintf(number, sizeof number, "%d", own.fd);
		fflush(stdout);
		execl("/proc/self/exe", "uring_hostile", number, NULL);
	END;
	ring_close(&r);
	close(ends[0]);
	close(ends[1]);
}

/* All of the pipe's readers are in the ring's requests, so that it has none once they are gone. */
static void closed_full(void)
{
	SAY("-- ten thousand in flight");
	static char got[16];
	MUST(pipe(ends));
	signal(SIGPIPE, SIG_IGN);
	r = ring(1024);
	for (unsigned long i = 0; i < 10240; i++) {
		rw(&r, i % 2 ? IORING_OP_READ : IORING_OP_POLL_ADD, i, ends[0], i % 2 ? got : NULL, i % 2 ? 16 : 0)->poll32_events =
			i % 2 ? 0 : POLLIN;
		if (i % 1024 == 1023)
			MUST(enter(r.fd, 1024, 0, 0));
	}
	close(ends[0]);
	ring_close(&r);
	/* Linux ends them a moment after the call. */
	struct pollfd end = { ends[1], POLLOUT, 0 };
	for (int i = 0; i < 1000 && !(end.revents & POLLERR); i++) {
		MUST(poll(&end, 1, 0));
		usleep(10000);
	}
	T(write(ends[1], "x", 1));
	close(ends[1]);
	MUST(pipe(ends));
	r = ring(1024);
	for (unsigned long i = 0; i < 1024; i++)
		rw(&r, IORING_OP_READ, i, ends[0], got, 16);
	MUST(enter(r.fd, 1024, 0, 0));
	next(&r, IORING_OP_ASYNC_CANCEL, 5000)->cancel_flags = IORING_ASYNC_CANCEL_ANY;
	MUST(enter(r.fd, 1, 1025, IORING_ENTER_GETEVENTS));
	IS(ready(&r) == 1025);
	ring_close(&r);
	close(ends[0]);
	close(ends[1]);
}

static void gone_buffers(void)
{
	SAY("-- buffers that go");
	MUST(pipe(ends));
	r = ring(8);
	char *page = (char *)MUST(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	rw(&r, IORING_OP_READ, 1, ends[0], page, 8);
	MUST(enter(r.fd, 1, 0, 0));
	munmap(page, 4096);
	MUST(write(ends[1], "abc", 3));
	go(&r, 0, 1);
	/* Nothing was taken. */
	char got[8];
	T(read(ends[0], got, 8));
	rw(&r, IORING_OP_READ, 2, ends[0], page + 4096, 8);
	MUST(enter(r.fd, 1, 0, 0));
	mprotect(page + 4096, 4096, PROT_READ);
	MUST(write(ends[1], "abc", 3));
	go(&r, 0, 1);
	T(read(ends[0], got, 8));
	/* A ring of buffers that goes. */
	struct io_uring_buf_reg ring_of = { .ring_entries = 4, .bgid = 1 };
	char *bufs = (char *)MUST(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	ring_of.ring_addr = (unsigned long)bufs;
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &ring_of, 1));
	struct io_uring_buf *first = (void *)bufs;
	first->addr = (unsigned long)KERNEL_ADDRESS;
	first->len = 8;
	first->resv = 1;
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_READ, 3, ends[0], NULL, 8);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = 1;
	MUST(write(ends[1], "abc", 3));
	T(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	SAY("%s", err_name(-cqes[(*number(&r, r.p.cq_off.head))++ & (r.p.cq_entries - 1)].res));
	ring_close(&r);
	close(ends[0]);
	close(ends[1]);
}

static volatile int stop;

static void *churns(void *arg)
{
	struct ring *other = arg;
	for (int i = 0; i < 2000 && !stop; i++) {
		struct io_uring_sqe *sqe = next(other, IORING_OP_MSG_RING, 1);
		sqe->fd = r.fd;
		sqe->off = 2;
		if (enter(other->fd, 1, 1, IORING_ENTER_GETEVENTS) != 1)
			break;
		__atomic_store_n(number(other, other->p.cq_off.head), *number(other, other->p.cq_off.tail), __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Two rings that tell each other, from two threads, many times: none waits for the other, and nothing is lost. */
static void circles(void)
{
	SAY("-- circles");
	struct ring other = ring(4);
	r = ring_with(4, IORING_SETUP_CQSIZE, 8192);
	pthread_t thread;
	if (pthread_create(&thread, NULL, churns, &other))
		_exit(98);
	for (int i = 0; i < 2000; i++) {
		struct io_uring_sqe *sqe = next(&r, IORING_OP_MSG_RING, 3);
		sqe->fd = other.fd;
		sqe->off = 4;
		MUST(enter(r.fd, 1, 0, 0));
	}
	pthread_join(thread, NULL);
	enter(r.fd, 0, 4000, IORING_ENTER_GETEVENTS);
	IS(ready(&r) == 4000);
	ring_close(&r);
	ring_close(&other);
	/* A ring that waits for itself. */
	r = ring(4);
	rw(&r, IORING_OP_POLL_ADD, 1, r.fd, NULL, 0)->poll32_events = POLLOUT;
	T(enter(r.fd, 1, 0, 0));
	int event = r.fd;
	T(reg(r.fd, IORING_REGISTER_EVENTFD, &event, 1));
	T(reg(r.fd, IORING_REGISTER_FILES, &event, 1));
	ring_close(&r);
}

static void locked(void)
{
	SAY("-- locked memory");
	CHILD("of one who may not lock much")
		struct rlimit little = { 65536, 65536 };
		MUST(setrlimit(RLIMIT_MEMLOCK, &little));
		MUST(setuid(1000));
		r = ring(4);
		char *pages = (char *)MUST(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		struct iovec much = { pages, 1 << 20 }, some = { pages, 4096 };
		T(reg(r.fd, IORING_REGISTER_BUFFERS, &much, 1));
		T(reg(r.fd, IORING_REGISTER_BUFFERS, &some, 1));
		T(reg(r.fd, IORING_UNREGISTER_BUFFERS, NULL, 0));
	END;
}

int main(int argc, char **argv)
{
	if (argc > 1 && argv[1][0] >= '0' && argv[1][0] <= '9')
		return after_exec(atoi(argv[1]));
	over_exec();
	closed_full();
	gone_buffers();
	circles();
	locked();
	return 0;
}
