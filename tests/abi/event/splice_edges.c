/*
 * splice, tee, vmsplice and sendfile at their edges: wrong kinds and modes of file, offsets, flags, lengths, ends of file, closed
 * readers, append mode, a pipe with itself, full and empty pipes, sockets of all kinds.
 */
#include "net.h"
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/un.h>

static char buf[200000];
static int p[2], q[2], file, sv[2];

static void fresh(void)
{
	MUST(pipe2(p, O_NONBLOCK));
	MUST(pipe2(q, O_NONBLOCK));
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv));
	unlink("f");
	file = (int)MUST(open("f", O_RDWR | O_CREAT, 0644));
	MUST(write(file, "0123456789abcdefghij", 20));
	MUST(lseek(file, 0, SEEK_SET));
}

static void done(void)
{
	close(p[0]), close(p[1]), close(q[0]), close(q[1]), close(sv[0]), close(sv[1]), close(file);
}

static const char *drained(int fd)
{
	static char text[64];
	ssize_t n = read(fd, text, sizeof text - 1);
	if (n < 0)
		return err_name(errno);
	text[n] = 0;
	return text;
}

static void splices(void)
{
	loff_t at;
	fresh();
	T(splice(file, NULL, p[1], NULL, 5, 0));
	SAY("%s", drained(p[0]));
	T(lseek(file, 0, SEEK_CUR));
	T(splice(file, (at = 10, &at), p[1], NULL, 5, 0));
	SAY("%s, offset %ld", drained(p[0]), (long)at);
	T(lseek(file, 0, SEEK_CUR));
	T(splice(file, (at = 20, &at), p[1], NULL, 5, 0));
	T(splice(file, (at = 1000, &at), p[1], NULL, 5, 0));
	T(splice(file, (at = -1, &at), p[1], NULL, 5, 0));
	T(splice(file, (loff_t *)KERNEL_ADDRESS, p[1], NULL, 5, 0));
	T(splice(file, NULL, p[1], (at = 0, &at), 5, 0));
	T(splice(file, NULL, p[1], NULL, 0, 0));
	T(splice(-1, NULL, -1, NULL, 0, 0));
	T(splice(-1, NULL, p[1], NULL, 1, 0));
	T(splice(file, NULL, -1, NULL, 1, 0));
	T(splice(file, NULL, p[1], NULL, 1, 0xffff));
	T(splice(file, NULL, file, NULL, 1, 0));
	T(splice(file, NULL, sv[0], NULL, 1, 0));
	T(splice(p[1], NULL, q[1], NULL, 1, 0));
	T(splice(p[0], NULL, q[0], NULL, 1, 0));
	T(splice(p[0], NULL, p[1], NULL, 1, 0));
	T(splice(p[0], NULL, q[1], NULL, 1, 0));
	T(splice(p[0], NULL, q[1], NULL, 1, SPLICE_F_NONBLOCK));
	T(splice(p[0], NULL, file, NULL, 1, 0));
	MUST(write(p[1], "hello", 5));
	T(splice(p[0], NULL, p[1], NULL, 1, 0));
	T(splice(p[0], NULL, q[1], NULL, 3, SPLICE_F_MOVE | SPLICE_F_MORE));
	SAY("%s", drained(q[0]));
	T(splice(p[0], NULL, file, (at = 18, &at), 5, 0));
	SAY("offset %ld", (long)at);
	T(lseek(file, 0, SEEK_END));
	MUST(write(p[1], "again", 5));
	T(splice(p[0], NULL, file, (at = -5, &at), 5, 0));
	int append = (int)MUST(open("f", O_WRONLY | O_APPEND));
	T(splice(p[0], NULL, append, NULL, 5, 0));
	int reader = (int)MUST(open("f", O_RDONLY)), path = (int)MUST(open("f", O_PATH)), dir = (int)MUST(open(".", O_RDONLY));
	T(splice(p[0], NULL, reader, NULL, 5, 0));
	T(splice(append, NULL, p[1], NULL, 5, 0));
	T(splice(path, NULL, p[1], NULL, 5, 0));
	T(splice(dir, NULL, p[1], NULL, 5, 0));
	int null = (int)MUST(open("/dev/null", O_RDWR)), zero = (int)MUST(open("/dev/zero", O_RDWR)), full = (int)MUST(open("/dev/full", O_RDWR));
	T(splice(p[0], NULL, full, NULL, 2, 0));
	T(splice(p[0], NULL, null, NULL, 2, 0));
	T(splice(p[0], NULL, zero, NULL, 1, 0));
	SAY("%s", drained(p[0]));
	T(splice(null, NULL, p[1], NULL, 100, 0));
	T(splice(zero, NULL, p[1], NULL, 100, 0));
	T(read(p[0], buf, sizeof buf));
	T(splice(zero, (at = 0, &at), p[1], NULL, 100, 0));
	T(read(p[0], buf, sizeof buf));
	close(append), close(reader), close(path), close(dir), close(null), close(zero), close(full);
	/* A closed reader. */
	close(q[0]);
	signal(SIGPIPE, SIG_IGN);
	MUST(write(p[1], "kept", 4));
	T(splice(p[0], NULL, q[1], NULL, 4, 0));
	T(splice(file, (at = 0, &at), q[1], NULL, 4, 0));
	T(tee(p[0], q[1], 4, 0));
	SAY("%s", drained(p[0]));
	close(p[1]);
	T(splice(p[0], NULL, file, NULL, 4, 0));
	done();
	CHILD("a closed reader") {
		signal(SIGPIPE, SIG_DFL);
		fresh();
		close(q[0]);
		splice(file, NULL, q[1], NULL, 4, 0);
	} END;
}

static void sockets(void)
{
	fresh();
	int a, b, u = (int)MUST(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)), d[2], l = listener4(1), s = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	connection(&a, &b);
	MUST(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, d));
	MUST(bind(u, NAME4("127.0.0.1", 0)));
	MUST(connect(u, NAME4("127.0.0.1", port_of(u))));
	loff_t at = 0;
	MUST(write(p[1], "to tcp", 6));
	T(splice(p[0], NULL, a, NULL, 100, 0));
	await(b, POLLIN);
	T(splice(b, NULL, p[1], NULL, 100, 0));
	SAY("%s", drained(p[0]));
	/* The flag is the pipes' business: a socket that may block would. */
	MUST(fcntl(b, F_SETFL, O_NONBLOCK));
	MUST(fcntl(l, F_SETFL, O_NONBLOCK));
	MUST(fcntl(s, F_SETFL, O_NONBLOCK));
	T(splice(b, NULL, p[1], NULL, 100, 0));
	T(splice(b, &at, p[1], NULL, 100, SPLICE_F_NONBLOCK));
	T(splice(a, NULL, b, NULL, 100, 0));
	MUST(write(p[1], "to udp", 6));
	T(splice(p[0], NULL, u, NULL, 100, 0));
	await(u, POLLIN);
	T(splice(u, NULL, p[1], NULL, 100, 0));
	SAY("%s", drained(u));
	MUST(write(p[1], "to unix", 7));
	T(splice(p[0], NULL, d[0], NULL, 100, 0));
	SAY("%s", drained(d[1]));
	MUST(write(d[0], "datagram", 8));
	T(splice(d[1], NULL, p[1], NULL, 3, SPLICE_F_NONBLOCK));
	SAY("%s", drained(p[0]));
	SAY("%s", drained(d[1]));
	T(splice(sv[0], NULL, p[1], NULL, 3, SPLICE_F_NONBLOCK));
	T(splice(l, NULL, p[1], NULL, 3, SPLICE_F_NONBLOCK));
	T(splice(s, NULL, p[1], NULL, 3, SPLICE_F_NONBLOCK));
	MUST(write(p[1], "x", 1));
	signal(SIGPIPE, SIG_IGN);
	T(splice(p[0], NULL, s, NULL, 3, 0));
	T(splice(p[0], NULL, l, NULL, 3, 0));
	MUST(shutdown(a, SHUT_WR));
	T(splice(p[0], NULL, a, NULL, 3, 0));
	T(splice(b, NULL, q[1], NULL, 3, 0));
	SAY("%s", drained(p[0]));
	/* More than a pipe holds, from a socket that has more. */
	int size = 400000;
	MUST(setsockopt(sv[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
	long sent = write(sv[0], buf, 100000), moved = 0, n;
	SAY("sent %ld", sent);
	while ((n = splice(sv[1], NULL, p[1], NULL, 1 << 20, SPLICE_F_NONBLOCK)) > 0 || (n < 0 && errno == EAGAIN && moved < sent)) {
		long m;
		while ((m = read(p[0], buf, sizeof buf)) > 0)
			moved += m;
	}
	SAY("moved %ld", moved);
	close(a), close(b), close(u), close(d[0]), close(d[1]), close(l), close(s);
	done();
}

static void tees(void)
{
	fresh();
	T(tee(p[0], q[1], 0, 0));
	T(tee(p[0], q[1], 10, SPLICE_F_NONBLOCK));
	T(tee(p[0], q[1], 10, 0));
	T(tee(p[0], p[1], 10, 0));
	T(tee(file, q[1], 10, 0));
	T(tee(p[0], file, 10, 0));
	T(tee(-1, q[1], 10, 0));
	T(tee(p[1], q[1], 10, 0));
	T(tee(p[0], q[0], 10, 0));
	T(tee(p[0], q[1], 10, 0xff0));
	MUST(write(p[1], "teed", 4));
	T(tee(p[0], q[1], 2, 0));
	T(tee(p[0], q[1], 100, 0));
	SAY("%s", drained(q[0]));
	SAY("%s", drained(p[0]));
	close(p[1]);
	T(tee(p[0], q[1], 1, 0));
	done();
}

static void vmsplices(void)
{
	fresh();
	struct iovec iov[3] = { { (char *)"one", 3 }, { NULL, 0 }, { (char *)"two", 3 } };
	T(vmsplice(p[1], iov, 3, 0));
	SAY("%s", drained(p[0]));
	T(vmsplice(p[1], iov, 0, 0));
	T(vmsplice(p[1], iov, 1025, 0));
	T(vmsplice(p[1], iov, (size_t)-1, 0));
	T(vmsplice(p[1], NULL, 1, 0));
	T(vmsplice(p[1], iov, 3, 0xff0));
	T(vmsplice(file, iov, 3, 0));
	T(vmsplice(-1, iov, 3, 0));
	iov[0].iov_base = KERNEL_ADDRESS;
	T(vmsplice(p[1], iov, 3, 0));
	iov[0].iov_base = (char *)"one";
	iov[0].iov_len = (size_t)-1;
	T(vmsplice(p[1], iov, 3, 0));
	MUST(write(p[1], "back", 4));
	char into[8] = "";
	iov[0] = (struct iovec){ into, 2 };
	iov[2] = (struct iovec){ into + 2, 6 };
	T(vmsplice(p[0], iov, 3, 0));
	SAY("%s", into);
	T(vmsplice(p[0], iov, 3, SPLICE_F_NONBLOCK));
	close(p[0]);
	signal(SIGPIPE, SIG_IGN);
	iov[0].iov_len = 1;
	T(vmsplice(p[1], iov, 1, 0));
	done();
}

static void sendfiles(void)
{
	fresh();
	off_t at;
	int out = (int)MUST(open("out", O_RDWR | O_CREAT | O_TRUNC, 0644)), append = (int)MUST(open("out", O_WRONLY | O_APPEND));
	T(sendfile(out, file, NULL, 5));
	T(lseek(file, 0, SEEK_CUR));
	T(sendfile(out, file, (at = 10, &at), 100));
	SAY("offset %ld", (long)at);
	T(lseek(file, 0, SEEK_CUR));
	T(lseek(out, 0, SEEK_CUR));
	T(sendfile(out, file, (at = 20, &at), 100));
	T(sendfile(out, file, (at = -1, &at), 100));
	T(sendfile(out, file, (off_t *)KERNEL_ADDRESS, 100));
	T(sendfile(out, file, NULL, 0));
	T(sendfile(out, file, NULL, (size_t)-1));
	T(sendfile(append, file, (at = 0, &at), 3));
	T(sendfile(file, append, NULL, 3));
	T(sendfile(-1, file, NULL, 3));
	T(sendfile(out, -1, NULL, 3));
	T(sendfile(out, p[0], NULL, 3));
	T(sendfile(out, sv[0], NULL, 3));
	T(sendfile(sv[0], file, (at = 0, &at), 3));
	SAY("%s", drained(sv[1]));
	T(sendfile(p[1], file, (at = 3, &at), 3));
	SAY("%s", drained(p[0]));
	int null = (int)MUST(open("/dev/zero", O_RDWR)), dir = (int)MUST(open(".", O_RDONLY));
	T(sendfile(out, null, NULL, 100));
	T(sendfile(null, file, (at = 0, &at), 100));
	T(sendfile(out, dir, NULL, 100));
	while (write(p[1], buf, 4096) > 0)
		;
	T(sendfile(p[1], file, (at = 0, &at), 3));
	close(null), close(dir), close(out), close(append);
	T(copy_file_range(file, (at = 0, &at), file, (loff_t[]){ 10 }, 20, 0));
	T(copy_file_range(file, (at = 0, &at), p[1], NULL, 20, 0));
	T(copy_file_range(file, (at = 0, &at), file, (loff_t[]){ 30 }, 5, 1));
	T(copy_file_range(file, (at = 0, &at), file, (loff_t[]){ 30 }, 5, 0));
	T(lseek(file, 0, SEEK_END));
	done();
}

int main(void)
{
	net_up();
	scratch();
	splices();
	sockets();
	tees();
	vmsplices();
	sendfiles();
	return 0;
}
