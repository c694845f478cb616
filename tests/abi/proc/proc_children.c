/*
 * A process that once had thousands of children, and has none now, has no memory of the kernel for them: what children of
 * others leave to it comes and goes in the same way.
 */
#include "check.h"
#include "objects.h"

#define CHILDREN 2000

static long large_pages(void)
{
	return objects_number("pages_heap_large");
}

/* So many children that are there at once. */
static int have_children(void)
{
	int gate[2], reaped = 0;
	char byte;
	MUST(pipe(gate));
	for (int i = 0; i < CHILDREN; i++) {
		if (MUST(fork()) == 0) {
			close(gate[1]);
			_exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
		}
	}
	close(gate[0]);
	close(gate[1]);
	while (waitpid(-1, NULL, 0) > 0)
		reaped++;
	return reaped;
}

int main(void)
{
	/* what the kernel keeps for tasks in general is there after the first time */
	int reaped = have_children();
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		long pages = large_pages();
		reaped += have_children();
		IS(reaped == 2 * CHILDREN);
		IS(large_pages() <= pages);
		_exit(0);
	}
	say_status("the parent of many", reap(pid));
	return 0;
}
