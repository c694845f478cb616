/*
 * uring_buffers.c: buffers that a ring is handed before it knows what for, by entries and in a ring of their own, and requests that take one
 * each time bytes come; connections taken again and again; registered buffers and files, and what is wrong with each.
 */
#include "uring.h"
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define PBUF_STATUS 26

enum { GROUP = 7, LEN = 8, COUNT = 4 };

static struct ring r;
static char area[COUNT * LEN];

struct status {
	unsigned group, head, resv[8];
};

/* What lies in the buffers, which are cleared again. */
static void say_area(void)
{
	for (int i = 0; i < COUNT; i++)
		printf("  [%.*s]", LEN, area + i * LEN);
	printf("\n");
	memset(area, 0, sizeof area);
}

static void provide(int count, unsigned long first, void *at, unsigned len)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_PROVIDE_BUFFERS, 100, count, at, len);
	sqe->off = first;
	sqe->buf_group = GROUP;
	go(&r, 1, 1);
}

static void take_back(int count, unsigned group)
{
	struct io_uring_sqe *sqe = rw(&r, IORING_OP_REMOVE_BUFFERS, 101, count, NULL, 0);
	sqe->buf_group = (unsigned short)group;
	go(&r, 1, 1);
}

static struct io_uring_sqe *selects(int op, unsigned long data, int fd, unsigned len)
{
	struct io_uring_sqe *sqe = rw(&r, op, data, fd, NULL, len);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	return sqe;
}

static void provided(void)
{
	int p[2];
	MUST(pipe(p));
	SAY("provided");
	selects(IORING_OP_READ, 1, p[0], 3);
	go(&r, 1, 1);
	provide(COUNT, 40, area, LEN);
	T(write(p[1], "abcdefghijklmnop", 16));
	selects(IORING_OP_READ, 2, p[0], 3)->off = -1ul;
	go(&r, 1, 1);
	selects(IORING_OP_READ, 3, p[0], 0)->off = -1ul;
	go(&r, 1, 1);
	selects(IORING_OP_READ, 4, p[0], 100)->off = -1ul;
	go(&r, 1, 1);
	say_area();
	SAY("one that waits takes none until there is something");
	selects(IORING_OP_READ, 5, p[0], 0)->off = -1ul;
	go(&r, 1, 0);
	provide(1, 40, area, LEN);
	T(write(p[1], "xyz", 3));
	go(&r, 0, 1);
	say_area();
	take_back(9, GROUP);
	take_back(1, GROUP);
	take_back(1, 99);
	take_back(0, GROUP);
	provide(0, 0, area, LEN);
	provide(65537, 0, area, 0);
	provide(2, 65535, area, 1);
	provide(1, 65536, area, 1);
	provide(2, 0, (void *)-4096l, 4096);
	provide(2, 0, KERNEL_ADDRESS, 4096);
	SAY("a buffer that is not there, the end of a file, and who may not");
	provide(1, 3, (void *)16, 4);
	T(write(p[1], "xyz", 3));
	selects(IORING_OP_RECV, 6, p[0], 0);
	go(&r, 1, 1);
	take_back(9, GROUP);
	provide(1, 4, area, 4);
	int fd = (int)MUST(open("empty", O_RDWR | O_CREAT, 0600));
	selects(IORING_OP_READ, 7, fd, 0);
	go(&r, 1, 1);
	selects(IORING_OP_WRITE, 8, p[1], 1);
	go(&r, 1, 1);
	selects(IORING_OP_NOP, 9, p[1], 1);
	go(&r, 1, 1);
	take_back(9, GROUP);
	close(fd), close(p[0]), close(p[1]);
}

static struct io_uring_buf_ring *pbufs;

static void add(unsigned short tail, unsigned short id)
{
	struct io_uring_buf *buf = &((struct io_uring_buf *)pbufs)[tail & (COUNT - 1)];
	buf->addr = (unsigned long)(area + (id % COUNT) * LEN);
	buf->len = LEN;
	buf->bid = id;
	__atomic_store_n(&pbufs->tail, tail + 1, __ATOMIC_RELEASE);
}

static void say_head(unsigned group)
{
	struct status status = { .group = group };
	T(reg(r.fd, PBUF_STATUS, &status, 1));
	SAY("head %u", status.head);
}

static void ring_of_buffers(void)
{
	pbufs = (void *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	struct io_uring_buf_reg it = { .ring_addr = (unsigned long)pbufs, .ring_entries = COUNT, .bgid = GROUP };
	SAY("a ring of buffers");
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, NULL, 1));
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &it, 2));
	it.ring_entries = 3;
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &it, 1));
	it.ring_entries = 65536;
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &it, 1));
	it.ring_entries = COUNT;
	it.ring_addr += 16;
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &it, 1));
	it.ring_addr = 0;
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &it, 1));
	it.ring_addr = (unsigned long)pbufs;
	it.resv[1] = 1;
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &it, 1));
	it.resv[1] = 0;
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &it, 1));
	T(reg(r.fd, IORING_REGISTER_PBUF_RING, &it, 1));
	provide(1, 0, area, LEN);
	take_back(1, GROUP);
	say_head(GROUP);
	say_head(99);
}

static void receives(void)
{
	int sv[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	SAY("received again and again");
	for (unsigned short i = 0; i < 3; i++)
		add(i, (unsigned short)(i + 20));
	selects(IORING_OP_RECV, 1, sv[1], 0)->ioprio = IORING_RECV_MULTISHOT;
	go(&r, 1, 0);
	T(write(sv[0], "one", 3));
	go(&r, 0, 1);
	T(write(sv[0], "twelve letters", 14));
	go(&r, 0, 1);
	say_area();
	say_head(GROUP);
	SAY("with no buffer left it has ended");
	T(write(sv[0], "more", 4));
	selects(IORING_OP_RECV, 2, sv[1], 0)->ioprio = IORING_RECV_MULTISHOT;
	go(&r, 1, 1);
	say_head(GROUP);
	SAY("at the end of the stream, too, and it takes none");
	add(3, 30);
	add(4, 31);
	selects(IORING_OP_RECV, 3, sv[1], 0)->ioprio = IORING_RECV_MULTISHOT;
	go(&r, 1, 1);
	close(sv[0]);
	go(&r, 0, 1);
	say_head(GROUP);
	close(sv[1]);
	SAY("cancelled");
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	selects(IORING_OP_RECV, 3, sv[1], 0)->ioprio = IORING_RECV_MULTISHOT;
	go(&r, 1, 0);
	rw(&r, IORING_OP_ASYNC_CANCEL, 4, -1, (void *)3, 0);
	go(&r, 1, 2);
	SAY("once, and what it may not ask for");
	T(write(sv[0], "last", 4));
	selects(IORING_OP_RECV, 5, sv[1], 2);
	go(&r, 1, 1);
	selects(IORING_OP_RECV, 6, sv[1], 2)->ioprio = IORING_RECV_MULTISHOT;
	go(&r, 1, 1);
	rw(&r, IORING_OP_RECV, 7, sv[1], area, 0)->ioprio = IORING_RECV_MULTISHOT;
	go(&r, 1, 1);
	struct io_uring_sqe *sqe = selects(IORING_OP_RECV, 8, sv[1], 0);
	sqe->ioprio = IORING_RECV_MULTISHOT;
	sqe->msg_flags = MSG_WAITALL;
	go(&r, 1, 1);
	close(sv[0]), close(sv[1]);
}

static void full(void)
{
	struct ring small = ring_with(1, IORING_SETUP_CQSIZE, 2), was = r;
	int sv[2];
	SAY("completions that nobody takes end it");
	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
	r = small;
	for (int i = 0; i < 4; i++)
		MUST(write(sv[0], "x", 1));
	provide(COUNT, 0, area, LEN);
	selects(IORING_OP_RECV, 1, sv[1], 0)->ioprio = IORING_RECV_MULTISHOT;
	T(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	take(&r);
	go(&r, 0, 0);
	close(sv[0]), close(sv[1]);
	ring_close(&r);
	r = was;
}

static void forget(void)
{
	struct io_uring_buf_reg it = { .bgid = GROUP, .pad = 1 };
	SAY("forgotten");
	T(reg(r.fd, IORING_UNREGISTER_PBUF_RING, &it, 1));
	it.pad = 0;
	T(reg(r.fd, IORING_UNREGISTER_PBUF_RING, &it, 1));
	T(reg(r.fd, IORING_UNREGISTER_PBUF_RING, &it, 1));
}

static void unix_name(struct sockaddr_un *name)
{
	memset(name, 0, sizeof *name);
	name->sun_family = AF_UNIX;
	strcpy(name->sun_path, "socket");
}

static void accepts(void)
{
	struct sockaddr_un name;
	int listener = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0)), peer[3];
	SAY("accepted again and again");
	unix_name(&name);
	unlink(name.sun_path);
	MUST(bind(listener, (void *)&name, sizeof name));
	MUST(listen(listener, 8));
	rw(&r, IORING_OP_ACCEPT, 1, listener, NULL, 0)->ioprio = IORING_ACCEPT_MULTISHOT;
	go(&r, 1, 0);
	for (int i = 0; i < 3; i++) {
		peer[i] = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
		MUST(connect(peer[i], (void *)&name, sizeof name));
	}
	MUST(enter(r.fd, 0, 3, IORING_ENTER_GETEVENTS));
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	IS(ready(&r) == 3);
	while (ready(&r)) {
		struct io_uring_cqe *cqe = &cqes[(*number(&r, r.p.cq_off.head))++ & (r.p.cq_entries - 1)];
		IS(cqe->res >= 0);
		IS(cqe->flags == IORING_CQE_F_MORE);
		close(cqe->res);
	}
	SAY("no descriptor left ends it");
	rw(&r, IORING_OP_ASYNC_CANCEL, 4, -1, (void *)1, 0);
	go(&r, 1, 2);
	struct rlimit old, none = { 0, 0 };
	MUST(getrlimit(RLIMIT_NOFILE, &old));
	none.rlim_max = old.rlim_max;
	MUST(connect((int)MUST(socket(AF_UNIX, SOCK_STREAM, 0)), (void *)&name, sizeof name));
	MUST(setrlimit(RLIMIT_NOFILE, &none));
	rw(&r, IORING_OP_ACCEPT, 5, listener, NULL, 0)->ioprio = IORING_ACCEPT_MULTISHOT;
	go(&r, 1, 1);
	MUST(setrlimit(RLIMIT_NOFILE, &old));
	rw(&r, IORING_OP_ACCEPT, 2, listener, NULL, 0)->ioprio = 8;
	go(&r, 1, 1);
	rw(&r, IORING_OP_ACCEPT, 3, peer[0], NULL, 0)->ioprio = IORING_ACCEPT_MULTISHOT;
	go(&r, 1, 1);
	close(listener), close(peer[0]), close(peer[1]), close(peer[2]);
}

static struct io_uring_sqe *fixed(int op, unsigned long data, int fd, void *at, unsigned len, unsigned index)
{
	struct io_uring_sqe *sqe = rw(&r, op, data, fd, at, len);
	sqe->buf_index = (unsigned short)index;
	return sqe;
}

static void registered_buffers(void)
{
	char *page = (char *)MUST(mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	char *read_only = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	MUST(munmap(page + PAGE, PAGE));
	struct iovec iov[2] = { { page + 100, 200 }, { NULL, 0 } };
	int fd = (int)MUST(open("fixed", O_RDWR | O_CREAT, 0600));
	SAY("registered buffers");
	fixed(IORING_OP_WRITE_FIXED, 1, fd, page + 100, 5, 0);
	go(&r, 1, 1);
	T(reg(r.fd, IORING_UNREGISTER_BUFFERS, NULL, 0));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, NULL, 1));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, iov, 0));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, iov, 16385));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, &(struct iovec){ page, 0 }, 1));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, &(struct iovec){ NULL, 5 }, 1));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, &(struct iovec){ page, 2ul << 30 }, 1));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, &(struct iovec){ page, 2 * PAGE }, 1));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, &(struct iovec){ read_only, 8 }, 1));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, &(struct iovec){ KERNEL_ADDRESS, 8 }, 1));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, iov, 2));
	T(reg(r.fd, IORING_REGISTER_BUFFERS, iov, 2));
	memcpy(page + 100, "hello", 5);
	fixed(IORING_OP_WRITE_FIXED, 2, fd, page + 100, 5, 0);
	go(&r, 1, 1);
	fixed(IORING_OP_READ_FIXED, 3, fd, page + 290, 10, 0)->off = 1;
	go(&r, 1, 1);
	SAY("%.4s", page + 290);
	fixed(IORING_OP_READ_FIXED, 4, fd, page + 291, 10, 0);
	go(&r, 1, 1);
	fixed(IORING_OP_READ_FIXED, 5, fd, page + 99, 1, 0);
	go(&r, 1, 1);
	fixed(IORING_OP_READ_FIXED, 6, fd, (void *)-1l, 2, 0);
	go(&r, 1, 1);
	fixed(IORING_OP_READ_FIXED, 7, fd, page + 100, 1, 1);
	go(&r, 1, 1);
	fixed(IORING_OP_READ_FIXED, 8, fd, page + 100, 1, 2);
	go(&r, 1, 1);
	fixed(IORING_OP_READ_FIXED, 9, -1, page + 100, 1, 0);
	go(&r, 1, 1);
	SAY("what cannot be carried out ends the batch");
	fixed(IORING_OP_READ_FIXED, 10, fd, page + 100, 1, 9);
	next(&r, IORING_OP_NOP, 11);
	go(&r, 2, 1);
	go(&r, 1, 1);
	T(reg(r.fd, IORING_UNREGISTER_BUFFERS, iov, 0));
	T(reg(r.fd, IORING_UNREGISTER_BUFFERS, NULL, 0));
	T(reg(r.fd, IORING_UNREGISTER_BUFFERS, NULL, 0));
	close(fd);
}

static void registered_files(void)
{
	int p[2], fds[3] = { -1, -1, -1 };
	char got[4] = { 0 };
	MUST(pipe(p));
	struct io_uring_files_update update = { .offset = 1, .fds = (unsigned long)fds };
	SAY("registered files");
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, &update, 1));
	T(reg(r.fd, IORING_REGISTER_FILES, fds, 3));
	fds[0] = p[0];
	fds[1] = p[1];
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, &update, 0));
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, NULL, 1));
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, &update, 3));
	update.offset = -1u;
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, &update, 3));
	update.offset = 1;
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, &update, 2));
	rw(&r, IORING_OP_WRITE, 1, 2, "abc", 3)->flags = IOSQE_FIXED_FILE;
	go(&r, 1, 1);
	rw(&r, IORING_OP_READ, 2, 1, got, 3)->flags = IOSQE_FIXED_FILE;
	go(&r, 1, 1);
	SAY("%s", got);
	fds[0] = -2;
	fds[1] = 1000;
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, &update, 2));
	fds[0] = r.fd;
	T(reg(r.fd, IORING_REGISTER_FILES_UPDATE, &update, 1));
	rw(&r, IORING_OP_READ, 3, 1, got, 3)->flags = IOSQE_FIXED_FILE;
	go(&r, 1, 1);
	rw(&r, IORING_OP_WRITE, 4, 2, got, 3)->flags = IOSQE_FIXED_FILE;
	go(&r, 1, 1);
	T(reg(r.fd, IORING_UNREGISTER_FILES, NULL, 0));
	close(p[0]), close(p[1]);
}

int main(void)
{
	scratch();
	r = ring(8);
	provided();
	ring_of_buffers();
	receives();
	forget();
	full();
	accepts();
	registered_buffers();
	registered_files();
	return 0;
}
