/*
 * uring_setup.c: io_uring_setup, the mappings of a ring, io_uring_register, and who may make rings: which sizes and
 * flags go together, and which errors come first.
 */
#include "uring.h"
#include "rights.h"
#include <sys/eventfd.h>

static void try(const char *what, unsigned entries, unsigned flags, unsigned cq)
{
	struct io_uring_params p = { .flags = flags, .cq_entries = cq };
	long fd = setup(entries, &p);
	if (fd < 0) {
		SAY("%s: %s", what, err_name(errno));
		return;
	}
	SAY("%s: sq %u cq %u, closes on exec %d", what, p.sq_entries, p.cq_entries, fcntl((int)fd, F_GETFD));
	close((int)fd);
}

static void sizes(void)
{
	try("1", 1, 0, 0);
	try("5", 5, 0, 0);
	try("0", 0, 0, 0);
	try("32768", 32768, 0, 0);
	try("32769", 32769, 0, 0);
	try("32769 clamped", 32769, IORING_SETUP_CLAMP, 0);
	try("cq 3 for 8", 8, IORING_SETUP_CQSIZE, 3);
	try("cq 9 for 8", 8, IORING_SETUP_CQSIZE, 9);
	try("cq 0", 8, IORING_SETUP_CQSIZE, 0);
	try("cq 65537", 8, IORING_SETUP_CQSIZE, 65537);
	try("cq 65537 clamped", 8, IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP, 65537);
	try("an unknown flag", 8, 1u << 31, 0);
	try("defer alone", 8, IORING_SETUP_DEFER_TASKRUN, 0);
	try("defer, single", 8, IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER, 0);
	try("taskrun flag alone", 8, IORING_SETUP_TASKRUN_FLAG, 0);
	try("taskrun flag, coop", 8, IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_COOP_TASKRUN, 0);
	try("no array", 8, IORING_SETUP_NO_SQARRAY, 0);
	T(setup(8, NULL));
	T(setup(8, KERNEL_ADDRESS));
	struct io_uring_params p = { .resv = { 0, 1, 0 } };
	T(setup(8, &p));
}

static void offsets(void)
{
	struct ring r = ring(8);
	SAY("sq: head %u tail %u mask %u entries %u flags %u dropped %u array %u", r.p.sq_off.head, r.p.sq_off.tail,
	    r.p.sq_off.ring_mask, r.p.sq_off.ring_entries, r.p.sq_off.flags, r.p.sq_off.dropped, r.p.sq_off.array);
	SAY("cq: head %u tail %u mask %u entries %u overflow %u cqes %u flags %u", r.p.cq_off.head, r.p.cq_off.tail,
	    r.p.cq_off.ring_mask, r.p.cq_off.ring_entries, r.p.cq_off.overflow, r.p.cq_off.cqes, r.p.cq_off.flags);
	SAY("masks %u %u entries %u %u", *number(&r, r.p.sq_off.ring_mask), *number(&r, r.p.cq_off.ring_mask),
	    *number(&r, r.p.sq_off.ring_entries), *number(&r, r.p.cq_off.ring_entries));
	unsigned need = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE |
			IORING_FEAT_RW_CUR_POS | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;
	IS((r.p.features & need) == need);
	unsigned char *cq = mmap(NULL, r.rings_len, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, IORING_OFF_CQ_RING);
	IS(cq != MAP_FAILED);
	*number(&r, r.p.cq_off.flags) = 1;
	IS(*(unsigned *)(cq + r.p.cq_off.flags) == 1);
	OK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, r.fd, 0x18000000));
	char byte;
	T(read(r.fd, &byte, 1));
	T(write(r.fd, &byte, 1));
	T(lseek(r.fd, 0, SEEK_SET));
	ring_close(&r);
}

static void registering(void)
{
	struct ring r = ring_with(8, IORING_SETUP_R_DISABLED, 0);
	T(enter(r.fd, 0, 0, 0));
	T(reg(r.fd, IORING_REGISTER_ENABLE_RINGS, &r, 0));
	T(reg(r.fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0));
	T(reg(r.fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0));
	T(enter(r.fd, 0, 0, 0));
	T(reg(r.fd, 1000, NULL, 0));
	T(reg(0, IORING_REGISTER_PROBE, NULL, 0));
	T(reg(-1, IORING_REGISTER_PROBE, NULL, 0));

	struct { struct io_uring_probe head; struct io_uring_probe_op ops[64]; } probe = { 0 };
	T(reg(r.fd, IORING_REGISTER_PROBE, &probe, 257));
	T(reg(r.fd, IORING_REGISTER_PROBE, NULL, 1));
	T(reg(r.fd, IORING_REGISTER_PROBE, &probe, 64));
	SAY("last %d, told %d", probe.head.last_op, probe.head.ops_len);
	int known[] = { IORING_OP_NOP, IORING_OP_READV, IORING_OP_WRITEV, IORING_OP_FSYNC, IORING_OP_OPENAT,
			IORING_OP_CLOSE, IORING_OP_STATX, IORING_OP_READ, IORING_OP_WRITE, IORING_OP_SOCKET };
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (!(probe.ops[known[i]].flags & IO_URING_OP_SUPPORTED) || probe.ops[known[i]].op != known[i])
			SAY("not supported: %d", known[i]);
	T(reg(r.fd, IORING_REGISTER_PROBE, &probe, 64));

	int event = (int)MUST(eventfd(0, EFD_NONBLOCK)), p[2];
	MUST(pipe(p));
	unsigned long count = 0;
	T(reg(r.fd, IORING_UNREGISTER_EVENTFD, NULL, 0));
	T(reg(r.fd, IORING_REGISTER_EVENTFD, &p[0], 1));
	T(reg(r.fd, IORING_REGISTER_EVENTFD, &event, 2));
	T(reg(r.fd, IORING_REGISTER_EVENTFD, &event, 1));
	T(reg(r.fd, IORING_REGISTER_EVENTFD, &event, 1));
	next(&r, IORING_OP_NOP, 1);
	go(&r, 1, 1);
	T(read(event, &count, 8));
	SAY("count %lu", count);
	*number(&r, r.p.cq_off.flags) = IORING_CQ_EVENTFD_DISABLED;
	next(&r, IORING_OP_NOP, 2);
	go(&r, 1, 1);
	T(read(event, &count, 8));
	T(reg(r.fd, IORING_UNREGISTER_EVENTFD, NULL, 0));

	int files[3] = { p[1], -1, r.fd };
	T(reg(r.fd, IORING_UNREGISTER_FILES, NULL, 0));
	T(reg(r.fd, IORING_REGISTER_FILES, files, 0));
	T(reg(r.fd, IORING_REGISTER_FILES, files, 3));
	files[2] = 1000;
	T(reg(r.fd, IORING_REGISTER_FILES, files, 3));
	T(reg(r.fd, IORING_REGISTER_FILES, files, 1u << 21));
	T(reg(r.fd, IORING_REGISTER_FILES, files, 2));
	T(reg(r.fd, IORING_REGISTER_FILES, files, 2));
	close(p[1]);
	rw(&r, IORING_OP_WRITE, 3, 0, "ab", 2)->flags = IOSQE_FIXED_FILE;
	rw(&r, IORING_OP_WRITE, 4, 1, "ab", 2)->flags = IOSQE_FIXED_FILE;
	rw(&r, IORING_OP_WRITE, 5, 2, "ab", 2)->flags = IOSQE_FIXED_FILE;
	rw(&r, IORING_OP_WRITE, 6, -1, "ab", 2)->flags = IOSQE_FIXED_FILE;
	go(&r, 4, 4);
	char got[4];
	T(read(p[0], got, 4));
	T(reg(r.fd, IORING_UNREGISTER_FILES, NULL, 0));
	T(read(p[0], got, 4));
	ring_close(&r);
}

/* A ring cannot travel over a socket. */
static void passing(void)
{
	struct ring r = ring(1);
	int sv[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	RIGHTS_ROOM(control, 1);
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	carry(&m, control, &r.fd, 1);
	T(sendmsg(sv[0], &m, 0));
	ring_close(&r);
}

static void put(const char *path, const char *text)
{
	int fd = (int)MUST(open(path, O_WRONLY));
	MUST(write(fd, text, strlen(text)));
	close(fd);
}

static void switched_off(void)
{
	const char *off = "/proc/sys/kernel/io_uring_disabled", *group = "/proc/sys/kernel/io_uring_group";
	put(off, "1");
	try("1, root", 1, 0, 0);
	CHILD("1, nobody") MUST(setuid(1000)); try("1, nobody", 1, 0, 0); END;
	put(group, "77");
	CHILD("1, of the group") MUST(setgid(77)); MUST(setuid(1000)); try("1, of the group", 1, 0, 0); END;
	put(off, "2");
	try("2, root", 1, 0, 0);
	try("2, bad flags", 1, 1u << 31, 0);
	put(off, "0");
	put(group, "-1");
}

int main(void)
{
	sizes();
	offsets();
	registering();
	passing();
	switched_off();
	return 0;
}
