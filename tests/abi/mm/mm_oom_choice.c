/*
 * Whom the OOM killer chooses: not who is at -1000, however large; first who is at 1000; page tables count. And who may lower
 * oom_score_adj how far.
 */
#include "check.h"
#include <sys/prctl.h>

static long set_to(const char *file, const char *value)
{
	int fd = (int)MUST(open(file, O_WRONLY));
	long result = write(fd, value, strlen(value));
	int error = errno;
	close(fd);
	errno = error;
	return result < 0 ? -1 : 0;
}

static long adjust(const char *value) { return set_to("/proc/self/oom_score_adj", value); }

static void show(const char *file)
{
	char text[32] = { 0 };
	int fd = (int)MUST(open(file, O_RDONLY));
	MUST(read(fd, text, sizeof text - 1));
	close(fd);
	printf("%s: %s", file, text);
}

/* A process that holds so many MiB and has that adjustment, when this returns. */
static pid_t holder(size_t mib, const char *adjustment)
{
	int ready[2];
	char byte;
	MUST(pipe(ready));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(adjust(adjustment));
		char *memory = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(memory, 1, mib << 20);
		MUST(write(ready[1], "x", 1));
		for (;;)
			pause();
	}
	MUST(read(ready[0], &byte, 1));
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* A page of each 2 MiB is read: nothing of it is resident, but its page tables are. */
static void sparse(void)
{
	for (;;) {
		char *memory = mmap(NULL, 1UL << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		for (unsigned long at = 0; at < 1UL << 30; at += 2 << 20)
			((volatile char *)memory)[at];
	}
}

static void dense(void)
{
	for (;;) {
		char *memory = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		memset(memory, 1, 4 << 20);
	}
}

/* Takes memory until somebody is killed: who of the two. The other one is gone too when this returns. */
static const char *killed_first(pid_t holds, void (*take)(void))
{
	int status;
	pid_t taker = (pid_t)MUST(fork());
	if (taker == 0)
		take();
	pid_t first = wait(&status);
	const char *who = !WIFSIGNALED(status) ? "nobody" : first == taker ? "the taker" : "the holder";
	kill(first == taker ? holds : taker, SIGKILL);
	wait(NULL);
	return who;
}

int main(void)
{
	printf("-1000, against one that takes: %s\n", killed_first(holder(60, "-1000"), dense));
	printf("0, against one that takes: %s\n", killed_first(holder(8, "0"), dense));
	printf("1000, against one that takes: %s\n", killed_first(holder(8, "1000"), dense));
	printf("0, against page tables: %s\n", killed_first(holder(8, "0"), sparse));

	T(adjust("1001"));
	T(adjust("-1001"));
	T(adjust("x"));
	T(adjust("-500"));
	CHILD("without the right") {
		MUST(setuid(1000));
		MUST(prctl(PR_SET_DUMPABLE, 1));
		T(adjust("300"));
		T(adjust("-500"));
		T(adjust("-501"));
		show("/proc/self/oom_score_adj");
		T(adjust("0"));
		show("/proc/self/oom_score_adj");
		T(set_to("/proc/self/oom_adj", "-1"));
		T(set_to("/proc/self/oom_adj", "3"));
		show("/proc/self/oom_score_adj");
	} END;
	T(adjust("-1000"));
	show("/proc/self/oom_score");
	show("/proc/1/oom_score");
	return 0;
}
