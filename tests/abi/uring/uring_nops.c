/*
 * uring_nops.c: long batches of entries that do nothing, over the ends of pages and of both rings, in any order of the indices; among
 * them entries that say more, entries of other operations, indices that are none, and links; with too little room for completions.
 */
#include "uring.h"

enum { MANY = 256, INJECT_RESULT = 1 };

static struct ring r;

/* Takes all completions: how many there were, a sum of what they say of themselves in their order, how many failed. */
static void sum(void)
{
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	unsigned head = *number(&r, r.p.cq_off.head), count = ready(&r), failed = 0;
	unsigned long mixed = 0;
	for (unsigned i = 0; i < count; i++) {
		struct io_uring_cqe *cqe = &cqes[(head + i) & (r.p.cq_entries - 1)];
		mixed = mixed * 31 + cqe->user_data;
		failed += cqe->res != 0;
		if (cqe->res != 0)
			say_cqe(cqe->user_data, cqe->res, cqe->flags);
	}
	__atomic_store_n(number(&r, r.p.cq_off.head), head + count, __ATOMIC_RELEASE);
	SAY("  %u, %#lx, %u failed, dropped %u, overflow %u, flags %u", count, mixed, failed, *number(&r, r.p.sq_off.dropped),
	    *number(&r, r.p.cq_off.overflow), *number(&r, r.p.sq_off.flags));
}

static void fill(unsigned count, unsigned long data)
{
	for (unsigned i = 0; i < count; i++)
		next(&r, IORING_OP_NOP, data + i);
}

static void over_the_ends(unsigned flags)
{
	SAY("-- over the ends, flags %#x", flags);
	static const unsigned counts[] = { 1, 3, 64, 100, 256, 255, 7, 200 };
	r = ring_with(MANY, flags, 0);
	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
		fill(counts[i], i * 1000);
		T(enter(r.fd, counts[i], counts[i], IORING_ENTER_GETEVENTS));
		sum();
	}
	/* More than there are. */
	fill(5, 1);
	T(enter(r.fd, 9, 0, IORING_ENTER_GETEVENTS));
	sum();
	T(enter(r.fd, 1, 0, 0));
	sum();
	ring_close(&r);
}

static void in_any_order(void)
{
	SAY("-- in any order");
	r = ring(MANY);
	unsigned *array = number(&r, r.p.sq_off.array);
	fill(MANY, 0);
	for (unsigned i = 0; i < MANY; i++)
		array[i] = (i * 77 + 5) & (MANY - 1);
	T(enter(r.fd, MANY, MANY, IORING_ENTER_GETEVENTS));
	sum();
	/* One index is none: what is before it happens. */
	fill(20, 100);
	array[(r.tail - 10) & (MANY - 1)] = MANY;
	T(enter(r.fd, 20, 0, IORING_ENTER_GETEVENTS));
	sum();
	T(enter(r.fd, 20, 0, IORING_ENTER_GETEVENTS));
	sum();
	ring_close(&r);
}

static void that_say_more(void)
{
	SAY("-- that say more");
	r = ring_with(MANY, IORING_SETUP_SUBMIT_ALL, 0);
	fill(70, 1000);
	next(&r, IORING_OP_NOP, 1)->personality = 9;
	fill(1, 2000);
	next(&r, IORING_OP_NOP, 2)->ioprio = 1;
	next(&r, IORING_OP_NOP, 3)->rw_flags = 1 << 20;
	struct io_uring_sqe *sqe = next(&r, IORING_OP_NOP, 4);
	sqe->rw_flags = INJECT_RESULT;
	sqe->len = 42;
	sqe = next(&r, IORING_OP_NOP, 5);
	sqe->len = 42;
	sqe->fd = 77;
	sqe->off = sqe->addr = sqe->splice_fd_in = sqe->buf_index = 1;
	next(&r, IORING_OP_NOP, 6)->flags = IOSQE_CQE_SKIP_SUCCESS;
	next(&r, IORING_OP_NOP, 7)->flags = 1 << 7;
	next(&r, 200, 8);
	fill(3, 3000);
	T(enter(r.fd, 100, 0, IORING_ENTER_GETEVENTS));
	sum();
	ring_close(&r);
	/* Without SUBMIT_ALL one that cannot be ends the batch. */
	r = ring(MANY);
	fill(10, 0);
	next(&r, IORING_OP_NOP, 1)->ioprio = 1;
	fill(10, 50);
	T(enter(r.fd, 21, 0, IORING_ENTER_GETEVENTS));
	sum();
	T(enter(r.fd, 10, 10, IORING_ENTER_GETEVENTS));
	sum();
	ring_close(&r);
}

static void among_others(void)
{
	SAY("-- among others");
	int ends[2];
	r = ring(MANY);
	MUST(pipe(ends));
	static char byte;
	fill(66, 0);
	rw(&r, IORING_OP_READ, 502, ends[0], &byte, 1);
	fill(2, 503);
	/* What is linked comes after the batch on Linux, so nothing that could come before it follows. */
	next(&r, IORING_OP_NOP, 500)->flags = IOSQE_IO_LINK;
	fill(1, 501);
	next(&r, IORING_OP_NOP, 505)->flags = IOSQE_IO_DRAIN;
	fill(40, 600);
	T(enter(r.fd, 112, 70, IORING_ENTER_GETEVENTS));
	sum();
	/* All behind the one that drains stay back, those of the next call, too. */
	fill(5, 700);
	T(enter(r.fd, 5, 0, IORING_ENTER_GETEVENTS));
	sum();
	MUST(write(ends[1], "x", 1));
	T(enter(r.fd, 0, 47, IORING_ENTER_GETEVENTS));
	sum();
	ring_close(&r);
}

static void without_room(void)
{
	SAY("-- without room");
	r = ring_with(16, IORING_SETUP_CQSIZE, 16);
	for (int i = 0; i < 3; i++) {
		fill(12, (unsigned)i * 100);
		T(enter(r.fd, 12, 0, 0));
	}
	SAY("  ready %u, flags %u", ready(&r), *number(&r, r.p.sq_off.flags));
	sum();
	T(enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	sum();
	T(enter(r.fd, 0, 1, IORING_ENTER_GETEVENTS));
	sum();
	/* A head that is nonsense leaves no room, or all of it. */
	*number(&r, r.p.cq_off.head) += 1000;
	fill(4, 900);
	T(enter(r.fd, 4, 0, 0));
	*number(&r, r.p.cq_off.head) -= 1000;
	T(enter(r.fd, 0, 4, IORING_ENTER_GETEVENTS));
	sum();
	ring_close(&r);
}

int main(void)
{
	over_the_ends(0);
	over_the_ends(IORING_SETUP_NO_SQARRAY);
	in_any_order();
	that_say_more();
	among_others();
	without_room();
	return 0;
}
