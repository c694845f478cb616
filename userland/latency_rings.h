/* latency_rings.h: attacks by io_uring: many entries at once, requests that wait, buffers, rings that end. Included by latency.c. */

#define RING_ENTRIES 4096u
#define WAITING 10000

struct lat_ring {
	int fd;
	struct io_uring_params p;
	unsigned char *rings;
	struct io_uring_sqe *sqes;
	unsigned tail;
};

static struct lat_ring ring;

static unsigned *ring_number(unsigned offset) { return (unsigned *)(ring.rings + offset); }

static int ring_open(unsigned flags, unsigned completions)
{
	memset(&ring, 0, sizeof ring);
	ring.p.flags = flags | (completions ? IORING_SETUP_CQSIZE : 0);
	ring.p.cq_entries = completions;
	ring.p.sq_thread_idle = 1;
	ring.fd = (int)NEED(syscall(SYS_io_uring_setup, RING_ENTRIES, &ring.p));
	size_t cq = ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe);
	size_t sq = ring.p.sq_off.array + ring.p.sq_entries * sizeof(unsigned);
	ring.rings = (void *)NEED(mmap(NULL, cq > sq ? cq : sq, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd,
				       IORING_OFF_SQ_RING));
	ring.sqes = (void *)NEED(mmap(NULL, ring.p.sq_entries * sizeof *ring.sqes, PROT_READ | PROT_WRITE, MAP_SHARED,
				      ring.fd, IORING_OFF_SQES));
	return 0;
}

static void ring_shut(void)
{
	size_t cq = ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe);
	size_t sq = ring.p.sq_off.array + ring.p.sq_entries * sizeof(unsigned);
	munmap(ring.rings, cq > sq ? cq : sq);
	munmap(ring.sqes, ring.p.sq_entries * sizeof *ring.sqes);
	close(ring.fd);
}

static struct io_uring_sqe *ring_next(int op, int fd)
{
	unsigned at = ring.tail++ & (ring.p.sq_entries - 1);
	struct io_uring_sqe *sqe = &ring.sqes[at];
	memset(sqe, 0, sizeof *sqe);
	sqe->opcode = (unsigned char)op;
	sqe->fd = fd;
	ring_number(ring.p.sq_off.array)[at] = at;
	return sqe;
}

static void ring_submit(unsigned count)
{
	__atomic_store_n(ring_number(ring.p.sq_off.tail), ring.tail, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, ring.fd, count, 0, IORING_ENTER_GETEVENTS, NULL, 8);
}

/* All completions are taken, unread. */
static void ring_take(void)
{
	unsigned *head = ring_number(ring.p.cq_off.head);
	__atomic_store_n(head, __atomic_load_n(ring_number(ring.p.cq_off.tail), __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

static int ring_plain(void) { return ring_open(0, 0); }

static void ring_nops(void)
{
	for (unsigned i = 0; i < RING_ENTRIES; i++)
		ring_next(IORING_OP_NOP, -1);
	ring_submit(RING_ENTRIES);
	ring_take();
}

static void ring_chain(void)
{
	for (unsigned i = 0; i < RING_ENTRIES; i++)
		ring_next(IORING_OP_NOP, -1)->flags = i + 1 < RING_ENTRIES ? IOSQE_IO_LINK : 0;
	ring_submit(RING_ENTRIES);
	ring_take();
}

/* A chain whose first entry fails: all others are cancelled at once. */
static void ring_broken_chain(void)
{
	for (unsigned i = 0; i < RING_ENTRIES; i++)
		ring_next(i ? IORING_OP_NOP : IORING_OP_READ, -1)->flags = i + 1 < RING_ENTRIES ? IOSQE_IO_LINK : 0;
	ring_submit(RING_ENTRIES);
	ring_take();
}

static int ring_with_pipe(void)
{
	NEED(pipe(ends));
	return ring_open(0, 16384);
}

/* So many polls of one pipe wait. */
static void ring_wait_many(void)
{
	for (int begun = 0; begun < WAITING;) {
		unsigned count = 0;
		for (; count < 2048 && begun < WAITING; count++, begun++) {
			struct io_uring_sqe *sqe = ring_next(IORING_OP_POLL_ADD, ends[0]);
			sqe->poll32_events = POLLIN;
			sqe->user_data = (unsigned long)begun;
		}
		ring_submit(count);
	}
}

static void ring_cancel(void)
{
	ring_wait_many();
	struct io_uring_sqe *sqe = ring_next(IORING_OP_ASYNC_CANCEL, ends[0]);
	sqe->cancel_flags = IORING_ASYNC_CANCEL_ALL | IORING_ASYNC_CANCEL_FD;
	ring_submit(1);
	ring_take();
}

/* One byte wakes them all, each of which finds it. */
static void ring_wake(void)
{
	ring_wait_many();
	(void)!write(ends[1], "x", 1);
	ring_submit(0);
	ring_take();
	char byte;
	(void)!read(ends[0], &byte, 1);
}

static void ring_timeouts(void)
{
	static struct __kernel_timespec soon = { .tv_nsec = 2000000 };
	for (int round = 0; round < 4; round++) {
		for (unsigned i = 0; i < RING_ENTRIES; i++) {
			struct io_uring_sqe *sqe = ring_next(IORING_OP_TIMEOUT, -1);
			sqe->addr = (unsigned long)&soon;
			sqe->len = 1;
		}
		ring_submit(RING_ENTRIES);
	}
	usleep(5000);
	ring_submit(0);
	ring_take();
}

static void ring_end_waiting(void)
{
	if (ring_open(0, 16384) != 0)
		return;
	ring_wait_many();
	ring_shut();
}

static int ring_pipe_only(void)
{
	NEED(pipe(ends));
	return 0;
}

static int ring_of_big(void)
{
	int error = touched();
	return error ? error : ring_open(0, 0);
}

static void ring_buffers(void)
{
	static struct iovec iov[1024];
	for (int i = 0; i < 1024; i++)
		iov[i] = (struct iovec) { area + (size_t)i * 2 * PAGE, 2 * PAGE };
	syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, iov, 1024);
	syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0);
	iov[0] = (struct iovec) { area, 8 * MIB - 2 * PAGE };
	syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, iov, 1);
	syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0);
}

static int ring_of_files(void)
{
	int error = many_files();
	return error ? error : ring_open(0, 0);
}

static void ring_files(void)
{
	syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, all, FILES - 100);
	syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_FILES, NULL, 0);
}

static int ring_polled(void) { return ring_open(IORING_SETUP_SQPOLL, 0); }

static void ring_for_its_thread(void)
{
	for (unsigned i = 0; i < RING_ENTRIES; i++)
		ring_next(IORING_OP_NOP, -1);
	__atomic_store_n(ring_number(ring.p.sq_off.tail), ring.tail, __ATOMIC_SEQ_CST);
	syscall(SYS_io_uring_enter, ring.fd, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 8);
	usleep(1000);
	ring_take();
}

#define RING_ATTACKS \
	{ "uring_nops_4096", ring_plain, ring_nops }, \
	{ "uring_chain_4096", ring_plain, ring_chain }, \
	{ "uring_broken_chain", ring_plain, ring_broken_chain }, \
	{ "uring_cancel_10000", ring_with_pipe, ring_cancel }, \
	{ "uring_wake_10000", ring_with_pipe, ring_wake }, \
	{ "uring_timeouts_16384", ring_with_pipe, ring_timeouts }, \
	{ "uring_close_10000", ring_pipe_only, ring_end_waiting }, \
	{ "uring_buffers", ring_of_big, ring_buffers }, \
	{ "uring_files", ring_of_files, ring_files }, \
	{ "uring_sqpoll", ring_polled, ring_for_its_thread },
