/*
 * uring_files.c: what io_uring does with files and names: each operation that completes at once, its results and errors, and
 * the fields of an entry that must be zero.
 */
#include "uring.h"
#include <linux/stat.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

static struct ring r;

static int one(struct io_uring_sqe *sqe UNUSED)
{
	MUST(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	return take(&r);
}

#define ONE(sqe) ({ printf("%s\n", #sqe); one(sqe); })

static struct io_uring_sqe *named(int op, const void *name, int at, unsigned len)
{
	return rw(&r, op, 1, at, name, len);
}

static struct io_uring_sqe *with(struct io_uring_sqe *sqe, unsigned long off, unsigned flags)
{
	sqe->off = off;
	sqe->rw_flags = (int)flags;
	return sqe;
}

static int opens(const char *name, int flags)
{
	struct io_uring_sqe *sqe = named(IORING_OP_OPENAT, name, AT_FDCWD, 0600);
	sqe->open_flags = (unsigned)flags;
	MUST(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	unsigned head = (*number(&r, r.p.cq_off.head))++;
	return cqes[head & (r.p.cq_entries - 1)].res;
}

static void transfers(void)
{
	char got[16] = { 0 };
	int fd = opens("file", O_RDWR | O_CREAT | O_EXCL);
	IS(fd >= 0);
	IS(opens("file", O_RDWR | O_CREAT | O_EXCL) == -EEXIST);
	ONE(with(named(IORING_OP_WRITE, "hello", fd, 5), 0, 0));
	T(lseek(fd, 0, SEEK_CUR));
	ONE(with(named(IORING_OP_WRITE, " world", fd, 6), 5, 0));
	ONE(with(named(IORING_OP_READ, got, fd, 4), -1ul, 0));
	ONE(with(named(IORING_OP_READ, got + 4, fd, 16), -1ul, 0));
	T(lseek(fd, 0, SEEK_CUR));
	SAY("%s", got);
	ONE(with(named(IORING_OP_READ, got, fd, 4), -2ul, 0));
	ONE(with(named(IORING_OP_READ, got, fd, 4), 100, 0));
	ONE(with(named(IORING_OP_READ, NULL, fd, 4), 0, 0));
	ONE(with(named(IORING_OP_READ, KERNEL_ADDRESS, fd, 4), 0, 0));
	ONE(with(named(IORING_OP_READ, got, fd, 4), 0, 1u << 30));
	ONE(with(named(IORING_OP_READ, got, -1, 4), 0, 0));
	struct iovec iov[2] = { { got, 2 }, { got + 8, 3 } };
	ONE(with(named(IORING_OP_READV, iov, fd, 2), 6, 0));
	SAY("%.2s %.3s", got, got + 8);
	ONE(with(named(IORING_OP_WRITEV, iov, fd, 2), 0, 0));
	ONE(with(named(IORING_OP_READV, iov, fd, 2000), 0, 0));
	ONE(with(named(IORING_OP_FSYNC, NULL, fd, 0), 0, 0));
	ONE(with(named(IORING_OP_FSYNC, NULL, fd, 0), 0, 2));
	ONE(with(named(IORING_OP_FSYNC, "x", fd, 0), 0, 0));
	struct io_uring_sqe *sqe = with(named(IORING_OP_FALLOCATE, NULL, fd, 0), 0, 0);
	sqe->addr = 8192;
	one(sqe);
	T(lseek(fd, 0, SEEK_END));
	ONE(with(named(55, NULL, fd, 0), 5, 0));
	T(lseek(fd, 0, SEEK_END));
	ONE(named(IORING_OP_CLOSE, NULL, fd, 0));
	ONE(named(IORING_OP_CLOSE, NULL, fd, 0));
	ONE(named(IORING_OP_CLOSE, NULL, r.fd, 0));
	ONE(named(IORING_OP_CLOSE, "x", fd, 0));
	fd = opens("file", O_RDONLY);
	ONE(with(named(IORING_OP_WRITE, "hello", fd, 5), 0, 0));
	close(fd);
	fd = opens(".", O_RDONLY);
	ONE(with(named(IORING_OP_READ, got, fd, 4), 0, 0));
	close(fd);
	fd = opens("file", O_PATH);
	ONE(with(named(IORING_OP_READ, got, fd, 4), 0, 0));
	close(fd);
}

static void names(void)
{
	struct statx stx = { 0 };
	ONE(with(named(IORING_OP_STATX, "file", AT_FDCWD, STATX_SIZE), (unsigned long)&stx, 0));
	SAY("size %d", (int)stx.stx_size);
	ONE(with(named(IORING_OP_STATX, "none", AT_FDCWD, STATX_SIZE), (unsigned long)&stx, 0));
	ONE(with(named(IORING_OP_STATX, "file", AT_FDCWD, STATX_SIZE), 0, 0));
	ONE(named(IORING_OP_MKDIRAT, "dir", AT_FDCWD, 0700));
	ONE(named(IORING_OP_MKDIRAT, "dir", AT_FDCWD, 0700));
	ONE(with(named(IORING_OP_SYMLINKAT, "file", AT_FDCWD, 0), (unsigned long)"dir/sym", 0));
	ONE(with(named(IORING_OP_LINKAT, "file", AT_FDCWD, (unsigned)AT_FDCWD), (unsigned long)"hard", 0));
	ONE(with(named(IORING_OP_RENAMEAT, "hard", AT_FDCWD, (unsigned)AT_FDCWD), (unsigned long)"dir/other", 0));
	ONE(with(named(IORING_OP_RENAMEAT, "hard", AT_FDCWD, (unsigned)AT_FDCWD), (unsigned long)"dir/other", 0));
	ONE(with(named(IORING_OP_UNLINKAT, "dir", AT_FDCWD, 0), 0, 0));
	ONE(with(named(IORING_OP_UNLINKAT, "dir", AT_FDCWD, 0), 0, AT_REMOVEDIR));
	ONE(with(named(IORING_OP_UNLINKAT, "dir/sym", AT_FDCWD, 0), 0, 0));
	ONE(with(named(IORING_OP_UNLINKAT, "dir/other", AT_FDCWD, 0), 0, 0));
	ONE(with(named(IORING_OP_UNLINKAT, "dir", AT_FDCWD, 0), 0, AT_REMOVEDIR));
	ONE(with(named(IORING_OP_UNLINKAT, "dir", AT_FDCWD, 0), 0, 0x8000));
	struct io_uring_sqe *sqe = named(IORING_OP_UNLINKAT, "dir", AT_FDCWD, 0);
	sqe->flags = IOSQE_FIXED_FILE;
	one(sqe);
}

static void others(void)
{
	char *page = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	page[0] = 1;
	ONE(with(named(IORING_OP_MADVISE, page, -1, PAGE), 0, MADV_DONTNEED));
	IS(page[0] == 0);
	ONE(with(named(IORING_OP_MADVISE, page, -1, PAGE), 0, 1000));
	struct io_uring_sqe *sqe = next(&r, IORING_OP_SOCKET, 1);
	sqe->fd = AF_UNIX;
	sqe->off = SOCK_STREAM;
	int made = (int)MUST(enter(r.fd, 1, 1, IORING_ENTER_GETEVENTS));
	struct io_uring_cqe *cqes = (void *)(r.rings + r.p.cq_off.cqes);
	made = cqes[(*number(&r, r.p.cq_off.head))++ & (r.p.cq_entries - 1)].res;
	IS(made >= 0);
	int sv[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	char got[8] = { 0 };
	ONE(named(IORING_OP_SEND, "abc", sv[0], 3));
	ONE(named(IORING_OP_RECV, got, sv[1], 8));
	SAY("%s", got);
	ONE(named(IORING_OP_SHUTDOWN, NULL, sv[0], SHUT_WR));
	ONE(named(IORING_OP_RECV, got, sv[1], 8));
	ONE(named(IORING_OP_SHUTDOWN, NULL, sv[0], 9));
	ONE(named(IORING_OP_SHUTDOWN, NULL, 1, SHUT_WR));
	ONE(named(IORING_OP_SEND, "abc", 1, 3));
	int event = (int)MUST(eventfd(3, 0));
	ONE(named(IORING_OP_READ, got, event, 8));
	ONE(with(named(IORING_OP_WRITE, got, event, 8), 77, 0));
	int p[2];
	MUST(pipe(p));
	ONE(with(named(IORING_OP_WRITE, "pipe", p[1], 4), 123, 0));
	ONE(with(named(IORING_OP_READ, got, p[0], 8), 123, 0));
	close(p[0]);
	signal(SIGPIPE, SIG_IGN);
	ONE(named(IORING_OP_WRITE, "pipe", p[1], 4));
}

int main(void)
{
	scratch();
	r = ring(4);
	transfers();
	names();
	others();
	return 0;
}
