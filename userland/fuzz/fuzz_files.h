/*
 * fuzz_files.h: attacks of fuzz.c on what processes share: epolls, sockets, terminals, trees of files, and all there is of anything.
 */
#ifndef ALEA_FUZZ_FILES_H
#define ALEA_FUZZ_FILES_H

#include "fuzz_calls.h"

/* Epolls in epolls, with the things they watch closed and duplicated under them. */
static void epolls(void)
{
	int e[8], p[2], s[2];
	for (int i = 0; i < 8; i++)
		e[i] = epoll_create1(0);
	pipe2(p, O_NONBLOCK);
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s);
	int all[] = { p[0], p[1], s[0], s[1], eventfd(0, EFD_NONBLOCK), timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK) };
	for (int i = 0; i < 400; i++) {
		struct epoll_event event = { (uint32_t)(one_in(4) ? draw() : EPOLLIN | (one_in(2) ? EPOLLET : 0) | (one_in(3) ? EPOLLONESHOT : 0)), { .u64 = draw() } }, got[4];
		int on = e[below(8)], what = one_in(2) ? e[below(8)] : PICK(all);
		switch (below(9)) {
		case 0: case 1: case 2: epoll_ctl(on, EPOLL_CTL_ADD, what, &event); break;
		case 3: epoll_ctl(on, EPOLL_CTL_MOD, what, &event); break;
		case 4: epoll_ctl(on, EPOLL_CTL_DEL, what, &event); break;
		case 5: epoll_wait(on, got, 4, (int)below(2)); break;
		case 6: write(PICK(all), arena, 1 + below(8)); break;
		case 7: read(PICK(all), arena, 8); break;
		default:
			if (one_in(6))
				dup2(e[below(8)], e[below(8)]);
			else if (one_in(6) && fork() == 0) {
				for (int j = 0; j < 20; j++)
					epoll_wait(e[below(8)], got, 4, 1);
				_exit(0);
			}
		}
	}
}

static void pass(int through, int fd)
{
	struct msghdr m = { 0 };
	char control[CMSG_SPACE(4 * sizeof(int))] = { 0 }, byte = 1;
	struct iovec v = { &byte, 1 };
	m.msg_iov = &v;
	m.msg_iovlen = 1;
	m.msg_control = control;
	unsigned n = 1 + (unsigned)below(4);
	m.msg_controllen = CMSG_LEN(n * sizeof(int));
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (unsigned i = 0; i < n; i++)
		((int *)CMSG_DATA(c))[i] = fd;
	sendmsg(through, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take(int from)
{
	char control[CMSG_SPACE(16 * sizeof(int))], bytes[8];
	struct iovec v = { bytes, 1 + below(8) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = below(sizeof control + 1) };
	if (recvmsg(from, &m, MSG_DONTWAIT | (one_in(4) ? MSG_PEEK : 0) | (one_in(4) ? MSG_CMSG_CLOEXEC : 0)) <= 0)
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_type == SCM_RIGHTS && !one_in(5))
			for (unsigned i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / 4; i++)
				close(((int *)CMSG_DATA(c))[i]);
}

/* Descriptors through sockets: into each other, in circles, never received; peers that go away; listeners. */
static void sockets(void)
{
	int s[6][2];
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 6; i++)
			socketpair(AF_UNIX, i % 3 == 0 ? SOCK_DGRAM : i % 3 == 1 ? SOCK_STREAM : SOCK_SEQPACKET, 0, s[i]);
		int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		struct sockaddr_un name = { .sun_family = AF_UNIX };
		snprintf(name.sun_path + 1, 30, "f%d", (int)below(3));
		bind(listener, (void *)&name, 8);
		listen(listener, (int)below(4));
		for (int i = 0; i < 100; i++)
			switch (below(8)) {
			case 0: case 1: case 2: pass(s[below(6)][below(2)], s[below(6)][below(2)]); break;
			case 3: take(s[below(6)][below(2)]); break;
			case 4: shutdown(s[below(6)][below(2)], (int)below(3)); break;
			case 5: {
				int c = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
				connect(c, (void *)&name, 8);
				pass(s[below(6)][below(2)], c);
				pass(c, listener);
				int a = one_in(2) ? accept(listener, NULL, NULL) : -1;
				pass(a, s[below(6)][below(2)]);
				close(a);
				close(c);
				break;
			}
			case 6: if (one_in(5)) close(s[below(6)][below(2)]); break;
			default: write(s[below(6)][below(2)], arena, one_in(4) ? 300000 : below(5000)); read(s[below(6)][below(2)], soup, PAGE); break;
			}
		syscall(SYS_close_range, 3, 63, 0);
	}
}

/* Pseudo-terminals: settings, input, hang-ups from both sides, job control, sessions. */
static void terminals(void)
{
	for (int round = 0; round < 6; round++) {
		char name[32];
		int n = 0, zero = 0, master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
		syscall(SYS_ioctl, master, 0x40045431, &zero);
		syscall(SYS_ioctl, master, 0x80045430, &n);
		snprintf(name, sizeof name, "/dev/pts/%d", n);
		pid_t pid = fork();
		if (pid == 0) {
			setsid();
			int slave = open(name, O_RDWR);
			syscall(SYS_ioctl, slave, 0x540e, 0);
			for (int i = 0; i < 60; i++)
				switch (below(6)) {
				case 0: read(slave, soup, 100); break;
				case 1: write(slave, soup, below(9000)); break;
				case 2: syscall(SYS_ioctl, slave, PICK(IOCTLS), pointer()); break;
				case 3: syscall(SYS_ioctl, slave, PICK(IOCTLS), below(8)); break;
				case 4: if (one_in(6)) { close(slave); slave = open(one_in(2) ? name : "/dev/tty", O_RDWR | O_NONBLOCK); } break;
				default: if (one_in(5) && fork() == 0) { setpgid(0, 0); read(slave, soup, 1); _exit(0); } break;
				}
			_exit(0);
		}
		for (int i = 0; i < 80; i++)
			switch (below(6)) {
			case 0: write(master, "abc\n\003\004\032\021\023\x7f\x15\x17\x16", 1 + below(13)); break;
			case 1: write(master, soup, below(6000)); break;
			case 2: read(master, soup, PAGE); break;
			case 3: syscall(SYS_ioctl, master, PICK(IOCTLS), pointer()); break;
			case 4: if (one_in(12)) close(master); break;
			default: usleep(100); break;
			}
		close(master);
		kill(pid, SIGCONT);
		usleep(1000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static const char *tree_name(void)
{
	static __thread char room[4][128];
	static __thread unsigned next;
	static const char *const names[] = { "p", "q", "r", "s" };
	char *p = room[next++ % 4];
	strcpy(p, "t");
	for (u64 n = below(5); n > 0; n--) {
		strcat(p, "/");
		strcat(p, one_in(12) ? ".." : PICK(names));
	}
	return p;
}

/* A tree that several change at once: folders moved into each other, links, mounts if root. */
static void trees(void)
{
	mkdir("t", 0777);
	for (int i = 0; i < 500; i++) {
		const char *a = tree_name(), *b = tree_name();
		TELL("[%d] tree %s %s\n", getpid(), a, b);
		int fd = -1;
		switch (below(14)) {
		case 0: case 1: case 2: mkdir(a, 0777); break;
		case 3: case 4: case 5: rename(a, b); break;
		case 6: syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, below(4)); break;
		case 7: one_in(2) ? unlink(a) : rmdir(a); break;
		case 8: link(a, b); break;
		case 9: symlink(one_in(2) ? a : "p", b); break;
		case 10:
			fd = open(a, O_RDWR | O_CREAT, 0666);
			write(fd, soup, below(9000));
			break;
		case 11:
			fd = open(a, O_RDONLY | O_DIRECTORY);
			syscall(SYS_getdents64, fd, soup, 300);
			fchdir(one_in(8) ? fd : -1);
			getcwd(soup, 300);
			break;
		case 12:
			if (is_root && one_in(3))
				mount(one_in(2) ? "none" : b, a, "tmpfs", one_in(2) ? 0 : one_in(2) ? MS_BIND : one_in(2) ? MS_MOVE : MS_REMOUNT | flags(), NULL);
			break;
		default:
			if (is_root)
				umount2(a, (int)below(4));
			else
				chmod(a, (mode_t)below(01000));
			break;
		}
		if (fd >= 0)
			close(fd);
	}
}

/* Bombs: as many processes, descriptors, mappings, bytes as there can be. Must end in an error or a kill. */
static void bombs(void)
{
	sigset_t every;
	struct rlimit much = { 100000, 100000 }, all = { RLIM_INFINITY, RLIM_INFINITY };
	switch (below(7)) {
	case 0:
		/* root is free of the limit: its children only wait, or there would be more than the round has time to end */
		for (int i = 0; i < 3000; i++) {
			pid_t pid = fork();
			if (pid < 0)
				break;
			if (pid == 0 && is_root)
				for (;;)
					pause();
		}
		break;
	case 1:
		setrlimit(RLIMIT_NOFILE, &much);
		for (int i = 0; i < 5000; i++)
			if (dup(PICK(((int[]) { 0, 1, 2 }))) < 0 && epoll_create1(0) < 0)
				break;
		break;
	case 2:
		for (int i = 0; i < 70000; i++)
			if (mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
				break;
		break;
	case 3: {
		int fd = memfd_create("big", 0);
		setrlimit(RLIMIT_FSIZE, &all);
		for (int i = 0; i < 2000; i++)
			if (pwrite(fd, arena + 30 * PAGE, 8 * PAGE, (off_t)i * 8 * (off_t)PAGE) < 0)
				break;
		break;
	}
	case 4: {
		/* pages of page tables: one byte each gigabyte */
		char *p = mmap(NULL, 80UL << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p != MAP_FAILED)
			for (u64 at = 0; at < 80UL << 20; at += 1 << 20)
				p[at] = 1;
		for (u64 i = 1; i < 2000; i++)
			mmap((void *)(i << 32), PAGE, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		break;
	}
	case 5:
		sigfillset(&every);
		sigprocmask(SIG_SETMASK, &every, NULL);
		for (int i = 0; i < 3000; i++)
			sigqueue(getpid(), SIGRTMIN + (int)below(20), (union sigval) { .sival_int = i });
		break;
	default:
		for (int i = 0; i < 3000; i++) {
			char name[64];
			snprintf(name, sizeof name, "bomb-%d-%d", getpid(), i);
			int fd = open(name, O_CREAT | O_WRONLY, 0600);
			if (fd < 0)
				break;
			close(fd);
		}
	}
}

#endif
