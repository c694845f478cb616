/*
 * uring_attack.c: a ring under attack: a second thread writes nonsense into the shared memory while entries are taken and
 * completions written; mappings that go away; requests that are cancelled as they complete; rings that end with their threads.
 * Only what must hold is printed: the machine and the process go on, and the ring is of use afterwards.
 */
#include "uring.h"
#include <pthread.h>

static struct ring r;
static volatile int stop;

static void *scribble(void *arg UNUSED)
{
	unsigned seed = 12345, *words = (unsigned *)r.rings;
	size_t entries = r.p.sq_entries * sizeof *r.sqes / 4;
	while (!stop) {
		seed = seed * 1664525 + 1013904223;
		words[(seed >> 16) % 12] = seed;
		seed = seed * 1664525 + 1013904223;
		/* The operation, but for what would close or change our files: nothing below the descriptors in use. */
		unsigned at = (seed >> 8) % (unsigned)entries;
		if (at % 16 > 1)
			((volatile unsigned *)r.sqes)[at] = seed;
	}
	return NULL;
}

static void scribbled(unsigned flags)
{
	r = ring_with(16, flags, 0);
	pthread_t other;
	stop = 0;
	if (pthread_create(&other, NULL, scribble, NULL))
		_exit(98);
	for (int i = 0; i < 3000; i++) {
		for (int j = 0; j < 16; j++)
			r.sqes[j].opcode = IORING_OP_NOP, r.sqes[j].fd = -1;
		enter(r.fd, 16, 0, IORING_ENTER_GETEVENTS);
	}
	stop = 1;
	pthread_join(other, NULL);
	ring_close(&r);
	r = ring(4);
	next(&r, IORING_OP_NOP, 1);
	go(&r, 1, 1);
	ring_close(&r);
}

static int ends[2];

static void *writes(void *arg UNUSED)
{
	write(ends[1], "x", 1);
	return NULL;
}

/* Each read is answered once, by what was read or by ECANCELED. */
static void races(void)
{
	MUST(pipe(ends));
	MUST(fcntl(ends[1], F_SETFL, O_NONBLOCK));
	r = ring(8);
	pthread_t other;
	char got[64];
	unsigned answers = 0, wrong = 0;
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	for (unsigned long i = 0; i < 300; i++) {
		rw(&r, IORING_OP_READ, 2 * i + 2, ends[0], got, 1);
		MUST(enter(r.fd, 1, 0, 0));
		if (pthread_create(&other, NULL, writes, NULL))
			_exit(98);
		rw(&r, IORING_OP_ASYNC_CANCEL, 2 * i + 3, -1, (void *)(2 * i + 2), 0);
		MUST(enter(r.fd, 1, 2, IORING_ENTER_GETEVENTS));
		pthread_join(other, NULL);
		while (ready(&r)) {
			unsigned head = (*number(&r, r.p.cq_off.head))++;
			struct io_uring_cqe *cqe = &cqes[head & (r.p.cq_entries - 1)];
			if (cqe->user_data % 2 == 0) {
				answers++;
				if (cqe->res != 1 && cqe->res != -ECANCELED)
					wrong++;
			}
		}
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
		while (read(ends[0], got, sizeof got) > 0)
			;
		fcntl(ends[0], F_SETFL, 0);
	}
	SAY("answers %u, wrong %u", answers, wrong);
	ring_close(&r);
	close(ends[0]);
	close(ends[1]);
}

/* Nothing is left of the mappings, and the ring goes on. */
static void unmapped(void)
{
	r = ring(4);
	struct io_uring_sqe *sqe = next(&r, IORING_OP_NOP, 7);
	sqe->flags = 0;
	next(&r, IORING_OP_NOP, 8);
	munmap(r.sqes, r.p.sq_entries * sizeof *r.sqes);
	munmap(r.rings, r.rings_len);
	T(enter(r.fd, 2, 2, IORING_ENTER_GETEVENTS));
	r.rings = (void *)MUST(mmap(NULL, r.rings_len, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, IORING_OFF_CQ_RING));
	take(&r);
	close(r.fd);
	/* The memory outlives the descriptor. */
	IS(*number(&r, r.p.cq_off.ring_entries) == 8);
	munmap(r.rings, r.rings_len);
}

/* The maker of a ring is gone; another has it. */
static void orphaned(void)
{
	MUST(pipe(ends));
	r = ring(4);
	char got[4];
	CHILD("a child")
		rw(&r, IORING_OP_READ, 1, ends[0], got, 1);
		T(enter(r.fd, 1, 0, 0));
	END;
	close(ends[0]);
	close(ends[1]);
	ring_close(&r);
	CHILD("thousands, then killed")
		MUST(pipe(ends));
		r = ring(1024);
		for (int i = 0; i < 10240; i++) {
			rw(&r, IORING_OP_READ, 1, ends[0], got, 1);
			if (i % 1024 == 1023)
				MUST(enter(r.fd, 1024, 0, 0));
		}
		kill(getpid(), SIGKILL);
	END;
}

int main(void)
{
	scribbled(0);
	scribbled(IORING_SETUP_SUBMIT_ALL | IORING_SETUP_NO_SQARRAY);
	races();
	unmapped();
	orphaned();
	return 0;
}
