/*
 * exhaust_files.h: kinds of objects of file systems and of descriptors, each as a function that makes one more.
 *
 * A function returns below 0 when there can be no more in this process. It keeps what it needs between two calls in
 * `held`, which is all zero when a process begins.
 */
#ifndef ALEA_EXHAUST_FILES_H
#define ALEA_EXHAUST_FILES_H

#include "exhaust_held.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/xattr.h>

/* A name in the tmpfs that this round has to itself. */
static const char *name_of(long n)
{
	static char name[64];
	snprintf(name, sizeof name, "%d-%ld", getpid(), n);
	return name;
}

static long files(void)
{
	int fd = open(name_of(held.count++), O_CREAT | O_WRONLY, 0600);
	return fd < 0 ? -1 : close(fd);
}

static long file_data(void)
{
	int fd = open(name_of(held.count++), O_CREAT | O_WRONLY, 0600);
	long written = fd < 0 ? -1 : write(fd, filler, sizeof filler);
	close(fd);
	return written;
}

/* A page at the start of each 2 MiB: little data, and much that finds it. */
static long sparse_files(void)
{
	if (held.fd == 0)
		held.fd = open(name_of(0), O_CREAT | O_RDWR, 0600);
	return pwrite(held.fd, "x", 1, held.count++ << 21);
}

static long directories(void) { return mkdir(name_of(held.count++), 0700); }

static long deep_directories(void)
{
	if (mkdir("d", 0700) != 0 && errno != EEXIST)
		return -1;
	return chdir("d");
}

static long symlinks(void)
{
	static char target[4095];
	memset(target, 'a', sizeof target - 1);
	return symlink(target, name_of(held.count++));
}

static long hard_links(void)
{
	if (held.count == 0)
		files();
	char first[64];
	snprintf(first, sizeof first, "%d-0", getpid());
	return link(first, name_of(held.count++));
}

static long xattrs(void)
{
	const char *name = name_of(held.count++);
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	long set = fd < 0 ? -1 : 0;
	for (int i = 0; i < 16 && set == 0; i++) {
		char key[32];
		snprintf(key, sizeof key, "user.%d", i);
		set = fsetxattr(fd, key, filler, 2000, 0);
	}
	close(fd);
	return set;
}

/* Names that are not there: what is remembered of them is memory too. */
static long missing_names(void)
{
	struct stat st;
	return stat(name_of(held.count++), &st) == 0 || errno != ENOENT ? -1 : 0;
}

static long fifos(void)
{
	const char *name = name_of(held.count++);
	return mkfifo(name, 0600) != 0 ? -1 : open(name, O_RDWR | O_NONBLOCK);
}

/* Every second byte, so that no two join. */
static long posix_locks(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = 2 * held.count++, .l_len = 1 };
	if (held.fd == 0)
		held.fd = open(name_of(0), O_CREAT | O_RDWR, 0600);
	return fcntl(held.fd, F_SETLK, &lock);
}

static long flocks(void)
{
	int fd = open(name_of(held.count++ % 16), O_CREAT | O_RDWR, 0600);
	return fd < 0 ? -1 : flock(fd, LOCK_SH | LOCK_NB) < 0 ? -1 : fd;
}

static long pipes(void)
{
	int ends[2];
	if (pipe2(ends, O_NONBLOCK) != 0)
		return -1;
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
	return fill(ends[1]);
}

static long tee_pipes(void)
{
	int from[2], to[2];
	if (pipe2(from, O_NONBLOCK) != 0 || pipe2(to, O_NONBLOCK) != 0)
		return -1;
	fill(from[1]);
	return tee(from[0], to[1], 1 << 16, SPLICE_F_NONBLOCK);
}

static long eventfds(void) { return eventfd(0, EFD_NONBLOCK); }
static long open_files(void) { return open("/dev/null", O_RDONLY); }
static long proc_files(void) { return open("/proc/self/maps", O_RDONLY) < 0 ? -1 : open("/proc/self/status", O_RDONLY); }

static long signalfds(void)
{
	sigset_t set;
	sigfillset(&set);
	return signalfd(-1, &set, SFD_NONBLOCK);
}

/* Each epoll watches all descriptors that are there, other epolls among them. */
static long epolls(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = held.count++ % 16 == 0 ? epoll_create1(0) : eventfd(1, 0);
	if (epoll < 0)
		return -1;
	if (held.count % 16 == 1)
		for (int fd = 3; fd < epoll; fd++)
			if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0 && (errno == ENOMEM || errno == ENOSPC))
				return -1;
	return 0;
}

static long inotifies(void)
{
	if (held.fd == 0)
		held.fd = inotify_init1(IN_NONBLOCK);
	const char *name = name_of(held.count++);
	int fd = open(name, O_CREAT | O_WRONLY, 0600);
	if (fd < 0)
		return -1;
	close(fd);
	/* What nobody reads fills the queue too. */
	return inotify_add_watch(held.fd, name, IN_ALL_EVENTS) < 0 ? -1 : chmod(name, 0640);
}

static long timerfds(void)
{
	struct itimerspec late = { { 0, 0 }, { 100000 + held.count++, 0 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	return fd < 0 ? -1 : timerfd_settime(fd, 0, &late, NULL);
}

static long memfds(void)
{
	int fd = memfd_create("exhaust", 0);
	return fd < 0 ? -1 : write(fd, filler, sizeof filler);
}

static long terminals(void)
{
	int unlock = 0, number, master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
	char name[32];
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) != 0 || ioctl(master, TIOCGPTN, &number) != 0)
		return -1;
	snprintf(name, sizeof name, "/dev/pts/%d", number);
	int slave = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK);
	return slave < 0 ? -1 : fill(slave);
}

#endif
