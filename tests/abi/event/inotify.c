/*
 * inotify: which events come, in which order, with which names and cookies; what is merged; how watches
 * end; limits and short reads. Each read prints the whole queue as it is.
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

static int in;
static unsigned first_cookie; /* 0: none came yet */

static const struct { unsigned bit; const char *name; } bits[] = {
	{ IN_ACCESS, "ACCESS" }, { IN_MODIFY, "MODIFY" }, { IN_ATTRIB, "ATTRIB" },
	{ IN_CLOSE_WRITE, "CLOSE_WRITE" }, { IN_CLOSE_NOWRITE, "CLOSE_NOWRITE" },
	{ IN_OPEN, "OPEN" }, { IN_MOVED_FROM, "MOVED_FROM" }, { IN_MOVED_TO, "MOVED_TO" },
	{ IN_CREATE, "CREATE" }, { IN_DELETE, "DELETE" }, { IN_DELETE_SELF, "DELETE_SELF" },
	{ IN_MOVE_SELF, "MOVE_SELF" }, { IN_UNMOUNT, "UNMOUNT" }, { IN_Q_OVERFLOW, "Q_OVERFLOW" },
	{ IN_IGNORED, "IGNORED" }, { IN_ISDIR, "ISDIR" },
};

static void one(const struct inotify_event *e)
{
	char text[200] = "";
	unsigned left = e->mask;
	for (unsigned i = 0; i < sizeof bits / sizeof *bits; i++)
		if (e->mask & bits[i].bit) {
			if (*text)
				strcat(text, "|");
			strcat(text, bits[i].name);
			left &= ~bits[i].bit;
		}
	printf("  wd %d %s", e->wd, text);
	if (left)
		printf(" +%#x", left);
	if (e->cookie) {
		if (!first_cookie)
			first_cookie = e->cookie;
		printf(" cookie %u", e->cookie - first_cookie + 1);
	}
	if (e->len) {
		/* A name made of an inode's number differs from run to run. */
		printf(" name %s len %u", e->name[0] == '#' ? "#" : e->name, e->name[0] == '#' ? 0 : e->len);
	}
	putchar('\n');
}

static void drain_fd(int fd, const char *what)
{
	static char buf[65536] __attribute__((aligned(8)));
	printf("%s:\n", what);
	for (;;) {
		ssize_t n = read(fd, buf, sizeof buf);
		if (n <= 0)
			break;
		for (char *p = buf; p < buf + n;) {
			struct inotify_event *e = (struct inotify_event *)p;
			one(e);
			p += sizeof *e + e->len;
		}
	}
}
#define AFTER(what, ...) do { __VA_ARGS__; drain_fd(in, what); } while (0)

static int make(const char *path, const char *text)
{
	int fd = (int)MUST(open(path, O_RDWR | O_CREAT | O_TRUNC, 0644));
	if (*text)
		MUST(write(fd, text, strlen(text)));
	return fd;
}

static void arguments(void)
{
	T(inotify_init1(1));
	T(inotify_init1(-1));
	int fd = (int)MUST(inotify_init());
	IS(fcntl(fd, F_GETFD) == 0);
	IS((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	char path[64], link[64] = "";
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	MUST(readlink(path, link, sizeof link - 1));
	SAY("%s", link);
	close(fd);
	fd = (int)MUST(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
	IS(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	IS((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	T(write(fd, "x", 1));
	T(lseek(fd, 5, SEEK_SET));
	char c[64];
	T(read(fd, c, 1));
	T(read(fd, c, 0));
	T(inotify_add_watch(fd, ".", 0));
	T(inotify_add_watch(fd, ".", IN_ONLYDIR));
	T(inotify_add_watch(fd, ".", 0x00800000));
	T(inotify_add_watch(fd, ".", 0x1000));
	T(inotify_add_watch(fd, ".", IN_OPEN | IN_MASK_ADD | IN_MASK_CREATE));
	T(inotify_add_watch(0, ".", IN_OPEN));
	T(inotify_add_watch(-1, ".", IN_OPEN));
	T(inotify_add_watch(99, ".", IN_MASK_ADD | IN_MASK_CREATE));
	T(inotify_add_watch(fd, "none", IN_OPEN));
	T(inotify_add_watch(fd, "", IN_OPEN));
	T(inotify_add_watch(fd, NULL, IN_OPEN));
	T(inotify_add_watch(fd, KERNEL_ADDRESS, IN_OPEN));
	close(make("plain", ""));
	T(inotify_add_watch(fd, "plain", IN_OPEN | IN_ONLYDIR));
	T(inotify_add_watch(fd, "plain/x", IN_OPEN));
	T(inotify_rm_watch(fd, 1));
	T(inotify_rm_watch(fd, 2));
	T(inotify_rm_watch(fd, -1));
	T(inotify_rm_watch(0, 1));
	T(inotify_rm_watch(-1, 1));
	int p = (int)MUST(open(".", O_PATH));
	T(inotify_add_watch(p, ".", IN_OPEN));
	close(p);
	T(ioctl(fd, FIONREAD, NULL));
	T(ioctl(fd, 0x1234, NULL));
	drain_fd(fd, "what is left");
	close(fd);
	/* Not readable: no watch. */
	close(make("secret", ""));
	MUST(chmod("secret", 0200));
	CHILD("unreadable") {
		MUST(setresuid(1000, 1000, 1000));
		int f = (int)MUST(inotify_init());
		T(inotify_add_watch(f, "secret", IN_OPEN));
	} END;
	unlink("secret");
	unlink("plain");
}

static void files(void)
{
	int wd = (int)T(inotify_add_watch(in, "d", IN_ALL_EVENTS));
	int fd;
	char c[16];
	AFTER("create", fd = (int)MUST(open("d/f", O_RDWR | O_CREAT, 0644)));
	AFTER("write", write(fd, "hello", 5));
	AFTER("write again and again", write(fd, "a", 1); write(fd, "b", 1); write(fd, "c", 1));
	AFTER("nothing written", write(fd, "", 0));
	AFTER("read", lseek(fd, 0, SEEK_SET); read(fd, c, 4); read(fd, c, 4));
	AFTER("at the end", lseek(fd, 0, SEEK_END); read(fd, c, 4));
	AFTER("pread, pwrite", pread(fd, c, 1, 0); pwrite(fd, c, 1, 0));
	AFTER("ftruncate", ftruncate(fd, 3));
	AFTER("the same size", ftruncate(fd, 3));
	AFTER("fallocate", posix_fallocate(fd, 0, 100));
	AFTER("fchmod", fchmod(fd, 0600));
	AFTER("fchown", fchown(fd, 5, 5));
	AFTER("fchown of nothing", fchown(fd, (uid_t)-1, (gid_t)-1));
	AFTER("set-id bits", fchmod(fd, 06755));
	AFTER("utimes", futimens(fd, NULL));
	struct timespec t[2] = { { 5, 5 }, { 0, UTIME_OMIT } };
	AFTER("atime", futimens(fd, t));
	struct timespec u[2] = { { 0, UTIME_OMIT }, { 5, 5 } };
	AFTER("mtime", futimens(fd, u));
	struct timespec v[2] = { { 0, UTIME_OMIT }, { 0, UTIME_OMIT } };
	AFTER("no time", futimens(fd, v));
	AFTER("dup and close", close(dup(fd)));
	AFTER("close", close(fd));
	AFTER("open, close", close((int)MUST(open("d/f", O_RDONLY))));
	AFTER("truncate on open", close((int)MUST(open("d/f", O_WRONLY | O_TRUNC))));
	AFTER("truncate", truncate("d/f", 10));
	AFTER("O_PATH", close((int)MUST(open("d/f", O_PATH))));
	AFTER("stat", struct stat st; stat("d/f", &st));
	AFTER("failed opens", open("d/f/g", O_RDONLY); open("d/f", O_CREAT | O_EXCL, 0); open("d/none", O_RDONLY));
	int a = make("a", "0123456789"), b = (int)MUST(open("d/f", O_RDWR));
	AFTER("opened", (void)0);
	AFTER("sendfile", off_t at = 0; T(sendfile(b, a, &at, 10)));
	AFTER("copy_file_range", off_t x = 0; off_t y = 20; T(copy_file_range(b, &x, b, &y, 5, 0)));
	int p[2];
	MUST(pipe(p));
	AFTER("splice in", off_t x = 0; T(splice(b, &x, p[1], NULL, 4, 0)));
	AFTER("splice out", off_t x = 0; T(splice(p[0], NULL, b, &x, 4, 0)));
	AFTER("mmap", char *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, b, 0); m[0] = 1; munmap(m, 4096));
	close(p[0]);
	close(p[1]);
	close(a);
	AFTER("closed", close(b));
	AFTER("list", DIR *d = opendir("d"); while (readdir(d)) ; closedir(d));
	AFTER("tmpfile", fd = (int)MUST(open("d", O_TMPFILE | O_RDWR, 0600)));
	AFTER("write to it", write(fd, "x", 1));
	AFTER("close it", close(fd));
	AFTER("unlink", unlink("d/f"));
	AFTER("removed", T(inotify_rm_watch(in, wd)));
	T(inotify_rm_watch(in, wd));
}

static void names(void)
{
	T(inotify_add_watch(in, "d", IN_ALL_EVENTS));
	T(inotify_add_watch(in, "e", IN_ALL_EVENTS));
	AFTER("mkdir", mkdir("d/sub", 0755));
	AFTER("mkdir again", mkdir("d/sub", 0755));
	AFTER("mknod", mknod("d/fifo", S_IFIFO | 0600, 0));
	AFTER("symlink", symlink("/nowhere", "d/link"));
	AFTER("readlink", char c[20]; readlink("d/link", c, 20));
	close(make("other", ""));
	AFTER("link", link("other", "d/second"));
	AFTER("chmod of the other name", chmod("other", 0600));
	AFTER("chmod of this name", chmod("d/second", 0600));
	AFTER("a socket", int s = socket(AF_UNIX, SOCK_STREAM, 0);
	      struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "d/sock" };
	      MUST(bind(s, (void *)&un, sizeof un)); close(s));
	AFTER("rename inside", rename("d/second", "d/third"));
	AFTER("rename across", rename("d/third", "e/fourth"));
	AFTER("rename out", rename("e/fourth", "fifth"));
	AFTER("rename in", rename("fifth", "d/sixth"));
	AFTER("rename of a directory", rename("d/sub", "e/sub"));
	AFTER("rename to itself", rename("d/sixth", "d/sixth"));
	AFTER("exchange", T(syscall(SYS_renameat2, AT_FDCWD, "d/sixth", AT_FDCWD, "e/sub", 2)));
	AFTER("exchanged back", T(syscall(SYS_renameat2, AT_FDCWD, "d/sixth", AT_FDCWD, "e/sub", 2)));
	close(make("d/victim", ""));
	drain_fd(in, "victim");
	AFTER("rename over", rename("d/sixth", "d/victim"));
	AFTER("failed rename", rename("d/none", "d/x"));
	AFTER("rmdir", rmdir("e/sub"));
	AFTER("long name", char n[260]; memset(n, 'n', 257); memcpy(n, "d/", 2); n[257] = 0; close(make(n, "")); unlink(n));
	AFTER("unlinks", unlink("d/fifo"); unlink("d/link"); unlink("d/sock"); unlink("d/victim"));
	AFTER("unlink of nothing", unlink("d/none"));
	AFTER("rmdir of one", rmdir("d"));
	AFTER("move of the other", rename("e", "d"));
	AFTER("chmod", chmod("d", 0700));
	T(inotify_rm_watch(in, inotify_add_watch(in, "d", IN_OPEN)));
	drain_fd(in, "ended");
	MUST(mkdir("e", 0755));
	unlink("other");
}

static void selves(void)
{
	int fd = make("d/f", "x");
	T(inotify_add_watch(in, "d", IN_ALL_EVENTS));
	T(inotify_add_watch(in, "d/f", IN_ALL_EVENTS));
	AFTER("both", write(fd, "x", 1); fchmod(fd, 0640); close(fd));
	AFTER("link, unlink", link("d/f", "d/g"); unlink("d/f"));
	AFTER("moved", rename("d/g", "e/g"));
	AFTER("gone", unlink("e/g"));
	fd = make("d/f", "x");
	drain_fd(in, "made");
	T(inotify_add_watch(in, "d/f", IN_ALL_EVENTS));
	AFTER("unlinked while open", unlink("d/f"));
	AFTER("still open", write(fd, "y", 1); fchmod(fd, 0600));
	AFTER("closed at last", close(fd));
	close(make("d/a", ""));
	close(make("d/b", ""));
	drain_fd(in, "two");
	T(inotify_add_watch(in, "d/a", IN_ALL_EVENTS));
	T(inotify_add_watch(in, "d/b", IN_ALL_EVENTS));
	AFTER("one over the other", rename("d/a", "d/b"));
	unlink("d/b");
	MUST(mkdir("d/s", 0755));
	drain_fd(in, "directory");
	T(inotify_add_watch(in, "d/s", IN_ALL_EVENTS));
	AFTER("directory inside", int f = open("d/s", O_RDONLY); fchmod(f, 0700); close(f));
	AFTER("directory moved", rename("d/s", "d/t"));
	AFTER("directory removed", rmdir("d/t"));
	MUST(mkdir("d/s", 0755));
	int w = (int)T(inotify_add_watch(in, "d/s", IN_DELETE_SELF | IN_MOVE_SELF));
	drain_fd(in, "again");
	int dfd = (int)MUST(open("d/s", O_RDONLY));
	AFTER("removed while open", rmdir("d/s"));
	AFTER("and closed", close(dfd));
	T(inotify_rm_watch(in, w));
	T(inotify_rm_watch(in, inotify_add_watch(in, "d", IN_OPEN)));
	drain_fd(in, "end");
}

static void flags(void)
{
	int wd = (int)T(inotify_add_watch(in, "d", IN_CREATE));
	IS(inotify_add_watch(in, "d", IN_DELETE) == wd);
	AFTER("replaced", close(make("d/f", "")); unlink("d/f"));
	IS(inotify_add_watch(in, "d", IN_CREATE | IN_MASK_ADD) == wd);
	AFTER("added", close(make("d/f", "")); unlink("d/f"));
	T(inotify_add_watch(in, "d", IN_CREATE | IN_MASK_CREATE));
	IS(inotify_add_watch(in, "d", IN_MODIFY | IN_ONESHOT) == wd);
	AFTER("once", int fd = make("d/f", "x"); write(fd, "y", 1); close(fd));
	T(inotify_rm_watch(in, wd));
	IS(inotify_add_watch(in, "d", IN_CREATE | IN_MASK_CREATE) > wd);
	AFTER("create only", close(make("d/f", "")); unlink("d/f"); close(make("d/f", "")));
	T(inotify_add_watch(in, "d", IN_ALL_EVENTS | IN_EXCL_UNLINK));
	int fd = (int)MUST(open("d/f", O_RDWR));
	AFTER("excluded", write(fd, "x", 1); unlink("d/f"); write(fd, "x", 1); fchmod(fd, 0600); close(fd));
	T(inotify_add_watch(in, "d", IN_ALL_EVENTS));
	fd = make("d/f", "");
	AFTER("not excluded", write(fd, "x", 1); unlink("d/f"); write(fd, "x", 1); fchmod(fd, 0600); close(fd));
	close(make("target", ""));
	MUST(symlink("target", "sym"));
	wd = (int)T(inotify_add_watch(in, "sym", IN_ALL_EVENTS));
	int wl = (int)T(inotify_add_watch(in, "sym", IN_ALL_EVENTS | IN_DONT_FOLLOW));
	IS(wd != wl);
	IS(inotify_add_watch(in, "target", IN_ALL_EVENTS) == wd);
	AFTER("through a link", close(open("sym", O_RDONLY)));
	AFTER("link removed", unlink("sym"));
	AFTER("target removed", unlink("target"));
	AFTER("watch removed with events in the queue", close(make("d/f", ""));
	      T(inotify_rm_watch(in, inotify_add_watch(in, "d", IN_OPEN))));
	unlink("d/f");
	drain_fd(in, "nothing more");
}

static void merging(void)
{
	int w = (int)T(inotify_add_watch(in, "d", IN_OPEN | IN_CLOSE | IN_MODIFY));
	int fd = make("d/f", "");
	AFTER("equal ones", write(fd, "1", 1); write(fd, "2", 1); open("d/f", O_RDONLY); open("d/f", O_RDONLY); write(fd, "3", 1));
	int queued = -1;
	close(fd);
	close(make("d/longer-name-than-16", ""));
	T(ioctl(in, FIONREAD, &queued));
	SAY("queued %d", queued);
	struct pollfd p = { .fd = in, .events = POLLIN | POLLOUT };
	T(poll(&p, 1, 0));
	SAY("revents %#x", p.revents);
	char buf[256] __attribute__((aligned(8)));
	T(read(in, buf, 16));
	T(read(in, buf, 31));
	T(read(in, buf, 32));
	T(read(in, buf, 70));
	T(read(in, page_end() - 8, 100));
	T(read(in, NULL, 100));
	T(read(in, buf, 100));
	T(poll(&p, 1, 0));
	T(read(in, buf, 100));
	T(ioctl(in, FIONREAD, &queued));
	SAY("queued %d", queued);
	/* Two watchers are told separately. */
	int second = (int)MUST(inotify_init1(IN_NONBLOCK));
	T(inotify_add_watch(second, "d", IN_OPEN));
	close(open("d/f", O_RDONLY));
	drain_fd(in, "first");
	drain_fd(second, "second");
	close(second);
	AFTER("after the second", close(open("d/f", O_RDONLY)));
	T(inotify_rm_watch(in, w));
	drain_fd(in, "end");
	unlink("d/f");
	unlink("d/longer-name-than-16");
}

static void set(const char *name, const char *value)
{
	char path[100];
	snprintf(path, sizeof path, "/proc/sys/fs/inotify/%s", name);
	write_file(path, value);
}

static void limits(void)
{
	SAY("max_queued_events %s", read_file("/proc/sys/fs/inotify/max_queued_events"));
	SAY("max_user_instances %s", read_file("/proc/sys/fs/inotify/max_user_instances"));
	IS(atoi(read_file("/proc/sys/fs/inotify/max_user_watches")) >= 8192);
	char was[30];
	strcpy(was, read_file("/proc/sys/fs/inotify/max_user_watches"));
	set("max_queued_events", "4");
	int fd = (int)MUST(inotify_init1(IN_NONBLOCK));
	set("max_queued_events", "16384");
	T(inotify_add_watch(fd, "d", IN_OPEN | IN_CREATE));
	for (int i = 0; i < 5; i++) {
		char name[20];
		snprintf(name, sizeof name, "d/n%d", i);
		close(make(name, ""));
	}
	drain_fd(fd, "overflow");
	for (int i = 0; i < 5; i++) {
		char name[20];
		snprintf(name, sizeof name, "d/n%d", i);
		close(open(name, O_RDONLY));
		unlink(name);
	}
	drain_fd(fd, "overflow again");
	close(fd);
	fflush(stdout);
	CHILD("instances") {
		MUST(setresuid(1234, 1234, 1234));
		int n = 0;
		while (inotify_init() >= 0)
			n++;
		SAY("%d instances, then %s", n, err_name(errno));
	} END;
	set("max_user_watches", "3");
	CHILD("watches") {
		MUST(setresuid(1234, 1234, 1234));
		int f = (int)MUST(inotify_init());
		T(inotify_add_watch(f, ".", IN_OPEN));
		T(inotify_add_watch(f, "d", IN_OPEN));
		T(inotify_add_watch(f, "e", IN_OPEN));
		T(inotify_add_watch(f, "/", IN_OPEN));
		T(inotify_add_watch(f, "e", IN_CLOSE));
		T(inotify_rm_watch(f, 2));
		T(inotify_add_watch(f, "/", IN_OPEN));
		T(inotify_add_watch(f, "/tmp/", IN_OPEN));
	} END;
	set("max_user_watches", was);
	CHILD("given back") {
		MUST(setresuid(1234, 1234, 1234));
		MUST(inotify_init());
	} END;
	fd = open("/proc/sys/fs/inotify/max_user_watches", O_WRONLY);
	T(write(fd, "-1", 2));
	T(write(fd, "x", 1));
	close(fd);
}

static void mounts(void)
{
	MUST(mount("none", "e", "tmpfs", 0, ""));
	close(make("e/f", ""));
	T(inotify_add_watch(in, "d", IN_ALL_EVENTS));
	T(inotify_add_watch(in, ".", IN_ATTRIB | IN_OPEN | IN_CLOSE));
	int wd = (int)T(inotify_add_watch(in, "e", IN_OPEN));
	T(inotify_add_watch(in, "e/f", IN_OPEN));
	AFTER("over the mount point", close(open("e", O_RDONLY)); close(open("e/f", O_RDONLY)));
	AFTER("unmount", T(umount("e")));
	T(inotify_rm_watch(in, wd));
	/* A watch keeps no mount busy, and a bind mount shows the same directory. */
	MUST(mount("d", "e", NULL, MS_BIND, NULL));
	AFTER("through a bind mount", close(make("e/f", "")); unlink("e/f"));
	AFTER("unbound", T(umount("e")));
	AFTER("still watched", close(make("d/f", "")); unlink("d/f"));
	T(inotify_rm_watch(in, inotify_add_watch(in, "d", IN_OPEN)));
	T(inotify_rm_watch(in, inotify_add_watch(in, ".", IN_OPEN)));
	drain_fd(in, "end");
}

static void *writer(void *arg)
{
	(void)arg;
	wait_state(getpid(), "SR");
	close(make("d/woken", ""));
	return NULL;
}

static void waiting(void)
{
	int fd = (int)MUST(inotify_init());
	T(inotify_add_watch(fd, "d", IN_CREATE));
	pthread_t t;
	pthread_create(&t, NULL, writer, NULL);
	char buf[64] __attribute__((aligned(8)));
	T(read(fd, buf, sizeof buf));
	one((void *)buf);
	pthread_join(t, NULL);
	CHILD("interrupted") {
		struct sigaction sa = { .sa_handler = (void (*)(int))abs };
		sigaction(SIGALRM, &sa, NULL);
		alarm(1);
		T(read(fd, buf, sizeof buf));
	} END;
	close(fd);
	unlink("d/woken");
}

static void *maker(void *arg)
{
	char a[40], b[40];
	snprintf(a, sizeof a, "d/%ld", (long)arg);
	snprintf(b, sizeof b, "d/%ld.", (long)arg);
	for (int i = 0; i < 200; i++) {
		close(make(a, "x"));
		rename(a, b);
		unlink(b);
	}
	return NULL;
}

static void *watcher(void *arg)
{
	(void)arg;
	for (int i = 0; i < 200; i++) {
		int fd = inotify_init1(IN_NONBLOCK);
		char buf[4096] __attribute__((aligned(8)));
		int w = inotify_add_watch(fd, "d", IN_ALL_EVENTS);
		for (long k = 0; k < 3; k++) {
			char name[40];
			snprintf(name, sizeof name, "d/%ld", k);
			inotify_add_watch(fd, name, IN_ALL_EVENTS | (i % 2 ? IN_ONESHOT : 0));
		}
		while (read(fd, buf, sizeof buf) > 0)
			;
		if (i % 3 == 0)
			inotify_rm_watch(fd, w);
		close(fd);
	}
	return NULL;
}

static void races(void)
{
	int all = (int)MUST(inotify_init1(IN_NONBLOCK));
	MUST(inotify_add_watch(all, "d", IN_CREATE | IN_DELETE | IN_MOVE));
	pthread_t t[6];
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, maker, (void *)i);
	for (long i = 3; i < 6; i++)
		pthread_create(&t[i], NULL, watcher, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	long count[4] = { 0 };
	static char buf[65536] __attribute__((aligned(8)));
	for (ssize_t n; (n = read(all, buf, sizeof buf)) > 0;)
		for (char *p = buf; p < buf + n;) {
			struct inotify_event *e = (struct inotify_event *)p;
			count[0] += !!(e->mask & IN_CREATE);
			count[1] += !!(e->mask & IN_MOVED_FROM);
			count[2] += !!(e->mask & IN_MOVED_TO);
			count[3] += !!(e->mask & IN_DELETE);
			p += sizeof *e + e->len;
		}
	SAY("created %ld, moved %ld and %ld, deleted %ld", count[0], count[1], count[2], count[3]);
	close(all);
}

static void exec_events(void)
{
	int src = (int)MUST(open("/proc/self/exe", O_RDONLY));
	int dst = (int)MUST(open("d/prog", O_WRONLY | O_CREAT, 0755));
	while (sendfile(dst, src, NULL, 1 << 20) > 0)
		;
	close(src);
	close(dst);
	T(inotify_add_watch(in, "d", IN_ALL_EVENTS));
	CHILD("exec") {
		execl("d/prog", "prog", "quiet", (char *)NULL);
	} END;
	drain_fd(in, "exec");
	T(inotify_rm_watch(in, inotify_add_watch(in, "d", IN_OPEN)));
	drain_fd(in, "end");
	unlink("d/prog");
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	char dir[] = "/tmp/inotify-XXXXXX";
	if (!mkdtemp(dir) || chdir(dir) != 0 || chmod(dir, 0755) != 0)
		return 99;
	MUST(mkdir("d", 0755));
	MUST(mkdir("e", 0755));
	arguments();
	in = (int)MUST(inotify_init1(IN_NONBLOCK));
	files();
	names();
	selves();
	flags();
	merging();
	limits();
	mounts();
	waiting();
	races();
	exec_events();
	close(in);
	return 0;
}
