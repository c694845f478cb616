/*
 * /proc/PID/ns, uid_map and its like, net and io: links to name spaces and what may be asked of them, the same ones for all
 * processes; /proc/net in a process directory; what calls have read and written, of a thread, of its process, and who may know.
 */
#include "check.h"
#include <linux/nsfs.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/uio.h>

static const char *const spaces[] = { "cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "time_for_children", "user", "uts" };
#define SPACES (sizeof spaces / sizeof spaces[0])

static void name_spaces(void)
{
	DIR *dir = opendir("/proc/self/ns");
	int count = 0;
	for (struct dirent *e; dir && (e = readdir(dir));)
		for (unsigned i = 0; i < SPACES; i++)
			count += strcmp(e->d_name, spaces[i]) == 0 && e->d_type == DT_LNK;
	closedir(dir);
	SAY("%d of %d", count, (int)SPACES);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0)
		for (;;)
			pause();
	for (unsigned i = 0; i < SPACES; i++) {
		char path[64], other[64], text[64] = "", kind[32] = "";
		unsigned long number = 0;
		struct stat st, its, link;
		struct statfs fs;
		snprintf(path, sizeof path, "/proc/self/ns/%s", spaces[i]);
		snprintf(other, sizeof other, "/proc/%d/ns/%s", child, spaces[i]);
		MUST(readlink(path, text, sizeof text - 1));
		sscanf(text, "%31[a-z]:[%lu]", kind, &number);
		MUST(stat(path, &st));
		MUST(lstat(path, &link));
		MUST(stat(other, &its));
		MUST(statfs(path, &fs));
		SAY("%s: %s, number %s, mode %o, link %o, size %ld, of file system %lx, %s", spaces[i], kind, number == st.st_ino ? "its inode's" : text, st.st_mode,
		    link.st_mode, (long)st.st_size, (long)fs.f_type, st.st_ino == its.st_ino && st.st_dev == its.st_dev ? "shared" : "its own");
		int fd = (int)MUST(open(path, O_RDONLY));
		SAY("  type %#x, parent %s", ioctl(fd, NS_GET_NSTYPE), ioctl(fd, NS_GET_PARENT) < 0 ? err_name(errno) : "there");
		int owner = ioctl(fd, NS_GET_USERNS);
		if (owner < 0) {
			SAY("  owner %s", err_name(errno));
		} else {
			SAY("  owner type %#x, flags %d, closed by exec %d", ioctl(owner, NS_GET_NSTYPE), fcntl(owner, F_GETFL) & O_ACCMODE, fcntl(owner, F_GETFD));
			close(owner);
		}
		uid_t uid = 77;
		T(ioctl(fd, NS_GET_OWNER_UID, &uid));
		SAY("  of user %d", (int)uid);
		T(ioctl(fd, NS_GET_OWNER_UID, NON_CANONICAL));
		char byte;
		T(read(fd, &byte, 1));
		close(fd);
	}
	T(open("/proc/self/ns/net", O_RDWR));
	T(open("/proc/self/ns/none", O_RDONLY));
	T(ioctl((int)MUST(open("/proc/self/ns", O_RDONLY)), NS_GET_USERNS));
	kill(child, SIGKILL);
	reap(child);
}

static void maps(void)
{
	static const char *const files[] = { "uid_map", "gid_map", "projid_map", "setgroups" };
	for (unsigned i = 0; i < 4; i++) {
		char path[64];
		struct stat st;
		snprintf(path, sizeof path, "/proc/self/%s", files[i]);
		MUST(stat(path, &st));
		printf("%s %o: %s", files[i], st.st_mode, read_file(path));
		int fd = (int)MUST(open(path, O_WRONLY));
		T(write(fd, "0 0 1\n", 6));
		if (i == 3) {
			T(write(fd, "allow", 5));
			lseek(fd, 0, SEEK_SET);
			T(write(fd, "deny\n", 5));
		}
		close(fd);
	}
}

static void net(void)
{
	struct stat st;
	MUST(stat("/proc/self/net", &st));
	SAY("net %o", st.st_mode);
	char text[4096];
	snprintf(text, sizeof text, "%s", read_file("/proc/net/raw"));
	IS(strcmp(text, read_file("/proc/self/net/raw")) == 0 && strstr(text, "local_address"));
	IS(strstr(read_file("/proc/thread-self/net/dev"), "lo:") != NULL);
	T(open("/proc/self/net/none", O_RDONLY));
	int found = 0;
	DIR *dir = opendir("/proc/self/net");
	for (struct dirent *e; dir && (e = readdir(dir));)
		found += !strcmp(e->d_name, "tcp") || !strcmp(e->d_name, "dev") || !strcmp(e->d_name, "snmp");
	closedir(dir);
	SAY("%d found", found);
	T(access("/proc/1/net/unix", R_OK));
}

struct io {
	long long rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled;
};

/* The figures, without the reading of them. */
static struct io io_of(const char *path)
{
	static long long own_bytes, own_calls;
	char text[512];
	struct io io = { 0 };
	int fd = (int)MUST(open(path, O_RDONLY));
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	sscanf(text, "rchar: %lld wchar: %lld syscr: %lld syscw: %lld read_bytes: %lld write_bytes: %lld cancelled_write_bytes: %lld", &io.rchar, &io.wchar, &io.syscr,
	       &io.syscw, &io.read_bytes, &io.write_bytes, &io.cancelled);
	io.rchar -= own_bytes;
	io.syscr -= own_calls;
	own_bytes += n;
	own_calls++;
	return io;
}

static struct io before;


static void *other(void *fd)
{
	char byte = 1;
	for (int i = 0; i < 3; i++)
		MUST(pwrite(*(int *)fd, &byte, 1, 0));
	return NULL;
}

static void io(void)
{
	static const char whole[] = "/proc/self/io";
	static char buf[10000];
	setvbuf(stdout, NULL, _IOFBF, 65536);
	fflush(stdout);
	before = io_of(whole);
	int fd = (int)MUST(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600)), p[2];
	MUST(write(fd, buf, sizeof buf));
	MUST(pwrite(fd, buf, 10, 5));
	struct io now = io_of(whole);
	SAY("written %lld by %lld", now.wchar - before.wchar, now.syscw - before.syscw);
	fflush(stdout);
	before = io_of(whole);
	struct iovec v[2] = { { buf, 100 }, { buf, 200 } };
	MUST(preadv(fd, v, 2, 0));
	MUST(pread(fd, buf, 7, 0));
	read(fd, buf, 10);
	read(fd, NON_CANONICAL, 10);
	read(99, buf, 10);
	write(99, buf, 10);
	now = io_of(whole);
	SAY("read %lld by %lld, written %lld by %lld", now.rchar - before.rchar, now.syscr - before.syscr, now.wchar - before.wchar, now.syscw - before.syscw);
	fflush(stdout);
	before = io_of(whole);
	MUST(pipe(p));
	off_t at = 0;
	MUST(sendfile(p[1], fd, &at, 500));
	MUST(read(p[0], buf, sizeof buf));
	now = io_of(whole);
	SAY("sent: read %lld by %lld, written %lld by %lld", now.rchar - before.rchar, now.syscr - before.syscr, now.wchar - before.wchar, now.syscw - before.syscw);
	/* A thread's count for its process, after its end too. */
	fflush(stdout);
	before = io_of(whole);
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, other, &fd));
	pthread_join(thread, NULL);
	now = io_of(whole);
	SAY("the process: written %lld by %lld", now.wchar - before.wchar, now.syscw - before.syscw);
	SAY("devices %lld", now.read_bytes + now.write_bytes + now.cancelled);
	fflush(stdout);
	before = io_of(whole);
	struct io own = io_of("/proc/thread-self/io");
	IS(own.syscw + 3 <= before.syscw);
	struct stat st;
	MUST(stat(whole, &st));
	SAY("mode %o", st.st_mode);
	fflush(stdout);
	CHILD("another user") {
		MUST(setresuid(1000, 1000, 1000));
		T(open("/proc/1/io", O_RDONLY));
		T(readlink("/proc/1/ns/net", buf, 100));
		fflush(stdout);
	} END;
	close(fd);
	close(p[0]);
	close(p[1]);
	unlink("f");
}

int main(void)
{
	scratch();
	name_spaces();
	maps();
	net();
	io();
	return 0;
}
