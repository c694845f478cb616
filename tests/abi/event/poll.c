/*
 * poll and select: what pipes, files, eventfds and closed descriptors report, timeouts, POLLNVAL, EBADF,
 * negative descriptors skipped, hang-ups, limits, and that select rewrites its sets and the time left.
 */
#include "check.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>

static void one(const char *what, int fd, short events)
{
	struct pollfd p = { fd, events, (short)0x7777 };
	int n = poll(&p, 1, 0);
	SAY("%s: %d, revents %#x", what, n, p.revents);
}

#define ALL (POLLIN | POLLOUT | POLLPRI | POLLRDNORM | POLLWRNORM | POLLRDHUP)

int main(void)
{
	int p[2], file;
	struct timespec from;
	scratch();
	MUST(pipe2(p, O_NONBLOCK));
	file = (int)MUST(open("f", O_RDWR | O_CREAT, 0644));
	one("empty pipe, reader", p[0], ALL);
	one("empty pipe, writer", p[1], ALL);
	write(p[1], "x", 1);
	one("pipe with data, reader", p[0], ALL);
	one("pipe with data, no events asked", p[0], 0);
	static char big[4096];
	while (write(p[1], big, 4096) > 0)
		;
	one("full pipe, writer", p[1], ALL);
	one("file", file, ALL);
	one("folder", (int)open(".", O_RDONLY), ALL);
	one("null", (int)open("/dev/null", O_RDWR), ALL);
	one("closed", 99, ALL);
	one("negative", -5, ALL);
	/* The number has 32 bits. */
	struct pollfd high = { p[1], POLLIN, 0 };
	struct timespec none = {0};
	T(syscall(SYS_poll, &high, 0xffffffff00000001, 0));
	T(syscall(SYS_ppoll, &high, 0x100000000, &none, NULL, 8));
	int opath = open("f", O_PATH);
	one("O_PATH", opath, ALL);
	int dup_r = dup(p[0]);
	close(p[0]);
	one("writer, a copy of the reader left", p[1], ALL);
	close(dup_r);
	one("writer, no reader", p[1], ALL);
	close(p[1]);
	MUST(pipe(p));
	write(p[1], "x", 1);
	close(p[1]);
	one("reader with data, no writer", p[0], ALL);
	char c;
	read(p[0], &c, 1);
	one("reader, no writer", p[0], ALL);
	one("reader, no writer, nothing asked", p[0], 0);
	close(p[0]);
	int ev = eventfd(0, 0);
	one("eventfd 0", ev, ALL);
	write(ev, &(uint64_t){ 5 }, 8);
	one("eventfd 5", ev, ALL);
	write(ev, &(uint64_t){ 0xfffffffffffffffe - 5 }, 8);
	one("eventfd full", ev, ALL);
	/* several at once */
	MUST(pipe(p));
	struct pollfd many[4] = { { p[0], POLLIN, 0 }, { p[1], POLLOUT, 0 }, { -1, POLLIN, 9 }, { 99, 0, 0 } };
	T(poll(many, 4, -1));
	SAY("%#x %#x %#x %#x", many[0].revents, many[1].revents, many[2].revents, many[3].revents);
	T(poll(NULL, 0, 0));
	clock_gettime(CLOCK_MONOTONIC, &from);
	T(poll(many, 1, 30));
	IS(elapsed_ms(&from) >= 30);
	T(ppoll(many, 1, &(struct timespec){ 0, -1 }, NULL));
	T(ppoll(many, 1, &(struct timespec){ 0, 1000000000 }, NULL));
	struct rlimit rl = { 3, 1024 };
	getrlimit(RLIMIT_NOFILE, &rl);
	struct rlimit three = { 3, rl.rlim_max };
	setrlimit(RLIMIT_NOFILE, &three);
	T(poll(many, 4, 0));
	setrlimit(RLIMIT_NOFILE, &rl);
	/* woken by another */
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		sleep_ms(30);
		write(p[1], "w", 1);
		_exit(0);
	}
	T(poll(many, 1, LONG_MS));
	SAY("%#x", many[0].revents);
	reap(pid);
	/* select */
	fd_set r, w, e;
	struct timeval tv = { 0, 30000 };
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&e);
	FD_SET(p[0], &r);
	FD_SET(p[1], &r);
	FD_SET(p[1], &w);
	FD_SET(p[0], &e);
	T(select(p[1] + 1, &r, &w, &e, &tv));
	SAY("readable %d %d writable %d exceptional %d", !!FD_ISSET(p[0], &r), !!FD_ISSET(p[1], &r), !!FD_ISSET(p[1], &w), !!FD_ISSET(p[0], &e));
	IS(tv.tv_usec > 0);
	read(p[0], &c, 1);
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	tv = (struct timeval){ 0, 20000 };
	T(select(p[0] + 1, &r, NULL, NULL, &tv));
	SAY("left %ld, set %d", (long)tv.tv_usec, !!FD_ISSET(p[0], &r));
	FD_SET(200, &r);
	T(select(201, &r, NULL, NULL, &tv));
	T(select(-1, NULL, NULL, NULL, &tv));
	T(select(0, NULL, NULL, NULL, &(struct timeval){ -1, 0 }));
	T(select(0, NULL, NULL, NULL, &(struct timeval){ 0, 2000000 }));
	T(pselect(0, NULL, NULL, NULL, &(struct timespec){ 0, 2000000000 }, NULL));
	close(p[1]);
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	T(select(p[0] + 1, &r, NULL, NULL, NULL));
	return 0;
}
