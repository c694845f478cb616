/*
 * Random bytes given to a parent, its fork children, its exec children (AT_RANDOM) and its threads are
 * all different: nothing that a process holds is repeated in another one.
 */
#include "check.h"
#include <pthread.h>
#include <sys/auxv.h>

#define DRAWS 400

static unsigned char drawn[DRAWS][16];

static int compare(const void *a, const void *b) { return memcmp(a, b, 16); }

static void *draw_many(void *from)
{
	unsigned char(*row)[16] = from;
	for (int i = 0; i < 100; i++)
		if (syscall(SYS_getrandom, row[i], 16, 0) != 16)
			return (void *)1;
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc > 1) {	/* an exec child: hands over its AT_RANDOM */
		const void *at = (const void *)getauxval(AT_RANDOM);
		return write(1, at, 16) != 16;
	}
	int fds[2], n = 0;
	MUST(pipe(fds));
	for (; n < 50; n++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			dup2(fds[1], 1);
			execl("/proc/self/exe", argv[0], "child", NULL);
			_exit(127);
		}
		if (reap(pid) != 0 || read(fds[0], drawn[n], 16) != 16)
			SAY("exec child %d failed", n);
	}
	for (; n < 100; n++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			unsigned char mine[16];
			syscall(SYS_getrandom, mine, 16, 0);
			_exit(write(fds[1], mine, 16) != 16);
		}
		if (reap(pid) != 0 || read(fds[0], drawn[n], 16) != 16)
			SAY("fork child %d failed", n);
	}
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, draw_many, drawn[n + 100 * i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	int zero = 0, same = 0;
	static const unsigned char none[16];
	qsort(drawn, DRAWS, 16, compare);
	for (int i = 0; i < DRAWS; i++) {
		zero += memcmp(drawn[i], none, 16) == 0;
		same += i > 0 && memcmp(drawn[i], drawn[i - 1], 16) == 0;
	}
	IS(zero == 0);
	IS(same == 0);
	return 0;
}
