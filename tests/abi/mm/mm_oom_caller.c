/*
 * vm.oom_kill_allocating_task: who asks for memory in vain is killed, though another holds more.
 */
#include "check.h"

static void set_to(const char *file, const char *value)
{
	int fd = (int)MUST(open(file, O_WRONLY));
	MUST(write(fd, value, strlen(value)));
	close(fd);
}

/* A process that holds a little and would be chosen first. */
static pid_t holder(void)
{
	int ready[2];
	char byte;
	MUST(pipe(ready));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		set_to("/proc/self/oom_score_adj", "1000");
		char *memory = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(memory, 1, 8 << 20);
		MUST(write(ready[1], "x", 1));
		for (;;)
			pause();
	}
	MUST(read(ready[0], &byte, 1));
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static const char *killed_first(void)
{
	int status;
	pid_t holds = holder(), taker = (pid_t)MUST(fork());
	if (taker == 0)
		for (;;) {
			char *memory = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			memset(memory, 1, 4 << 20);
		}
	pid_t first = wait(&status);
	kill(first == taker ? holds : taker, SIGKILL);
	wait(NULL);
	return first == taker ? "the taker" : "the holder";
}

int main(void)
{
	printf("0: %s\n", killed_first());
	set_to("/proc/sys/vm/oom_kill_allocating_task", "1");
	printf("1: %s\n", killed_first());
	set_to("/proc/sys/vm/oom_kill_allocating_task", "0");
	return 0;
}
