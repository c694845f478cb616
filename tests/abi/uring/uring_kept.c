/*
 * What a ring keeps: thousands of requests that wait, of which few are woken at a time; a drained entry behind requests that are
 * cancelled by the one before it; completions without room in a ring that is polled (IORING_SETUP_IOPOLL).
 */
#include "uring.h"
#include <poll.h>

enum { PIPES = 10, POLLS = 9000 };

static struct io_uring_sqe *polls(struct ring *r, unsigned long data, int fd, unsigned flags)
{
	struct io_uring_sqe *sqe = next(r, IORING_OP_POLL_ADD, data);
	sqe->fd = fd;
	sqe->poll32_events = POLLIN;
	sqe->len = flags;
	return sqe;
}

/* Takes all completions: how many came of polls of this pipe, each once; forgets them. */
static int of_pipe(struct ring *r, int pipe, char *waits)
{
	struct io_uring_cqe *cqes = (void *)(r->rings + r->p.cq_off.cqes);
	int count = 0;
	while (ready(r)) {
		unsigned head = *number(r, r->p.cq_off.head);
		struct io_uring_cqe *cqe = &cqes[head & (r->p.cq_entries - 1)];
		if (cqe->res != POLLIN || (int)cqe->user_data % PIPES != pipe || !waits[cqe->user_data])
			SAY("odd: %d of %d", cqe->res, (int)cqe->user_data);
		waits[cqe->user_data] = 0;
		count++;
		__atomic_store_n(number(r, r->p.cq_off.head), head + 1, __ATOMIC_RELEASE);
	}
	return count;
}

static void many(void)
{
	static char waits[POLLS];
	struct ring r = ring_with(256, IORING_SETUP_CQSIZE, 4096);
	int p[PIPES][2];
	char c;
	SAY("-- many");
	for (int i = 0; i < PIPES; i++)
		MUST(pipe(p[i]));
	for (int i = 0; i < POLLS; i++) {
		polls(&r, (unsigned long)i, p[i % PIPES][0], 0);
		waits[i] = 1;
		if (i % 250 == 249)
			MUST(enter(r.fd, 250, 0, 0));
	}
	for (int i = PIPES - 1; i >= 0; i -= 3) {
		MUST(write(p[i][1], "x", 1));
		MUST(enter(r.fd, 0, POLLS / PIPES, IORING_ENTER_GETEVENTS));
		SAY("pipe %d: %d", i, of_pipe(&r, i, waits));
		MUST(read(p[i][0], &c, 1));
	}
	/* Some of them anew, and one that is ready already. */
	for (int i = 9; i < 30; i += PIPES) {
		polls(&r, (unsigned long)i, p[9][0], 0);
		waits[i] = 1;
	}
	MUST(enter(r.fd, 3, 0, 0));
	MUST(write(p[9][1], "x", 1));
	MUST(enter(r.fd, 0, 3, IORING_ENTER_GETEVENTS));
	SAY("pipe 9 again: %d", of_pipe(&r, 9, waits));
	polls(&r, 9, p[9][0], 0);
	waits[9] = 1;
	MUST(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	SAY("at once: %d", of_pipe(&r, 9, waits));
	MUST(write(p[8][1], "x", 1));
	MUST(enter(r.fd, 0, POLLS / PIPES, IORING_ENTER_GETEVENTS));
	SAY("pipe 8: %d", of_pipe(&r, 8, waits));
	ring_close(&r);
	for (int i = 0; i < PIPES; i++) {
		close(p[i][0]);
		close(p[i][1]);
	}
}

static void drained(void)
{
	struct ring r = ring(8);
	int p[2];
	SAY("-- drained behind what is cancelled");
	MUST(pipe(p));
	polls(&r, 1, p[0], IORING_POLL_ADD_MULTI);
	go(&r, 1, 0);
	MUST(write(p[1], "x", 1));
	go(&r, 0, 1);
	next(&r, IORING_OP_POLL_REMOVE, 2)->addr = 1;
	next(&r, IORING_OP_NOP, 3)->flags = IOSQE_IO_DRAIN;
	go(&r, 2, 3);
	polls(&r, 1, p[1], 0)->poll32_events = POLLERR;
	next(&r, IORING_OP_NOP, 3)->flags = IOSQE_IO_DRAIN;
	go(&r, 2, 0);
	next(&r, IORING_OP_NOP, 4);
	go(&r, 1, 0);
	close(p[0]);
	go(&r, 0, 3);
	close(p[1]);
	ring_close(&r);
}

static void polled(void)
{
	struct ring r = ring_with(2, IORING_SETUP_IOPOLL | IORING_SETUP_CQSIZE, 4);
	SAY("-- no room in a ring that is polled");
	for (int i = 0; i < 7; i++) {
		next(&r, IORING_OP_NOP, (unsigned long)i);
		T(enter(r.fd, 1, 0, 0));
	}
	SAY("ready %u, flags %u", ready(&r), *number(&r, r.p.sq_off.flags));
	take(&r);
	T(enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
	SAY("ready %u, flags %u", ready(&r), *number(&r, r.p.sq_off.flags));
	take(&r);
	ring_close(&r);
}

int main(void)
{
	many();
	drained();
	polled();
	return 0;
}
