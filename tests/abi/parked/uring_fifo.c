/*
 * uring_fifo.c: an open of a fifo by a ring does not wait for the other end: for reading it is open at once, for writing only if somebody
 * reads. The file waits afterwards, unless it was opened with O_NONBLOCK.
 */
#include "uring.h"
#include <fcntl.h>

#define NAME "uring_fifo_name"

static struct ring r;
static char bytes[16];

/* Opens it, alone in a batch: the result, as of a descriptor or not. */
static int opened(const char *what, unsigned flags, unsigned place)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_OPENAT, 1, AT_FDCWD, NAME, 0);
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	unsigned *head = number(&r, r.p.cq_off.head);
	sqe->open_flags = flags;
	sqe->file_index = place;
	MUST(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	int res = cqes[*head & (r.p.cq_entries - 1)].res;
	SAY("%s: %s", what, res < 0 ? err_name(-res) : place ? "in its place" : "a descriptor");
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	if (res > 0)
		SAY("  flags %#x, close-on-exec %d", fcntl(res, F_GETFL) & ~0100000, fcntl(res, F_GETFD));
	return res;
}

int main(void)
{
	int none[2] = { -1, -1 };
	unlink(NAME);
	MUST(mkfifo(NAME, 0600));
	/* Its name is known from now on. */
	MUST(access(NAME, F_OK));
	r = ring(8);
	opened("for writing, nobody reads", O_WRONLY, 0);
	opened("for writing, not to wait", O_WRONLY | O_NONBLOCK, 0);
	int in = opened("for reading", O_RDONLY, 0), in2 = opened("for reading, not to wait", O_RDONLY | O_NONBLOCK, 0);
	int out = opened("for writing, somebody reads", O_WRONLY | O_CLOEXEC, 0);
	T(read(in2, bytes, sizeof bytes));
	T(write(out, "abc", 3));
	T(read(in, bytes, sizeof bytes));
	/* A read waits in the ring. */
	rw(&r, IORING_OP_READ, 2, in, bytes, 4);
	T(enter(r.fd, 1, 0, 0));
	T(write(out, "de", 2));
	settle(&r, 1);
	close(out);
	T(read(in, bytes, sizeof bytes));
	close(in);
	close(in2);
	close(opened("for both", O_RDWR, 0));
	T(reg(r.fd, IORING_REGISTER_FILES, none, 2));
	opened("for reading, direct", O_RDONLY, 1);
	out = opened("for writing, it is read by a ring", O_WRONLY, 0);
	rw(&r, IORING_OP_READ, 3, 0, bytes, 4)->flags = IOSQE_FIXED_FILE;
	T(enter(r.fd, 1, 0, 0));
	T(write(out, "fgh", 3));
	settle(&r, 1);
	close(out);
	ring_close(&r);
	unlink(NAME);
	return 0;
}
