/*
 * Two threads set limits of their process at the same moment: of two different ones none is lost, and of one both what getrlimit
 * says and what mappings obey is the same one. A child that shares the memory has limits of its own. On one CPU little can happen.
 */
#include "check.h"
#include "meet.h"
#include <pthread.h>
#include <sys/resource.h>

#define ROUNDS 4000
#define LOW (64L << 20)
#define HIGH (1L << 40)

static void set(int which, long soft)
{
	struct rlimit limit = { (rlim_t)soft, RLIM_INFINITY };
	MUST(setrlimit(which, &limit));
}

static long get(int which)
{
	struct rlimit limit;
	MUST(getrlimit(which, &limit));
	return (long)limit.rlim_cur;
}

static void *second(void *unused)
{
	(void)unused;
	for (int i = 1; i <= ROUNDS; i++) {
		meet(1, 3 * i);
		set(RLIMIT_MSGQUEUE, i);
		meet(1, 3 * i + 1);
		set(RLIMIT_DATA, LOW);
		meet(1, 3 * i + 2);
	}
	return NULL;
}

/* Whether more private memory than LOW can be had. */
static int has_room(void)
{
	void *much = mmap(NULL, 2 * LOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (much == MAP_FAILED)
		return 0;
	munmap(much, 2 * LOW);
	return 1;
}

static int low_in_child(void *unused)
{
	(void)unused;
	set(RLIMIT_DATA, LOW);
	_exit(has_room());
}

int main(void)
{
	pthread_t other;
	long lost = 0, differ = 0;
	alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	MUST(pthread_create(&other, NULL, second, NULL) ? -1 : 0);
	for (int i = 1; i <= ROUNDS; i++) {
		meet(0, 3 * i);
		set(RLIMIT_RTTIME, i);
		meet(0, 3 * i + 1);
		lost += get(RLIMIT_RTTIME) != i || get(RLIMIT_MSGQUEUE) != i;
		set(RLIMIT_DATA, HIGH);
		meet(0, 3 * i + 2);
		differ += has_room() != (get(RLIMIT_DATA) == HIGH);
	}
	pthread_join(other, NULL);
	SAY("two limits: %s", lost == 0 ? "none is lost" : "one is lost now and then");
	SAY("one limit: %s", differ == 0 ? "mappings obey it" : "mappings obey another now and then");

	set(RLIMIT_DATA, HIGH);
	char *stack = pages(16);
	pid_t child = (pid_t)MUST(clone(low_in_child, stack + 16 * PAGE, CLONE_VM | SIGCHLD, NULL));
	say_status("room below the limit of a child", reap(child));
	IS(get(RLIMIT_DATA) == HIGH);
	IS(has_room());
	return 0;
}
