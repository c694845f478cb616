/*
 * Descriptors that come with a message for which the receiver has not enough room: in his limit, in his control buffer, or in
 * memory that ends in the middle. Those that could be told are his, and cmsg_len counts them; the rest is closed, and
 * MSG_CTRUNC says so. The bytes arrive in any case, and nothing stays behind.
 */
#include "rights.h"
#include <poll.h>
#include <sys/resource.h>

#define COUNT 5
static struct rlimit was;
static int first;

/* Sends the write ends of as many pipes, of which the read ends tell when the last copy is gone. */
static void pass(int over, int *readers)
{
	int writers[COUNT];
	for (int i = 0; i < COUNT; i++) {
		int p[2];
		MUST(pipe(p));
		readers[i] = (int)MUST(fcntl(p[0], F_DUPFD, 100));
		writers[i] = (int)MUST(fcntl(p[1], F_DUPFD, 200));
		close(p[0]);
		close(p[1]);
	}
	MUST(send_fds(over, "bytes", 5, writers, COUNT, 0));
	for (int i = 0; i < COUNT; i++)
		close(writers[i]);
}

/* Receives with this control buffer and limit, and tells what came and what is open. */
static void take(int type, char *control, size_t size, int most, int flags)
{
	int sv[2], readers[COUNT];
	char bytes[16] = "";
	MUST(socketpair(AF_UNIX, type, 0, sv));
	int a = (int)MUST(fcntl(sv[0], F_DUPFD, 300)), b = (int)MUST(fcntl(sv[1], F_DUPFD, 300));
	close(sv[0]);
	close(sv[1]);
	pass(a, readers);
	struct rlimit r = was;
	r.rlim_cur = (rlim_t)most;
	MUST(setrlimit(RLIMIT_NOFILE, &r));
	struct iovec iov = { bytes, sizeof bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = size };
	T(recvmsg(b, &msg, flags));
	SAY("'%s' flags %#x control %ld", bytes, msg.msg_flags, (long)msg.msg_controllen);
	MUST(setrlimit(RLIMIT_NOFILE, &was));
	if (msg.msg_controllen >= sizeof(struct cmsghdr)) {
		struct cmsghdr *c = (struct cmsghdr *)control;
		SAY("level %d type %d len %ld", c->cmsg_level, c->cmsg_type, (long)c->cmsg_len);
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; i++)
			SAY("number %d", ((int *)CMSG_DATA(c))[i] - first);
	}
	for (int fd = first; fd < 100; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			SAY("%d is open, flags %d", fd - first, fcntl(fd, F_GETFD));
	for (int i = 0; i < COUNT; i++) {
		struct pollfd p = { .fd = readers[i], .events = POLLIN };
		poll(&p, 1, 0);
		if (p.revents & POLLHUP)
			SAY("pipe %d is closed", i);
		close(readers[i]);
	}
	syscall(SYS_close_range, first, 99, 0);
	if (flags & MSG_PEEK) {
		/* It is still there, with all that came with it. */
		char again[CMSG_SPACE(COUNT * sizeof(int))];
		msg.msg_control = again;
		msg.msg_controllen = sizeof again;
		T(recvmsg(b, &msg, 0));
		SAY("flags %#x control %ld", msg.msg_flags, (long)msg.msg_controllen);
		syscall(SYS_close_range, first, 99, 0);
	}
	close(a);
	close(b);
}

static void each(int type)
{
	static _Alignas(8) char room[CMSG_SPACE(COUNT * sizeof(int))];
	SAY("limits");
	for (int most = 0; most <= COUNT; most++)
		take(type, room, sizeof room, first + most, most & 1 ? MSG_CMSG_CLOEXEC : 0);
	SAY("sizes");
	for (size_t size = 0; size <= sizeof room; size += 3)
		take(type, room, size, 1000, 0);
	SAY("no address");
	take(type, NULL, sizeof room, 1000, 0);
	SAY("memory that ends");
	for (int in = 0; in <= 28; in += 4)
		take(type, page_end() - in, sizeof room, 1000, 0);
	SAY("a header that cannot be written");
	char *p = pages(2);
	MUST(mprotect(p, PAGE, PROT_READ));
	take(type, p + PAGE - 16, sizeof room, 1000, 0);
	take(type, p + PAGE - 8, sizeof room, 1000, 0);
	SAY("peeks");
	take(type, room, sizeof room, first + 2, MSG_PEEK);
}

int main(void)
{
	MUST(getrlimit(RLIMIT_NOFILE, &was));
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	first = (int)MUST(dup(0));
	close(first);
	each(SOCK_STREAM);
	each(SOCK_DGRAM);
	return 0;
}
