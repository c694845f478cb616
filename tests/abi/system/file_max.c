/*
 * fs.file-max and fs.file-nr: whoever is not privileged gets ENFILE for every kind of open file beyond the limit, before a name is
 * looked up or a file is made, and has no use of one to duplicate a descriptor; root goes on.
 */
#include "net.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

/* How far a count may be off: Linux counts up to 32 on each CPU before it adds them to the sum, once for the limit and once for what
 * is shown. */
#define SLACK 70

static unsigned long used(void)
{
	/* On Linux files of a process that has ended go a little later. */
	sleep_ms(300);
	unsigned long files = 0, rest = 9, most = 0;
	int n = sscanf(get_setting("fs/file-nr"), "%lu\t%lu\t%lu\n", &files, &rest, &most);
	if (n != 3 || rest != 0 || most != strtoul(get_setting("fs/file-max"), NULL, 10))
		SAY("file-nr: %s", get_setting("fs/file-nr"));
	return files;
}

/* Opens files as long as it goes, of at most so many. */
static int open_many(int most)
{
	int n = 0;
	errno = 0;
	while (n < most && open("/", O_RDONLY) >= 0)
		n++;
	return n;
}

/* The same; says whether they were about as many as expected. */
static int fill(int most, int expected)
{
	int n = open_many(most);
	SAY("%s after %s", n == most ? "all" : err_name(errno),
	    n < expected - SLACK ? "too few" : n > expected + SLACK ? "too many" : "as many as expected");
	return n;
}

static void limit(unsigned long files)
{
	char text[32];
	snprintf(text, sizeof text, "%lu", files);
	MUST(put_setting("fs/file-max", text));
}

static void say_more(unsigned long before, unsigned long expected)
{
	unsigned long more = used() - before;
	SAY("%s", more + SLACK < expected || more > expected + SLACK ? "other than that" : "so many more");
}

/* A file that waits in its open is one already. */
static void waiting(void)
{
	unsigned long before = used();
	MUST(mkfifo("fifo", 0600));
	fflush(stdout);
	for (int i = 0; i < 200; i++)
		if (MUST(fork()) == 0)
			_exit(open("fifo", O_RDONLY) < 0);
	say_more(before, 200);
	int fd = (int)MUST(open("fifo", O_WRONLY)), status, ended = 0;
	while (wait(&status) > 0)
		ended += status == 0;
	SAY("%d ended", ended);
	close(fd);
	MUST(unlink("fifo"));
}

/* Two fill the same room at once. */
static void two_at_once(void)
{
	int done[2], stay[2];
	char byte;
	unsigned long before = used();
	limit(before + 300);
	MUST(pipe(done)), MUST(pipe(stay));
	fflush(stdout);
	for (int i = 0; i < 2; i++)
		if (MUST(fork()) == 0) {
			MUST(setuid(1000));
			open_many(10000);
			int refused = errno == ENFILE;
			close(stay[1]);
			write(done[1], "", 1), read(stay[0], &byte, 1);
			_exit(!refused);
		}
	MUST(read(done[0], &byte, 1)), MUST(read(done[0], &byte, 1));
	say_more(before, 300);
	close(done[0]), close(done[1]), close(stay[0]), close(stay[1]);
	int status;
	while (wait(&status) > 0)
		say_status("one of two", status);
}

/* No file may be had any more. */
static void each_kind(void)
{
	int sv[2];
	struct sockaddr_in name = in4("127.0.0.1", 1);
	sigset_t none;
	sigemptyset(&none);
	T(open("/", O_RDONLY));
	T(open("/", O_PATH));
	T(open("/nonexistent", O_RDONLY));
	T(open("/nonexistent/name", O_RDONLY));
	T(open("", O_RDONLY));
	T(open((char *)1, O_RDONLY));
	T(openat(-5, "x", O_RDONLY));
	T(open("/", O_WRONLY | O_TMPFILE));
	T(open("/", O_DIRECTORY | O_CREAT));
	T(open("new", O_CREAT | O_RDWR, 0600));
	T(access("new", F_OK));
	T(pipe(sv));
	T(pipe2(sv, 1));
	T(pipe((int *)1));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	T(socketpair(AF_UNIX, 99, 0, sv));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)1));
	T(socket(AF_UNIX, SOCK_DGRAM, 0));
	T(socket(AF_INET, SOCK_STREAM, 0));
	T(socket(AF_INET6, SOCK_DGRAM, 0));
	T(socket(AF_NETLINK, SOCK_RAW, 0));
	T(socket(99, SOCK_STREAM, 0));
	T(eventfd(0, 0));
	T(eventfd(0, 1));
	T(epoll_create1(0));
	T(epoll_create1(1));
	T(timerfd_create(CLOCK_MONOTONIC, 0));
	T(timerfd_create(77, 0));
	T(signalfd(-1, &none, 0));
	T(memfd_create("x", 0));
	T(memfd_create((char *)1, 0));
	T(syscall(SYS_inotify_init1, 0));
	T(syscall(SYS_pidfd_open, getpid(), 0));
	T(syscall(SYS_pidfd_open, 0, 0));
	T(execl("/proc/self/exe", "x", NULL));
	T(execl("/nonexistent", "x", NULL));
	OK(dup(0));
	OK(fcntl(0, F_DUPFD, 100));
	T(truncate("/nonexistent", 0));
	T(connect(0, (struct sockaddr *)&name, sizeof name));
	CHILD("a child") {} END;
	struct rlimit few = { 3, 3 };
	MUST(setrlimit(RLIMIT_NOFILE, &few));
	T(open("/", O_RDONLY));
	T(open("/nonexistent", O_RDONLY));
	T(pipe(sv));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
}

/* A connection waits; who may not have its file leaves it there. */
static void accepted(void)
{
	int l = listener4(3), c = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(c, NAME4("127.0.0.1", port_of(l))));
	fcntl(l, F_SETFL, O_NONBLOCK);
	CHILD("accept") {
		MUST(setuid(1000));
		fill(10000, 100 + SLACK);
		T(accept(l, NULL, NULL));
		T(accept(l, NULL, NULL));
		for (int fd = 20; fd < 100; fd++)
			close(fd);
		OK(accept(l, NULL, NULL));
	} END;
	close(l), close(c);
}

int main(void)
{
	char before[64];
	snprintf(before, sizeof before, "%s", get_setting("fs/file-max"));
	net_up();
	scratch();
	MUST(chmod(".", 0777));
	MUST(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 20000, 20000 }));
	unsigned long first = used();
	CHILD("counted") {
		fill(200, 200);
		say_more(first, 200);
		IS(put_setting("fs/file-nr", "1"));
	} END;
	waiting();
	two_at_once();
	limit(used() + 300);
	CHILD("not privileged") {
		MUST(setuid(1000));
		fill(10000, 300);
		for (int fd = 20; fd < 220; fd++)
			close(fd);
		sleep_ms(100);
		fill(10000, 200);
		each_kind();
	} END;
	CHILD("root") {
		fill(500, 500);
		CHILD("no longer") {
			MUST(setuid(1000));
			fill(10, 0);
			each_kind();
		} END;
	} END;
	limit(used() + 100 + SLACK);
	accepted();
	limit(0);
	CHILD("none at all") {
		T(open("/", O_RDONLY) >= 0);
		MUST(setuid(1000));
		T(open("/", O_RDONLY));
	} END;
	MUST(put_setting("fs/file-max", before));
	IS(strcmp(get_setting("fs/file-max"), before) == 0);
	return 0;
}
