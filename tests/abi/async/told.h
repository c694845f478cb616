/* What the programs about O_ASYNC share: a file whose owner is this process, and the signals that it got. */
#ifndef ALEA_ABI_TOLD_H
#define ALEA_ABI_TOLD_H

#include "check.h"
#include <sys/ioctl.h>

static int told; /* the signal */

static UNUSED void told_begin(void)
{
	sigset_t set;
	told = SIGRTMIN + 2;
	sigemptyset(&set);
	sigaddset(&set, told);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGURG);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL));
}

static UNUSED void asks(int fd)
{
	MUST(fcntl(fd, F_SETOWN, getpid()));
	MUST(fcntl(fd, F_SETSIG, told));
	MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
}

static int told_take(siginfo_t *info, int ms)
{
	sigset_t set;
	struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	sigemptyset(&set);
	sigaddset(&set, told);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGURG);
	return sigtimedwait(&set, info, &wait);
}

static const char *told_why(int code)
{
	static const char *const names[] = { "IN", "OUT", "MSG", "ERR", "PRI", "HUP" };
	if (code >= POLL_IN && code <= POLL_HUP)
		return names[code - POLL_IN];
	return code == SI_KERNEL ? "KERNEL" : code == SI_SIGIO ? "SIGIO" : "other";
}

/* All signals that have come, or come within so many milliseconds: the reason, the band and the descriptor less `base`. */
static UNUSED void told_within(const char *what, int base, int ms)
{
	siginfo_t info;
	int signal, any = 0;
	printf("%s:", what);
	while ((signal = told_take(&info, ms)) > 0) {
		any++;
		if (signal != told)
			printf(" %s", sig_name(signal));
		if (info.si_code == SI_KERNEL)
			printf(" plain");
		else
			printf(" %s,%#lx,%d", told_why(info.si_code), (unsigned long)info.si_band, info.si_fd - base);
	}
	SAY("%s", any ? "" : " nothing");
}

#define TOLD(call) do { errno = 0; long r_ = (long)(call); char t_[200]; \
	snprintf(t_, sizeof t_, "%s = %s", #call, r_ < 0 ? err_name(errno) : "ok"); told_within(t_, BASE, WITHIN); } while (0)

#endif
