/*
 * ring.h: a ring of io_uring by bare calls, just enough for batches: entries are filled in order, and each batch is submitted and waited for
 * with one call.
 */
#ifndef ALEA_EXPERIMENT_RING_H
#define ALEA_EXPERIMENT_RING_H

#include <linux/io_uring.h>
#include <sys/mman.h>

struct ring {
	int fd;
	struct io_uring_params params;
	unsigned char *rings;
	struct io_uring_sqe *entries;
	unsigned tail;
};

static unsigned *number_at(struct ring *ring, unsigned offset)
{
	return (unsigned *)(ring->rings + offset);
}

static void ring_open(struct ring *ring, unsigned entries)
{
	struct io_uring_params *params = &ring->params;
	ring->fd = (int)syscall(SYS_io_uring_setup, entries, params);
	must(ring->fd >= 0, "io_uring_setup");
	size_t len = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
	ring->rings = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQ_RING);
	ring->entries = mmap(NULL, params->sq_entries * sizeof *ring->entries, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
			     IORING_OFF_SQES);
	must(ring->rings != MAP_FAILED && ring->entries != MAP_FAILED, "the ring's memory");
	for (unsigned i = 0; i < params->sq_entries; i++)
		number_at(ring, params->sq_off.array)[i] = i;
}

static struct io_uring_sqe *ring_add(struct ring *ring, int operation, int fd, void *bytes, unsigned len, unsigned long offset)
{
	struct io_uring_sqe *entry = &ring->entries[ring->tail++ & (ring->params.sq_entries - 1)];
	*entry = (struct io_uring_sqe){ .opcode = (unsigned char)operation, .fd = fd, .addr = (unsigned long)bytes, .len = len, .off = offset };
	return entry;
}

/* Submits what was added, and takes as many completions, each of which has done `wanted`. */
static void ring_do(struct ring *ring, unsigned batch, int wanted)
{
	struct io_uring_cqe *done = (struct io_uring_cqe *)(ring->rings + ring->params.cq_off.cqes);
	unsigned *head = number_at(ring, ring->params.cq_off.head);
	__atomic_store_n(number_at(ring, ring->params.sq_off.tail), ring->tail, __ATOMIC_RELEASE);
	must(syscall(SYS_io_uring_enter, ring->fd, batch, batch, IORING_ENTER_GETEVENTS, NULL, 0) == batch, "io_uring_enter");
	must(__atomic_load_n(number_at(ring, ring->params.cq_off.tail), __ATOMIC_ACQUIRE) - *head == batch, "completions");
	for (unsigned i = 0; i < batch; i++)
		must(done[(*head + i) & (ring->params.cq_entries - 1)].res == wanted, "a completion");
	__atomic_store_n(head, *head + batch, __ATOMIC_RELEASE);
}

#endif
