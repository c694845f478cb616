/*
 * Streams: a child reads, as fast as it can, what the benchmark writes in pieces; an operation is one piece. A repetition ends when
 * the child says that all bytes have come. And memory that is large: touched for the first time, and given back.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { READ_SIZE = 128 * 1024, LARGE = 32 << 20 };

static char piece[READ_SIZE];
static int stream_out = -1, stream_orders = -1, stream_results = -1;
static pid_t stream_reader;

/* Reads as many bytes as each order says, and answers with how many were too few. */
static void read_all(int in, int orders, int results)
{
	static char into[READ_SIZE];
	for (long left; read(orders, &left, sizeof left) == sizeof left;) {
		while (left > 0) {
			ssize_t got = read(in, into, sizeof into);
			if (got <= 0)
				break;
			left -= got;
		}
		if (write(results, &left, sizeof left) != sizeof left)
			_exit(1);
	}
	_exit(11);
}

/* ends[0] is read, ends[1] is written. */
static long start_stream(const int ends[2])
{
	int orders[2], results[2];
	if (pipe2(orders, O_CLOEXEC) != 0 || pipe2(results, O_CLOEXEC) != 0)
		return 1;
	memset(piece, 'x', sizeof piece);
	stream_reader = fork();
	if (stream_reader == 0) {
		close(ends[1]);
		close(orders[1]);
		close(results[0]);
		read_all(ends[0], orders[0], results[1]);
	}
	close(ends[0]);
	close(orders[0]);
	close(results[1]);
	stream_out = ends[1];
	stream_orders = orders[1];
	stream_results = results[0];
	return stream_reader < 0;
}

static long stop_stream(void)
{
	close(stream_orders);
	close(stream_out);
	close(stream_results);
	return !exited_with(stream_reader, 11);
}

static long stream_pipe(void)
{
	int ends[2];
	return pipe2(ends, O_CLOEXEC) != 0 || start_stream(ends);
}

static long stream_unix(void)
{
	int ends[2];
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 || start_stream(ends);
}

/* The loopback interface is down until somebody says otherwise. */
static int loopback_up(int any)
{
	struct ifreq lo = { .ifr_name = "lo" };
	if (ioctl(any, SIOCGIFFLAGS, &lo) != 0)
		return 0;
	lo.ifr_flags |= IFF_UP;
	return ioctl(any, SIOCSIFFLAGS, &lo) == 0;
}

static long stream_tcp(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof name;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ends[2];
	if (!loopback_up(listener) || bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&name, &len) != 0)
		return 1;
	ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(ends[1], (struct sockaddr *)&name, len) != 0)
		return 1;
	ends[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	return ends[0] < 0 || close(listener) != 0 || start_stream(ends);
}

static long write_pieces(long n, size_t size)
{
	long bytes = n * (long)size, left = -1, bad = 0;
	bad += write(stream_orders, &bytes, sizeof bytes) != sizeof bytes;
	for (long i = 0; i < n; i++)
		for (size_t done = 0; done < size;) {
			ssize_t put = write(stream_out, piece + done, size - done);
			if (put <= 0)
				return 1;
			done += (size_t)put;
		}
	return bad + (read(stream_results, &left, sizeof left) != sizeof left || left != 0);
}

static long run_stream_1k(long n) { return write_pieces(n, 1024); }
static long run_stream_4k(long n) { return write_pieces(n, 4096); }
static long run_stream_64k(long n) { return write_pieces(n, 65536); }
static long run_stream_128k(long n) { return write_pieces(n, 131072); }

static long touch_large(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		volatile char *large = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (large == MAP_FAILED)
			return 1;
		for (size_t at = 0; at < LARGE; at += 4096)
			large[at] = 1;
		bad += munmap((void *)large, LARGE) != 0;
	}
	return bad;
}

static int tmpfs_fd = -1;

static long make_large_file(void)
{
	tmpfs_fd = open(PAGES_FILE, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	memset(piece, 'x', sizeof piece);
	return write(tmpfs_fd, piece, sizeof piece) != sizeof piece;
}

static long drop_large_file(void) { return close(tmpfs_fd) + unlink(PAGES_FILE) != 0; }

static long run_read_128k(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++)
		bad += pread(tmpfs_fd, piece, sizeof piece, 0) != sizeof piece;
	return bad + (piece[0] != 'x' || piece[sizeof piece - 1] != 'x');
}
