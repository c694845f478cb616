/*
 * /proc/PID/fdinfo shows where a file stands while a transfer that will move it waits.
 */
#include "full_pipe.h"
#include <pthread.h>

static void *copies(void *unused)
{
	(void)unused;
	return (void *)(long)to_pipe(NULL);
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
	pthread_t thread;
	void *moved;
	fill();
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
