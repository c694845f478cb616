/*
 * Named pipes: open blocks until the other side comes, ENXIO for a lone non-blocking writer, O_RDWR opens at
 * once, end of file when the last writer leaves and data again when one comes back, poll's HUP.
 */
#include "check.h"
#include <sys/time.h>
#include <poll.h>

static short poll_once(int fd, short events)
{
	struct pollfd p = { fd, events, 0 };
	poll(&p, 1, 0);
	return p.revents;
}

static void on_alarm(int s) {}

int main(void)
{
	char buf[16] = { 0 };
	struct stat st;
	scratch();
	T(mkfifo("f", 0640));
	stat("f", &st);
	SAY("mode %o", st.st_mode);
	T(mkfifo("f", 0640));
	T(open("f", O_WRONLY | O_NONBLOCK));
	int r = (int)OK(open("f", O_RDONLY | O_NONBLOCK));
	T(read(r, buf, 10));
	SAY("poll before any writer %#x", poll_once(r, POLLIN));
	int w = (int)OK(open("f", O_WRONLY | O_NONBLOCK));
	T(read(r, buf, 10));
	SAY("poll with a writer %#x, writer %#x", poll_once(r, POLLIN), poll_once(w, POLLOUT));
	T(write(w, "abc", 3));
	SAY("poll with data %#x", poll_once(r, POLLIN));
	close(w);
	SAY("poll with data, writer gone %#x", poll_once(r, POLLIN));
	T(read(r, buf, 10));
	T(read(r, buf, 10));
	SAY("poll at the end %#x", poll_once(r, POLLIN));
	w = (int)OK(open("f", O_WRONLY));
	SAY("poll with a new writer %#x", poll_once(r, POLLIN));
	T(read(r, buf, 10));
	close(r);
	signal(SIGPIPE, SIG_IGN);
	SAY("writer's poll, reader gone %#x", poll_once(w, POLLOUT));
	T(write(w, "x", 1));
	close(w);
	int rw = (int)OK(open("f", O_RDWR));
	T(write(rw, "self", 4));
	T(read(rw, buf, 10));
	close(rw);
	/* the blocking open of each side */
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		int fd = open("f", O_RDONLY);
		ssize_t n = read(fd, buf, 16), m = read(fd, buf, 16);
		_exit((int)(n * 10 + m));
	}
	wait_state(pid, "S");
	w = (int)OK(open("f", O_WRONLY));
	T(write(w, "12345", 5));
	sleep_ms(20);
	close(w);
	say_status("reader", reap(pid));
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		int fd = open("f", O_WRONLY);
		_exit((int)write(fd, "123", 3));
	}
	wait_state(pid, "S");
	r = (int)OK(open("f", O_RDONLY));
	T(read(r, buf, 16));
	say_status("writer", reap(pid));
	T(read(r, buf, 16));
	close(r);
	/* a signal ends a blocked open */
	struct sigaction sa = { .sa_handler = on_alarm };
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		sigaction(SIGALRM, &sa, NULL);
		/* again and again: the first may come before the open */
		setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 100000 }, { 0, 100000 } }, NULL);
		T(open("f", O_RDONLY));
		_exit(0);
	}
	say_status("interrupted", reap(pid));
	T(unlink("f"));
	T(mkfifo("no/such", 0600));
	T(mknod("dev", S_IFCHR | 0600, 0x103));
	T(mknod("reg", S_IFREG | 0600, 0));
	T(mknod("zero", 0600, 0));
	T(mknod("dir", S_IFDIR | 0600, 0));
	T(mknod("sock", S_IFSOCK | 0600, 0));
	T(mknod("bad", 0150000, 0));
	T(open("sock", O_RDONLY));
	stat("zero", &st);
	SAY("mode 0 makes %o", st.st_mode);
	int fd = (int)T(open("dev", O_WRONLY));
	T(write(fd, "null", 4));
	CHILD("as uid 1000") {
		chmod(".", 0777);
		MUST(setuid(1000));
		T(mknod("udev", S_IFCHR | 0600, 0x103));
		T(mknod("ufifo", S_IFIFO | 0600, 0));
	} END;
	return 0;
}
