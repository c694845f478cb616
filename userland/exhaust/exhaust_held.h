/*
 * exhaust_held.h: what the kinds of exhaustion share: what one process holds, and how a descriptor is filled.
 */
#ifndef ALEA_EXHAUST_HELD_H
#define ALEA_EXHAUST_HELD_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
	long count;
	int fd, peer;
	char *memory;
} held;

static char filler[65536];

/* Writes until the descriptor, which does not block, takes no more; fails if it took nothing. */
static long fill(int fd)
{
	long all = 0, n;
	while ((n = write(fd, filler, sizeof filler)) > 0)
		all += n;
	return all > 0 ? all : -1;
}

#endif
