/*
 * Clocks and sleeping: every clock id and its resolution, monotonicity over system calls and vDSO alike, settime's
 * errors, nanosleep and clock_nanosleep (relative, absolute), times that are no times, CPU clocks.
 */
#include "check.h"
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>

static volatile unsigned long sink;

static long ns_between(const struct timespec *a, const struct timespec *b)
{
	return (b->tv_sec - a->tv_sec) * 1000000000 + b->tv_nsec - a->tv_nsec;
}

int main(void)
{
	struct timespec t, u, v;
	for (int id = -1; id <= 12; id++) {
		if (id == 8 || id == 9)	/* alarm clocks depend on the RTC */
			continue;
		int got = clock_gettime(id, &t), res = clock_getres(id, &u);
		if (got == 0 && res == 0)
			SAY("clock %d: ok, resolution %ld", id, id == 5 || id == 6 ? 0 : u.tv_nsec);
		else
			SAY("clock %d: %d %s", id, got, err_name(errno));
		long raw = syscall(SYS_clock_gettime, id, &v);
		SAY("  by system call %s, valid %d", raw == got ? "the same" : "different",
		    raw != 0 || (v.tv_nsec >= 0 && v.tv_nsec < 1000000000));
	}
	static const int ids[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID,
				   CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME_COARSE, CLOCK_TAI };
	for (int i = 0; i < 9; i++) {
		int back = 0;
		clock_gettime(ids[i], &t);
		for (int k = 0; k < 2000; k++) {
			if (k % 2)
				clock_gettime(ids[i], &u);
			else
				syscall(SYS_clock_gettime, ids[i], &u);
			back += ns_between(&t, &u) < 0;
			t = u;
		}
		SAY("clock %d went back %d times", ids[i], back);
	}
	/* the clocks agree with each other and with gettimeofday and time */
	struct timeval tv;
	clock_gettime(CLOCK_REALTIME, &t);
	gettimeofday(&tv, NULL);
	time_t now = time(NULL);
	IS(labs(tv.tv_sec - t.tv_sec) <= 1 && labs(now - t.tv_sec) <= 1);
	IS(t.tv_sec > 1600000000);
	clock_gettime(CLOCK_MONOTONIC, &t);
	clock_gettime(CLOCK_MONOTONIC_COARSE, &u);
	IS(labs(ns_between(&t, &u)) < 20000000);
	clock_gettime(CLOCK_BOOTTIME, &u);
	IS(labs(ns_between(&t, &u)) < 20000000);
	double up = atof(read_file("/proc/uptime"));
	clock_gettime(CLOCK_BOOTTIME, &u);
	IS(up - (double)u.tv_sec < 2 && (double)u.tv_sec - up < 2);
	T(time((time_t *)&t.tv_sec) == t.tv_sec);
	/* sleeping */
	struct timespec ms30 = { 0, 30000000 };
	clock_gettime(CLOCK_MONOTONIC, &t);
	T(nanosleep(&ms30, NULL));
	clock_gettime(CLOCK_MONOTONIC, &u);
	IS(ns_between(&t, &u) >= 30000000);
	T(nanosleep(&(struct timespec){ 0, 1000000000 }, NULL));
	T(nanosleep(&(struct timespec){ 0, -1 }, NULL));
	T(nanosleep(&(struct timespec){ -1, 0 }, NULL));
	T(nanosleep(&(struct timespec){ 0, 0 }, NULL));
	u.tv_nsec += 20000000;
	if (u.tv_nsec >= 1000000000) {
		u.tv_nsec -= 1000000000;
		u.tv_sec++;
	}
	T(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &u, NULL));
	clock_gettime(CLOCK_MONOTONIC, &t);
	IS(ns_between(&u, &t) >= 0);
	T(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){ 0, 0 }, NULL));
	SAY("%s", err_name(clock_nanosleep(99, 0, &ms30, NULL)));
	SAY("%s", err_name(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &ms30, NULL)));
	SAY("%s", err_name(clock_nanosleep(CLOCK_MONOTONIC_COARSE, 0, &ms30, NULL)));
	T(clock_nanosleep(CLOCK_REALTIME, 0, &ms30, NULL));
	T(clock_nanosleep(CLOCK_BOOTTIME, 0, &ms30, NULL));
	/* CPU time goes on while computing, not while sleeping */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	sleep_ms(100);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &u);
	IS(ns_between(&t, &u) < 50000000);
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	while (elapsed_ms(&start) < 300)
		for (int i = 0; i < 1000; i++)
			sink += (unsigned long)i;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	IS(ns_between(&u, &t) > 50000000);
	struct rusage ru;
	getrusage(RUSAGE_SELF, &ru);
	IS(ru.ru_utime.tv_sec * 1000000 + ru.ru_utime.tv_usec + ru.ru_stime.tv_sec * 1000000 + ru.ru_stime.tv_usec > 50000);
	IS(ru.ru_maxrss > 100 && ru.ru_maxrss < 100000);
	T(getrusage(9, &ru));
	struct tms tms;
	IS(times(&tms) > 0 && tms.tms_utime + tms.tms_stime > 5 && tms.tms_cutime == 0);
	CHILD("burns") {
		clock_gettime(CLOCK_MONOTONIC, &start);
		while (elapsed_ms(&start) < 150)
			sink++;
	} END;
	times(&tms);
	IS(tms.tms_cutime + tms.tms_cstime > 3);
	getrusage(RUSAGE_CHILDREN, &ru);
	IS(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec > 30000);
	/* setting */
	T(clock_settime(CLOCK_MONOTONIC, &t));
	T(clock_settime(CLOCK_REALTIME, &(struct timespec){ 5, 1000000000 }));
	clock_gettime(CLOCK_REALTIME, &t);
	T(clock_settime(CLOCK_REALTIME, &t));
	CHILD("as uid 1000") {
		MUST(setuid(1000));
		T(clock_settime(CLOCK_REALTIME, &t));
		T(settimeofday(&tv, NULL));
	} END;
	return 0;
}
