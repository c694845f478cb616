/*
 * /proc/kmsg, which rsyslog's imklog reads: whole records and parts of one, one reader for the whole machine together with
 * syslog(2), what is readable when, and to whom it opens.
 */
#include "check.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/klog.h>

static void say(const char *text)
{
	int fd = (int)MUST(open("/dev/kmsg", O_WRONLY));
	MUST(write(fd, text, strlen(text)));
	close(fd);
}

/* The next record with a certain word, from its level on, without the time. */
static void find(int fd, const char *word, size_t piece)
{
	char text[8192];
	size_t have = 0;
	while (have < sizeof text - 1) {
		ssize_t got = fd >= 0 ? read(fd, text + have, piece) : klogctl(2, text + have, (int)piece);
		if (got <= 0) {
			SAY("%s after %s", strerror(errno), word);
			return;
		}
		have += (size_t)got;
		text[have] = 0;
		for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			char *at = strstr(line, word);
			if (at && *line == '<') {
				char *close = strchr(line, '>');
				SAY("%.*s %s", (int)(close - line + 1), line, at);
				IS(end + 1 == text + have || piece > 100);
				return;
			}
			*end = '\n';
		}
	}
	SAY("no %s", word);
}

int main(void)
{
	struct stat st;
	char byte;
	T(stat("/proc/kmsg", &st));
	SAY("%o %ld", st.st_mode, (long)st.st_size);
	int fd = (int)MUST(open("/proc/kmsg", O_RDONLY | O_NONBLOCK));
	char rest[65536];
	while (read(fd, rest, sizeof rest) > 0)
		;
	SAY("%s", strerror(errno));
	struct pollfd poll_fd = { fd, POLLIN | POLLOUT, 0 };
	T(poll(&poll_fd, 1, 0));
	T(klogctl(9, NULL, 0));
	say("<5>proc_kmsg first\n");
	T(poll(&poll_fd, 1, 1000));
	SAY("%x", poll_fd.revents);
	IS(klogctl(9, NULL, 0) > 20);
	T(read(fd, &byte, 0));
	find(fd, "first", 5);
	say("<3>proc_kmsg second\n");
	say("<12>proc_kmsg third\n");
	find(fd, "second", 4096);
	say("<6>proc_kmsg fourth\n");
	find(-1, "fourth", 7);
	T(read(fd, &byte, 1));
	say("proc_kmsg fifth\n");
	T((int)read(fd, &byte, 1));
	int before = klogctl(9, NULL, 0);
	T((int)klogctl(2, &byte, 1));
	IS(klogctl(9, NULL, 0) == before - 1);
	T((int)read(fd, (char *)NON_CANONICAL, 100));
	T(write(fd, "x", 1));
	T(open("/proc/kmsg", O_WRONLY) < 0 ? -1 : 0);
	/* A reader that waits is woken. */
	while (read(fd, rest, sizeof rest) > 0)
		;
	CHILD("one that waits") {
		int own = (int)MUST(open("/proc/kmsg", O_RDONLY));
		alarm(20);
		if (fork() == 0) {
			usleep(50000);
			say("<7>proc_kmsg sixth\n");
			_exit(0);
		}
		find(own, "sixth", 4096);
	} END;
	CHILD("a user") {
		MUST(setresuid(1000, 1000, 1000));
		T(open("/proc/kmsg", O_RDONLY));
		T(klogctl(2, &byte, 1));
	} END;
	return 0;
}
