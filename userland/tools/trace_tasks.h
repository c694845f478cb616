/* The traced tasks: what each is doing. */
#include <stdint.h>
#include <stdlib.h>

struct task {
	struct task *next;
	int tid;
	int in_call;
	/* One more than the arguments that were shown, of a call that was shown while it went on. */
	unsigned shown;
	uint32_t number;
	uint64_t start, args[6];
	size_t copied_len;
	uint64_t copied[128];
};

#define BUCKETS 1024
static struct task *tasks[BUCKETS];

static struct task **place_of(int tid)
{
	struct task **at = &tasks[(unsigned)tid % BUCKETS];
	while (*at && (*at)->tid != tid)
		at = &(*at)->next;
	return at;
}

static struct task *task_of(int tid)
{
	struct task **at = place_of(tid);
	if (!*at) {
		*at = calloc(1, sizeof **at);
		if (!*at)
			abort();
		(*at)->tid = tid;
	}
	return *at;
}

static void forget(int tid)
{
	struct task **at = place_of(tid), *gone = *at;
	if (gone) {
		*at = gone->next;
		free(gone);
	}
}

/* A thread that called exec has its leader's number from now on. */
static void renamed(int old, int tid)
{
	if (old == tid)
		return;
	forget(tid);
	struct task **at = place_of(old), *task = *at;
	if (!task)
		return;
	*at = task->next;
	task->tid = tid;
	task->next = tasks[(unsigned)tid % BUCKETS];
	tasks[(unsigned)tid % BUCKETS] = task;
}

/* Those whose calls have gone on since before `until`, once for each call. */
static void each_waiting(uint64_t until, void (*act)(struct task *))
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct task *task = tasks[i]; task; task = task->next)
			if (task->in_call && !task->shown && task->start < until)
				act(task);
}
