/*
 * User and system time: a loop is user time, system calls that copy much are system time, both are seen by
 * getrusage, times, /proc and the parent, and neither ever goes back.
 */
#include "check.h"
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/time.h>

static long ms(const struct timeval *t)
{
	return t->tv_sec * 1000 + t->tv_usec / 1000;
}

static void used(int who, long *user, long *system)
{
	struct rusage ru;
	MUST(getrusage(who, &ru));
	*user = ms(&ru.ru_utime);
	*system = ms(&ru.ru_stime);
}

static volatile unsigned long sink;

/* Uses the CPU for so many milliseconds of its own time. */
static void burn(long how_long, int in_kernel)
{
	static char buf[1 << 20];
	int zero = (int)MUST(open("/dev/zero", O_RDONLY));
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	long end = t.tv_sec * 1000 + t.tv_nsec / 1000000 + how_long, now;
	do {
		if (in_kernel)
			for (int i = 0; i < 4; i++)
				read(zero, buf, sizeof buf);
		else
			for (int i = 0; i < 200000; i++)
				sink = sink * 3 + 1;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		now = t.tv_sec * 1000 + t.tv_nsec / 1000000;
	} while (now < end);
	close(zero);
}

static int from_stat(long *user, long *system)
{
	const char *text = strrchr(read_file("/proc/self/stat"), ')');
	return sscanf(text, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", user, system) == 2;
}

int main(void)
{
	long u, s, u2, s2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHILD("user") {
		burn(400, 0);
		used(RUSAGE_SELF, &u, &s);
		IS(u + s >= 390);
		IS(u > 3 * s);
	} END;
	CHILD("kernel") {
		burn(400, 1);
		used(RUSAGE_SELF, &u, &s);
		IS(u + s >= 390);
		IS(s > 3 * u);
		IS(from_stat(&u2, &s2));
		IS(s2 * 10 + 10 >= s);
		IS(s2 > 3 * u2);
		struct tms t;
		times(&t);
		IS(t.tms_stime > 3 * t.tms_utime);
		used(RUSAGE_THREAD, &u, &s);
		IS(s > 3 * u);
	} END;
	used(RUSAGE_CHILDREN, &u, &s);
	IS(u >= 200 && s >= 200);
	struct tms t;
	times(&t);
	IS(t.tms_cutime >= 20 && t.tms_cstime >= 20);
	CHILD("never back") {
		long lu = 0, ls = 0, back = 0;
		for (int i = 0; i < 60; i++) {
			burn(5, i % 3 == 0);
			used(RUSAGE_SELF, &u, &s);
			back += u < lu || s < ls;
			lu = u;
			ls = s;
		}
		SAY("went back %ld times", back);
	} END;
	CHILD("limit") {
		struct rlimit rl = { 1, 5 };
		MUST(setrlimit(RLIMIT_CPU, &rl));
		burn(20000, 1);
	} END;
	return 0;
}
