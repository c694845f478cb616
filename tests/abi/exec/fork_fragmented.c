/*
 * fork_fragmented: where every other page of memory is free, and hardly two that lie side by side, processes are made as ever: many that live at
 * once, and one that is executed.
 */
#include "check.h"

#define CHILDREN 1500
#define STEP (1L << 20)
/* What is not filled: half of the children would find two pages side by side there. */
#define LEFT (6L << 20)

static long available(void)
{
	char text[4096];
	int fd = (int)MUST(open("/proc/meminfo", O_RDONLY));
	long n = MUST(read(fd, text, sizeof text - 1));
	close(fd);
	text[n] = 0;
	char *line = strstr(text, "MemAvailable:");
	return line ? atol(line + 13) * 1024 : 0;
}

/* Fills memory and gives every other page back. */
static void fragment(void)
{
	long size = available() / STEP * STEP, filled = 0;
	char *memory = (char *)MUST(mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	MUST(madvise(memory, (size_t)size, MADV_NOHUGEPAGE));
	MUST(madvise(memory, (size_t)size, MADV_DONTFORK));
	for (; filled < size && available() > LEFT + STEP; filled += STEP)
		memset(memory + filled, 1, STEP);
	for (long at = 0; at < filled; at += 2 * PAGE)
		MUST(madvise(memory + at, PAGE, MADV_DONTNEED));
}

int main(int argc, char **argv)
{
	int gate[2], made = 0, ended = 0, status;
	char byte;
	(void)argv;
	if (argc > 1)
		return 0;
	fragment();
	MUST(pipe(gate));
	for (; made < CHILDREN; made++) {
		pid_t pid = fork();
		if (pid == 0) {
			close(gate[1]);
			_exit(read(gate[0], &byte, 1) != 0);
		}
		if (pid == -1) {
			SAY("fork: %s", err_name(errno));
			break;
		}
	}
	SAY("%d of %d live at once", made, CHILDREN);
	pid_t pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "fork_fragmented", "again", NULL);
		_exit(127);
	}
	IS(pid != -1 && waitpid(pid, &status, 0) == pid && status == 0);
	close(gate[1]);
	while (wait(&status) > 0)
		ended += status == 0;
	IS(ended == made);
	return 0;
}
