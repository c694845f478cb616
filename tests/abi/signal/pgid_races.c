/*
 * One thread moves a child to another group while another waits for it: it is moved or gone, and a group never keeps one that
 * is gone, whose number may be another's. On one CPU little can happen.
 */
#include "check.h"
#include "meet.h"
#include "objects.h"
#include <pthread.h>

#define ROUNDS 500

static pid_t child, other;
static long strange;

static void *mover(void *unused)
{
	(void)unused;
	for (int i = 1; i <= ROUNDS; i++) {
		meet(1, 2 * i);
		for (volatile int wait = 0; wait < i % 32 * 8; wait++)
			;
		if (setpgid(child, other) != 0 && errno != ESRCH)
			strange++;
		meet(1, 2 * i + 1);
	}
	return NULL;
}

/* A child of this group that waits, in a group of its own. */
static pid_t waiter(void)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		pause();
		_exit(0);
	}
	MUST(setpgid(pid, pid));
	return pid;
}

/* Whether the kernel has many more large blocks than before: nobody can tell on Linux. */
static int many_more(const struct objects *before)
{
	struct objects after;
	objects_wait(before, &after, OBJECTS_PATIENCE_MS);
	for (int i = 0; i < before->kinds && i < after.kinds; i++) {
		long more = after.of[i].number - before->of[i].number;
		if (strncmp(before->of[i].name, "heap_", 5) == 0 && objects_bytes_of(before->of[i].name) >= 512 && more > 8) {
			SAY("%ld more of %s", more, before->of[i].name);
			return 1;
		}
	}
	return 0;
}

int main(void)
{
	pthread_t thread;
	struct objects objects;
	char before[16] = "";
	alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	snprintf(before, sizeof before, "%.15s", get_setting("kernel/pid_max"));
	other = waiter();
	MUST(pthread_create(&thread, NULL, mover, NULL) ? -1 : 0);
	for (int i = 1; i <= ROUNDS; i++) {
		siginfo_t info;
		if (i == ROUNDS / 10)
			objects_read(&objects);
		child = (pid_t)MUST(fork());
		if (child == 0)
			_exit(0);
		MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
		meet(0, 2 * i);
		MUST(waitpid(child, NULL, 0));
		meet(0, 2 * i + 1);
	}
	pthread_join(thread, NULL);
	IS(strange == 0);
	IS(!many_more(&objects));
	/* Each number of them comes to the group once more. */
	MUST(put_setting("kernel/pid_max", "450"));
	long moved = 0;
	for (int i = 0; i < 450; i++) {
		child = (pid_t)MUST(fork());
		if (child == 0)
			_exit(0);
		moved += setpgid(child, other) == 0;
		MUST(waitpid(child, NULL, 0));
	}
	IS(moved == 450);
	MUST(kill(other, SIGKILL));
	say_status("the other", reap(other));
	put_setting("kernel/pid_max", before);
	return 0;
}
