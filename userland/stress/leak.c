/*
 * leak: does one thing many times and says how much free memory there was before and after.
 *
 * For each kind of work a line `leak NAME ROUNDS KIB_BEFORE KIB_AFTER`, at the end `leak-end`. The first
 * rounds are not counted: they fill caches that stay. usage: leak [NAME...]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static int broken;

/* Set-up and tear-down must work, or nothing is measured. */
static long must(long result)
{
	broken |= result < 0;
	return result;
}

static void reap(pid_t pid, int want)
{
	int status = -1;
	must(pid);
	must(waitpid(pid, &status, 0));
	broken |= !WIFEXITED(status) || WEXITSTATUS(status) != want;
}

static void fork_exit(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(3);
	reap(pid, 3);
}

static void fork_exec(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	reap(pid, 0);
}

static void exec_fails(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execl("/etc/passwd", "x", NULL);
		_exit(4);
	}
	reap(pid, 4);
}

static void killed(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	kill(pid, SIGKILL);
	must(waitpid(pid, &status, 0));
}

static void *nothing(void *arg) { return arg; }

static void threads(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		must(-pthread_create(&t[i], NULL, nothing, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void memory(void)
{
	char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(p == MAP_FAILED ? -1 : 0);
	for (int i = 0; i < 1 << 20; i += 4096)
		p[i] = 1;
	must(mprotect(p + 8192, 4096, PROT_READ));
	must(madvise(p, 65536, MADV_DONTNEED));
	must(munmap(p, 1 << 19));
	must(munmap(p + (1 << 19), 1 << 19));
	p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(p, 1, 65536);
	must(munmap(p, 65536));
}

static void files(void)
{
	static char block[65536];
	int fd = (int)must(open("/tmp/leak-file", O_RDWR | O_CREAT | O_TRUNC, 0600));
	must(write(fd, block, sizeof block));
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[0] = 1;
	must(munmap(p, 8192));
	must(mkdir("/tmp/leak-dir", 0700));
	must(symlink("/tmp/leak-file", "/tmp/leak-dir/link"));
	must(link("/tmp/leak-file", "/tmp/leak-dir/hard"));
	must(rename("/tmp/leak-dir/hard", "/tmp/leak-dir/harder"));
	must(unlink("/tmp/leak-dir/harder"));
	must(unlink("/tmp/leak-dir/link"));
	must(rmdir("/tmp/leak-dir"));
	must(unlink("/tmp/leak-file"));
	must(close(fd));
}

static void descriptors(void)
{
	int p[2], ep = (int)must(epoll_create1(0)), ev = (int)must(eventfd(0, 0));
	int tm = (int)must(timerfd_create(CLOCK_MONOTONIC, 0));
	struct epoll_event e = { .events = EPOLLIN };
	struct itimerspec soon = { { 0, 0 }, { 3600, 0 } };
	static char block[30000];
	must(pipe(p));
	must(write(p[1], block, sizeof block));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &e));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, tm, &e));
	must(timerfd_settime(tm, 0, &soon, NULL));
	must(epoll_wait(ep, &e, 1, 0));
	must(close(p[0]) | close(ep) | close(tm) | close(p[1]) | close(ev));
}

static void missing_names(void)
{
	char name[64];
	static int n;
	struct stat st;
	snprintf(name, sizeof name, "/tmp/no-such-name-%d", n++);
	broken |= stat(name, &st) == 0;
}

static void terminals(void)
{
	int lock = 0, n = 0, master = (int)must(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	char name[32], c;
	must(ioctl(master, TIOCSPTLCK, &lock));
	must(ioctl(master, TIOCGPTN, &n));
	snprintf(name, sizeof name, "/dev/pts/%d", n);
	int slave = (int)must(open(name, O_RDWR | O_NOCTTY));
	must(write(master, "x\n", 2));
	must(read(slave, &c, 1));
	must(close(slave) | close(master));
}

static void mounts(void)
{
	mkdir("/tmp/leak-mnt", 0700);
	must(mount("none", "/tmp/leak-mnt", "tmpfs", 0, NULL));
	int fd = (int)must(open("/tmp/leak-mnt/f", O_RDWR | O_CREAT, 0600));
	must(write(fd, "0123456789", 10));
	must(close(fd));
	must(umount("/tmp/leak-mnt"));
}

static const struct {
	const char *name;
	void (*run)(void);
	int rounds;
} works[] = {
	{ "fork_exit", fork_exit, 2000 },   { "fork_exec", fork_exec, 2000 },
	{ "exec_fails", exec_fails, 1000 }, { "killed", killed, 1000 },
	{ "threads", threads, 1000 },	    { "memory", memory, 500 },
	{ "files", files, 1000 },	    { "descriptors", descriptors, 2000 },
	{ "missing_names", missing_names, 5000 }, { "terminals", terminals, 500 },
	{ "mounts", mounts, 500 },
};

static long free_kib(void)
{
	static char text[4096];
	int fd = open("/proc/meminfo", O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = 0;
	char *at = strstr(text, "MemFree:");
	return at ? strtol(at + 8, NULL, 10) : -1;
}

static int chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return 1;
	return argc < 2;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
		if (!chosen(works[i].name, argc, argv))
			continue;
		for (int round = 0; round < works[i].rounds / 5; round++)
			works[i].run();
		long before = free_kib();
		for (int round = 0; round < works[i].rounds; round++)
			works[i].run();
		long after = free_kib();
		if (broken) {
			printf("leak %s failed\n", works[i].name);
			return 1;
		}
		printf("leak %s %d %ld %ld\n", works[i].name, works[i].rounds, before, after);
	}
	puts("leak-end");
	return 0;
}
