/*
 * Reading and writing: positions, pread and pwrite, vectors, huge counts clamped, partial faults, sparse files,
 * lseek with SEEK_DATA and SEEK_HOLE, ftruncate, fallocate, RLIMIT_FSIZE, sendfile, splice and copy_file_range.
 */
#include "check.h"
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static char buf[65536];

static void positions(void)
{
	int fd = (int)MUST(open("f", O_RDWR | O_CREAT, 0644));
	SAY("-- positions");
	T(write(fd, "0123456789", 10));
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(fd, -3, SEEK_END));
	T(read(fd, buf, 100));
	T(read(fd, buf, 100));
	T(lseek(fd, -1, SEEK_SET));
	T(lseek(fd, -100, SEEK_CUR));
	T(lseek(fd, 0, 9));
	T(lseek(fd, LONG_MAX, SEEK_SET));
	T(read(fd, buf, 1));
	T(write(fd, buf, 1));
	T(lseek(fd, 1, SEEK_CUR));
	T(lseek(fd, 20, SEEK_SET));
	T(read(fd, buf, 1));
	T(write(fd, "x", 1));
	T(pread(fd, buf, 21, 0));
	SAY("hole %d %d", buf[10], buf[19]);
	T(pwrite(fd, "P", 1, 5));
	T(lseek(fd, 0, SEEK_CUR));
	T(pread(fd, buf, 1, 5));
	SAY("%c", buf[0]);
	T(pread(fd, buf, 1, -1));
	T(pwrite(fd, buf, 1, -1));
	T(pread(fd, buf, 10, 100));
	T(read(fd, buf, (size_t)-1));
	T(write(fd, NULL, 0));
	T(read(fd, NULL, 0));
	T(read(fd, KERNEL_ADDRESS, 0));
	char *end = page_end();
	lseek(fd, 0, SEEK_SET);
	T(read(fd, end - 5, 10));
	T(lseek(fd, 0, SEEK_CUR));
	T(write(fd, end - 5, 10));
	struct iovec v[3] = { { buf, 3 }, { buf + 10, 2 }, { buf + 20, 100 } };
	/* A negative length comes before an entry behind it that cannot be read, and before any buffer outside. */
	struct iovec *edge = (void *)((char *)MUST(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) + 4096);
	MUST(munmap(edge, 4096));
	edge[-1] = (struct iovec){ (void *)-4096l, 8 };
	edge[-2] = (struct iovec){ buf, (size_t)-1 };
	T(readv(fd, edge - 2, 3));
	T(readv(fd, edge - 2, 2));
	T(readv(fd, edge - 1, 2));
	T(readv(fd, edge - 1, 1));
	T(readv(fd, edge - 2, 1));
	T(preadv(fd, v, 3, 0));
	T(pwritev(fd, v, 2, 0));
	T(preadv2(fd, v, 3, -1, 0));
	T(preadv2(fd, v, 1, 0, 0x4000));
	v[1].iov_base = (void *)8;
	lseek(fd, 0, SEEK_SET);
	T(readv(fd, v, 3));
	int wo = (int)MUST(open("f", O_WRONLY)), ro = (int)MUST(open("f", O_RDONLY));
	T(read(wo, buf, 1));
	T(write(ro, buf, 1));
	T(pwrite(ro, buf, 1, 0));
	T(ftruncate(ro, 1));
	T(read((int)open(".", O_RDONLY), buf, 1));
	close(fd);
}

static void sparse(void)
{
	struct stat st;
	SAY("-- sparse");
	int fd = (int)MUST(open("s", O_RDWR | O_CREAT, 0644));
	T(lseek(fd, 0, SEEK_DATA));
	T(lseek(fd, 0, SEEK_HOLE));
	T(ftruncate(fd, 1 << 20));
	fstat(fd, &st);
	SAY("size %ld blocks %ld", (long)st.st_size, (long)st.st_blocks);
	T(lseek(fd, 0, SEEK_DATA));
	T(lseek(fd, 0, SEEK_HOLE));
	T(pwrite(fd, "data", 4, 100000));
	fstat(fd, &st);
	SAY("size %ld blocks %ld", (long)st.st_size, (long)st.st_blocks);
	T(lseek(fd, 0, SEEK_DATA));
	T(lseek(fd, 100000, SEEK_HOLE));
	T(lseek(fd, 98400, SEEK_DATA));
	T(lseek(fd, 200000, SEEK_DATA));
	T(lseek(fd, 1 << 20, SEEK_HOLE));
	T(lseek(fd, (1 << 20) - 1, SEEK_HOLE));
	T(lseek(fd, -1, SEEK_DATA));
	T(ftruncate(fd, -1));
	T(truncate("s", 100002));
	T(ftruncate(fd, 200000));
	memset(buf, 1, 8);
	T(pread(fd, buf, 8, 100000));
	SAY("%c%c%d%d", buf[0], buf[1], buf[2], buf[7]);
	T(fallocate(fd, 0, 0, 20000));
	fstat(fd, &st);
	SAY("size %ld blocks %ld", (long)st.st_size, (long)st.st_blocks);
	T(fallocate(fd, FALLOC_FL_KEEP_SIZE, 300000, 4096));
	T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8192));
	fstat(fd, &st);
	SAY("size %ld", (long)st.st_size);
	T(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 8192));
	T(fallocate(fd, 0, 0, 0));
	T(fallocate(fd, 0, -1, 5));
	T(fallocate(fd, 0, 300000, 5000));
	fstat(fd, &st);
	SAY("size %ld", (long)st.st_size);
	T(truncate("missing", 0));
	T(truncate(".", 0));
	T(ftruncate(0, 0));
	T(truncate("s", 0));
	fstat(fd, &st);
	SAY("size %ld blocks %ld", (long)st.st_size, (long)st.st_blocks);
	close(fd);
	/* file size limit */
	CHILD("RLIMIT_FSIZE") {
		struct rlimit rl = { 100, 100 };
		setrlimit(RLIMIT_FSIZE, &rl);
		fd = (int)MUST(open("l", O_RDWR | O_CREAT, 0644));
		T(write(fd, buf, 90));
		T(write(fd, buf, 90));
		signal(SIGXFSZ, SIG_IGN);
		T(write(fd, buf, 90));
		T(ftruncate(fd, 1000));
		signal(SIGXFSZ, SIG_DFL);
		T(write(fd, buf, 90));
	} END;
}

static void copies(void)
{
	int p[2], in, out;
	off_t off = 2;
	SAY("-- copies");
	write_file("in", "abcdefghijklmnopqrstuvwxyz");
	in = (int)MUST(open("in", O_RDONLY));
	out = (int)MUST(open("out", O_RDWR | O_CREAT | O_TRUNC, 0644));
	MUST(pipe2(p, O_NONBLOCK));
	T(sendfile(out, in, &off, 5));
	SAY("offset %ld, position %ld", (long)off, (long)lseek(in, 0, SEEK_CUR));
	T(sendfile(out, in, NULL, 3));
	T(lseek(in, 0, SEEK_CUR));
	SAY("%s", read_file("out"));
	T(sendfile(p[1], in, NULL, 1000));
	T(read(p[0], buf, 100));
	T(sendfile(p[1], in, NULL, 1000));
	T(sendfile(out, p[0], NULL, 10));
	T(sendfile(out, in, &(off_t){ -1 }, 1));
	T(sendfile(in, out, NULL, 1));
	T(sendfile(out, 99, NULL, 1));
	int app = (int)MUST(open("out", O_WRONLY | O_APPEND));
	lseek(in, 0, SEEK_SET);
	T(sendfile(app, in, NULL, 1));
	/* splice and tee */
	loff_t lo = 1;
	T(splice(in, &lo, p[1], NULL, 4, 0));
	SAY("offset %ld", (long)lo);
	int q[2];
	MUST(pipe2(q, O_NONBLOCK));
	T(tee(p[0], q[1], 3, 0));
	T(splice(p[0], NULL, out, NULL, 100, 0));
	memset(buf, 0, 100);
	T(read(q[0], buf, 100));
	SAY("%s", buf);
	T(splice(p[0], NULL, out, NULL, 100, SPLICE_F_NONBLOCK));
	T(splice(in, NULL, out, NULL, 10, 0));
	T(splice(p[0], &lo, q[1], NULL, 10, 0));
	T(splice(in, NULL, p[1], NULL, 10, 0x100));
	struct iovec v = { "vmsplice", 8 };
	T(vmsplice(p[1], &v, 1, 0));
	T(read(p[0], buf, 100));
	/* copy_file_range */
	loff_t a = 3, b = 0;
	T(ftruncate(out, 0));
	T(copy_file_range(in, &a, out, &b, 6, 0));
	SAY("%s, offsets %ld %ld", read_file("out"), (long)a, (long)b);
	T(copy_file_range(in, &(loff_t){ 100 }, out, &b, 6, 0));
	T(copy_file_range(in, &a, out, &b, 6, 1));
	T(copy_file_range(p[0], NULL, out, &b, 6, 0));
	T(copy_file_range(out, &(loff_t){ 0 }, out, &(loff_t){ 2 }, 4, 0));
	T(copy_file_range(in, &a, app, NULL, 6, 0));
	T(syscall(SYS_readahead, in, 0, 10));
	T(posix_fadvise(in, 0, 10, POSIX_FADV_WILLNEED));
	T(posix_fadvise(p[0], 0, 10, POSIX_FADV_WILLNEED));
	T(posix_fadvise(in, 0, 10, 99));
	T(fsync(out));
	T(fdatasync(out));
	T(syncfs(out));
	T(sync_file_range(out, 0, 10, 0));
}

/* A file of several megabytes, a page of which is punched out, and then the end cut off. */
static void large(void)
{
	int fd = (int)MUST(open("large", O_RDWR | O_CREAT, 0600));
	static long page[512];
	for (long i = 0; i < 1300; i++) {
		page[0] = page[511] = i + 1;
		MUST(pwrite(fd, page, sizeof page, i * 4096));
	}
	T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 600 * 4096, 2 * 4096));
	T(ftruncate(fd, 1200 * 4096));
	T(ftruncate(fd, 1250 * 4096));
	long holes = 0, wrong = 0;
	for (long i = 0; i < 1250; i++) {
		MUST(pread(fd, page, sizeof page, i * 4096));
		if (page[0] == 0 && page[511] == 0)
			holes++;
		else if (page[0] != i + 1 || page[511] != i + 1)
			wrong++;
	}
	SAY("%ld holes, %ld wrong", holes, wrong);
	close(fd);
}

int main(void)
{
	scratch();
	large();
	positions();
	sparse();
	copies();
	return 0;
}
