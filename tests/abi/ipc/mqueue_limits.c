/*
 * How many message queues there may be and how large: /proc/sys/fs/mqueue, what CAP_SYS_RESOURCE lifts, and RLIMIT_MSGQUEUE,
 * which counts all queues of a user, as long as somebody has them open.
 */
#include "check.h"
#include <mqueue.h>
#include <sys/resource.h>

#define DIR_ "/proc/sys/fs/mqueue/"

static int k_open(const char *name, int flags, void *attr)
{
	return (int)syscall(SYS_mq_open, name, flags, 0600, attr);
}

static int fresh(const char *name, long most, long size)
{
	struct mq_attr attr = { .mq_maxmsg = most, .mq_msgsize = size };
	return k_open(name, O_RDWR | O_CREAT | O_EXCL, &attr);
}

static int set(const char *name, const char *value)
{
	char path[100];
	snprintf(path, sizeof path, DIR_ "%s", name);
	int fd = open(path, O_WRONLY);
	if (fd < 0)
		return -1;
	ssize_t n = write(fd, value, strlen(value));
	int e = errno;
	close(fd);
	errno = e;
	return n < 0 ? -1 : 0;
}

static void get(const char *name)
{
	char path[100], text[40] = "";
	struct stat st;
	snprintf(path, sizeof path, DIR_ "%s", name);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n > 0)
		text[n - 1] = 0;
	MUST(fstat(fd, &st));
	SAY("%s: %s, mode %o", name, text, st.st_mode);
	close(fd);
}

static void settings(void)
{
	SAY("-- settings");
	static const char *all[] = { "queues_max", "msg_max", "msgsize_max", "msg_default", "msgsize_default" };
	for (int i = 0; i < 5; i++)
		get(all[i]);
	static const char *tried[][2] = { { "queues_max", "-1" }, { "queues_max", "0" }, { "queues_max", "2147483648" },
		{ "queues_max", "256" }, { "msg_max", "0" }, { "msg_max", "65537" }, { "msg_max", "65536" }, { "msg_max", "10" },
		{ "msgsize_max", "127" }, { "msgsize_max", "16777217" }, { "msgsize_max", "16777216" }, { "msgsize_max", "8192" },
		{ "msg_default", "0" }, { "msg_default", "65537" }, { "msg_default", "x" }, { "msgsize_default", "127" },
		{ "msgsize_default", "16777217" } };
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		int r = set(tried[i][0], tried[i][1]);
		SAY("%s = %s: %s", tried[i][0], tried[i][1], r ? err_name(errno) : "ok");
	}
}

static void shape_of(int q)
{
	struct mq_attr attr;
	MUST(mq_getattr(q, &attr));
	SAY("%ld messages of %ld bytes", attr.mq_maxmsg, attr.mq_msgsize);
	close(q);
	mq_unlink("/q");
}

static void try_shape(long most, long size)
{
	int q = fresh("q", most, size);
	SAY("%ld of %ld: %s", most, size, q < 0 ? err_name(errno) : "ok");
	if (q >= 0) {
		close(q);
		mq_unlink("/q");
	}
}

static void defaults(void)
{
	SAY("-- defaults");
	T(set("msg_default", "3"));
	T(set("msgsize_default", "500"));
	shape_of((int)MUST(k_open("q", O_RDWR | O_CREAT, NULL)));
	T(set("msg_max", "2"));
	T(set("msgsize_max", "400"));
	shape_of((int)MUST(k_open("q", O_RDWR | O_CREAT, NULL)));
	try_shape(5, 600);
	CHILD("a user") {
		MUST(setresuid(1000, 1000, 1000));
		try_shape(3, 400);
		try_shape(2, 401);
		try_shape(2, 400);
		T(set("msg_max", "3"));
		fflush(stdout);
	} END;
	T(set("msg_max", "10"));
	T(set("msgsize_max", "8192"));
	T(set("msg_default", "10"));
	T(set("msgsize_default", "8192"));
}

static void numbers(void)
{
	SAY("-- numbers");
	T(set("queues_max", "3"));
	CHILD("a user") {
		MUST(setresuid(1000, 1000, 1000));
		int a = fresh("a", 1, 1), b = fresh("b", 1, 1), c = fresh("c", 1, 1);
		IS(a >= 0 && b >= 0 && c >= 0);
		T(fresh("d", 1, 1));
		T(fresh("d", 0, 1));
		T(fresh("a", 1, 1));
		OK(k_open("a", O_RDWR | O_CREAT, NULL));
		T(mq_unlink("/c"));
		T(fresh("d", 1, 1));
		T(close(c));
		OK(fresh("d", 1, 1));
		fflush(stdout);
	} END;
	int e = (int)OK(fresh("e", 1, 1));
	close(e);
	static const char *all[] = { "/a", "/b", "/d", "/e" };
	for (int i = 0; i < 4; i++)
		T(mq_unlink(all[i]));
	T(set("queues_max", "256"));
}

static void limit(unsigned long bytes)
{
	struct rlimit limit = { bytes, bytes };
	MUST(setrlimit(RLIMIT_MSGQUEUE, &limit));
}

static void bytes(void)
{
	SAY("-- bytes");
	struct rlimit now;
	MUST(getrlimit(RLIMIT_MSGQUEUE, &now));
	SAY("limit %lu %lu", (unsigned long)now.rlim_cur, (unsigned long)now.rlim_max);
	T(set("msg_max", "65536"));
	CHILD("one queue") {
		MUST(setresuid(1000, 1000, 1000));
		limit(10 * (48 + 48 + 100));
		try_shape(10, 100);
		try_shape(10, 101);
		limit(10 * (48 + 48 + 100) - 1);
		try_shape(10, 100);
		fflush(stdout);
	} END;
	CHILD("many priorities") {
		limit(40000 * (48 + 1) + 32768 * 48);
		try_shape(40000, 1);
		limit(40000 * (48 + 1) + 32768 * 48 - 1);
		try_shape(40000, 1);
		fflush(stdout);
	} END;
	CHILD("all of a user") {
		limit(2 * (48 + 48 + 100));
		CHILD("his others") {
			MUST(setresuid(1000, 1000, 1000));
			int first = fresh("first", 1, 100);
			OK(fresh("second", 1, 100));
			T(fresh("third", 1, 1));
			T(mq_unlink("/first"));
			T(fresh("third", 1, 1));
			T(close(first));
			OK(fresh("third", 1, 100));
			T(fresh("fourth", 1, 1));
			fflush(stdout);
		} END;
		CHILD("another process of his") {
			MUST(setresuid(1000, 1000, 1000));
			T(fresh("fourth", 1, 1));
			T(mq_unlink("/second"));
			OK(fresh("fourth", 1, 1));
			T(mq_unlink("/third"));
			T(mq_unlink("/fourth"));
			fflush(stdout);
		} END;
		OK(fresh("root", 2, 100));
		T(fresh("root2", 1, 1));
		T(mq_unlink("/root2"));
		T(mq_unlink("/root"));
		fflush(stdout);
	} END;
	T(set("msg_max", "10"));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	settings();
	defaults();
	numbers();
	bytes();
	return 0;
}
