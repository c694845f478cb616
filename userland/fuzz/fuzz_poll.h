/*
 * fuzz_poll.h: attacks of fuzz.c on who waits in whose queue: the same descriptors in poll, select, epoll and close at once,
 * from several threads and processes; sockets that change their peer while they are watched; signalfds in epolls that outlive
 * the process that watched them; epolls in epolls; EPOLLEXCLUSIVE.
 */
#ifndef ALEA_FUZZ_POLL_H
#define ALEA_FUZZ_POLL_H

#include "fuzz_calls.h"
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/un.h>

/* Descriptor numbers that all share: whatever is open there is watched, used and closed. */
#define POLL_FIRST 40
#define POLL_FDS 24
#define POLL_EPOLLS 4

static int poll_fd(void) { return POLL_FIRST + (int)below(POLL_FDS); }
static int poll_epoll(void) { return POLL_FIRST + POLL_FDS + (int)below(POLL_EPOLLS); }

/* Puts a new descriptor in the place of an old one, which closes that. */
static void poll_put(int fd, int at)
{
	if (fd >= 0 && fd != at) {
		dup2(fd, at);
		close(fd);
	}
}

static void poll_name(struct sockaddr_un *a, socklen_t *len)
{
	memset(a, 0, sizeof *a);
	a->sun_family = one_in(6) ? AF_UNSPEC : AF_UNIX;
	a->sun_path[1] = (char)('a' + below(5));
	*len = a->sun_family == AF_UNSPEC ? sizeof *a : offsetof(struct sockaddr_un, sun_path) + 2;
}

static void poll_open(void)
{
	static const int kinds[] = { SOCK_DGRAM, SOCK_DGRAM, SOCK_STREAM, SOCK_SEQPACKET };
	sigset_t set;
	int pair[2] = { -1, -1 }, type = PICK(kinds) | SOCK_NONBLOCK;
	struct sockaddr_un name;
	socklen_t len;
	switch (below(9)) {
	case 0: pipe2(pair, one_in(3) ? 0 : O_NONBLOCK); break;
	case 1: socketpair(AF_UNIX, type, 0, pair); break;
	case 2: case 3:
		pair[0] = socket(AF_UNIX, type, 0);
		poll_name(&name, &len);
		bind(pair[0], (void *)&name, len);
		listen(pair[0], (int)below(3));
		break;
	case 4:
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigaddset(&set, SIGCHLD);
		sigprocmask(SIG_BLOCK, &set, NULL);
		pair[0] = signalfd(-1, &set, SFD_NONBLOCK);
		break;
	case 5: pair[0] = eventfd((unsigned)below(2), EFD_NONBLOCK); break;
	case 6: {
		struct itimerspec t = { .it_value.tv_nsec = 1 + (long)below(2000000), .it_interval.tv_nsec = (long)below(2) * 1000000 };
		pair[0] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
		timerfd_settime(pair[0], 0, &t, NULL);
		break;
	}
	case 7: pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); break;
	default: poll_put(epoll_create1(0), poll_epoll()); return;
	}
	poll_put(pair[0], poll_fd());
	poll_put(pair[1], poll_fd());
}

static void poll_change(void)
{
	static const unsigned modes[] = { 0, 0, EPOLLET, EPOLLONESHOT, EPOLLEXCLUSIVE, EPOLLEXCLUSIVE | EPOLLET };
	struct epoll_event ev = { .events = (one_in(4) ? EPOLLIN | EPOLLOUT : one_in(2) ? EPOLLIN : EPOLLOUT) | PICK(modes) };
	int fd = one_in(6) ? poll_epoll() : poll_fd();
	int op = one_in(3) ? EPOLL_CTL_DEL : one_in(6) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	ev.data.fd = fd;
	epoll_ctl(poll_epoll(), op, fd, &ev);
}

static void poll_look(void)
{
	struct epoll_event got[8];
	struct pollfd all[64];
	fd_set in, out;
	struct timeval soon = { 0, (suseconds_t)below(2000) };
	int ms = (int)below(3);
	switch (below(4)) {
	case 0: case 1: epoll_wait(poll_epoll(), got, 1 + (int)below(8), ms); break;
	case 2: {
		unsigned n = (unsigned)below(COUNT(all));
		for (unsigned i = 0; i < n; i++)
			all[i] = (struct pollfd){ one_in(8) ? poll_epoll() : poll_fd(), (short)draw(), 0 };
		poll(all, n, ms);
		break;
	}
	default:
		FD_ZERO(&in);
		FD_ZERO(&out);
		for (int i = 0; i < 6; i++) {
			FD_SET(poll_fd(), &in);
			FD_SET(poll_fd(), &out);
		}
		select(POLL_FIRST + POLL_FDS, &in, &out, NULL, &soon);
	}
}

static void poll_step(void)
{
	static __thread char buffer[3000];
	struct sockaddr_un name;
	socklen_t len;
	int fd = poll_fd();
	TELL("[%d] poll step on %d\n", getpid(), fd);
	switch (below(22)) {
	case 0: case 1: poll_open(); break;
	case 2: close(fd); break;
	case 3: if (one_in(4)) close(poll_epoll()); break;
	case 4: poll_put(dup(fd), poll_fd()); break;
	case 5: case 6: case 7:
		poll_name(&name, &len);
		connect(fd, (void *)&name, len);
		break;
	case 8: poll_put(accept4(fd, NULL, NULL, SOCK_NONBLOCK), poll_fd()); break;
	case 9: shutdown(fd, (int)below(3)); break;
	case 10: case 11: case 12: send(fd, buffer, below(sizeof buffer), MSG_NOSIGNAL | MSG_DONTWAIT); break;
	case 13: write(fd, &(uint64_t){ 1 }, fcntl(fd, F_GETFL) & O_NONBLOCK ? 8 : 0); break;
	case 14: case 15: if (fcntl(fd, F_GETFL) & O_NONBLOCK) read(fd, buffer, sizeof buffer); break;
	case 16: kill(getpid(), one_in(2) ? SIGUSR1 : SIGCHLD); break;
	case 17: case 18: case 19: poll_change(); break;
	default: poll_look();
	}
}

static void *poll_thread(void *seed)
{
	state = (u64)seed;
	for (int i = 0; i < 1500; i++)
		poll_step();
	return NULL;
}

/* Threads that share the descriptors, and processes that share the open files, each with signals of its own. */
static void polls(void)
{
	pthread_t t;
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < POLL_FDS; i++)
		poll_open();
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, poll_thread, (void *)draw());
	for (int i = 0; i < 2; i++) {
		u64 seed = draw();
		if (one_in(2) && fork() == 0) {
			poll_thread((void *)seed);
			/* What this process watched stays in the others' epolls. */
			syscall(SYS_exit_group, 0);
		}
	}
	poll_thread((void *)draw());
}

#endif
