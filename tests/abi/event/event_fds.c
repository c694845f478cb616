/*
 * eventfd and timerfd: counters, semaphore mode, overflow blocking, short buffers, expirations, intervals,
 * absolute times, disarming, gettime, and their errors.
 */
#include "check.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

static uint64_t v;

static long get(int fd)
{
	v = 0;
	long n = read(fd, &v, 8);
	return n == 8 ? (long)v : n == -1 ? -1 : -100 - n;
}

static long put(int fd, uint64_t value) { return write(fd, &value, 8); }

int main(void)
{
	char small[4];
	int e = (int)MUST(eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC));
	T(get(e));
	T(get(e));
	T(put(e, 5));
	T(put(e, 7));
	T(get(e));
	T(put(e, (uint64_t)-1));
	T(put(e, (uint64_t)-2));
	T(put(e, 1));
	T(put(e, 0));
	T(get(e) == (long)0xfffffffffffffffe);
	T(read(e, small, 4));
	T(write(e, small, 4));
	T(put(e, 9));
	char wide[16];
	T(read(e, wide, 16));
	T(lseek(e, 0, SEEK_SET));
	T(eventfd(0, 0x100));
	int s = (int)MUST(eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK));
	T(get(s));
	T(get(s));
	T(get(s));
	T(get(s));
	/* a blocked reader */
	int b = (int)MUST(eventfd(0, 0));
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit((int)get(b));
	wait_state(pid, "S");
	put(b, 42);
	say_status("reader", reap(pid));

	struct itimerspec it = { { 0, 0 }, { 0, 20000000 } }, old;
	int t = (int)MUST(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
	T(get(t));
	T(timerfd_gettime(t, &old));
	SAY("unarmed %ld %ld", (long)old.it_value.tv_sec, (long)old.it_value.tv_nsec);
	struct itimerspec later = { { 0, 0 }, { 1000, 0 } };
	T(timerfd_settime(t, 0, &later, &old));
	T(timerfd_gettime(t, &old));
	IS(old.it_value.tv_sec > 0 && old.it_value.tv_sec < 1000);
	T(timerfd_settime(t, 0, &it, NULL));
	struct pollfd p = { t, POLLIN, 0 };
	T(poll(&p, 1, LONG_MS));
	T(get(t));
	T(get(t));
	it.it_interval.tv_nsec = 10000000;
	T(timerfd_settime(t, 0, &it, NULL));
	sleep_ms(75);
	long n = get(t);
	IS(n >= 5);
	T(timerfd_gettime(t, &old));
	SAY("interval %ld", (long)old.it_interval.tv_nsec);
	it.it_value.tv_nsec = 0;
	T(timerfd_settime(t, 0, &it, NULL));
	sleep_ms(20);
	T(get(t));
	/* absolute, in the past: expired at once */
	struct itimerspec past = { { 0, 0 }, { 0, 1 } };
	T(timerfd_settime(t, TFD_TIMER_ABSTIME, &past, NULL));
	T(poll(&p, 1, LONG_MS));
	T(get(t));
	it.it_value.tv_nsec = 1000000000;
	T(timerfd_settime(t, 0, &it, NULL));
	it.it_value.tv_nsec = -1;
	T(timerfd_settime(t, 0, &it, NULL));
	it.it_value.tv_nsec = 1;
	T(timerfd_settime(t, 0x80, &it, NULL));
	T(timerfd_settime(1, 0, &it, NULL));
	T(timerfd_settime(99, 0, &it, NULL));
	T(timerfd_create(99, 0));
	T(timerfd_create(CLOCK_MONOTONIC, 0x40));
	T(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
	T(timerfd_create(CLOCK_REALTIME, 0) >= 0);
	T(timerfd_create(CLOCK_BOOTTIME, 0) >= 0);
	T(read(t, small, 4));
	T(write(t, "12345678", 8));
	return 0;
}
