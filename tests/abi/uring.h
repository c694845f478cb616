/* uring.h: what the programs about io_uring share: a ring by bare calls, entries, completions. */
#ifndef ALEA_ABI_URING_H
#define ALEA_ABI_URING_H

#include "check.h"
#include <linux/io_uring.h>

#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#endif

struct ring {
	int fd;
	struct io_uring_params p;
	unsigned char *rings;
	size_t rings_len;
	struct io_uring_sqe *sqes;
	unsigned tail;
};

static UNUSED long setup(unsigned entries, struct io_uring_params *p)
{
	return syscall(SYS_io_uring_setup, entries, p);
}

static UNUSED long enter(int fd, unsigned submit, unsigned least, unsigned flags)
{
	return syscall(SYS_io_uring_enter, fd, submit, least, flags, NULL, 8);
}

static UNUSED long enter_arg(int fd, unsigned submit, unsigned least, unsigned flags, void *arg, size_t size)
{
	return syscall(SYS_io_uring_enter, fd, submit, least, flags, arg, size);
}

static UNUSED long reg(int fd, unsigned op, void *arg, unsigned count)
{
	return syscall(SYS_io_uring_register, fd, op, arg, count);
}

static UNUSED unsigned *number(struct ring *r, unsigned off)
{
	return (unsigned *)(r->rings + off);
}

static UNUSED struct ring ring_with(unsigned entries, unsigned flags, unsigned cq)
{
	struct ring r = { .fd = -1 };
	r.p.flags = flags;
	r.p.cq_entries = cq;
	r.fd = (int)MUST(setup(entries, &r.p));
	size_t cq_len = r.p.cq_off.cqes + r.p.cq_entries * sizeof(struct io_uring_cqe);
	size_t sq_len = r.p.sq_off.array + r.p.sq_entries * 4;
	r.rings_len = cq_len > sq_len ? cq_len : sq_len;
	r.rings = (void *)MUST(mmap(NULL, r.rings_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r.fd,
				    IORING_OFF_SQ_RING));
	r.sqes = (void *)MUST(mmap(NULL, r.p.sq_entries * sizeof *r.sqes, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_POPULATE, r.fd, IORING_OFF_SQES));
	return r;
}

static UNUSED struct ring ring(unsigned entries)
{
	return ring_with(entries, 0, 0);
}

/* The next entry, cleared; it counts as submitted at the next enter. */
static UNUSED struct io_uring_sqe *next(struct ring *r, int op, unsigned long data)
{
	unsigned at = r->tail++ & (r->p.sq_entries - 1);
	struct io_uring_sqe *sqe = &r->sqes[at];
	memset(sqe, 0, sizeof *sqe);
	sqe->opcode = (unsigned char)op;
	sqe->user_data = data;
	if (!(r->p.flags & IORING_SETUP_NO_SQARRAY))
		number(r, r->p.sq_off.array)[at] = at;
	__atomic_store_n(number(r, r->p.sq_off.tail), r->tail, __ATOMIC_RELEASE);
	return sqe;
}

static UNUSED struct io_uring_sqe *rw(struct ring *r, int op, unsigned long data, int fd, const void *buf, unsigned len)
{
	struct io_uring_sqe *sqe = next(r, op, data);
	sqe->fd = fd;
	sqe->addr = (unsigned long)buf;
	sqe->len = len;
	return sqe;
}

static UNUSED unsigned ready(struct ring *r)
{
	return __atomic_load_n(number(r, r->p.cq_off.tail), __ATOMIC_ACQUIRE) - *number(r, r->p.cq_off.head);
}

static UNUSED void say_cqe(unsigned long data, int res, unsigned flags)
{
	if (res < 0)
		printf("  %lu: %s", data, err_name(-res));
	else
		printf("  %lu: %d", data, res);
	if (flags)
		printf(" flags %#x", flags);
	printf("\n");
}

/* Takes and prints all completions. Returns the last result. */
static UNUSED int take(struct ring *r)
{
	struct io_uring_cqe *cqes = (void *)(r->rings + r->p.cq_off.cqes);
	int res = 0;
	while (ready(r)) {
		unsigned head = *number(r, r->p.cq_off.head);
		struct io_uring_cqe *cqe = &cqes[head & (r->p.cq_entries - 1)];
		res = cqe->res;
		say_cqe(cqe->user_data, cqe->res, cqe->flags);
		__atomic_store_n(number(r, r->p.cq_off.head), head + 1, __ATOMIC_RELEASE);
	}
	return res;
}

/* As take, in the order of the entries, once there are so many: of those that another thread carries out on Linux, the first is chance. */
static UNUSED void settle(struct ring *r, unsigned least)
{
	enum { MOST = 64 };
	struct io_uring_cqe *cqes = (void *)(r->rings + r->p.cq_off.cqes), there[MOST];
	int count = 0;
	enter(r->fd, 0, 0, IORING_ENTER_GETEVENTS);
	for (int waited = 0; ready(r) < least && waited < 1000; waited++) {
		usleep(3000);
		enter(r->fd, 0, 0, IORING_ENTER_GETEVENTS);
	}
	for (; ready(r) && count < MOST; count++) {
		unsigned *head = number(r, r->p.cq_off.head);
		int at = count;
		struct io_uring_cqe cqe = cqes[*head & (r->p.cq_entries - 1)];
		for (; at && there[at - 1].user_data > cqe.user_data; at--)
			there[at] = there[at - 1];
		there[at] = cqe;
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	}
	for (int i = 0; i < count; i++)
		say_cqe(there[i].user_data, there[i].res, there[i].flags);
}

/* Submits so many, waits for as many completions, and prints them. */
static UNUSED void go(struct ring *r, unsigned submit, unsigned least)
{
	T(enter(r->fd, submit, least, IORING_ENTER_GETEVENTS));
	take(r);
}

static UNUSED void ring_close(struct ring *r)
{
	munmap(r->rings, r->rings_len);
	munmap(r->sqes, r->p.sq_entries * sizeof *r->sqes);
	close(r->fd);
}
#endif
