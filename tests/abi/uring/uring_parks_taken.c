/*
 * uring_parks_taken.c: entries that wait, with what is linked to them or drained behind them, while one allocation after the other fails: each
 * entry is completed once, whatever becomes of it.
 */
#include "uring.h"
#include "failing.h"
#include <poll.h>

static struct ring r;
static int ends[2];
static char byte;
static struct timespec limit = { 3600, 0 }, soon = { 0, 1000 };

static void link_of(void)
{
	rw(&r, IORING_OP_READ, 1, ends[0], &byte, 1)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 2)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 3);
}

static void limited(void)
{
	rw(&r, IORING_OP_READ, 1, ends[0], &byte, 1)->flags = IOSQE_IO_LINK;
	rw(&r, IORING_OP_LINK_TIMEOUT, 2, -1, &limit, 1)->flags = IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 3);
}

static void drained(void)
{
	rw(&r, IORING_OP_READ, 1, ends[0], &byte, 1);
	next(&r, IORING_OP_NOP, 2)->flags = IOSQE_IO_DRAIN | IOSQE_IO_LINK;
	next(&r, IORING_OP_NOP, 3);
}

static void polled(void)
{
	for (int i = 1; i <= 2; i++)
		rw(&r, IORING_OP_POLL_ADD, (unsigned long)i, ends[0], NULL, 0)->poll32_events = POLLIN;
	rw(&r, IORING_OP_TIMEOUT, 3, -1, &soon, 1);
}

static void all_whole(const char *name, void (*submit)(void))
{
	int nth = 1, broken = 0, fails = 1;
	for (; fails && nth < MOST_ALLOCATIONS && broken < 3; nth++) {
		unsigned seen = 0, count = 0;
		struct timespec begun;
		submit();
		unsigned long failed = failing_count();
		failing_at(nth);
		long taken = enter(r.fd, 3, 0, 0);
		int itself = failing_at_none();
		fails = !itself && failing_count() != failed;
		if (taken != 3) {
			/* What was not taken is now. */
			enter(r.fd, (unsigned)(3 - (taken < 0 ? 0 : taken)), 0, 0);
		}
		MUST(write(ends[1], "x", 1));
		clock_gettime(CLOCK_MONOTONIC, &begun);
		while (count < 3 && elapsed_ms(&begun) < 3000) {
			enter(r.fd, 0, 0, IORING_ENTER_GETEVENTS);
			struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
			while (ready(&r)) {
				unsigned head = *number(&r, r.p.cq_off.head);
				seen |= 1u << cqes[head & (r.p.cq_entries - 1)].user_data;
				count++;
				__atomic_store_n(number(&r, r.p.cq_off.head), head + 1, __ATOMIC_RELEASE);
			}
		}
		if (count != 3 || seen != 0xe) {
			broken++;
			SAY("%s: allocation %d: %u completions, of %#x", name, nth, count, seen);
		}
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
		read(ends[0], &byte, 1);
		fcntl(ends[0], F_SETFL, 0);
	}
	SAY("%s: %s", name, nth == MOST_ALLOCATIONS ? "too many" : broken ? "broken" : "whole");
}

int main(void)
{
	MUST(pipe(ends));
	r = ring(8);
	failing_begin();
	all_whole("linked", link_of);
	all_whole("with a limit", limited);
	all_whole("drained", drained);
	all_whole("polled", polled);
	return 0;
}
