/*
 * /proc/PID/fdinfo shows where a file stands while a transfer that will move it waits.
 */
#include "check.h"
#include <pthread.h>

static int file, full[2];

static void *copies(void *unused)
{
	(void)unused;
	return (void *)(long)splice(file, NULL, full[1], NULL, 50, 0);
}

static void show(const char *when)
{
	char path[64], line[128];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", file);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, "pos:", 4) == 0)
			printf("%s: %s", when, line);
	if (f)
		fclose(f);
}

int main(void)
{
	static char bytes[1 << 16];
	pthread_t thread;
	void *moved;
	scratch();
	file = (int)MUST(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600));
	MUST(write(file, bytes, sizeof bytes));
	MUST(lseek(file, 1000, SEEK_SET));
	MUST(pipe(full));
	T(write(full[1], bytes, sizeof bytes));
	show("before");
	MUST(pthread_create(&thread, NULL, copies, NULL) ? -1 : 0);
	sleep_ms(100);
	show("while it waits");
	T(read(full[0], bytes, sizeof bytes));
	pthread_join(thread, &moved);
	IS(moved == (void *)50);
	show("after");
	T(lseek(file, 0, SEEK_CUR));
	return 0;
}
