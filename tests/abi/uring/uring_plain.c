/*
 * uring_plain.c: batches of plain entries, which a ring where nothing else goes on takes by a way of its own, mixed with all that ends it:
 * order, counts and results are those of any other entry.
 */
#include "uring.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif

static char bytes[64];
static int file, pipes[2], event;

static void batch(struct ring *r, const char *what, const char *ops, unsigned flags)
{
	SAY("%s: %s", what, ops);
	unsigned n = 0;
	for (; ops[n]; n++)
		switch (ops[n]) {
		case 'n': next(r, IORING_OP_NOP, n); break;
		case 'r': rw(r, IORING_OP_READ, n, file, bytes, 5)->off = n; break;
		case 'w': rw(r, IORING_OP_WRITE, n, file, "abcdefgh", 8)->off = n; break;
		case 'e': rw(r, IORING_OP_READ, n, file, bytes, 5)->off = 1000; break;
		case 'f': rw(r, IORING_OP_READ, n, file, (void *)8, 5); break;
		case 'b': rw(r, IORING_OP_READ, n, 99, bytes, 5); break;
		case 'o': rw(r, IORING_OP_READ, n, pipes[1], bytes, 5); break;
		case 'p': rw(r, IORING_OP_READ, n, pipes[0], bytes, 5); break;
		case 'P': rw(r, IORING_OP_WRITE, n, pipes[1], "12345", 5); break;
		case 'x': next(r, 200, n); break;
		case 'l': next(r, IORING_OP_NOP, n)->flags = IOSQE_IO_LINK; break;
		case 'd': next(r, IORING_OP_NOP, n)->flags = IOSQE_IO_DRAIN; break;
		case 's': rw(r, IORING_OP_WRITE, n, event, "\1\0\0\0\0\0\0\0", 8); break;
		}
	unsigned waits = ops[0] == 'p', woken = ops[2] == 'P';
	long taken = T(enter(r->fd, n, 0, flags));
	settle(r, (unsigned)taken - waits + woken);
	/* What is left goes with the next. */
	if (taken >= 0 && (unsigned)taken < n) {
		T(enter(r->fd, n - (unsigned)taken, 0, flags));
		settle(r, n - (unsigned)taken);
	}
}

static void batches(struct ring *r, unsigned flags)
{
	batch(r, "nothing", "nnn", flags);
	batch(r, "reads and writes", "wrwr", flags);
	batch(r, "mixed", "nrnwn", flags);
	batch(r, "the end of the file, no memory, no file, not to be read", "efbor", flags);
	batch(r, "an operation that is none ends it", "nrxnr", flags);
	batch(r, "links", "nlnrln", flags);
	batch(r, "a read that waits, and plain ones behind it", "pnr", flags);
	batch(r, "while it waits, what ends it", "rnPn", flags);
	T(enter(r->fd, 0, 0, IORING_ENTER_GETEVENTS));
	settle(r, 0);
	batch(r, "drained", "ndnr", flags);
	batch(r, "a poll of what the ring itself makes ready", "sns", flags);
}

/* More completions than there is room for are kept, in their order. */
static void full(unsigned flags)
{
	struct ring r = ring_with(4, flags | IORING_SETUP_CQSIZE, 4);
	for (int i = 0; i < 3; i++) {
		next(&r, IORING_OP_NOP, (unsigned long)(3 * i));
		rw(&r, IORING_OP_WRITE, (unsigned long)(3 * i + 1), pipes[1], bytes, 3);
		next(&r, IORING_OP_NOP, (unsigned long)(3 * i + 2));
		T(enter(r.fd, 3, 0, 0));
	}
	SAY("ready %u, overflow %d", ready(&r), !!(*number(&r, r.p.sq_off.flags) & 2));
	take(&r);
	T(enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
	take(&r);
	T(enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS));
	take(&r);
	ring_close(&r);
}

/* Whoever polls the ring, and the eventfd of the ring, learn of plain entries. */
static void told(void)
{
	struct ring r = ring(8);
	int bell = (int)MUST(eventfd(0, EFD_NONBLOCK));
	MUST(reg(r.fd, IORING_REGISTER_EVENTFD, &bell, 1));
	struct pollfd p = { r.fd, POLLIN, 0 };
	T(poll(&p, 1, 0));
	next(&r, IORING_OP_NOP, 1);
	T(enter(r.fd, 1, 0, 0));
	T(poll(&p, 1, 0));
	unsigned long long count = 0;
	T(read(bell, &count, 8));
	SAY("%llu", count);
	take(&r);
	ring_close(&r);
	close(bell);
}

/* A ring that is not enabled takes nothing, and one with a single issuer only from him. */
static void refused(void)
{
	struct ring r = ring_with(8, IORING_SETUP_R_DISABLED, 0);
	next(&r, IORING_OP_NOP, 1);
	T(enter(r.fd, 1, 0, 0));
	T(reg(r.fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0));
	T(enter(r.fd, 1, 0, 0));
	take(&r);
	ring_close(&r);
	r = ring_with(8, IORING_SETUP_SINGLE_ISSUER, 0);
	next(&r, IORING_OP_NOP, 2);
	T(enter(r.fd, 1, 0, 0));
	take(&r);
	next(&r, IORING_OP_NOP, 3);
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		T(enter(r.fd, 1, 0, 0));
		fflush(stdout);
		_exit(0);
	}
	MUST(waitpid(child, NULL, 0));
	T(enter(r.fd, 1, 0, 0));
	take(&r);
	ring_close(&r);
	/* An entry that is none, behind a plain one. */
	r = ring(8);
	next(&r, IORING_OP_NOP, 4);
	next(&r, IORING_OP_NOP, 5);
	number(&r, r.p.sq_off.array)[1] = 77;
	T(enter(r.fd, 2, 0, 0));
	take(&r);
	SAY("dropped %u", *number(&r, r.p.sq_off.dropped));
	T(enter(r.fd, 9, 0, 0));
	T(enter(r.fd, 0, 1, 0));
	ring_close(&r);
}

int main(void)
{
	file = (int)MUST(open("/tmp/uring_plain", O_RDWR | O_CREAT | O_TRUNC, 0600));
	MUST(write(file, "0123456789", 10));
	MUST(pipe(pipes));
	event = (int)MUST(eventfd(0, 0));
	struct ring r = ring(16);
	batches(&r, 0);
	batches(&r, IORING_ENTER_GETEVENTS);
	ring_close(&r);
	SAY("\nall are submitted");
	r = ring_with(16, IORING_SETUP_SUBMIT_ALL | IORING_SETUP_NO_SQARRAY, 0);
	batches(&r, 0);
	ring_close(&r);
	SAY("\na single issuer, who does the work");
	r = ring_with(16, IORING_SETUP_SINGLE_ISSUER | (1U << 13), 0);
	batches(&r, IORING_ENTER_GETEVENTS);
	ring_close(&r);
	full(0);
	told();
	refused();
	unlink("/tmp/uring_plain");
	return 0;
}
