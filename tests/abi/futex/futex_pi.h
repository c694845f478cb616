/* futex_pi.h: what the programs about futexes that lend priority share. */
#ifndef ALEA_ABI_FUTEX_PI_H
#define ALEA_ABI_FUTEX_PI_H

#include "check.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/time.h>

static UNUSED long futex(volatile int *addr, int op, int val, const void *arg4, volatile int *addr2, int val3)
{
	return syscall(SYS_futex, addr, op, val, arg4, addr2, val3);
}
#define P FUTEX_PRIVATE_FLAG
#define LOCK(w) futex(w, FUTEX_LOCK_PI | P, 0, NULL, NULL, 0)
#define TRY(w) futex(w, FUTEX_TRYLOCK_PI | P, 0, NULL, NULL, 0)
#define UNLOCK(w) futex(w, FUTEX_UNLOCK_PI | P, 0, NULL, NULL, 0)
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

static UNUSED int tid(void)
{
	return (int)syscall(SYS_gettid);
}

static UNUSED void say_word(const char *what, volatile int *w, int owner)
{
	unsigned v = (unsigned)*w;
	unsigned t = v & FUTEX_TID_MASK;
	printf("%s:%s%s %s\n", what, v & FUTEX_WAITERS ? " WAITERS" : "",
	       v & FUTEX_OWNER_DIED ? " OWNER_DIED" : "",
	       t == 0 ? "free" : (int)t == owner ? "owned" : "another's");
}

static UNUSED void await_word(volatile int *w, int bits)
{
	for (int i = 0; i < LONG_MS && (*w & bits) != bits; i++)
		sleep_ms(1);
}

/* Waits until a thread sleeps in the kernel. */
static UNUSED void await_sleep(int t)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", t);
	for (int i = 0; i < LONG_MS && state_in(path) != 'S'; i++)
		sleep_ms(1);
}

#endif
