/*
 * As vfs/taken.c and unix/sock_taken.c, of the operations of a ring: what has no memory, or no place among the ring's files, takes no connection and
 * no message, and makes no file. For want of a place Linux does both; only elsewhere is it a fault.
 */
#include "uring.h"
#include "failing.h"
#include <sys/socket.h>
#include <sys/un.h>

enum { FILES2 = 13, SPARSE = 1, MULTISHOT_ACCEPT = 1 };
#define ANY 0xffffffffu

struct resources { unsigned nr, flags; unsigned long long resv2, data, tags; };

static struct ring r;
static int listener, client = -1, a, b;
static struct sockaddr_un name = { AF_UNIX, "\0ring's listener" }, from;
static socklen_t name_len = sizeof(sa_family_t) + 16, from_len;
static char bytes[64];

/* The result of the one entry, with its error in errno. */
static long one(void)
{
	if (enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS) != 1)
		return -1;
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	unsigned head = *number(&r, r.p.cq_off.head);
	int res = cqes[head & (r.p.cq_entries - 1)].res;
	__atomic_store_n(number(&r, r.p.cq_off.head), head + 1, __ATOMIC_RELEASE);
	if (res >= 0)
		return res;
	errno = -res;
	return -1;
}

static void connect_one(void)
{
	if (client >= 0)
		close(client);
	client = (int)MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	MUST(connect(client, (struct sockaddr *)&name, name_len));
	MUST(send(client, "x", 1, 0));
}

static struct io_uring_sqe *accepts(unsigned index)
{
	from_len = sizeof from;
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_ACCEPT, 1, listener, &from, 0);
	sqe->off = (unsigned long)&from_len;
	/* With nobody there it says so at once. */
	sqe->accept_flags = 0;
	sqe->ioprio = 2;
	sqe->file_index = index;
	return sqe;
}

static long accept_fd(void)
{
	accepts(0);
	return one();
}

static long accept_direct(void)
{
	accepts(ANY);
	return one();
}

static int is_x(long size)
{
	int whole = size == 1 && bytes[0] == 'x';
	bytes[0] = 0;
	return whole;
}

static int is_connection(long fd)
{
	int whole = is_x(recv((int)fd, bytes, 1, MSG_DONTWAIT));
	close((int)fd);
	return whole && from_len == sizeof(sa_family_t);
}

static int is_direct(long at)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_READ, 1, (int)at, bytes, 1);
	sqe->flags = IOSQE_FIXED_FILE;
	int whole = is_x(one());
	next(&r, IORING_OP_CLOSE, 1)->file_index = (unsigned)at + 1;
	return one() == 0 && whole;
}

static void nothing_there(void)
{
	unlink("made");
}

static long open_direct(void)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_OPENAT, 1, AT_FDCWD, "made", 0600);
	sqe->open_flags = O_RDWR | O_CREAT | O_EXCL;
	sqe->file_index = ANY;
	return one();
}

static int is_not_made(void)
{
	return access("made", F_OK) != 0 && errno == ENOENT;
}

static int is_opened(long at)
{
	next(&r, IORING_OP_CLOSE, 1)->file_index = (unsigned)at + 1;
	return one() == 0 && access("made", F_OK) == 0;
}

static void send_one(void)
{
	MUST(send(a, "x", 1, 0));
}

static long receive(void)
{
	static struct iovec part;
	static struct msghdr header;
	part = (struct iovec){ bytes, sizeof bytes };
	header = (struct msghdr){ &from, sizeof from, &part, 1, NULL, 0, 0 };
	rw(&r, IORING_OP_RECVMSG, 1, b, &header, 1)->msg_flags = MSG_DONTWAIT;
	return one();
}

static void failing(void)
{
	struct call call = { "accept", connect_one, accept_fd, NULL, is_connection };
	fail_each(&call);
	struct call direct = { "accept, direct", connect_one, accept_direct, NULL, is_direct };
	fail_each(&direct);
	struct call open = { "openat, direct", nothing_there, open_direct, is_not_made, is_opened };
	fail_each(&open);
	int ends[2];
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
	a = ends[0], b = ends[1];
	struct sockaddr_un own = { AF_UNIX, "\0ring's sender" };
	MUST(bind(a, (struct sockaddr *)&own, sizeof own));
	struct call message = { "recvmsg", send_one, receive, NULL, is_x };
	fail_each(&message);
}

/* With a full table. */
static void crowded(void)
{
	int lasting = access("/proc/alea", F_OK) == 0;
	struct io_uring_sqe *sqe;
	while (nothing_there(), open_direct() >= 0)
		;
	SAY("-- full");
	nothing_there();
	T(open_direct());
	if (lasting && !is_not_made())
		SAY("--- broken: a file was made");
	write_file("kept", "text");
	sqe = rw(&r, IORING_OP_OPENAT, 1, AT_FDCWD, "kept", 0);
	sqe->open_flags = O_WRONLY | O_TRUNC;
	sqe->file_index = ANY;
	T(one());
	struct stat st;
	MUST(stat("kept", &st));
	if (lasting && st.st_size != 4)
		SAY("--- broken: a file was emptied");
	sqe = rw(&r, IORING_OP_OPENAT, 1, AT_FDCWD, "no such file", 0);
	sqe->file_index = ANY;
	T(one());
	T(accept_direct());
	connect_one();
	T(accept_direct());
	if (lasting && !is_connection(accept_fd()))
		SAY("--- broken: a connection was lost");
	accepts(ANY)->fd = a;
	T(one());
	accepts(ANY)->fd = r.fd;
	T(one());
}

int main(void)
{
	scratch();
	listener = (int)MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	MUST(bind(listener, (struct sockaddr *)&name, name_len));
	MUST(listen(listener, 1));
	r = ring(4);
	struct resources all = { .nr = 3, .flags = SPARSE };
	MUST(reg(r.fd, FILES2, &all, sizeof all));
	failing_begin();
	failing();
	crowded();
	return 0;
}
