/*
 * uring_ends.c: where links, rings and vectors end: timeouts that are linked to nothing or to each other, those that were in time and want
 * no completion, completions that another thread asks a ring for which has one thread, vectors and provided buffers.
 */
#include "uring.h"
#include <pthread.h>
#include <sys/uio.h>

static struct ring r;

static struct io_uring_sqe *timeout(int op, unsigned long data, unsigned flags)
{
	static struct { long long s, ns; } later = { 20, 0 };
	struct io_uring_sqe *sqe = next(&r, op, data);
	sqe->addr = (unsigned long)&later;
	sqe->len = 1;
	sqe->flags = (unsigned char)flags;
	return sqe;
}

static void timeouts(void)
{
	SAY("-- timeouts");
	r = ring(8);
	timeout(IORING_OP_LINK_TIMEOUT, 1, 0);
	next(&r, IORING_OP_NOP, 2);
	go(&r, 2, 0);
	go(&r, 1, 1);
	/* A timeout for a timeout: none of the link happens. */
	next(&r, IORING_OP_NOP, 3)->flags = IOSQE_IO_LINK;
	timeout(IORING_OP_LINK_TIMEOUT, 4, IOSQE_IO_LINK);
	timeout(IORING_OP_LINK_TIMEOUT, 5, IOSQE_IO_LINK);
	next(&r, IORING_OP_NOP, 6);
	go(&r, 4, 4);
	ring_close(&r);
	r = ring_with(8, IORING_SETUP_SUBMIT_ALL, 0);
	/* In time. */
	next(&r, IORING_OP_NOP, 7)->flags = IOSQE_IO_LINK;
	timeout(IORING_OP_LINK_TIMEOUT, 8, IOSQE_CQE_SKIP_SUCCESS);
	go(&r, 2, 1);
	next(&r, IORING_OP_NOP, 9)->flags = IOSQE_IO_LINK;
	timeout(IORING_OP_LINK_TIMEOUT, 10, 0);
	go(&r, 2, 2);
	ring_close(&r);
}

static void *looks(void *unused)
{
	(void)unused;
	T(enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
	T(enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	T(enter(r.fd, 1, 0, 0));
	T(enter(r.fd, 0, 0, 0));
	return NULL;
}

static void one_thread(unsigned flags)
{
	SAY("-- one thread, flags %#x", flags);
	pthread_t other;
	r = ring_with(4, flags, 0);
	next(&r, IORING_OP_NOP, 1);
	T(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	next(&r, IORING_OP_NOP, 2);
	MUST(pthread_create(&other, NULL, looks, NULL) == 0 ? 0 : -1);
	pthread_join(other, NULL);
	go(&r, 1, 2);
	ring_close(&r);
}

static void vectors(void)
{
	SAY("-- vectors and provided buffers");
	static char room[4][8];
	struct iovec all = { NULL, 8 }, some = { NULL, 3 }, any = { NULL, 0 }, wrong = { NULL, -1UL }, two[2] = { all, all };
	int ends[2];
	MUST(pipe(ends));
	MUST(write(ends[1], "0123456789abcdefghijklmnopqrstuvwxyz", 36));
	r = ring_with(8, IORING_SETUP_SUBMIT_ALL, 0);
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_PROVIDE_BUFFERS, 1, 4, room, 8);
	sqe->buf_group = 5;
	go(&r, 1, 1);
	struct { struct iovec *at; unsigned count; } asks[] = { { &some, 1 }, { &all, 1 }, { &any, 1 }, { two, 2 }, { &wrong, 1 },
								 { KERNEL_ADDRESS, 1 }, { &all, 0 } };
	for (unsigned i = 0; i < sizeof asks / sizeof *asks; i++) {
		sqe = rw(&r, IORING_OP_READV, 10 + i, ends[0], asks[i].at, asks[i].count);
		sqe->flags = IOSQE_BUFFER_SELECT;
		sqe->buf_group = 5;
		go(&r, 1, 1);
	}
	for (int i = 3; i >= 0; i--)
		SAY("  %.8s", room[i]);
	ring_close(&r);
}

/* A pipe without bytes does not hide that nothing is spliced into a ring, so nothing waits for it. */
static void into_rings(void)
{
	SAY("-- into rings");
	int ends[2];
	MUST(pipe(ends));
	r = ring(8);
	struct ring other = ring(4);
	int rings[] = { r.fd, other.fd };
	for (int i = 0; i < 2; i++) {
		struct io_uring_sqe *sqe = next(&r, IORING_OP_SPLICE, (unsigned long)i);
		sqe->splice_fd_in = ends[0];
		sqe->splice_off_in = sqe->off = -1UL;
		sqe->fd = rings[i];
		sqe->len = 8;
		go(&r, 1, 1);
	}
	ring_close(&other);
	ring_close(&r);
}

int main(void)
{
	into_rings();
	timeouts();
	one_thread(IORING_SETUP_SINGLE_ISSUER);
	one_thread(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
	vectors();
	return 0;
}
