/*
 * /dev/random and /dev/urandom: read, write, lseek (always 0), pread, poll (random IN, urandom IN and
 * OUT), mmap ENODEV, fsync EINVAL, and the RND* ioctls with their permissions; unknown ioctls EINVAL.
 */
#include "check.h"
#include <linux/random.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

static char buf[8192];

static void node(const char *path)
{
	struct stat st;
	MUST(stat(path, &st));
	SAY("%s: %s mode %o device %u:%u", path, S_ISCHR(st.st_mode) ? "char" : "other",
	    st.st_mode & 07777, major(st.st_rdev), minor(st.st_rdev));
	SAY("reads of %ld bytes wanted", (long)st.st_blksize);
}

static void transfer(int fd)
{
	char *end = page_end();
	struct iovec iov[2] = { { buf, 10 }, { buf + 100, 20 } };
	T(read(fd, buf, 0));
	T(read(fd, buf, 1));
	T(read(fd, buf, 33));
	T(read(fd, buf, 8192));
	T(read(fd, NULL, 1));
	T(read(fd, end - 10, 100));
	T(read(fd, end, 1));
	T(read(fd, KERNEL_ADDRESS, 1));
	T(readv(fd, iov, 2));
	T(pread(fd, buf, 16, 1000));
	T(pread(fd, buf, 16, -1));
	T(preadv2(fd, iov, 2, -1, RWF_NOWAIT));
	T(write(fd, buf, 0));
	T(write(fd, buf, 100));
	T(write(fd, NULL, 1));
	T(write(fd, end - 10, 100));
	T(write(fd, KERNEL_ADDRESS, 1));
	T(pwrite(fd, buf, 16, 77));
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(fd, 100, SEEK_SET));
	T(lseek(fd, -5, SEEK_SET));
	T(lseek(fd, 5, SEEK_END));
	T(lseek(fd, 0, 99));
	T(fsync(fd));
	T(fdatasync(fd));
	T(ftruncate(fd, 0));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
	unsigned char a[16] = { 0 }, b[16] = { 0 };
	read(fd, a, 16);
	read(fd, b, 16);
	IS(memcmp(a, b, 16) != 0);
}

static void polled(int fd)
{
	struct pollfd p = { fd, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM | POLLPRI, 0 };
	T(poll(&p, 1, 0));
	SAY("revents %#x", p.revents);
}

static void controls(int fd)
{
	struct { struct rand_pool_info info; char data[16]; } pool = { { 8, 16 }, "0123456789abcde" };
	int n = -1;
	T(ioctl(fd, RNDGETENTCNT, &n));
	SAY("count %d", n);
	T(ioctl(fd, RNDGETENTCNT, NULL));
	T(ioctl(fd, RNDADDTOENTCNT, &(int){ 0 }));
	T(ioctl(fd, RNDADDTOENTCNT, &(int){ 8 }));
	T(ioctl(fd, RNDADDTOENTCNT, &(int){ -1 }));
	T(ioctl(fd, RNDADDTOENTCNT, NULL));
	T(ioctl(fd, RNDADDENTROPY, &pool));
	pool.info.entropy_count = -1;
	T(ioctl(fd, RNDADDENTROPY, &pool));
	pool.info.entropy_count = 8;
	pool.info.buf_size = -1;
	T(ioctl(fd, RNDADDENTROPY, &pool));
	T(ioctl(fd, RNDADDENTROPY, NULL));
	T(ioctl(fd, RNDZAPENTCNT, 0));
	T(ioctl(fd, RNDCLEARPOOL, 0));
	T(ioctl(fd, RNDRESEEDCRNG, 0));
	T(ioctl(fd, RNDGETPOOL, &n));
	T(ioctl(fd, FIONREAD, &n));
	T(ioctl(fd, 0x5401, &n));
	T(ioctl(fd, 0x52ff, &n));
	T(ioctl(fd, FIONBIO, &(int){ 0 }));
}

static void unprivileged(int fd)
{
	CHILD("as uid 1000") {
		int n = -1;
		MUST(setuid(1000));
		T(ioctl(fd, RNDGETENTCNT, &n));
		T(ioctl(fd, RNDADDTOENTCNT, NULL));
		T(ioctl(fd, RNDADDENTROPY, NULL));
		T(ioctl(fd, RNDZAPENTCNT, 0));
		T(ioctl(fd, RNDCLEARPOOL, 0));
		T(ioctl(fd, RNDRESEEDCRNG, 0));
		T(write(fd, buf, 10));
		T(open("/dev/urandom", O_RDWR | O_CLOEXEC) >= 0);
	} END;
}

int main(void)
{
	static const char *const paths[] = { "/dev/random", "/dev/urandom" };
	for (int i = 0; i < 2; i++) {
		SAY("-- %s", paths[i]);
		node(paths[i]);
		int fd = (int)MUST(open(paths[i], O_RDWR));
		transfer(fd);
		polled(fd);
		controls(fd);
		unprivileged(fd);
		close(fd);
		fd = (int)MUST(open(paths[i], O_RDONLY | O_NONBLOCK));
		T(read(fd, buf, 100));
		T(write(fd, buf, 100));
		close(fd);
		T(close(open(paths[i], O_WRONLY | O_TRUNC | O_CREAT, 0600)));
		T(open(paths[i], O_RDONLY | O_DIRECTORY));
		T(truncate(paths[i], 0));
	}
	return 0;
}
