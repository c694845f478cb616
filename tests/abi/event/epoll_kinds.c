/*
 * epoll_kinds.c: which kinds of files an epoll takes: those that can be waited for at all, whoever else finds them ready always;
 * and that the mount tables tell of each change once to each open file.
 */
#include "../check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static void try(const char *what, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLPRI };
	if (fd < 0) {
		SAY("%s: %s", what, err_name(errno));
		return;
	}
	int ep = epoll_create1(0);
	int result = epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
	printf("%s: %s", what, result ? err_name(errno) : "watched");
	printf(", del %s", epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL) ? err_name(errno) : "ok");
	printf(", of it %s\n", epoll_ctl(fd, EPOLL_CTL_ADD, ep, &event) ? err_name(errno) : "ok");
	close(ep);
	close(fd);
}

static void look(const char *what, int n, struct pollfd *fds)
{
	printf("%s: %d", what, poll(fds, (nfds_t)n, 0));
	for (int i = 0; i < n; i++)
		printf(" %#x", fds[i].revents);
	putchar('\n');
}

/* Each open file is told of a change once. */
static void mounts(void)
{
	MUST(mkdir("at", 0700));
	MUST(mkdir("to", 0700));
	int ep = epoll_create1(0);
	static const char *const names[] = { "/proc/self/mountinfo", "/proc/self/mounts", "/proc/self/mountinfo", "/proc/uptime" };
	struct pollfd fds[4];
	struct epoll_event event = { .events = EPOLLPRI | EPOLLET };
	for (int i = 0; i < 4; i++) {
		fds[i] = (struct pollfd){ .fd = (int)MUST(open(names[i], O_RDONLY)), .events = POLLIN | POLLOUT | POLLPRI };
		if (i == 0)
			MUST(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i].fd, &event));
	}
	look("at first", 4, fds);
	T(epoll_wait(ep, &event, 1, 0));
	T(mount("none", "at", "tmpfs", 0, NULL));
	T(epoll_wait(ep, &event, 1, 0));
	look("mounted", 4, fds);
	look("again", 4, fds);
	T(mount("none", "at", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
	look("read-only", 4, fds);
	T(mount("none", "at", NULL, MS_REMOUNT, NULL));
	look("writable", 4, fds);
	T(mount("at", "to", NULL, MS_BIND, NULL));
	look("bound", 4, fds);
	T(umount("at/none"));
	look("nothing", 4, fds);
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		fds[1].events = POLLPRI;
		T(poll(fds + 1, 1, -1));
		SAY("woken %#x", fds[1].revents);
		fflush(stdout);
		_exit(0);
	}
	wait_state(pid, "S");
	MUST(umount("to"));
	reap(pid);
	look("unmounted", 4, fds);
	T(umount2("at", MNT_DETACH));
	look("detached", 4, fds);
	close(ep);
	for (int i = 0; i < 4; i++)
		close(fds[i].fd);
}

int main(void)
{
	scratch();
	static const char *const names[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/kmsg", "/dev/ptmx", "/dev/console",
		"/proc/self/mounts", "/proc/self/mountinfo", "/proc/self/status", "/proc/self/maps", "/proc/self", "/proc/self/ns/mnt", "/proc/self/ns/pid",
		"/proc/sys/kernel/hostname", "/proc/sys/kernel/ostype", "/proc/sys/kernel", "/proc/mounts", "/proc/swaps", "/proc/kmsg", "/proc/uptime", "/proc/stat",
		"/proc/net/dev", "/proc/net/tcp", "/proc/locks", "/proc/filesystems", "/proc/self/fd", "/sys/kernel", "/sys/devices/system/cpu/online", "/proc/self/mem", "/proc/self/exe",
		"/dev/loop0", "/dev/ram0", "/dev/ttyS0", "/dev/net/tun", "/dev/rtc0",
	};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		try(names[i], open(names[i], O_RDONLY | O_NONBLOCK | O_NOCTTY));
	try("memfd", memfd_create("x", 0));
	try("pidfd", (int)syscall(SYS_pidfd_open, getpid(), 0));
	try("eventfd", eventfd(0, 0));
	try("timerfd", timerfd_create(CLOCK_MONOTONIC, 0));
	sigset_t set;
	sigemptyset(&set);
	try("signalfd", signalfd(-1, &set, 0));
	try("inotify", inotify_init());
	try("epoll", epoll_create1(0));
	try("path", open("/dev/null", O_PATH));
	int pipes[2];
	MUST(pipe(pipes));
	try("pipe", pipes[0]);
	try("pipe", pipes[1]);
	try("socket", socket(AF_UNIX, SOCK_DGRAM, 0));
	try("socket", socket(AF_INET, SOCK_STREAM, 0));
	mounts();
	return 0;
}
