/*
 * What a task or a mapping cannot have for want of memory is not taken: a fork that fails leaves no child, no number, no kernel
 * stack and none of its frames; an mremap that fails leaves all as it was. Here nothing fails; `cargo xtask abi
 * taken --fail-alloc 0` makes each allocation of each call fail in turn. The children stay, so that stacks are made anew.
 */
#include "failing.h"
#include "objects.h"
#include <sys/mman.h>

#define PAGE 4096UL
/* More than the stacks that wait for tasks: 8 of each CPU and 64 of all. */
#define CHILDREN 120

static pid_t children[CHILDREN + MOST_ALLOCATIONS];
static int count;

static void nothing(void)
{
}

static long fork_one(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static int is_child(long pid)
{
	children[count++] = (pid_t)pid;
	return kill((pid_t)pid, 0) == 0;
}

static void of_forks(void)
{
	while (count < CHILDREN)
		is_child(MUST(fork_one()));
	struct call call = { "fork", nothing, fork_one, NULL, is_child };
	fail_each(&call);
	for (int i = 0; i < count; i++) {
		kill(children[i], SIGKILL);
		MUST(waitpid(children[i], NULL, 0));
	}
	SAY("children left: %s", waitpid(-1, NULL, WNOHANG) == -1 ? err_name(errno) : "some");
}

/* --- mremap: two mappings side by side, of which the middle goes elsewhere --- */

#define PAGES 8UL
static char *area, *target;

static void map(void)
{
	if (area)
		munmap(area, PAGES * PAGE);
	if (target)
		munmap(target, 1UL << 30);
	area = (char *)MUST(mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	MUST(mlock(area, PAGES * PAGE));
	for (unsigned long i = 0; i < PAGES; i++)
		area[i * PAGE] = (char)('a' + i);
	/* far from all else: the tables of it have to be made */
	target = (char *)MUST(mmap(NULL, 1UL << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

static long move_middle(void)
{
	return mremap(area + 2 * PAGE, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + (1UL << 29)) == MAP_FAILED ? -1 : 0;
}

static long leave_middle(void)
{
	return mremap(area + 2 * PAGE, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, target + (1UL << 29)) == MAP_FAILED ? -1 : 0;
}

static int is_locked(char *at)
{
	char line[300];
	unsigned long start, end;
	int found = 0, here = 0;
	FILE *file = fopen("/proc/self/smaps", "re");
	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start <= (unsigned long)at && (unsigned long)at < end;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, " lo") != NULL;
	}
	if (file)
		fclose(file);
	return found;
}

/* A failed call may have unmapped what was at the target, as on Linux, but the pages that were to move are where they were. */
static int is_unmoved(void)
{
	int all = 1;
	for (unsigned long i = 0; i < PAGES; i++)
		all &= area[i * PAGE] == (char)('a' + i) && is_locked(area + i * PAGE);
	return all;
}

static int is_moved(long result)
{
	char *at = target + (1UL << 29);
	unsigned char core[3];
	int all = result == 0 && is_locked(at);
	for (unsigned long i = 0; i < 3; i++)
		all &= at[i * PAGE] == (char)('a' + 2 + i);
	return all && area[PAGE] == 'b' && area[5 * PAGE] == 'f' && is_locked(area) && is_locked(area + 5 * PAGE) &&
	       mincore(area + 2 * PAGE, 3 * PAGE, core) == -1;
}

static int is_left(long result)
{
	char *at = target + (1UL << 29);
	int all = result == 0 && is_locked(at) && !is_locked(area + 2 * PAGE);
	for (unsigned long i = 0; i < 3; i++)
		all &= at[i * PAGE] == (char)('a' + 2 + i) && area[(2 + i) * PAGE] == 0;
	return all && area[PAGE] == 'b' && area[5 * PAGE] == 'f';
}

static void of_moves(void)
{
	struct call moved = { "mremap, elsewhere", map, move_middle, is_unmoved, is_moved };
	fail_each(&moved);
	struct call left = { "mremap, MREMAP_DONTUNMAP", map, leave_middle, is_unmoved, is_left };
	fail_each(&left);
}

int main(void)
{
	long lost = objects_number("pages_stacks_lost");
	failing_begin();
	of_forks();
	of_moves();
	SAY("frames of stacks lost: %ld", objects_number("pages_stacks_lost") - lost);
	return 0;
}
