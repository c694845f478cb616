/*
 * Pipes: end of file, SIGPIPE and EPIPE, EAGAIN, capacity, F_SETPIPE_SZ, PIPE_BUF atomicity, FIONREAD,
 * O_DIRECT packets, and the errors of pipe2.
 */
#include "check.h"
#include <sys/ioctl.h>
#include <sys/uio.h>

static char buf[1 << 20];
static volatile int pipes_broken;

static void on_pipe(int s) { pipes_broken++; }

static long fill(int fd)
{
	long total = 0, n;
	while ((n = write(fd, buf, 4096)) > 0)
		total += n;
	return total;
}

static void basics(void)
{
	int p[2], n;
	struct stat st;
	T(pipe2(p, O_CLOEXEC | O_NONBLOCK));
	T(fcntl(p[0], F_GETFD));
	SAY("status flags %#x %#x", fcntl(p[0], F_GETFL), fcntl(p[1], F_GETFL));
	fstat(p[0], &st);
	SAY("mode %o size %ld nlink %ld", st.st_mode, (long)st.st_size, (long)st.st_nlink);
	T(read(p[0], buf, 10));
	T(write(p[1], "hello", 5));
	T(ioctl(p[0], FIONREAD, &n));
	SAY("readable %d", n);
	T(read(p[0], buf, 3));
	T(read(p[0], buf, 100));
	T(write(p[1], buf, 0));
	T(read(p[0], buf, 0));
	T(read(p[1], buf, 1));
	T(write(p[0], buf, 1));
	T(lseek(p[0], 0, SEEK_SET));
	T(pread(p[0], buf, 1, 0));
	T(fsync(p[0]));
	T(ftruncate(p[1], 0));
	T(fcntl(p[0], F_GETPIPE_SZ));
	SAY("filled %ld", fill(p[1]));
	T(write(p[1], buf, 1));
	T(write(p[1], buf, 100000));
	T(read(p[0], buf, 1));
	T(write(p[1], buf, 1));
	T(read(p[0], buf, 4095));
	T(write(p[1], buf, 4096));
	T(read(p[0], buf, 10000));
	T(write(p[1], buf, 4097));
	T(write(p[1], buf, 100000));
	T(close(p[1]));
	long total = 0, r;
	while ((r = read(p[0], buf, 30000)) > 0)
		total += r;
	SAY("drained %ld then %ld", total, r);
	T(read(p[0], buf, 1));
	T(close(p[0]));
	T(pipe2(p, O_RDWR));
	T(pipe2(p, O_TRUNC));
}

static void broken(void)
{
	int p[2];
	MUST(pipe(p));
	signal(SIGPIPE, on_pipe);
	write(p[1], "lost", 4);
	T(close(p[0]));
	T(write(p[1], "x", 1));
	SAY("SIGPIPE %d", pipes_broken);
	T(write(p[1], "x", 0));
	SAY("SIGPIPE %d", pipes_broken);
	signal(SIGPIPE, SIG_IGN);
	T(write(p[1], "x", 1));
	CHILD("default SIGPIPE") {
		signal(SIGPIPE, SIG_DFL);
		T(write(p[1], "x", 1));
	} END;
	close(p[1]);
	/* a writer blocked on a full pipe gets EPIPE or a partial count when the reader leaves */
	MUST(pipe(p));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		close(p[0]);
		long n = write(p[1], buf, 200000);
		SAY("blocked writer got %s", n == -1 ? err_name(errno) : n == 65536 ? "65536" : "other");
		n = write(p[1], buf, 10);
		SAY("then %s", n == -1 ? err_name(errno) : "more");
		_exit(0);
	}
	close(p[1]);
	wait_state(pid, "S");
	close(p[0]);
	say_status("writer", reap(pid));
}

static void sizes(void)
{
	int p[2];
	MUST(pipe2(p, O_NONBLOCK));
	T(fcntl(p[0], F_SETPIPE_SZ, 1));
	T(fcntl(p[0], F_SETPIPE_SZ, 5000));
	SAY("filled %ld", fill(p[1]));
	T(fcntl(p[0], F_SETPIPE_SZ, 4096));
	T(fcntl(p[0], F_SETPIPE_SZ, 1 << 20));
	SAY("filled %ld more", fill(p[1]));
	T(fcntl(p[0], F_SETPIPE_SZ, 0));
	T(fcntl(p[0], F_SETPIPE_SZ, 1u << 31));
	close(p[0]);
	close(p[1]);
	/* many small writes share pages: far more than 16 fit */
	MUST(pipe2(p, O_NONBLOCK));
	int count = 0;
	while (write(p[1], "0123456789abcdef", 16) == 16)
		count++;
	SAY("16-byte writes: %d", count);
	close(p[0]);
	close(p[1]);
}

/* Four writers of PIPE_BUF blocks of one letter: no block may be torn. */
static void atomic(void)
{
	int p[2], torn = 0;
	long total = 0;
	MUST(pipe(p));
	for (int w = 0; w < 4; w++) {
		if (MUST(fork()) == 0) {
			static char block[PIPE_BUF];
			memset(block, 'a' + w, sizeof block);
			close(p[0]);
			for (int i = 0; i < 100; i++)
				if (write(p[1], block, sizeof block) != sizeof block)
					_exit(1);
			_exit(0);
		}
	}
	close(p[1]);
	static char block[PIPE_BUF];
	size_t have = 0;
	ssize_t n;
	while ((n = read(p[0], block + have, sizeof block - have)) > 0) {
		have += (size_t)n;
		total += n;
		if (have == sizeof block) {
			for (size_t i = 1; i < sizeof block; i++)
				torn |= block[i] != block[0];
			have = 0;
		}
	}
	for (int w = 0; w < 4; w++)
		wait(NULL);
	SAY("total %ld torn %d", total, torn);
	close(p[0]);
}

static void vectors(void)
{
	int p[2];
	char a[4] = { 0 }, b[8] = { 0 };
	struct iovec out[3] = { { "abc", 3 }, { NULL, 0 }, { "defgh", 5 } }, in[2] = { { a, 3 }, { b, 8 } };
	MUST(pipe2(p, O_NONBLOCK));
	T(writev(p[1], out, 3));
	T(readv(p[0], in, 2));
	SAY("%s %s", a, b);
	T(writev(p[1], out, 0));
	T(writev(p[1], out, -1));
	T(writev(p[1], out, 1025));
	out[1] = (struct iovec){ KERNEL_ADDRESS, 4 };
	T(writev(p[1], out, 3));
	T(read(p[0], b, 8));
	out[1] = (struct iovec){ (void *)8, 4 };
	T(writev(p[1], out, 3));
	T(read(p[0], b, 8));
	out[1] = (struct iovec){ a, (size_t)-1 };
	T(writev(p[1], out, 3));
	/* a fault while reading loses nothing that was not delivered */
	char *end = page_end();
	write(p[1], "0123456789", 10);
	T(read(p[0], end - 4, 10));
	T(read(p[0], b, 8));
	close(p[0]);
	close(p[1]);
	/* packets */
	MUST(pipe2(p, O_DIRECT | O_NONBLOCK));
	write(p[1], "one", 3);
	write(p[1], "second", 6);
	T(read(p[0], b, 8));
	T(read(p[0], b, 3));
	T(read(p[0], b, 8));
}

int main(void)
{
	basics();
	broken();
	sizes();
	atomic();
	vectors();
	return 0;
}
