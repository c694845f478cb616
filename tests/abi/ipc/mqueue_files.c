/*
 * Message queues as files: the flags of mq_open that they know and those that they do not, what a file may do that a queue may
 * not, mounts of their file system and its options; and waits that end by a wall clock which is set meanwhile.
 */
#include "check.h"
#include <mqueue.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#define AT "/tmp/mqueue_files"

static int k_open(const char *name, int flags, void *attr)
{
	return (int)syscall(SYS_mq_open, name, flags, 0600, attr);
}

static int k_send(int q, const void *text, size_t size, const void *until)
{
	return (int)syscall(SYS_mq_timedsend, q, text, size, 0, until);
}

static int k_receive(int q, void *text, size_t size, const void *until)
{
	return (int)syscall(SYS_mq_timedreceive, q, text, size, NULL, until);
}

static int fresh(const char *name)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 10 };
	syscall(SYS_mq_unlink, name);
	return (int)MUST(k_open(name, O_CREAT | O_EXCL | O_RDWR, &attr));
}

static void flags(void)
{
	SAY("-- flags");
	static const int tried[] = { O_TRUNC, O_APPEND, O_DIRECTORY, O_DIRECT, O_NOFOLLOW, O_SYNC, O_NOATIME, O_ASYNC, O_NOCTTY,
				     O_TMPFILE, 0x40000000 };
	int q = fresh("flags"), on = 1;
	MUST(k_send(q, "x", 1, NULL));
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		struct mq_attr attr;
		int one = k_open("flags", O_RDWR | tried[i], NULL);
		if (one < 0) {
			SAY("%#x: %s", tried[i], err_name(errno));
			continue;
		}
		MUST(syscall(SYS_mq_getsetattr, one, NULL, &attr));
		SAY("%#x: %#x, %ld messages", tried[i], fcntl(one, F_GETFL), attr.mq_curmsgs);
		close(one);
	}
	T(fcntl(q, F_SETFL, O_DIRECT));
	T(fcntl(q, F_SETFL, O_APPEND | O_NONBLOCK | O_ASYNC));
	SAY("%#x", fcntl(q, F_GETFL));
	T(ioctl(q, FIOASYNC, &on));
	on = 0;
	T(ioctl(q, FIOASYNC, &on));
	T(ioctl(q, FIONBIO, &on));
	SAY("%#x", fcntl(q, F_GETFL));
	close(q);
	syscall(SYS_mq_unlink, "flags");
}

static void as_files(void)
{
	SAY("-- as files");
	char text[100];
	int q = fresh("file"), ends[2], memory = (int)MUST(memfd_create("x", 0));
	struct iovec parts[2] = { { text, 5 }, { text + 5, 10 } };
	struct stat st;
	MUST(pipe2(ends, O_NONBLOCK));
	T(splice(q, NULL, ends[1], NULL, 100, 0));
	T(splice(ends[0], NULL, q, NULL, 100, 0));
	T(sendfile(memory, q, NULL, 100));
	T(sendfile(q, memory, NULL, 100));
	T(copy_file_range(q, NULL, memory, NULL, 100, 0));
	T(readv(q, parts, 2));
	T(writev(q, parts, 2));
	T(lseek(q, 0, SEEK_CUR));
	T(pread(q, text, 10, -1));
	T(pread(q, text, 10, LONG_MAX));
	T(fallocate(q, 0, 0, 10));
	T(ftruncate(q, INT_MAX));
	T(ftruncate(q, INT_MAX + 1l));
	MUST(fstat(q, &st));
	SAY("%ld bytes", (long)st.st_size);
	snprintf(text, sizeof text, "/proc/self/fd/%d", q);
	T(truncate(text, INT_MAX + 1l));
	int again = (int)MUST(open(text, O_RDWR));
	T(ftruncate(again, INT_MAX + 1l));
	T(ftruncate(again, 80));
	T(open(text, O_RDWR | O_DIRECT));
	close(again);
	T(fsetxattr(q, "user.a", "b", 1, 0));
	T(flistxattr(q, text, sizeof text));
	close(q);
	close(memory);
	close(ends[0]);
	close(ends[1]);
	syscall(SYS_mq_unlink, "file");
}

static void mounts(void)
{
	SAY("-- mounts");
	static const char *options[] = { "size=1", "mode=700", "ro,foo", "foo", "", ",", "rw", "sync,lazytime" };
	mkdir(AT, 0755);
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		int r = mount("x", AT, "mqueue", 0, options[i]);
		SAY("\"%s\": %s", options[i], r ? err_name(errno) : "ok");
		if (r == 0)
			MUST(umount(AT));
	}
	struct statvfs fs;
	T(mount("x", AT, "mqueue", MS_RDONLY, NULL));
	MUST(statvfs(AT, &fs));
	SAY("read-only: %s", fs.f_flag & ST_RDONLY ? "yes" : "no");
	T(open(AT "/made", O_CREAT | O_RDWR, 0600));
	/* The kernel's own mount may be written to. */
	OK(k_open("made", O_CREAT | O_RDWR, NULL));
	T(open(AT "/made", O_RDWR));
	T(unlink(AT "/made"));
	T(syscall(SYS_mq_unlink, "made"));
	MUST(umount(AT));
	rmdir(AT);
}

static int queue;
static char seen[20];

static void *waits(void *arg)
{
	return (void *)(long)(k_receive(queue, seen, sizeof seen, arg) < 0 ? errno : 0);
}

static void *sends(void *arg)
{
	return (void *)(long)(k_send(queue, "late", 4, arg) < 0 ? errno : 0);
}

static void *sleeps(void *arg)
{
	return (void *)(long)clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, arg, NULL);
}

/* Sets the wall clock by so many seconds, and what the monotonic one says has passed. */
static void step(long seconds)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += seconds;
	MUST(clock_settime(CLOCK_REALTIME, &now));
}

static void clocks(void)
{
	SAY("-- a clock that is set");
	static void *(*const ways[])(void *) = { waits, sends, sleeps };
	static const char *const names[] = { "receive", "send", "sleep" };
	for (int way = 0; way < 3; way++) {
		pthread_t thread;
		void *result;
		struct timespec until, from;
		queue = fresh("clock");
		if (way == 1)
			MUST(k_send(queue, "full", 4, NULL));
		/* An hour, which passes at once. */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 3600;
		pthread_create(&thread, NULL, ways[way], &until);
		wait_threads(1);
		step(7200);
		pthread_join(thread, &result);
		SAY("%s, and it is later: %s", names[way], result ? err_name((int)(long)result) : "ok");
		/* A second that gets an hour longer, and is over when the clock is set back to where it was. */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 1;
		clock_gettime(CLOCK_MONOTONIC, &from);
		pthread_create(&thread, NULL, ways[way], &until);
		wait_threads(1);
		step(-3600);
		sleep_ms(1500);
		int waits_on = wait_threads(1);
		step(3600);
		pthread_join(thread, &result);
		SAY("%s, and it is earlier: %s, %s", names[way], waits_on ? "waits on" : "is over",
		    result ? err_name((int)(long)result) : "ok");
		IS(elapsed_ms(&from) >= 1000);
		step(-7200);
		close(queue);
	}
	syscall(SYS_mq_unlink, "clock");
}

int main(void)
{
	flags();
	as_files();
	mounts();
	clocks();
	return 0;
}
