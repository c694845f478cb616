/*
 * The vDSO beside getrandom: every clock agrees with the system call before and after it, also after the wall clock was set;
 * unknown clocks, resolutions, time, gettimeofday and getcpu; how the mappings look and what may be done to them.
 */
#include "check.h"
#include "vdso.h"
#include <sched.h>
#include <sys/time.h>

typedef int clock_fn(clockid_t, struct timespec *);
typedef int day_fn(struct timeval *, struct timezone *);
typedef time_t time_fn(time_t *);
typedef long cpu_fn(unsigned *, unsigned *, void *);

static clock_fn *now;

static int64_t ns(struct timespec t) { return t.tv_sec * 1000000000L + t.tv_nsec; }

/* Whether system call, vDSO and system call come in this order, every time. */
static int in_order(clockid_t id)
{
	int good = 1;
	for (int i = 0; i < 2000; i++) {
		struct timespec a, b, c;
		good &= syscall(SYS_clock_gettime, id, &a) == 0;
		good &= now(id, &b) == 0;
		good &= syscall(SYS_clock_gettime, id, &c) == 0;
		good &= ns(a) <= ns(b) && ns(b) <= ns(c);
	}
	return good;
}

static void mappings(void)
{
	char line[256], name[64], rights[8];
	unsigned long start, end, vvar = 0, len = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	int seen = 0;
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %63s", &start, &end, rights, name) != 4)
			continue;
		if (strcmp(name, "[vdso]") == 0) {
			SAY("[vdso] %s, at AT_SYSINFO_EHDR %d", rights, start == getauxval(AT_SYSINFO_EHDR));
			IS(memcmp((void *)start, ELFMAG, SELFMAG) == 0);
			len = end - start;
			seen++;
		} else if (strcmp(name, "[vvar]") == 0) {
			SAY("[vvar] %s", rights);
			vvar = start;
			seen++;
		}
	}
	fclose(f);
	IS(seen == 2);
	char *data = (char *)vvar, *code = (char *)getauxval(AT_SYSINFO_EHDR);
	T(mprotect(data, PAGE, PROT_READ | PROT_WRITE));
	T(mprotect(data, PAGE, PROT_READ | PROT_EXEC));
	T(madvise(data, PAGE, MADV_DONTNEED));
	T(madvise(code, PAGE, MADV_DONTNEED));
	IS(memcmp(code, ELFMAG, SELFMAG) == 0);
	CHILD("writes to the code") *(volatile char *)code = 0;
	END;
	CHILD("writes to the data") *(volatile char *)data = 0;
	END;
	/* a breakpoint is this process's own */
	CHILD("own copy") {
		T(mprotect(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
		T(mprotect(code, len, PROT_READ | PROT_WRITE | PROT_EXEC));
		code[1] = 'X';
		CHILD("its child") SAY("%c%c", code[1], code[2]);
		END;
	} END;
	SAY("%c%c", code[1], code[2]);
	CHILD("without it") {
		struct timespec t;
		T(munmap(code, PAGE));
		T(munmap(code, len));
		T(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t));
	} END;
}

int main(void)
{
	static const clockid_t ids[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11 };
	now = (clock_fn *)vdso_symbol("__vdso_clock_gettime");
	clock_fn *res = (clock_fn *)vdso_symbol("__vdso_clock_getres");
	day_fn *day = (day_fn *)vdso_symbol("__vdso_gettimeofday");
	time_fn *secs = (time_fn *)vdso_symbol("__vdso_time");
	cpu_fn *cpu = (cpu_fn *)vdso_symbol("__vdso_getcpu");
	SAY("found %d %d %d %d %d", now != NULL, res != NULL, day != NULL, secs != NULL, cpu != NULL);
	SAY("short names %d %d %d %d %d %d", vdso_symbol("clock_gettime") == (void *)now, vdso_symbol("clock_getres") == (void *)res,
	    vdso_symbol("gettimeofday") == (void *)day, vdso_symbol("time") == (void *)secs, vdso_symbol("getcpu") == (void *)cpu,
	    vdso_symbol("getrandom") == vdso_symbol("__vdso_getrandom"));
	struct timespec t, u;
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
		SAY("clock %d in order %d", ids[i], in_order(ids[i]));
		int a = res(ids[i], &t), b = (int)syscall(SYS_clock_getres, ids[i], &u);
		SAY("resolution %d %d same %d, of nothing %d", a, b, ns(t) == ns(u), res(ids[i], NULL));
	}
	for (clockid_t id = 10; id < 40; id++)
		if (id != 11)
			if (now(id, &t) != -EINVAL || res(id, &t) != -EINVAL)
				SAY("clock %d: %d", id, now(id, &t));
	struct timeval v;
	struct timezone z = { 9, 9 };
	SAY("gettimeofday %d %d %d", day(&v, NULL), day(NULL, NULL), day(&v, &z));
	time_t stored = 0, got = secs(&stored);
	IS(got == stored && labs(got - v.tv_sec) <= 1 && v.tv_usec >= 0 && v.tv_usec < 1000000);
	unsigned c = 99, n = 99;
	SAY("getcpu %ld %ld", cpu(&c, &n, NULL), cpu(NULL, NULL, NULL));
	IS(c < 64 && n == 0);
	/* the wall clock is set, the monotonic one goes on */
	struct timespec wall, mono;
	MUST(clock_gettime(CLOCK_REALTIME, &wall));
	MUST(clock_gettime(CLOCK_MONOTONIC, &mono));
	wall.tv_sec += 100000;
	T(clock_settime(CLOCK_REALTIME, &wall));
	now(CLOCK_REALTIME, &t);
	now(CLOCK_MONOTONIC, &u);
	IS(ns(t) >= ns(wall) && ns(t) < ns(wall) + 60000000000L);
	IS(ns(u) >= ns(mono) && ns(u) < ns(mono) + 60000000000L);
	SAY("in order %d %d", in_order(CLOCK_REALTIME), in_order(CLOCK_TAI));
	wall.tv_sec -= 100000;
	T(clock_settime(CLOCK_REALTIME, &wall));
	CHILD("a child's clock") SAY("in order %d", in_order(CLOCK_MONOTONIC));
	END;
	mappings();
	return 0;
}
