/*
 * Children whose parent ends while they come: a sibling made with CLONE_PARENT as the parent exits, and
 * orphans that would go to a subreaper which exits too. All of them go to the next ancestor that adopts,
 * which can wait for each of them: nothing is left behind. On one CPU the ends hardly meet.
 */
#include "check.h"
#include <sched.h>
#include <sys/prctl.h>

#define TRIES 300
#define SIBLINGS 12
#define STACK 16384

/* Shared by all: who was made, and what they wait for. */
struct board {
	volatile int made, started;
	volatile pid_t pids[TRIES * SIBLINGS];
};

static struct board *board;
static char *stacks;

static int ends(void *arg)
{
	return 0;
}

/* Makes siblings until there are enough, or its own parent has been gone for a while. */
static void makes_siblings(void)
{
	board->started = 1;
	for (int i = 0; i < SIBLINGS; i++) {
		pid_t pid = clone(ends, stacks + (i + 1) * STACK, CLONE_VM | CLONE_PARENT | SIGCHLD, NULL);
		if (pid > 0)
			board->pids[board->made++] = pid;
	}
	_exit(0);
}

static void spin(int rounds)
{
	for (volatile int i = 0; i < rounds; i++)
		;
}

/* Waits for all that are there, and counts. */
static int reap_all(void)
{
	int count = 0;
	for (;;) {
		pid_t pid = waitpid(-1, NULL, __WALL);
		if (pid > 0)
			count++;
		else if (errno != EINTR)
			return count;
	}
}

static int still_there(void)
{
	int count = 0;
	for (int i = 0; i < board->made; i++)
		count += kill(board->pids[i], 0) == 0;
	return count;
}

static void siblings_of_one_that_exits(void)
{
	int count = 0;
	board->made = 0;
	for (int i = 0; i < TRIES; i++) {
		board->started = 0;
		if (MUST(fork()) == 0) {
			if (MUST(fork()) == 0)
				makes_siblings();
			while (!board->started)
				;
			spin(i % 50 * 400);
			_exit(0);
		}
		count += reap_all();
	}
	IS(board->made == TRIES * SIBLINGS);
	IS(count == board->made + 2 * TRIES);
	SAY("siblings that nobody can wait for: %d", still_there());
}

/* A parent exits, and so does the subreaper that would have its child. */
static void subreapers_that_exit(void)
{
	int count = 0;
	board->made = 0;
	for (int i = 0; i < TRIES; i++) {
		board->started = 0;
		if (MUST(fork()) == 0) {
			MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
			if (MUST(fork()) == 0) {
				for (int child = 0; child < 4; child++) {
					pid_t pid = (pid_t)MUST(fork());
					if (pid == 0)
						_exit(0);
					board->pids[board->made++] = pid;
				}
				board->started = 1;
				spin(i % 50 * 40);
				_exit(0);
			}
			while (!board->started)
				;
			_exit(0);
		}
		count += reap_all();
	}
	IS(count == board->made + 2 * TRIES);
	SAY("orphans that nobody can wait for: %d", still_there());
}

int main(void)
{
	board = (struct board *)MUST(mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	stacks = pages(SIBLINGS * STACK / PAGE);
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
	siblings_of_one_that_exits();
	subreapers_that_exit();
	return 0;
}
