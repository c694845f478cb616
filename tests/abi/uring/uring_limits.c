/*
 * uring_limits.c: what a ring may be asked for and as whom: restrictions, personalities, rings that a thread has registered, rings that
 * are polled, and rings that a thread of the kernel's watches; limits of memory and of descriptors.
 */
#include "uring.h"
#include <sys/resource.h>
#include <sys/socket.h>

enum { USE_REGISTERED = 1u << 31, ENTER_REGISTERED = 16 };

static struct ring r;

static void restrictions(void)
{
	SAY("-- restrictions");
	struct io_uring_restriction rules[4] = {
		{ .opcode = IORING_RESTRICTION_REGISTER_OP, .register_op = IORING_REGISTER_ENABLE_RINGS },
		{ .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_NOP },
		{ .opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED, .sqe_flags = IOSQE_IO_LINK },
		{ .opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED, .sqe_flags = IOSQE_ASYNC },
	};
	r = ring(4);
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, rules, 4));
	ring_close(&r);
	r = ring_with(8, IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL, 0);
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, NULL, 1));
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, rules, 1000));
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, KERNEL_ADDRESS, 1));
	rules[0].register_op = 200;
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, rules, 4));
	rules[0].register_op = IORING_REGISTER_ENABLE_RINGS;
	rules[1].sqe_op = 200;
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, rules, 4));
	rules[1].sqe_op = IORING_OP_NOP;
	rules[3].opcode = 9;
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, rules, 4));
	rules[3].opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED;
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, rules, 4));
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, rules, 4));
	/* Before it is enabled nothing is restricted. */
	T(reg(r.fd, IORING_REGISTER_PERSONALITY, NULL, 0));
	T(reg(r.fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0));
	T(reg(r.fd, IORING_REGISTER_PERSONALITY, NULL, 0));
	T(reg(r.fd, 1000, NULL, 0));
	T(reg(r.fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0));
	next(&r, IORING_OP_NOP, 1)->flags = IOSQE_ASYNC;
	go(&r, 1, 1);
	next(&r, IORING_OP_NOP, 2);
	next(&r, IORING_OP_NOP, 3)->flags = IOSQE_ASYNC | IOSQE_IO_DRAIN;
	next(&r, IORING_OP_READ, 4)->flags = IOSQE_ASYNC;
	next(&r, 250, 5)->flags = IOSQE_ASYNC;
	go(&r, 4, 4);
	ring_close(&r);
	r = ring_with(8, IORING_SETUP_R_DISABLED, 0);
	T(reg(r.fd, IORING_REGISTER_RESTRICTIONS, rules, 0));
	T(reg(r.fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0));
	next(&r, IORING_OP_NOP, 1);
	go(&r, 1, 1);
	ring_close(&r);
}

/* A file that only root may open, opened as somebody else and as root by somebody else. */
static void personalities(void)
{
	SAY("-- personalities");
	int fd = (int)MUST(open("/tmp/uring-secret", O_CREAT | O_RDWR, 0600));
	close(fd);
	r = ring(8);
	T(reg(r.fd, IORING_REGISTER_PERSONALITY, NULL, 1));
	T(reg(r.fd, IORING_REGISTER_PERSONALITY, &r, 0));
	int root = (int)T(reg(r.fd, IORING_REGISTER_PERSONALITY, NULL, 0));
	CHILD("another")
		MUST(setresuid(1000, 1000, 0));
		int other = (int)T(reg(r.fd, IORING_REGISTER_PERSONALITY, NULL, 0));
		MUST(setresuid(0, 0, 0));
		struct io_uring_sqe *sqe = rw(&r, IORING_OP_OPENAT, 1, AT_FDCWD, "/tmp/uring-secret", 0);
		sqe->personality = (unsigned short)other;
		go(&r, 1, 1);
		/* What a link waits for is done as who it names, too. */
		rw(&r, IORING_OP_NOP, 2, -1, NULL, 0)->flags = IOSQE_IO_LINK;
		sqe = rw(&r, IORING_OP_OPENAT, 3, AT_FDCWD, "/tmp/uring-secret", 0);
		sqe->personality = (unsigned short)other;
		go(&r, 2, 2);
		MUST(setresuid(1000, 1000, 1000));
		rw(&r, IORING_OP_OPENAT, 4, AT_FDCWD, "/tmp/uring-secret", 0);
		go(&r, 1, 1);
		sqe = rw(&r, IORING_OP_OPENAT, 5, AT_FDCWD, "/tmp/uring-secret", 0);
		sqe->personality = (unsigned short)root;
		T(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
		int got = -1;
		struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
		got = cqes[(*number(&r, r.p.cq_off.head))++ & (r.p.cq_entries - 1)].res;
		IS(got >= 0);
		IS(geteuid() == 1000);
		rw(&r, IORING_OP_OPENAT, 6, AT_FDCWD, "/tmp/uring-secret", 0)->personality = 99;
		go(&r, 1, 1);
		T(reg(r.fd, IORING_UNREGISTER_PERSONALITY, NULL, (unsigned)other));
		T(reg(r.fd, IORING_UNREGISTER_PERSONALITY, NULL, (unsigned)other));
		T(reg(r.fd, IORING_UNREGISTER_PERSONALITY, &r, (unsigned)root));
	END;
	r.tail = *number(&r, r.p.sq_off.tail);
	T(reg(r.fd, IORING_UNREGISTER_PERSONALITY, NULL, (unsigned)root));
	T(reg(r.fd, IORING_UNREGISTER_PERSONALITY, NULL, 100000));
	ring_close(&r);
	unlink("/tmp/uring-secret");
}

static long ring_fd(unsigned op, unsigned offset, unsigned long data, unsigned count)
{
	struct io_uring_rsrc_update update[2] = { { .offset = offset, .data = data }, { .offset = -1U, .data = data } };
	long done = reg(r.fd, op, update, count);
	int error = errno;
	if (done > 0 && op == IORING_REGISTER_RING_FDS)
		SAY("number %u", update[0].offset);
	errno = error;
	return done;
}

static void registered(void)
{
	SAY("-- registered rings");
	r = ring(4);
	unsigned long fd = (unsigned long)r.fd;
	T(enter(0, 0, 0, ENTER_REGISTERED));
	T(enter(16, 0, 0, ENTER_REGISTERED));
	T(ring_fd(IORING_REGISTER_RING_FDS, -1U, fd, 0));
	T(ring_fd(IORING_REGISTER_RING_FDS, -1U, fd, 17));
	T(ring_fd(IORING_REGISTER_RING_FDS, 16, fd, 1));
	T(ring_fd(IORING_REGISTER_RING_FDS, -1U, 0, 1));
	T(ring_fd(IORING_REGISTER_RING_FDS, -1U, 999, 1));
	T(ring_fd(IORING_REGISTER_RING_FDS, 3, fd, 1));
	T(ring_fd(IORING_REGISTER_RING_FDS, 3, fd, 1));
	T(ring_fd(IORING_REGISTER_RING_FDS, -1U, fd, 2));
	T(reg(r.fd, IORING_REGISTER_RING_FDS, KERNEL_ADDRESS, 1));
	next(&r, IORING_OP_NOP, 1);
	T(enter(3, 1, 1, IORING_ENTER_GETEVENTS | ENTER_REGISTERED));
	take(&r);
	T(reg(3, (unsigned)IORING_REGISTER_PERSONALITY | USE_REGISTERED, NULL, 0));
	T(reg(5, (unsigned)IORING_REGISTER_PERSONALITY | USE_REGISTERED, NULL, 0));
	CHILD("a child has none")
		IS(enter(3, 0, 0, ENTER_REGISTERED) < 0);
	END;
	/* The number keeps the ring. */
	close(r.fd);
	next(&r, IORING_OP_NOP, 2);
	T(enter(3, 1, 1, IORING_ENTER_GETEVENTS | ENTER_REGISTERED));
	take(&r);
	r.fd = 3;
	struct io_uring_rsrc_update update = { .offset = 0 };
	T(reg(3, (unsigned)IORING_UNREGISTER_RING_FDS | USE_REGISTERED, &update, 1));
	T(reg(3, (unsigned)IORING_UNREGISTER_RING_FDS | USE_REGISTERED, &update, 1));
	update.offset = 16;
	T(reg(3, (unsigned)IORING_UNREGISTER_RING_FDS | USE_REGISTERED, &update, 1));
	update.offset = 3;
	T(reg(3, (unsigned)IORING_UNREGISTER_RING_FDS | USE_REGISTERED, &update, 1));
	T(enter(3, 0, 0, ENTER_REGISTERED));
	munmap(r.rings, r.rings_len);
	munmap(r.sqes, r.p.sq_entries * sizeof *r.sqes);
}

static void try(const char *what, unsigned flags, unsigned cpu, int other)
{
	struct io_uring_params p = { .flags = flags, .sq_thread_cpu = cpu, .wq_fd = (unsigned)other };
	long fd = setup(4, &p);
	SAY("%s: %s", what, fd < 0 ? err_name(errno) : "made");
	if (fd >= 0)
		close((int)fd);
}

static void polled(void)
{
	SAY("-- polled");
	int fd = (int)MUST(open("/tmp/uring-polled", O_CREAT | O_RDWR, 0600));
	char bytes[16] = "sixteen bytes..";
	MUST(write(fd, bytes, 16));
	r = ring_with(8, IORING_SETUP_IOPOLL | IORING_SETUP_SUBMIT_ALL, 0);
	next(&r, IORING_OP_NOP, 1);
	rw(&r, IORING_OP_READ, 2, fd, bytes, 16);
	rw(&r, IORING_OP_WRITE, 3, fd, bytes, 16);
	rw(&r, IORING_OP_FSYNC, 4, fd, NULL, 0);
	rw(&r, IORING_OP_OPENAT, 5, AT_FDCWD, "/", 0);
	T(enter(r.fd, 5, 0, 0));
	go(&r, 0, 5);
	T(enter(r.fd, 0, 5, IORING_ENTER_GETEVENTS));
	ring_close(&r);
	close(fd);
	unlink("/tmp/uring-polled");
}

/* Submits as who knows nothing but the rules does: a wake-up if the kernel asks for one, and then waiting. */
static void watch(unsigned submit, unsigned least)
{
	unsigned flags = IORING_ENTER_GETEVENTS;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (*number(&r, r.p.sq_off.flags) & IORING_SQ_NEED_WAKEUP)
		flags |= IORING_ENTER_SQ_WAKEUP;
	T(enter(r.fd, submit, least, flags));
	take(&r);
}

static void watched(void)
{
	SAY("-- watched");
	try("bound, not watched", IORING_SETUP_SQ_AFF, 0, 0);
	try("bound", IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF, 0, 0);
	try("bound to no CPU", IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF, 9999, 0);
	try("watched, tells", IORING_SETUP_SQPOLL | IORING_SETUP_COOP_TASKRUN, 0, 0);
	try("attached to nothing", IORING_SETUP_ATTACH_WQ, 0, 999);
	try("attached to a file", IORING_SETUP_ATTACH_WQ, 0, 0);
	r = ring(4);
	try("attached", IORING_SETUP_ATTACH_WQ, 0, r.fd);
	try("watched, attached to one that is not", IORING_SETUP_ATTACH_WQ | IORING_SETUP_SQPOLL, 0, r.fd);
	ring_close(&r);
	r = ring_with(8, IORING_SETUP_SQPOLL, 0);
	try("watched, attached", IORING_SETUP_ATTACH_WQ | IORING_SETUP_SQPOLL, 0, r.fd);
	next(&r, IORING_OP_NOP, 1);
	next(&r, IORING_OP_NOP, 2);
	watch(2, 2);
	/* One that cannot be does not keep the others back. */
	next(&r, 250, 3);
	next(&r, IORING_OP_NOP, 4);
	watch(2, 2);
	int p[2];
	char got[4];
	MUST(pipe(p));
	rw(&r, IORING_OP_READ, 5, p[0], got, 4);
	watch(1, 0);
	MUST(write(p[1], "abc", 3));
	watch(0, 1);
	ring_close(&r);
}

static void limits(void)
{
	SAY("-- limits");
	r = ring(4);
	CHILD("descriptors")
		struct rlimit few = { 8, 8 };
		MUST(setrlimit(RLIMIT_NOFILE, &few));
		int fds[9];
		for (int i = 0; i < 9; i++)
			fds[i] = 0;
		T(reg(r.fd, IORING_REGISTER_FILES, fds, 9));
		T(reg(r.fd, IORING_REGISTER_FILES, fds, 8));
		T(reg(r.fd, IORING_UNREGISTER_FILES, NULL, 0));
		while (dup(0) >= 0)
			;
		rw(&r, IORING_OP_OPENAT, 1, AT_FDCWD, "/", 0);
		next(&r, IORING_OP_SOCKET, 2)->fd = AF_UNIX;
		r.sqes[(r.tail - 1) % 4].off = SOCK_STREAM;
		go(&r, 2, 2);
		try("a ring", 0, 0, 0);
	END;
	ring_close(&r);
}

/* A transfer's priority is one that ioprio_set would take. */
static void priorities(void)
{
	SAY("-- priorities");
	static const unsigned short some[] = { 0xffff, 3, 2 << 13 | 4, 3 << 13, 4 << 13, 1 << 13, 2 << 13 | 1 << 3 };
	char byte = 'x';
	int fd = (int)MUST(open("/tmp/uring-limits", O_CREAT | O_RDWR | O_TRUNC, 0600));
	r = ring_with(16, IORING_SETUP_SUBMIT_ALL, 0);
	for (unsigned i = 0; i < sizeof some / sizeof *some; i++) {
		rw(&r, i % 2 ? IORING_OP_READ : IORING_OP_WRITE, i, fd, &byte, 1)->ioprio = some[i];
		go(&r, 1, 1);
	}
	CHILD("without privilege")
		MUST(setresuid(65534, 65534, 65534));
		struct ring own = ring(4);
		rw(&own, IORING_OP_READ, 1, fd, &byte, 1)->ioprio = 1 << 13;
		go(&own, 1, 1);
	END;
	ring_close(&r);
	close(fd);
}

/* Room that the limit of a file's size does not allow: the ring has no signal for it. */
static void sizes(void)
{
	SAY("-- sizes");
	CHILD("a file's size")
		struct rlimit small = { 4096, 4096 };
		int fd = (int)MUST(open("/tmp/uring-limits", O_CREAT | O_RDWR | O_TRUNC, 0600));
		MUST(setrlimit(RLIMIT_FSIZE, &small));
		struct ring own = ring(4);
		next(&own, IORING_OP_FALLOCATE, 1)->fd = fd;
		own.sqes[0].addr = 8192;
		go(&own, 1, 1);
		next(&own, IORING_OP_FALLOCATE, 2)->fd = fd;
		own.sqes[1].addr = 4096;
		go(&own, 1, 1);
		T(fallocate(fd, 0, 0, 8192));
		SAY("not reached");
	END;
}

int main(void)
{
	priorities();
	sizes();
	restrictions();
	personalities();
	registered();
	polled();
	watched();
	limits();
	return 0;
}
