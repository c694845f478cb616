/*
 * getrandom(2) and signals: a long request that a signal interrupts returns what it has, a multiple of
 * 4096 bytes and never EINTR after the first byte; a request of at most 4096 bytes is never cut short.
 */
#include "check.h"
#include <sys/time.h>

static volatile int ticks;

static void on_alarm(int sig) { ticks++; }

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
	size_t len = 64 << 20;
	char *big = (char *)MUST(mmap(NULL, len, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	int cut = 0, odd = 0, errors = 0;
	for (int i = 0; i < 5; i++) {
		/* a machine that stalls may be late with the signal: not twenty times */
		for (int tries = 0, whole = 1; tries < 20 && whole; tries++) {
			long n = syscall(SYS_getrandom, big, len, 0);
			whole = n == (long)len;
			cut += n > 0 && !whole;
			odd += n > 0 && n % 4096 != 0;
			errors += n <= 0;
		}
	}
	/* printing is interrupted too: not while the timer runs */
	setitimer(ITIMER_REAL, &never, NULL);
	IS(cut == 5);
	IS(odd == 0);
	IS(errors == 0);
	int whole = 0;
	setitimer(ITIMER_REAL, &every, NULL);
	ticks = 0;
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	long calls = 0;
	while (elapsed_ms(&from) < (ticks > 10 ? 200 : LONG_MS)) {
		whole += syscall(SYS_getrandom, big, 4096, 0) == 4096;
		calls++;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	IS(whole == calls);
	IS(ticks > 10);
	return 0;
}
