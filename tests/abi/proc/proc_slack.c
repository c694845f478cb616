/* /proc/PID/timerslack_ns: of one's own thread it is read and set, of another only with CAP_SYS_NICE. */
#include "check.h"
#include <pthread.h>

static char path[64];

static void try_it(const char *text)
{
	char seen[32] = "";
	int fd = open(path, O_RDONLY);
	ssize_t got = fd < 0 ? -1 : read(fd, seen, sizeof seen - 1);
	printf("read: %s", got < 0 ? err_name(errno) : seen);
	if (got < 0)
		putchar('\n');
	close(fd);
	SAY("write %s: %s", text, put_file(path, text) < 0 ? err_name(errno) : "taken");
}

static void *thread(void *unused)
{
	snprintf(path, sizeof path, "/proc/%d/timerslack_ns", (int)syscall(SYS_gettid));
	for (;;)
		pause();
}

int main(void)
{
	snprintf(path, sizeof path, "/proc/self/timerslack_ns");
	SAY("-- one's own");
	try_it("60000");
	try_it("0");
	try_it("-1");
	SAY("-- init's, root");
	snprintf(path, sizeof path, "/proc/1/timerslack_ns");
	int fd = open(path, O_RDONLY);
	IS(read(fd, path + 32, 8) > 0);
	CHILD("a user") {
		MUST(setuid(1000));
		snprintf(path, sizeof path, "/proc/1/timerslack_ns");
		SAY("-- init's");
		try_it("60000");
		SAY("-- one's own");
		snprintf(path, sizeof path, "/proc/self/timerslack_ns");
		try_it("70000");
		SAY("-- another thread's");
		path[0] = 0;
		pthread_t other;
		MUST(pthread_create(&other, NULL, thread, NULL) ? -1 : 0);
		wait_threads(1);
		try_it("80000");
	} END;
	return 0;
}
