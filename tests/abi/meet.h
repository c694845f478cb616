/*
 * meet.h: two threads that do their halves of a race at the same moment, round by round.
 */
#ifndef ALEA_ABI_MEET_H
#define ALEA_ABI_MEET_H

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

/* Whether there is one CPU only, on which a thread that spins keeps the other away. */
static int alone;
static atomic_int at_start[2];

/* Thread 0 or 1 has come to a round, counted upwards from 1: both leave it at about the same moment. */
static void meet(int who, int round)
{
	atomic_store(&at_start[who], round);
	while (atomic_load(&at_start[!who]) < round)
		if (alone)
			sched_yield();
}

#endif
