/*
 * What a transfer waits for that keeps its file: a file that stands at 1000, and a pipe that is full.
 */
#ifndef ALEA_ABI_FULL_PIPE_H
#define ALEA_ABI_FULL_PIPE_H

#include "check.h"

static int file, full[2];
static char bytes[1 << 16];

static void fill(void)
{
	scratch();
	file = (int)MUST(open("f", O_RDWR | O_CREAT | O_TRUNC, 0600));
	MUST(write(file, bytes, sizeof bytes));
	MUST(lseek(file, 1000, SEEK_SET));
	MUST(pipe(full));
	MUST(write(full[1], bytes, sizeof bytes));
}

/* Moves bytes of the file into the pipe, from where it stands or from elsewhere; waits for room. */
static long to_pipe(off_t *from)
{
	return splice(file, from, full[1], NULL, 50, 0);
}

#endif
