/*
 * ioprio_set and ioprio_get: classes and levels, who may set what for whom, what threads and children inherit, and what a
 * group and a user have.
 */
#include "check.h"
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#define RT 1
#define BE 2
#define PRIORITY(class, level) ((class) << 13 | (level))

enum { PROCESS = 1, GROUP, USER };

static int get(int which, int who)
{
	return (int)syscall(SYS_ioprio_get, which, who);
}

static int set(int which, int who, int priority)
{
	return (int)syscall(SYS_ioprio_set, which, who, priority);
}

static void *thread(void *unused)
{
	T(get(PROCESS, 0));
	T(set(PROCESS, 0, PRIORITY(BE, 7)));
	T(get(PROCESS, 0));
	return unused;
}

static void values(void)
{
	for (int class = 0; class < 8; class++)
		for (int level = 0; level < 8; level += 7) {
			printf("class %d level %d: ", class, level);
			T(set(PROCESS, 0, PRIORITY(class, level)));
			T(get(PROCESS, 0));
		}
	T(set(PROCESS, 0, PRIORITY(BE, 8)));
	T(get(PROCESS, 0));
	T(set(PROCESS, 0, PRIORITY(BE, 0x1fff)));
	T(get(PROCESS, 0));
	T(set(PROCESS, 0, 0x10000 | PRIORITY(BE, 3)));
	T(get(PROCESS, 0));
	T(set(PROCESS, 0, -1));
	for (int which = -1; which < 5; which++) {
		if (which >= PROCESS && which <= USER)
			continue;
		T(get(which, 0));
		T(set(which, 0, PRIORITY(BE, 1)));
		T(set(which, 0, PRIORITY(BE | 4, 1)));
	}
	for (int which = PROCESS; which <= USER; which++) {
		T(get(which, 0x3fffffff));
		T(set(which, 0x3fffffff, PRIORITY(BE, 1)));
		T(get(which, -5));
	}
}

static void inherited(void)
{
	pthread_t other;
	T(set(PROCESS, 0, PRIORITY(BE, 2)));
	MUST(pthread_create(&other, NULL, thread, NULL));
	MUST(pthread_join(other, NULL));
	T(get(PROCESS, 0));
	CHILD("child") {
		T(get(PROCESS, 0));
		T(set(PROCESS, getppid(), PRIORITY(BE, 5)));
	} END;
	T(get(PROCESS, 0));
	T(set(PROCESS, 0, 0));
	T(get(PROCESS, 0));
}

/* A group of two, one of which has no priority of its own. */
static void groups(void)
{
	CHILD("group") {
		MUST(setpgid(0, 0));
		T(get(GROUP, 0));
		MUST(setpriority(PRIO_PROCESS, 0, 10));
		T(get(PROCESS, 0));
		T(get(GROUP, 0));
		MUST(setpriority(PRIO_PROCESS, 0, -20));
		T(get(GROUP, 0));
		MUST(setpriority(PRIO_PROCESS, 0, 0));
		struct sched_param param = { 1 };
		MUST(sched_setscheduler(0, SCHED_FIFO, &param));
		T(get(GROUP, 0));
		param.sched_priority = 0;
		MUST(sched_setscheduler(0, SCHED_IDLE, &param));
		T(get(GROUP, 0));
		MUST(sched_setscheduler(0, SCHED_OTHER, &param));
		pid_t child = (pid_t)MUST(fork());
		if (!child) {
			pause();
			_exit(0);
		}
		T(set(PROCESS, child, PRIORITY(BE, 1)));
		T(get(GROUP, 0));
		T(set(GROUP, 0, PRIORITY(RT, 6)));
		T(get(PROCESS, child));
		T(get(PROCESS, 0));
		MUST(kill(child, SIGKILL));
		MUST(waitpid(child, NULL, 0));
	} END;
}

static void permissions(void)
{
	CHILD("other user") {
		pid_t root = getppid();
		MUST(setpgid(0, 0));
		MUST(setgroups(0, NULL));
		MUST(setresgid(1000, 1000, 1000));
		MUST(setresuid(1000, 1000, 1000));
		T(set(PROCESS, 0, PRIORITY(RT, 4)));
		T(set(PROCESS, 0, PRIORITY(BE, 0)));
		T(set(PROCESS, 0, PRIORITY(3, 0)));
		T(get(PROCESS, 0));
		T(set(PROCESS, 0, 0));
		T(get(PROCESS, root));
		T(set(PROCESS, root, PRIORITY(BE, 6)));
		T(set(PROCESS, root, PRIORITY(RT, 6)));
		T(set(GROUP, 0, PRIORITY(BE, 6)));
		T(set(USER, 0, PRIORITY(BE, 6)));
		T(get(PROCESS, 0));
		T(get(USER, 1000));
		T(set(USER, 12345, PRIORITY(BE, 6)));
	} END;
}

int main(void)
{
	T(get(PROCESS, 0));
	values();
	inherited();
	groups();
	permissions();
	T(set(PROCESS, 0, 0));
	return 0;
}
