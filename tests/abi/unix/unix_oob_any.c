/*
 * Bytes in and out of band on a stream of AF_UNIX, in any order: each line is a socket to which random calls were made, and what
 * each of them gave. All of them are the same on each run.
 */
#include "check.h"
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define SIOCATMARK_ 0x8905
#define ROUNDS 400
#define CALLS 24

static int a, b, null;
static unsigned long seed;
static unsigned char next;

static unsigned any(unsigned below)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (unsigned)(seed >> 33) % below;
}

static void put(int oob)
{
	char text[8];
	size_t n = 1 + any(3);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)('a' + next++ % 26);
	union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
	struct iovec iov = { text, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int with = any(8) == 0;
	if (with) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof control;
		struct cmsghdr *one = CMSG_FIRSTHDR(&msg);
		one->cmsg_level = SOL_SOCKET;
		one->cmsg_type = SCM_RIGHTS;
		one->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(one), &null, sizeof null);
	}
	ssize_t got = sendmsg(a, &msg, (oob ? MSG_OOB : 0) | MSG_NOSIGNAL);
	printf(" %s%.*s%s", oob ? "!" : "+", (int)n, text, with ? "&" : "");
	if (got != (ssize_t)n)
		printf("=%s", got < 0 ? err_name(errno) : "part");
}

static void get(int flags)
{
	char text[16];
	union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
	struct iovec iov = { text, any(8) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(b, &msg, flags | MSG_DONTWAIT);
	printf(" %s%s%s%s%zu=", flags & MSG_OOB ? "oob" : "get", flags & MSG_PEEK ? "?" : "", flags & MSG_WAITALL ? "*" : "",
	       flags & MSG_TRUNC ? "-" : "", iov.iov_len);
	if (n < 0)
		printf("%s", err_name(errno));
	else if (flags & MSG_TRUNC)
		printf("%zd", n);
	else
		printf("%.*s", (int)((size_t)n < iov.iov_len ? (size_t)n : iov.iov_len), text);
	if (n < 0)
		return;
	if (msg.msg_flags & ~MSG_CMSG_CLOEXEC)
		printf("/%x", msg.msg_flags);
	struct cmsghdr *one = CMSG_FIRSTHDR(&msg);
	if (one) {
		int fd;
		memcpy(&fd, CMSG_DATA(one), sizeof fd);
		close(fd);
		printf("&");
	}
}

static void look(void)
{
	int mark = -1, queued = -1;
	struct pollfd one = { b, POLLIN | POLLPRI | POLLRDBAND | POLLRDHUP, 0 };
	ioctl(b, SIOCATMARK_, &mark);
	ioctl(b, FIONREAD, &queued);
	poll(&one, 1, 0);
	printf(" %s%d:%x", mark ? "@" : "", queued, one.revents);
}

static void spliced(void)
{
	int ends[2];
	char text[16];
	MUST(pipe2(ends, O_NONBLOCK));
	ssize_t n = splice(b, NULL, ends[1], NULL, 1 + any(8), SPLICE_F_NONBLOCK);
	if (n < 0)
		printf(" splice=%s", err_name(errno));
	else {
		n = read(ends[0], text, sizeof text);
		printf(" splice=%.*s", n > 0 ? (int)n : 0, text);
	}
	close(ends[0]);
	close(ends[1]);
}

static void once(void)
{
	static const int flags[] = { 0, 0, 0, MSG_PEEK, MSG_PEEK, MSG_WAITALL, MSG_TRUNC, MSG_WAITALL | MSG_PEEK,
				     MSG_TRUNC | MSG_PEEK };
	unsigned what = any(48);
	if (what < 12) {
		put(0);
	} else if (what < 20) {
		put(1);
	} else if (what < 32) {
		get(flags[any(sizeof flags / sizeof *flags)]);
	} else if (what < 38) {
		get(MSG_OOB | (any(3) ? 0 : MSG_PEEK) | (any(9) ? 0 : MSG_WAITALL));
	} else if (what < 43) {
		look();
	} else if (what < 45) {
		int on = (int)any(2);
		setsockopt(b, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
		printf(" %s", on ? "inline" : "apart");
	} else if (what < 47) {
		spliced();
	} else if (any(8) == 0) {
		printf(" shut");
		shutdown(any(2) ? a : b, any(2) ? SHUT_WR : SHUT_RD);
	}
}

int main(void)
{
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	null = (int)MUST(open("/dev/null", O_RDONLY));
	for (unsigned round = 0; round < ROUNDS; round++) {
		int pair[2];
		MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
		a = pair[0];
		b = pair[1];
		seed = round;
		next = 0;
		printf("%u", round);
		for (int i = 0; i < CALLS; i++)
			once();
		look();
		char c;
		if (any(2)) {
			close(b);
			ssize_t n = recv(a, &c, 1, 0);
			printf(" closed=%zd%s", n, n < 0 ? err_name(errno) : "");
			close(a);
		} else {
			close(a);
			for (int i = 0; i < 12; i++)
				get(i % 4 == 3 ? MSG_OOB : 0);
			look();
			close(b);
		}
		putchar('\n');
	}
	return 0;
}
