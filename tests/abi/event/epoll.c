/*
 * epoll: add, modify, delete and their errors, level and edge trigger, one-shot, a descriptor's copy keeping it,
 * removal at the last close, nesting and loops (ELOOP), files refused (EPERM), wait's limits.
 */
#include "check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int ep;

static void wait_all(const char *what)
{
	struct epoll_event ev[8];
	int n = epoll_wait(ep, ev, 8, 0);
	unsigned long data = 0;
	unsigned events = 0;
	for (int i = 0; i < n; i++) {
		data = data * 10 + ev[i].data.u64;
		events |= ev[i].events;
	}
	SAY("%s: %d, events %#x, data %lu", what, n, events, data);
}

static int ctl(int op, int fd, unsigned events, int data)
{
	struct epoll_event ev = { .events = events, .data.u64 = (uint64_t)data };
	return epoll_ctl(ep, op, fd, &ev);
}

int main(void)
{
	int p[2], file;
	struct epoll_event ev;
	scratch();
	T(epoll_create(0));
	T(epoll_create1(1));
	ep = (int)T(epoll_create1(EPOLL_CLOEXEC));
	T(fcntl(ep, F_GETFD));
	MUST(pipe2(p, O_NONBLOCK));
	file = (int)MUST(open("f", O_RDWR | O_CREAT, 0644));
	T(ctl(EPOLL_CTL_ADD, file, EPOLLIN, 0));
	T(ctl(EPOLL_CTL_ADD, 99, EPOLLIN, 0));
	T(ctl(EPOLL_CTL_ADD, ep, EPOLLIN, 0));
	T(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN, 0));
	T(ctl(EPOLL_CTL_DEL, p[0], 0, 0));
	T(ctl(9, p[0], 0, 0));
	T(epoll_ctl(file, EPOLL_CTL_ADD, p[0], &ev));
	T(ctl(EPOLL_CTL_ADD, p[0], EPOLLIN, 1));
	T(ctl(EPOLL_CTL_ADD, p[0], EPOLLIN, 1));
	T(epoll_wait(ep, &ev, 0, 0));
	T(epoll_wait(ep, &ev, -1, 0));
	T(epoll_wait(ep, NULL, 1, 0));
	T(epoll_wait(file, &ev, 1, 0));
	T(epoll_wait(ep, &ev, 1, 0));
	write(p[1], "ab", 2);
	wait_all("level");
	wait_all("level again");
	T(epoll_wait(ep, KERNEL_ADDRESS, 1, 0));
	char c;
	T(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLET, 2));
	wait_all("edge");
	wait_all("edge again");
	read(p[0], &c, 1);
	wait_all("edge after a read");
	write(p[1], "c", 1);
	wait_all("edge after a write");
	T(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 3));
	wait_all("oneshot");
	wait_all("oneshot again");
	T(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 4));
	wait_all("oneshot armed again");
	T(ctl(EPOLL_CTL_MOD, p[0], 0, 5));
	wait_all("no events asked");
	T(ctl(EPOLL_CTL_ADD, p[1], EPOLLOUT | EPOLLET, 6));
	wait_all("writer");
	/* the registration belongs to the open file: a copy keeps it */
	int copy = dup(p[0]);
	T(ctl(EPOLL_CTL_MOD, p[0], EPOLLIN, 7));
	close(p[0]);
	wait_all("after close, a copy left");
	T(ctl(EPOLL_CTL_DEL, copy, 0, 0));
	T(ctl(EPOLL_CTL_ADD, copy, EPOLLIN, 8));
	close(p[1]);
	wait_all("hang-up");
	close(copy);
	wait_all("all closed");
	/* nested */
	int inner = epoll_create1(0), efd = eventfd(0, EFD_NONBLOCK), outer = ep;
	ep = inner;
	T(ctl(EPOLL_CTL_ADD, efd, EPOLLIN, 1));
	ep = outer;
	T(ctl(EPOLL_CTL_ADD, inner, EPOLLIN, 9));
	wait_all("inner idle");
	write(efd, &(uint64_t){ 1 }, 8);
	wait_all("inner ready");
	struct pollfd pf = { outer, POLLIN, 0 };
	T(poll(&pf, 1, 0));
	SAY("poll of epoll %#x", pf.revents);
	ep = inner;
	T(ctl(EPOLL_CTL_ADD, outer, EPOLLIN, 1));
	ep = outer;
	T(ctl(EPOLL_CTL_ADD, efd, EPOLLIN | EPOLLEXCLUSIVE, 1));
	T(ctl(EPOLL_CTL_MOD, efd, EPOLLIN, 1));
	/* timeouts and wake-ups */
	uint64_t v;
	read(efd, &v, 8);
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	T(epoll_wait(ep, &ev, 1, 30));
	IS(elapsed_ms(&from) >= 30);
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		sleep_ms(20);
		write(efd, &(uint64_t){ 1 }, 8);
		_exit(0);
	}
	T(epoll_wait(ep, &ev, 1, LONG_MS));
	reap(pid);
	T(epoll_pwait(ep, &ev, 1, 0, NULL));
	T(syscall(SYS_epoll_pwait2, ep, &ev, 1, &(struct timespec){ 0, 0 }, NULL, 8));
	T(read(ep, &v, 8));
	/* maxevents rotates */
	int many[4];
	close(ep);
	ep = epoll_create1(0);
	for (int i = 0; i < 4; i++) {
		many[i] = eventfd(1, 0);
		ctl(EPOLL_CTL_ADD, many[i], EPOLLIN, i + 1);
	}
	for (int i = 0; i < 4; i++) {
		epoll_wait(ep, &ev, 1, 0);
		SAY("turn %d: %lu", i, (unsigned long)ev.data.u64);
	}
	return 0;
}
