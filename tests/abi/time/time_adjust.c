/*
 * adjtimex and clock_adjtime: what is refused and to whom, what is told, how the clock's speed, adjtime, the phase-locked loop and
 * leap seconds change what clocks show, and that no clock goes back on two CPUs while its speed changes.
 */
#include "check.h"
#include <pthread.h>
#include <sys/time.h>
#include <sys/timex.h>

/* What adjtime(3) says to the kernel: ADJ_OFFSET_SINGLESHOT, and ADJ_OFFSET_SS_READ. */
#define ADJTIME 0x8001
#define ADJTIME_READ 0xa001

static long ns_of(int clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static long ns_by_call(int clock)
{
	struct timespec t;
	syscall(SYS_clock_gettime, clock, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static int adjust(struct timex *t)
{
	errno = 0;
	return syscall(SYS_adjtimex, t);
}

static void tell(const char *what, int result, const struct timex *t)
{
	SAY("%s: %d %s, offset %ld freq %ld maxerror %ld esterror %ld status %#x constant %ld precision %ld tolerance %ld tick %ld "
	    "tai %d", what, result, result < 0 ? err_name(errno) : "ok", t->offset, t->freq, t->maxerror, t->esterror, t->status,
	    t->constant, t->precision, t->tolerance, t->tick, t->tai);
}

/* Errors grow by the second: what is not asked for here is set to zero first. */
#define TELL(...) ({ struct timex t_ = { __VA_ARGS__ }; \
		     adjust(&(struct timex){ .modes = ADJ_MAXERROR }); \
		     tell(#__VA_ARGS__, adjust(&t_), &t_); })
#define REFUSED(...) ({ struct timex t_ = { __VA_ARGS__ }; int r_ = adjust(&t_); \
			SAY(#__VA_ARGS__ ": %s", r_ < 0 ? err_name(errno) : "ok"); })

/* The wall clock to that part of a second, so that what follows does not run into the next. */
static void begin_second(long when)
{
	MUST(clock_settime(CLOCK_REALTIME, &(struct timespec){ when, 100000000 }));
	MUST(adjust(&(struct timex){ .modes = ADJ_STATUS | ADJ_MAXERROR | ADJ_FREQUENCY | ADJ_TICK | ADJ_TAI, .tick = 10000 }));
}

static void requests(void)
{
	SAY("refused");
	REFUSED(.modes = ADJ_TICK, .tick = 8999);
	REFUSED(.modes = ADJ_TICK, .tick = 11001);
	REFUSED(.modes = 0x8000);
	REFUSED(.modes = ADJ_SETOFFSET, .time = { 0, -1 });
	REFUSED(.modes = ADJ_SETOFFSET, .time = { 0, 1000000 });
	REFUSED(.modes = ADJ_SETOFFSET | ADJ_NANO, .time = { 0, 1000000000 });
	REFUSED(.modes = ADJ_SETOFFSET, .time = { -10000000000, 0 });
	REFUSED(.modes = ADJ_SETOFFSET, .time = { LONG_MAX, 0 });
	REFUSED(.modes = ADJ_FREQUENCY, .freq = LONG_MAX);
	REFUSED(.modes = ADJ_FREQUENCY, .freq = LONG_MIN);
	T(syscall(SYS_adjtimex, NULL));
	T(syscall(SYS_adjtimex, NON_CANONICAL));
	SAY("by clock");
	struct timex t = { 0 };
	for (int id = -7; id <= 12; id++) {
		/* Alarm clocks depend on the RTC. */
		if (id == 8 || id == 9)
			continue;
		int result = clock_adjtime(id, &t);
		SAY("clock %d: %s", id, result < 0 ? err_name(errno) : "ok");
	}
	T(syscall(SYS_clock_adjtime, CLOCK_REALTIME, NULL));
	T(syscall(SYS_clock_adjtime, 77, NON_CANONICAL));
}

static void as_a_user(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		MUST(setuid(1000));
		SAY("by a user");
		REFUSED(.modes = 0);
		REFUSED(.modes = ADJ_OFFSET);
		REFUSED(.modes = ADJ_TICK, .tick = 0);
		REFUSED(.modes = ADJTIME);
		REFUSED(.modes = ADJTIME_READ);
		REFUSED(.modes = 0x8000);
		REFUSED(.modes = ADJ_SETOFFSET);
		T(clock_settime(CLOCK_REALTIME, &(struct timespec){ -1, 0 }));
		T(clock_settime(CLOCK_REALTIME, &(struct timespec){ 0, 0 }));
		T(clock_settime(CLOCK_REALTIME, &(struct timespec){ LONG_MAX / 1000000000, 0 }));
		fflush(stdout);
		_exit(0);
	}
	MUST(waitpid(pid, NULL, 0));
	T(clock_settime(CLOCK_REALTIME, &(struct timespec){ 0, 0 }));
	T(clock_settime(CLOCK_REALTIME, &(struct timespec){ LONG_MAX / 1000000000, 0 }));
}

static void state(void)
{
	begin_second(1000000000);
	SAY("state");
	TELL(.modes = 0);
	TELL(.modes = ADJ_FREQUENCY, .freq = 123456);
	TELL(.modes = ADJ_FREQUENCY, .freq = -7);
	TELL(.modes = ADJ_FREQUENCY, .freq = 1L << 40);
	TELL(.modes = ADJ_FREQUENCY);
	TELL(.modes = ADJ_MAXERROR | ADJ_ESTERROR, .maxerror = 5, .esterror = -5);
	TELL(.modes = ADJ_MAXERROR | ADJ_ESTERROR, .maxerror = LONG_MAX, .esterror = 1L << 40);
	TELL(.modes = ADJ_STATUS, .status = -1);
	TELL(.modes = ADJ_STATUS, .status = STA_UNSYNC);
	TELL(.modes = ADJ_STATUS);
	TELL(.modes = ADJ_TIMECONST, .constant = 3);
	TELL(.modes = ADJ_TIMECONST, .constant = 99);
	TELL(.modes = ADJ_TIMECONST | ADJ_NANO, .constant = -1);
	TELL(.modes = ADJ_TIMECONST | ADJ_MICRO, .constant = -1);
	TELL(.modes = ADJ_TAI, .constant = 37);
	TELL(.modes = ADJ_TAI, .constant = -1);
	TELL(.modes = ADJ_TAI, .constant = 100001);
	struct timespec wall, tai;
	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_TAI, &tai);
	SAY("TAI is ahead by %ld", tai.tv_sec - wall.tv_sec);
	TELL(.modes = ADJ_TAI);
	struct timex t = { 0 };
	adjust(&t);
	IS(t.time.tv_usec < 1000000);
	t = (struct timex){ .modes = ADJ_NANO };
	adjust(&t);
	IS(t.time.tv_usec > 1000000);
	adjust(&(struct timex){ .modes = ADJ_MICRO });
}

/* How much faster than CLOCK_MONOTONIC_RAW a clock ran, in parts of a million. */
static long speed(int clock)
{
	struct { long before, at, after; } ends[2];
	for (int k = 0; k < 2; k++) {
		/* A reading that was not held up. */
		do {
			ends[k].before = ns_of(CLOCK_MONOTONIC_RAW);
			ends[k].at = ns_of(clock);
			ends[k].after = ns_of(CLOCK_MONOTONIC_RAW);
		} while (ends[k].after - ends[k].before > 100000);
		if (k == 0)
			sleep_ms(60);
	}
	long raw = ends[1].before + ends[1].after - ends[0].before - ends[0].after;
	return ((ends[1].at - ends[0].at) * 2 - raw) * 1000000 / raw;
}

static void speeds(void)
{
	SAY("speeds");
	static const struct { long tick, freq; } rates[] = { { 10000, 0 }, { 11000, 0 }, { 9000, 0 }, { 10100, 400L << 16 }, { 10000, 0 } };
	for (unsigned k = 0; k < sizeof rates / sizeof *rates; k++) {
		begin_second(1000000000);
		MUST(adjust(&(struct timex){ .modes = ADJ_TICK | ADJ_FREQUENCY, .tick = rates[k].tick, .freq = rates[k].freq }));
		long want = (rates[k].tick - 10000) * 100 + (rates[k].freq >> 16);
		static const int clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI };
		for (int c = 0; c < 4; c++) {
			long got = speed(clocks[c]);
			if (labs(got - want) < 5000)
				SAY("tick %ld: clock %d runs so fast", rates[k].tick, clocks[c]);
			else
				SAY("tick %ld: clock %d is faster by %ld", rates[k].tick, clocks[c], got);
		}
	}
}

static void steps(void)
{
	begin_second(1000000000);
	SAY("steps");
	long before = ns_of(CLOCK_REALTIME);
	T(adjust(&(struct timex){ .modes = ADJ_SETOFFSET, .time = { 3600, 500000 } }));
	long later = ns_of(CLOCK_REALTIME) - before;
	IS(later >= 3600500000000 && later < 3601400000000);
	T(adjust(&(struct timex){ .modes = ADJ_SETOFFSET | ADJ_NANO, .time = { -3601, 500000000 } }));
	later = ns_of(CLOCK_REALTIME) - before;
	IS(later >= 0 && later < 800000000);
	adjust(&(struct timex){ .modes = ADJ_MICRO });
}

static void slews(void)
{
	begin_second(1000000000);
	SAY("slews");
	struct timex t = { .modes = ADJTIME, .offset = 1700 };
	int result = adjust(&t);
	SAY("before: %d, %ld", result, t.offset);
	for (int k = 0; k < 3; k++) {
		t = (struct timex){ .modes = ADJTIME_READ, .offset = 5 };
		result = adjust(&t);
		SAY("left: %d, %ld", result, t.offset);
		sleep_ms(1000);
	}
	struct timeval old;
	T(adjtime(&(struct timeval){ 0, -1 }, &old));
	SAY("%ld %ld", old.tv_sec, old.tv_usec);
	T(adjtime(&(struct timeval){ 0, 0 }, NULL));
}

static void phase(void)
{
	begin_second(1000000000);
	SAY("phase");
	TELL(.modes = ADJ_OFFSET, .offset = 1000);
	TELL(.modes = ADJ_STATUS | ADJ_NANO | ADJ_TIMECONST, .status = STA_PLL, .constant = 2);
	TELL(.modes = ADJ_OFFSET, .offset = -100000000);
	sleep_ms(1000);
	struct timex t = { 0 };
	int result = adjust(&t);
	SAY("%d: offset %ld status %#x", result, t.offset, t.status);
	TELL(.modes = ADJ_OFFSET, .offset = 900000000);
	TELL(.modes = ADJ_STATUS | ADJ_FREQUENCY, .status = STA_PLL | STA_FLL);
	MUST(adjust(&(struct timex){ .modes = ADJ_SETOFFSET, .time = { 1000, 0 } }));
	adjust(&(struct timex){ .modes = ADJ_STATUS, .status = STA_PLL | STA_FLL });
	TELL(.modes = ADJ_OFFSET, .offset = 4000000);
	TELL(.modes = ADJ_STATUS | ADJ_MICRO | ADJ_FREQUENCY);
	begin_second(1000000000);
}

static void leaps(int status, const char *what, int before)
{
	begin_second(20 * 86400 - before);
	SAY("%s", what);
	MUST(adjust(&(struct timex){ .modes = ADJ_STATUS, .status = status }));
	long monotonic = ns_of(CLOCK_MONOTONIC);
	for (int k = 0; k < before + 2; k++) {
		struct timex t = { 0 };
		int result = adjust(&t);
		SAY("%+ld: %d, tai %d, TAI %+ld, in time %d", t.time.tv_sec - 20 * 86400, result, t.tai,
		    ns_of(CLOCK_TAI) / 1000000000 - 20 * 86400,
		    labs(ns_of(CLOCK_MONOTONIC) - monotonic - k * 1000000000L) < 600000000);
		long left = monotonic + (k + 1) * 1000000000L - ns_of(CLOCK_MONOTONIC);
		sleep_ms(left / 1000000);
	}
	adjust(&(struct timex){ .modes = ADJ_STATUS });
	sleep_ms(1000);
	T(adjust(&(struct timex){ 0 }));
}

static volatile int stop;
static _Atomic long latest;

/* No reading, by whatever way, is earlier than one that was finished before on any CPU. */
static void *watch(void *by_call)
{
	long back = 0;
	while (!stop) {
		long seen = latest;
		long now = by_call ? ns_by_call(CLOCK_MONOTONIC) : ns_of(CLOCK_MONOTONIC);
		if (now < seen)
			back++;
		while (now > seen && !__atomic_compare_exchange_n(&latest, &seen, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			;
	}
	return (void *)back;
}

static void two_cpus(void)
{
	pthread_t threads[3];
	begin_second(1000000000);
	for (long k = 0; k < 3; k++)
		pthread_create(&threads[k], NULL, watch, (void *)(k % 2));
	for (int k = 0; k < 2000; k++)
		MUST(adjust(&(struct timex){ .modes = ADJ_TICK, .tick = k % 2 ? 11000 : 9000 }));
	stop = 1;
	for (int k = 0; k < 3; k++) {
		void *back;
		pthread_join(threads[k], &back);
		SAY("readings that went back: %ld", (long)back);
	}
	MUST(adjust(&(struct timex){ .modes = ADJ_TICK, .tick = 10000 }));
}

int main(void)
{
	long start = ns_of(CLOCK_REALTIME), began = ns_of(CLOCK_MONOTONIC);
	requests();
	as_a_user();
	state();
	speeds();
	steps();
	slews();
	phase();
	leaps(STA_INS, "a second more", 2);
	leaps(STA_DEL, "a second less", 3);
	two_cpus();
	long now = start + ns_of(CLOCK_MONOTONIC) - began;
	MUST(clock_settime(CLOCK_REALTIME, &(struct timespec){ now / 1000000000, now % 1000000000 }));
	struct timex t = { 0 };
	int result = adjust(&t);
	tell("at the end", result, &t);
	return 0;
}
