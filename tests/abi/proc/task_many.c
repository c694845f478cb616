/*
 * task_many.c: /proc/self/task of a process with 300 threads: each is listed once, in order, however small the reads are; the links
 * of the directory count them; and while half of them end, none is listed twice and none that stays is left out.
 */
#include "check.h"
#include <pthread.h>
#include <sys/stat.h>

#define THREADS 299

static pid_t tids[THREADS];
static pthread_t threads[THREADS];
static volatile int started, leave_even, leave_all;

static void *wait_for_end(void *number)
{
	int n = (int)(long)number;
	tids[n] = (pid_t)syscall(SYS_gettid);
	__atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
	while (!leave_all && !(leave_even && n % 2 == 0))
		sleep_ms(2);
	return NULL;
}

/* The room of one entry, the longest of all. */
static size_t one_entry(void)
{
	pid_t last = 0;
	for (int i = 0; i < THREADS; i++)
		last = tids[i] > last ? tids[i] : last;
	return (size_t)(19 + snprintf(NULL, 0, "%d", last) + 1 + 7) & ~7UL;
}

/* Lists with reads of `room` bytes: how many, whether in order, and how many of the odd threads are there. */
static void list(const char *name, size_t room, int is_quiet)
{
	char buf[4096];
	int fd = (int)MUST(open("/proc/self/task", O_RDONLY | O_DIRECTORY)), count = 0, ordered = 1, odd = 0;
	long last = 0, n;
	while ((n = syscall(SYS_getdents64, fd, buf, room)) > 0) {
		for (long at = 0; at < n;) {
			unsigned short len;
			memcpy(&len, buf + at + 16, sizeof len);
			long tid = atol(buf + at + 19);
			if (tid) {
				count++;
				ordered &= tid > last;
				last = tid;
				for (int i = 1; i < THREADS; i += 2)
					odd += tids[i] == tid;
			}
			at += len;
		}
	}
	MUST(close(fd));
	if (n < 0)
		SAY("reads of %s: %s", name, err_name(errno));
	if (!is_quiet)
		SAY("reads of %s: %d tasks, %s, %d odd ones", name, count, ordered ? "in order" : "not in order", odd);
	else if (!ordered || odd != THREADS / 2)
		SAY("while others end: %s, %d odd ones", ordered ? "in order" : "not in order", odd);
}

static void links(void)
{
	struct stat st;
	MUST(stat("/proc/self/task", &st));
	SAY("%d links", (int)st.st_nlink);
}

int main(void)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &attr, wait_for_end, (void *)i)) {
			SAY("no thread %ld", i);
			return 1;
		}
	while (started != THREADS)
		sleep_ms(1);
	list("4096", 4096, 0);
	list("one entry", one_entry(), 0);
	list("64", 64, 0);
	list("8", 8, 0);
	links();
	leave_even = 1;
	for (int i = 0; i < 20; i++)
		list("100", 100, 1);
	for (int i = 0; i < THREADS; i += 2)
		pthread_join(threads[i], NULL);
	list("4096", 4096, 0);
	links();
	leave_all = 1;
	for (int i = 1; i < THREADS; i += 2)
		pthread_join(threads[i], NULL);
	list("4096", 4096, 0);
	links();
	return 0;
}
