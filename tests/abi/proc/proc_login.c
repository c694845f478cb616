/*
 * What login, cron and sshd write about a session, and what a user says about cores: /proc/PID/loginuid, sessionid and
 * coredump_filter. What is taken, what is refused and to whom, and what a child, a thread and a new program have of it.
 */
#include "check.h"
#include <pthread.h>

#define LOGIN "/proc/self/loginuid"
#define FILTER "/proc/self/coredump_filter"

static unsigned session(void) { return (unsigned)strtoul(read_file("/proc/self/sessionid"), NULL, 10); }

static void *thread(void *unused)
{
	(void)unused;
	SAY("a thread has %s", read_file("/proc/thread-self/loginuid"));
	T(put_file("/proc/thread-self/loginuid", "77"));
	SAY("it has %s", read_file("/proc/thread-self/loginuid"));
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		SAY("a new program has %s", read_file(LOGIN));
		SAY("and %s", read_file(FILTER));
		return strcmp(argv[1], "exec");
	}
	SAY("login %s", read_file(LOGIN));
	SAY("session %s", read_file("/proc/self/sessionid"));
	T(put_file(LOGIN, ""));
	T(put_file(LOGIN, "x"));
	T(put_file(LOGIN, "-1"));
	T(put_file(LOGIN, "4294967296"));
	T(put_file(LOGIN, "5 "));
	T(put_file(LOGIN, "1000\n"));
	SAY("login %s", read_file(LOGIN));
	unsigned first = session();
	IS(first != (unsigned)-1);
	T(put_file(LOGIN, "0x10"));
	T(put_file(LOGIN, "1001"));
	IS(session() > first);
	int fd = (int)MUST(open(LOGIN, O_RDWR));
	T(pwrite(fd, "5", 1, 1));
	T(write(fd, "6", 1));
	T(write(fd, "6", 1));
	close(fd);
	SAY("login %s", read_file(LOGIN));
	first = session();
	pid_t parent = getpid();
	CHILD("a child") {
		char path[64];
		SAY("login %s", read_file(LOGIN));
		IS(session() == first);
		sprintf(path, "/proc/%d/loginuid", parent);
		T(put_file(path, "9"));
		T(put_file(LOGIN, "4294967295"));
		SAY("login %s", read_file(LOGIN));
		SAY("session %s", read_file("/proc/self/sessionid"));
	} END;
	CHILD("a user") {
		MUST(setresuid(1000, 1000, 1000));
		T(put_file(LOGIN, "8"));
		T(open(LOGIN, O_RDONLY) >= 0);
	} END;
	CHILD("a user who has none") {
		MUST(put_file(LOGIN, "4294967295"));
		fd = (int)MUST(open(LOGIN, O_WRONLY));
		MUST(setresuid(1000, 1000, 1000));
		T(write(fd, "8", 1));
		T(write(fd, "9", 1));
		SAY("login %s", read_file(LOGIN));
	} END;
	pthread_t id;
	MUST(pthread_create(&id, NULL, thread, NULL) ? -1 : 0);
	pthread_join(id, NULL);
	SAY("the first one has %s", read_file(LOGIN));
	T(open("/proc/self/sessionid", O_WRONLY) < 0 ? 0 : (int)put_file("/proc/self/sessionid", "1"));

	SAY("filter %s", read_file(FILTER));
	T(put_file(FILTER, ""));
	T(put_file(FILTER, "y"));
	T(put_file(FILTER, "-1"));
	T(put_file(FILTER, "0x7f\n"));
	SAY("filter %s", read_file(FILTER));
	T(put_file(FILTER, "017"));
	SAY("filter %s", read_file(FILTER));
	T(put_file(FILTER, "4294967295"));
	SAY("filter %s", read_file(FILTER));
	T(put_file(FILTER, "4294967296"));
	CHILD("a child") {
		SAY("filter %s", read_file(FILTER));
		T(put_file(FILTER, "1"));
	} END;
	SAY("filter %s", read_file(FILTER));
	CHILD("another") {
		execl("/proc/self/exe", "proc_login", "exec", NULL);
	} END;
	return 0;
}
