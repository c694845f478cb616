/*
 * MADV_COLLAPSE copies pages that a child has too (khugepaged alone is bound by max_ptes_shared), if one of them may be written.
 */
#include "huge.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

int main(void)
{
	enabled("never");
	char *at = aligned(1, RW);
	for (int i = 0; i < PAGES; i++)
		*(int *)(at + i * PAGE) = i + 1;
	int gate[2];
	MUST(pipe(gate));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char c;
		close(gate[1]);
		read(gate[0], &c, 1);
		int n = 0;
		for (int i = 0; i < PAGES; i++)
			n += *(int *)(at + i * PAGE) != i + 1;
		_exit(n != 0);
	}
	close(gate[0]);
	*(int *)(at + 3 * PAGE) = -4;
	T(madvise(at, HUGE, MADV_COLLAPSE));
	printf("%ld huge\n", huge(at));
	int n = 0;
	for (int i = 0; i < PAGES; i++)
		n += *(int *)(at + i * PAGE) != (i == 3 ? -4 : i + 1);
	printf("%d wrong\n", n);
	close(gate[1]);
	int how;
	waitpid(pid, &how, 0);
	say_status("child", how);
	return 0;
}
