/*
 * fuzz_rings.h: attacks of fuzz.c on io_uring: entries of all operations with sensible and senseless fields, linked, drained and
 * cancelled, from several threads and processes; indices and entries that are changed while the kernel takes them; registrations
 * that come and go under requests; rings that tell, wait for and close each other.
 */
#ifndef ALEA_FUZZ_RINGS_H
#define ALEA_FUZZ_RINGS_H

#include <linux/io_uring.h>

#define RINGS 4
#define RING_FDS 8
#define RING_ENTRIES 16

static struct fuzzed_ring {
	int fd;
	u64 size;
	struct io_uring_params params;
	unsigned char *words;
	struct io_uring_sqe *entries;
} fuzzed[RINGS];
static int ring_fds[RING_FDS];
static char ring_bytes[8 * PAGE] __attribute__((aligned(4096)));
static unsigned ring_word;

static const unsigned RING_FLAGS[] = { 0, 0, 0, 0x2 /* SQPOLL */, 0x1 /* IOPOLL */, 0x8 /* CQSIZE */, 0x40 /* R_DISABLED */, 0x80 /* SUBMIT_ALL */,
	0x100 /* COOP_TASKRUN */, 0x3000 /* SINGLE_ISSUER, DEFER_TASKRUN */, 0x10000 /* NO_SQARRAY */ };

/* A ring in a place of the list; the one that was there goes, perhaps while others use it. */
static void ring_make(struct fuzzed_ring *ring)
{
	struct fuzzed_ring made = { .fd = -1 };
	made.params.flags = PICK(RING_FLAGS) | (one_in(16) ? (unsigned)draw() & 0x1ffff : 0);
	made.params.cq_entries = (unsigned)below(64);
	made.fd = (int)syscall(425, (int)(1 + below(RING_ENTRIES)), &made.params);
	if (made.fd < 0)
		return;
	made.size = made.params.cq_off.cqes + made.params.cq_entries * sizeof(struct io_uring_cqe) + made.params.sq_entries * sizeof(unsigned);
	made.words = mmap(NULL, made.size, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, IORING_OFF_SQ_RING);
	made.entries = mmap(NULL, made.params.sq_entries * sizeof *made.entries, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, IORING_OFF_SQES);
	if (made.words == MAP_FAILED || made.entries == MAP_FAILED) {
		close(made.fd);
		return;
	}
	if (one_in(2) && ring->words != NULL)
		close(ring->fd);
	/* Its memory stays for those who are in it. */
	*ring = made;
}

static int ring_target(void)
{
	return one_in(6) ? PICK(fuzzed).fd : one_in(30) ? (int)draw() : PICK(ring_fds);
}

/* A place among a ring's files, or any; never a descriptor, of which there are few. */
static unsigned ring_place(void)
{
	return one_in(2) ? ~0U : 1 + (unsigned)below(RING_FDS);
}

/* Sensible but for one field in so many. */
static struct io_uring_sqe ring_entry(void)
{
	static struct { long long s, ns; } times[] = { { 0, 0 }, { 0, 100000 }, { 0, 2000000 }, { 100, 0 }, { -1, 0 } };
	static struct msghdr header;
	static struct iovec bytes = { ring_bytes, 64 };
	static char name[140], control[64];
	struct io_uring_sqe e = { .opcode = (unsigned char)below(58), .fd = ring_target(), .user_data = below(16) };
	e.flags = one_in(3) ? (unsigned char)(1 << below(7)) : 0;
	e.addr = (u64)(ring_bytes + below(sizeof ring_bytes));
	e.len = (unsigned)below(one_in(4) ? 4 * PAGE : 64);
	e.off = one_in(2) ? ~0UL : 0;
	switch (e.opcode) {
	case IORING_OP_TIMEOUT: case IORING_OP_LINK_TIMEOUT:
		e.addr = (u64)&PICK(times);
		e.len = 1;
		e.off = below(4);
		e.timeout_flags = one_in(3) ? 1U << below(7) : 0;
		break;
	case IORING_OP_POLL_ADD: e.poll32_events = (unsigned)below(0x40); e.addr = e.off = 0; e.len = (unsigned)below(2); break;
	case IORING_OP_POLL_REMOVE: case IORING_OP_TIMEOUT_REMOVE:
		e.addr = below(16);
		e.len = e.opcode == IORING_OP_POLL_REMOVE ? (unsigned)below(8) : 0;
		e.off = e.opcode == IORING_OP_POLL_REMOVE ? below(16) : (u64)&PICK(times);
		e.timeout_flags = one_in(2) ? 2 : (unsigned)below(0x40);
		break;
	case IORING_OP_ASYNC_CANCEL: e.addr = below(16); e.off = 0; e.len = (unsigned)below(58); e.cancel_flags = (unsigned)below(64); break;
	case IORING_OP_SPLICE: case IORING_OP_TEE:
		e.splice_fd_in = PICK(ring_fds);
		e.splice_off_in = e.opcode == IORING_OP_TEE ? 0 : ~0UL;
		e.off = e.opcode == IORING_OP_TEE ? 0 : ~0UL;
		break;
	case IORING_OP_MSG_RING:
		e.fd = PICK(fuzzed).fd;
		e.addr = below(2);
		e.len = e.addr ? 0 : e.len;
		e.addr3 = e.addr ? below(RING_FDS) : 0;
		e.file_index = e.addr ? ring_place() : 0;
		break;
	case IORING_OP_RECVMSG:
		header = (struct msghdr){ .msg_iov = &bytes, .msg_iovlen = below(3), .msg_namelen = (unsigned)below(140),
			.msg_controllen = below(64), .msg_name = one_in(2) ? name : NULL, .msg_control = control };
		e.addr = (u64)&header;
		e.off = 0;
		e.len = 1;
		e.flags |= one_in(2) ? IOSQE_BUFFER_SELECT : 0;
		e.ioprio = one_in(2) ? IORING_RECV_MULTISHOT : 0;
		break;
	case IORING_OP_ACCEPT: e.addr = e.len = 0; e.off = 0; e.file_index = ring_place(); break;
	case IORING_OP_SOCKET: e.fd = 1; e.addr = e.len = 0; e.off = 1 + below(2); e.file_index = ring_place(); break;
	case IORING_OP_OPENAT: e.fd = -100; e.addr = (u64)"/dev/zero"; e.off = 0; e.file_index = ring_place(); break;
	case 54: e.fd = (int)below(RING_FDS); e.flags |= IOSQE_FIXED_FILE; e.addr = e.off = 0; e.len = 0; break;
	case IORING_OP_PROVIDE_BUFFERS: e.fd = (int)(1 + below(8)); e.off = 0; e.buf_group = (unsigned short)below(3); break;
	case IORING_OP_REMOVE_BUFFERS: e.fd = (int)(1 + below(8)); e.addr = e.off = 0; e.len = 0; e.buf_group = (unsigned short)below(3); break;
	case IORING_OP_FILES_UPDATE: e.addr = (u64)ring_fds; e.len = (unsigned)below(RING_FDS); e.off = below(4); e.fd = -1; break;
	case 50: e.len = 0; e.addr = 0; e.addr2 = (u64)ring_bytes; e.file_index = 4 | (one_in(2) ? 1 : 0); break;
	case 51: case 52: e.fd = 2 | (one_in(2) ? 128 : 0); e.addr = (u64)&ring_word; e.len = 0; e.off = below(3); e.addr3 = 1 + below(3); break;
	/* Never what closes a descriptor that another attack needs, nor a file by its name. */
	case IORING_OP_CLOSE:
		e.fd = one_in(2) ? 0 : 1000 + (int)below(100);
		e.file_index = e.fd ? 0 : 1 + (unsigned)below(RING_FDS);
		e.addr = e.off = e.len = 0;
		break;
	case IORING_OP_UNLINKAT: case IORING_OP_RENAMEAT: e.fd = -1; break;
	default: break;
	}
	if (e.flags & IOSQE_BUFFER_SELECT)
		e.buf_group = (unsigned short)below(3);
	if (one_in(8) && e.opcode != IORING_OP_CLOSE)
		((unsigned char *)&e)[2 + below(sizeof e - 2)] = (unsigned char)draw();
	return e;
}

static void ring_submit(struct fuzzed_ring *ring)
{
	unsigned count = 1 + (unsigned)below(8), mask = ring->params.sq_entries - 1;
	unsigned *tail = (unsigned *)(ring->words + ring->params.sq_off.tail);
	for (unsigned i = 0; i < count; i++) {
		unsigned at = *tail & mask;
		ring->entries[at] = ring_entry();
		if (!(ring->params.flags & 0x10000))
			((unsigned *)(ring->words + ring->params.sq_off.array))[at] = at;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	}
	struct { long long s, ns; } soon = { 0, 300000 };
	struct { u64 mask; unsigned size, wait; u64 ts; } arg = { 0, 0, 0, (u64)&soon };
	syscall(426, ring->fd, count, below(3), 9 | (one_in(3) ? 2 : 0), &arg, sizeof arg);
	if (one_in(2))
		__atomic_store_n((unsigned *)(ring->words + ring->params.cq_off.head), *(unsigned *)(ring->words + ring->params.cq_off.tail), __ATOMIC_RELEASE);
}

static void ring_register(struct fuzzed_ring *ring)
{
	struct iovec buffers[3] = { { ring_bytes, PAGE }, { ring_bytes + PAGE, below(PAGE) }, { (void *)draw(), draw() } };
	u64 words[8] = { below(4), (u64)ring->fd, below(8), draw() }, sparse[4] = { (1 + below(RING_FDS)) | 1UL << 32 };
	switch (below(12)) {
	case 0: syscall(427, ring->fd, 0, buffers, 1 + below(3)); break;
	case 1: syscall(427, ring->fd, 1, NULL, 0); break;
	case 2: one_in(2) ? syscall(427, ring->fd, 13, sparse, 32) : syscall(427, ring->fd, 2, ring_fds, below(RING_FDS)); break;
	case 3: syscall(427, ring->fd, 3, NULL, 0); break;
	case 4: syscall(427, ring->fd, 4 + below(4), &ring_fds[0], 1); break;
	case 5: syscall(427, ring->fd, 9 + below(2), NULL, below(3)); break;
	case 6: syscall(427, ring->fd, 12, NULL, 0); break;
	case 7: syscall(427, ring->fd, 20 + below(2), words, 1); break;
	case 8: words[0] = (u64)ring_bytes; words[1] = 1UL << below(5) | below(3) << 32; syscall(427, ring->fd, 22 + below(2), words, 1); break;
	case 9: syscall(427, ring->fd, one_in(2) ? 24 : 25, words, one_in(2)); break;
	case 10: syscall(427, ring->fd, 11, ring_bytes, below(4)); break;
	default: syscall(427, ring->fd, below(32), one_in(2) ? (void *)words : NULL, below(4)); break;
	}
}

static void ring_step(void)
{
	struct fuzzed_ring *place = &PICK(fuzzed), ring = *place;
	TELL("[%d] ring step\n", getpid());
	if (ring.words == NULL || one_in(40)) {
		ring_make(place);
		return;
	}
	switch (below(16)) {
	case 0: ring_register(&ring); break;
	case 1: ((volatile unsigned *)ring.words)[below(16)] = (unsigned)(one_in(2) ? draw() : below(64)); break;
	case 2: ((volatile unsigned char *)ring.entries)[below(ring.params.sq_entries * sizeof *ring.entries)] = (unsigned char)draw(); break;
	case 3: write(PICK(ring_fds), ring_bytes, below(64)); break;
	case 4: fcntl(PICK(ring_fds), F_SETFL, one_in(2) ? O_NONBLOCK : 0); break;
	case 5: syscall(SYS_futex, &ring_word, 1, 1, NULL, NULL, 0); break;
	case 6: syscall(426, ring.fd, draw(), draw(), below(64), NULL, 8); break;
	case 7: {
		struct pollfd events = { ring.fd, POLLIN, 0 };
		poll(&events, 1, (int)below(2));
		break;
	}
	default: ring_submit(&ring); break;
	}
}

static void *ring_thread(void *seed)
{
	state = (u64)seed;
	for (int i = 0; i < 200; i++)
		ring_step();
	return NULL;
}

static void rings(void)
{
	pthread_t t;
	int ends[2];
	/* What would wait for ever is given up with the round. */
	for (int i = 0; i < 4; i += 2) {
		pipe2(ends, one_in(2) ? O_NONBLOCK : 0);
		ring_fds[i] = ends[0];
		ring_fds[i + 1] = ends[1];
	}
	socketpair(AF_UNIX, one_in(2) ? SOCK_STREAM : SOCK_DGRAM, 0, &ring_fds[4]);
	ring_fds[6] = eventfd(0, 0);
	ring_fds[7] = (int)syscall(SYS_memfd_create, "ring", 0);
	for (int i = 0; i < RINGS; i++)
		ring_make(&fuzzed[i]);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t, NULL, ring_thread, (void *)draw()) == 0)
			pthread_detach(t);
	if (one_in(3))
		fork();
	ring_thread((void *)draw());
}

#endif
