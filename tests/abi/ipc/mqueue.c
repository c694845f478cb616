/*
 * POSIX message queues: names and modes, in which order messages come, who waits for one or for room and who goes on, what is
 * refused, and their file system: what stands in a queue's file, and what may be done in its directory.
 */
#include "check.h"
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/time.h>

#define AT "/tmp/mqueue_at"

/* As the kernel has them: names without a slash. */
static int k_open(const char *name, int flags, mode_t mode, void *attr)
{
	return (int)syscall(SYS_mq_open, name, flags, mode, attr);
}

static int k_unlink(const char *name)
{
	return (int)syscall(SYS_mq_unlink, name);
}

static int k_send(int q, const void *text, size_t size, unsigned priority, const void *until)
{
	return (int)syscall(SYS_mq_timedsend, q, text, size, priority, until);
}

static int k_receive(int q, void *text, size_t size, void *priority, const void *until)
{
	return (int)syscall(SYS_mq_timedreceive, q, text, size, priority, until);
}

static struct mq_attr shape(long most, long size)
{
	struct mq_attr attr = { .mq_maxmsg = most, .mq_msgsize = size };
	return attr;
}

static int fresh(const char *name, int flags, long most, long size)
{
	struct mq_attr attr = shape(most, size);
	k_unlink(name);
	return (int)MUST(k_open(name, O_CREAT | O_EXCL | flags, 0600, &attr));
}

static void attributes(const char *what, int q)
{
	struct mq_attr attr;
	memset(&attr, 0x55, sizeof attr);
	MUST(syscall(SYS_mq_getsetattr, q, NULL, &attr));
	SAY("%s: flags %#lx, %ld of %ld messages of %ld bytes, reserved %ld", what, attr.mq_flags, attr.mq_curmsgs,
	    attr.mq_maxmsg, attr.mq_msgsize, attr.__pad[0] + attr.__pad[3]);
}

static void names(void)
{
	SAY("-- names");
	char longest[300];
	memset(longest, 'n', sizeof longest);
	longest[255] = 0;
	T(k_open("q", O_RDWR, 0, NULL));
	T(k_open("", O_RDWR | O_CREAT, 0600, NULL));
	T(k_open(".", O_RDWR | O_CREAT, 0600, NULL));
	T(k_open("..", O_RDWR, 0, NULL));
	T(k_open("/q", O_RDWR | O_CREAT, 0600, NULL));
	T(k_open("a/b", O_RDWR | O_CREAT, 0600, NULL));
	OK(k_open(longest, O_RDWR | O_CREAT, 0600, NULL));
	T(k_unlink(longest));
	memset(longest, 'n', sizeof longest);
	longest[256] = 0;
	T(k_open(longest, O_RDWR | O_CREAT, 0600, NULL));
	T(k_unlink(longest));
	T(k_open(KERNEL_ADDRESS, O_RDWR, 0, NULL));
	T(k_open("q", O_RDWR | O_CREAT, 0600, KERNEL_ADDRESS));
	T(k_open(KERNEL_ADDRESS, O_RDWR | O_CREAT, 0600, KERNEL_ADDRESS));
	umask(027);
	int q = (int)OK(k_open("q", O_RDWR | O_CREAT | O_EXCL, 0666, NULL));
	umask(022);
	struct stat st;
	MUST(fstat(q, &st));
	SAY("mode %o, %ld bytes, %ld blocks of %ld, %ld links, uid %u", st.st_mode, (long)st.st_size, (long)st.st_blocks,
	    (long)st.st_blksize, (long)st.st_nlink, st.st_uid);
	SAY("descriptor flags %d, status %#x", fcntl(q, F_GETFD), fcntl(q, F_GETFL));
	attributes("made", q);
	T(k_open("q", O_RDWR | O_CREAT | O_EXCL, 0600, NULL));
	T(k_open("q", 3, 0, NULL));
	struct mq_attr none = shape(0, 0);
	int again = (int)OK(k_open("q", O_RDONLY | O_CREAT | O_NONBLOCK, 0, &none));
	attributes("again", again);
	char link[64], to[64] = "";
	snprintf(link, sizeof link, "/proc/self/fd/%d", q);
	readlink(link, to, sizeof to - 1);
	SAY("it is %s", to);
	T(k_unlink("q"));
	T(k_unlink("q"));
	T(k_unlink(""));
	T(k_unlink("/q"));
	T(k_unlink("."));
	to[readlink(link, to, sizeof to - 1)] = 0;
	SAY("it is %s", to);
	T(k_send(q, "still", 5, 0, NULL));
	MUST(fstat(q, &st));
	SAY("%ld links", (long)st.st_nlink);
	attributes("gone", again);
	close(q);
	close(again);
	int odd = (int)OK(k_open("odd", 3 | O_CREAT, 07777, NULL));
	MUST(fstat(odd, &st));
	SAY("mode %o", st.st_mode);
	T(k_send(odd, "x", 1, 0, NULL));
	T(k_receive(odd, link, 8192, NULL, NULL));
	close(odd);
	T(k_unlink("odd"));
}

static void shapes(void)
{
	SAY("-- shapes");
	static const long tried[][2] = { { 0, 10 }, { 10, 0 }, { -1, 10 }, { 10, -1 }, { LONG_MIN, 1 }, { 1, LONG_MAX }, { 1, 1 },
					 { 10, 8192 }, { 65536, 1 }, { 65537, 1 }, { 1, 16777216 }, { 1, 16777217 },
					 { 65536, 16777216 } };
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		struct mq_attr attr = shape(tried[i][0], tried[i][1]);
		int q = k_open("shape", O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
		SAY("%ld of %ld: %s", tried[i][0], tried[i][1], q < 0 ? err_name(errno) : "ok");
		if (q >= 0) {
			k_unlink("shape");
			close(q);
		}
	}
}

static void take(int q)
{
	char text[64] = "";
	unsigned priority = 99;
	int got = k_receive(q, text, sizeof text - 1, &priority, NULL);
	if (got < 0)
		SAY("none: %s", err_name(errno));
	else
		SAY("%d bytes, priority %u, \"%s\"", got, priority, text);
}

static void order(void)
{
	SAY("-- order");
	int q = fresh("order", O_RDWR | O_NONBLOCK, 6, 20);
	take(q);
	T(k_send(q, "one of 5", 8, 5, NULL));
	T(k_send(q, "one of 3", 8, 3, NULL));
	T(k_send(q, "the highest", 11, 32767, NULL));
	T(k_send(q, "two of 5", 8, 5, NULL));
	T(k_send(q, "", 0, 0, NULL));
	T(k_send(q, "two of 3", 8, 3, NULL));
	T(k_send(q, "none", 4, 3, NULL));
	attributes("full", q);
	for (int i = 0; i < 7; i++)
		take(q);
	close(q);
	k_unlink("order");
}

static void refusals(void)
{
	SAY("-- refusals");
	char text[40];
	int q = fresh("no", O_RDWR | O_NONBLOCK, 2, 20);
	int reads = (int)MUST(k_open("no", O_RDONLY, 0, NULL)), writes = (int)MUST(k_open("no", O_WRONLY, 0, NULL));
	struct timespec bad = { 0, 1000000000 }, negative = { -1, 0 }, past = { 1, 0 };
	T(k_send(q, text, 21, 0, NULL));
	T(k_send(q, text, 1, 32768, NULL));
	T(k_send(-1, text, 1, 32768, NULL));
	T(k_send(-1, text, 1, 0, NULL));
	T(k_send(0, text, 1, 0, NULL));
	T(k_send(reads, text, 1, 0, NULL));
	T(k_send(q, KERNEL_ADDRESS, 20, 0, NULL));
	T(k_send(q, KERNEL_ADDRESS, 21, 0, NULL));
	T(k_send(q, NULL, 1, 0, NULL));
	T(k_send(q, NULL, 0, 0, NULL));
	T(k_send(q, text, 1, 0, &bad));
	T(k_send(-1, text, 1, 99999, &negative));
	T(k_send(-1, text, 1, 99999, KERNEL_ADDRESS));
	T(k_receive(q, text, 19, NULL, NULL));
	T(k_receive(writes, text, 19, NULL, NULL));
	T(k_receive(writes, text, 40, NULL, NULL));
	T(k_receive(q, text, 40, NULL, &bad));
	T(k_receive(q, KERNEL_ADDRESS, 40, NULL, NULL));
	attributes("after EFAULT", q);
	T(k_receive(q, text, 40, NULL, NULL));
	MUST(k_send(q, "abc", 3, 7, NULL));
	T(k_receive(q, text, 40, KERNEL_ADDRESS, NULL));
	T(k_receive(q, text, 40, NULL, &past));
	T(k_receive(reads, text, 40, NULL, &past));
	T(k_receive(reads, text, 40, NULL, &(struct timespec){ 0, 0 }));
	MUST(k_send(q, "abc", 3, 7, NULL));
	T(k_receive(reads, text, 40, NULL, &past));
	MUST(k_send(q, "1", 1, 7, NULL));
	MUST(k_send(q, "2", 1, 7, NULL));
	T(k_send(q, "3", 1, 0, &past));
	T(k_send(writes, "3", 1, 0, &past));
	T(syscall(SYS_mq_getsetattr, 0, NULL, NULL));
	T(syscall(SYS_mq_getsetattr, -1, NULL, NULL));
	T(syscall(SYS_mq_getsetattr, q, NULL, NULL));
	T(syscall(SYS_mq_getsetattr, q, KERNEL_ADDRESS, NULL));
	T(syscall(SYS_mq_getsetattr, -1, NULL, KERNEL_ADDRESS));
	T(syscall(SYS_mq_getsetattr, q, NULL, KERNEL_ADDRESS));
	struct mq_attr set = { .mq_flags = O_NONBLOCK | O_APPEND }, old;
	T(syscall(SYS_mq_getsetattr, -1, &set, NULL));
	set = (struct mq_attr){ .mq_flags = 0, .mq_maxmsg = 99, .mq_msgsize = 99, .mq_curmsgs = 99 };
	T(syscall(SYS_mq_getsetattr, q, &set, &old));
	SAY("was %#lx", old.mq_flags);
	attributes("set", q);
	set.mq_flags = O_NONBLOCK;
	T(syscall(SYS_mq_getsetattr, q, &set, KERNEL_ADDRESS));
	attributes("set", q);
	int path = (int)MUST(k_open("no", O_PATH, 0, NULL));
	T(syscall(SYS_mq_getsetattr, path, NULL, NULL));
	T(k_send(path, text, 1, 0, NULL));
	close(path);
	close(reads);
	close(writes);
	close(q);
	k_unlink("no");
}

static int shared;

static void *receiver(void *arg)
{
	char text[64];
	long got = k_receive(shared, text, sizeof text, NULL, arg);
	return (void *)(got < 0 ? -errno : got);
}

static void *sender(void *arg)
{
	return (void *)(long)(k_send(shared, "from a thread", 13, 4, arg) < 0 ? -errno : 0);
}

static void nothing(int signal)
{
	(void)signal;
}

static void waits(void)
{
	SAY("-- waits");
	pthread_t thread;
	void *result;
	shared = fresh("waits", O_RDWR, 1, 60);
	pthread_create(&thread, NULL, receiver, NULL);
	wait_threads(1);
	T(k_send(shared, "hello", 5, 1, NULL));
	pthread_join(thread, &result);
	SAY("received %ld", (long)result);
	attributes("after", shared);
	MUST(k_send(shared, "first", 5, 1, NULL));
	pthread_create(&thread, NULL, sender, NULL);
	wait_threads(1);
	attributes("a sender waits", shared);
	take(shared);
	pthread_join(thread, &result);
	SAY("sent %ld", (long)result);
	take(shared);
	struct timespec from, until;
	clock_gettime(CLOCK_MONOTONIC, &from);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 30000000;
	if (until.tv_nsec >= 1000000000)
		until.tv_sec++, until.tv_nsec -= 1000000000;
	SAY("late: %ld", (long)receiver(&until));
	IS(elapsed_ms(&from) >= 29);
	MUST(k_send(shared, "full", 4, 1, NULL));
	SAY("late: %ld", (long)sender(&until));
	take(shared);
	CHILD("a wait that a signal ends") {
		struct sigaction act = { .sa_handler = nothing };
		sigaction(SIGALRM, &act, NULL);
		struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
		setitimer(ITIMER_REAL, &timer, NULL);
		SAY("%ld", (long)receiver(NULL));
		fflush(stdout);
	} END;
	close(shared);
	k_unlink("waits");
}

static int events(int q)
{
	struct pollfd one = { q, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM | POLLPRI, 0 };
	poll(&one, 1, 0);
	return one.revents;
}

static void polls(void)
{
	SAY("-- polls");
	char text[64];
	int q = fresh("polls", O_RDWR, 2, 20), e = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	SAY("empty %#x", events(q));
	T(epoll_ctl(e, EPOLL_CTL_ADD, q, &event));
	T(epoll_wait(e, &event, 1, 0));
	T(epoll_wait(e, &event, 1, 0));
	MUST(k_send(q, "x", 1, 0, NULL));
	SAY("one %#x", events(q));
	T(epoll_wait(e, &event, 1, 0));
	SAY("%#x", event.events);
	MUST(k_send(q, "x", 1, 0, NULL));
	SAY("full %#x", events(q));
	T(epoll_wait(e, &event, 1, 0));
	SAY("%#x", event.events);
	MUST(k_receive(q, text, 20, NULL, NULL));
	T(epoll_wait(e, &event, 1, 0));
	SAY("%#x", event.events);
	T(epoll_wait(e, &event, 1, 0));
	close(e);
	close(q);
	k_unlink("polls");
}

static void contents(const char *what, int fd)
{
	char text[200];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = 0;
	char *pid = strstr(text, "NOTIFY_PID:");
	if (pid && atoi(pid + 11) == getpid())
		strcpy(pid + 11, "me\n");
	printf("%s: %s", what, n > 0 ? text : err_name(errno));
}

static void files(void)
{
	SAY("-- files");
	struct statfs fs;
	struct stat st;
	char text[100];
	mkdir(AT, 0755);
	T(mount("mqueue", AT, "mqueue", 0, NULL));
	MUST(statfs(AT, &fs));
	SAY("type %#lx, %ld of %ld bytes, names of %ld", (long)fs.f_type, (long)fs.f_blocks, (long)fs.f_bsize, (long)fs.f_namelen);
	MUST(stat(AT, &st));
	SAY("mode %o, %ld bytes, %ld links", st.st_mode, (long)st.st_size, (long)st.st_nlink);
	int watch = inotify_init1(IN_NONBLOCK);
	MUST(inotify_add_watch(watch, AT, IN_ALL_EVENTS));
	int q = fresh("seen", O_RDWR, 3, 60);
	MUST(k_send(q, "four", 4, 0, NULL));
	MUST(k_send(q, "five!", 5, 0, NULL));
	MUST(stat(AT, &st));
	SAY("%ld bytes, %ld links", (long)st.st_size, (long)st.st_nlink);
	int f = (int)OK(open(AT "/seen", O_RDWR));
	contents("text", f);
	T(read(f, text, 10));
	T(read(f, text, 100));
	T(read(f, text, 100));
	T(lseek(f, 0, SEEK_END));
	T(lseek(f, 6, SEEK_SET));
	T(lseek(f, 0, SEEK_DATA));
	T(lseek(f, 0, SEEK_HOLE));
	T(read(f, KERNEL_ADDRESS, 5));
	T(read(f, text, 0));
	T(write(f, "x", 1));
	T(pwrite(f, "x", 1, 0));
	T(fsync(f));
	T(ftruncate(f, 7));
	MUST(fstat(f, &st));
	SAY("%ld bytes", (long)st.st_size);
	T(mmap(NULL, 4096, PROT_READ, MAP_SHARED, f, 0) == MAP_FAILED ? -1 : 0);
	take(f);
	contents("text", f);
	T(chmod(AT "/seen", 0755));
	T(access(AT "/seen", X_OK));
	T(execl(AT "/seen", "seen", NULL));
	T(chown(AT "/seen", 1, 2));
	T(rename(AT "/seen", AT "/other"));
	T(link(AT "/seen", AT "/other"));
	T(symlink("seen", AT "/other"));
	T(mkdir(AT "/other", 0700));
	T(mkfifo(AT "/other", 0700));
	T(open(AT, O_TMPFILE | O_RDWR, 0600));
	T(mknod(AT "/node", S_IFREG | 0640, 0));
	int made = (int)OK(open(AT "/made", O_CREAT | O_RDWR | O_TRUNC, 0640));
	attributes("made", made);
	T(open(AT "/made", O_CREAT | O_EXCL, 0640));
	DIR *dir = opendir(AT);
	int entries = 0;
	while (readdir(dir))
		entries++;
	closedir(dir);
	SAY("%d entries", entries);
	T(unlink(AT "/made"));
	T(unlink(AT "/node"));
	T(k_unlink("seen"));
	T(rmdir(AT "/seen"));
	T(access(AT "/seen", F_OK));
	union { char bytes[4096]; struct inotify_event first; } in;
	ssize_t n = read(watch, in.bytes, sizeof in.bytes);
	for (char *at = in.bytes; at < in.bytes + n;) {
		struct inotify_event *one = (void *)at;
		SAY("event %#x %s", one->mask, one->len ? one->name : "");
		at += sizeof *one + one->len;
	}
	close(watch);
	close(q);
	close(f);
	close(made);
	T(umount(AT));
	rmdir(AT);
}

static int as_user(void)
{
	return setresgid(1000, 1000, 1000) || setresuid(1000, 1000, 1000);
}

static void rights(void)
{
	SAY("-- rights");
	int q = fresh("mine", O_RDWR, 2, 10);
	close(q);
	struct mq_attr attr = shape(2, 10);
	MUST(k_open("all", O_RDWR | O_CREAT, 0, &attr));
	umask(0);
	MUST(k_open("readable", O_RDWR | O_CREAT, 0604, &attr));
	umask(022);
	CHILD("another user") {
		MUST(as_user());
		T(k_open("mine", O_RDONLY, 0, NULL));
		T(k_open("mine", O_RDONLY | O_CREAT, 0600, NULL));
		T(k_open("mine", O_RDONLY | O_CREAT | O_EXCL, 0600, NULL));
		T(k_open("all", O_RDONLY, 0, NULL));
		T(k_unlink("mine"));
		OK(k_open("readable", O_RDONLY, 0, NULL));
		T(k_open("readable", O_WRONLY, 0, NULL));
		T(k_open("readable", O_RDWR, 0, NULL));
		T(k_open("readable", 3, 0, NULL));
		OK(k_open("his", O_RDWR | O_CREAT, 0200, NULL));
		T(k_open("his", O_RDONLY, 0, NULL));
		T(k_unlink("his"));
		fflush(stdout);
	} END;
	k_unlink("mine");
	k_unlink("all");
	k_unlink("readable");
}

int main(void)
{
	struct rlimit { unsigned long soft, hard; } much = { 64ul << 20, 64ul << 20 };
	MUST(syscall(SYS_prlimit64, 0, 12, &much, NULL));
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	names();
	shapes();
	order();
	refusals();
	waits();
	polls();
	files();
	rights();
	return 0;
}
