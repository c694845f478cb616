/*
 * sched_setattr and sched_getattr: sizes, flags, policies; what a user may and may not make of himself, by RLIMIT_NICE,
 * RLIMIT_RTPRIO and the reset on fork; a slice of one's own; and the settings of real-time tasks below /proc/sys/kernel.
 */
#include "check.h"
#include <sched.h>
#include <sys/resource.h>

struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
	uint64_t beyond[2];
};
#define VERSION_0 48
#define VERSION_1 56
#define RESET 1
#define KEEP_POLICY 8
#define KEEP_PARAMS 16

static int set(pid_t pid, struct attr *attr, unsigned flags)
{
	return (int)syscall(SYS_sched_setattr, pid, attr, flags);
}

static int get(pid_t pid, void *attr, unsigned size, unsigned flags)
{
	return (int)syscall(SYS_sched_getattr, pid, attr, size, flags);
}

static int is(uint32_t policy, uint64_t flags, int nice, uint32_t priority)
{
	struct attr attr = { VERSION_0, policy, flags, nice, priority };
	return set(0, &attr, 0);
}

static int of_policy(int policy, int priority)
{
	struct sched_param param = { priority };
	return sched_setscheduler(0, policy, &param);
}

static void show(const char *what)
{
	struct attr a = { 0 };
	if (get(0, &a, VERSION_0, 0))
		SAY("%s: %s", what, err_name(errno));
	else
		SAY("%s: size %u, policy %u, flags %lx, nice %d, priority %u, scheduler %#x, getpriority %d", what, a.size,
		    a.policy, (long)a.flags, a.nice, a.priority, sched_getscheduler(0), getpriority(PRIO_PROCESS, 0));
}

static void sizes(void)
{
	struct attr a = { 0 };
	SAY("-- sizes");
	T(get(0, NULL, VERSION_0, 0));
	T(get(-1, &a, VERSION_0, 0));
	T(get(1 << 22, &a, VERSION_0, 0));
	T(get(0, &a, VERSION_0 - 1, 0));
	T(get(0, &a, PAGE + 1, 0));
	T(get(0, &a, VERSION_0, 1));
	T(get(0, page_end() - 8, VERSION_0, 0));
	static char large[PAGE];
	memset(large, 0x5a, sizeof large);
	T(get(0, large, PAGE, 0));
	SAY("size %u, what is beyond it %x", *(uint32_t *)large, large[VERSION_1]);
	memset(large, 0x5a, sizeof large);
	T(get(0, large, VERSION_0, 0));
	SAY("size %u, what is beyond it %x", *(uint32_t *)large, large[VERSION_0]);
	static const uint32_t wrong[] = { 0, 1, 47, 48, 49, 52, 56, 57, 64, 4096, 4097 };
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct attr *last = (struct attr *)large;
		memset(large, 0, sizeof large);
		last->size = wrong[i];
		errno = 0;
		int got = set(0, last, 0);
		SAY("size %u: %d %s, then %u", wrong[i], got, got ? err_name(errno) : "", last->size);
	}
	struct attr beyond = { .size = sizeof beyond, .beyond = { 0, 1 } };
	T(set(0, &beyond, 0));
	SAY("then %u", beyond.size);
	T(set(0, (struct attr *)(page_end() - 8), 0));
	T(set(0, NULL, 0));
	T(set(-1, &a, 0));
	T(set(1 << 22, &a, 0));
	T(set(0, &a, 1));
}

static void values(void)
{
	SAY("-- values");
	show("at first");
	T(is(SCHED_OTHER, 0, 5, 0));
	show("nice 5");
	T(is(SCHED_BATCH, 0, 100, 0));
	show("nice 100");
	T(is(SCHED_IDLE, 0, -100, 0));
	show("nice -100");
	T(is(SCHED_OTHER, 0, 0, 1));
	T(is(SCHED_FIFO, 0, 7, 0));
	T(is(SCHED_FIFO, 0, 7, 100));
	T(is(SCHED_FIFO, RESET, 7, 99));
	show("SCHED_FIFO 99");
	T(is(SCHED_RR, KEEP_PARAMS, 3, 2));
	show("SCHED_RR, its parameters kept");
	T(is(SCHED_OTHER, KEEP_POLICY, 3, 2));
	show("its policy kept");
	T(is(SCHED_OTHER, KEEP_POLICY, 3, 0));
	T(is(SCHED_OTHER, KEEP_POLICY | KEEP_PARAMS, 3, 0));
	show("both kept");
	T(is(4, 0, 0, 0));
	T(is(8, 0, 0, 0));
	T(is(0x80000000, 0, 0, 0));
	T(is(0x80000000, KEEP_POLICY, 0, 0));
	T(is(0x40000000, 0, 0, 0));
	T(is(SCHED_OTHER, 2, 0, 0));
	T(is(SCHED_OTHER, 4, 0, 0));
	T(is(SCHED_OTHER, 0x20, 0, 0));
	T(is(SCHED_OTHER, 0x80, 0, 0));
	T(is(SCHED_OTHER, 0x10000000, 0, 0));
	T(is(SCHED_OTHER, 0, 0, 0));
	show("at last");
}

static void slices(void)
{
	SAY("-- slices");
	static const uint64_t slices[] = { 1, 100000, 5000000, 100000000, 100000001, UINT64_MAX };
	for (unsigned i = 0; i < sizeof slices / sizeof *slices; i++) {
		struct attr a = { .size = VERSION_0, .runtime = slices[i] };
		int got = set(0, &a, 0);
		get(0, &a, VERSION_0, 0);
		SAY("%lu: %d, %lu", (long)slices[i], got, (long)a.runtime);
	}
	struct attr a = { .size = VERSION_0, .runtime = 7000000 }, seen;
	T(set(0, &a, 0));
	CHILD("a child") {
		get(0, &seen, VERSION_0, 0);
		SAY("has %lu", (long)seen.runtime);
	} END;
	of_policy(SCHED_FIFO, 1);
	get(0, &seen, VERSION_0, 0);
	SAY("SCHED_FIFO: %lu", (long)seen.runtime);
	of_policy(SCHED_OTHER, 0);
	get(0, &seen, VERSION_0, 0);
	SAY("and back: %lu", (long)seen.runtime);
	is(SCHED_OTHER, RESET, 0, 0);
	get(0, &seen, VERSION_0, 0);
	SAY("none asked for: the default %d", seen.runtime != 7000000 && seen.runtime != 0);
}

static void limit(int which, rlim_t value)
{
	struct rlimit limit = { value, value };
	MUST(setrlimit(which, &limit));
}

static void becomes_user(void)
{
	MUST(setgid(1000));
	MUST(setuid(1000));
}

static void users(void)
{
	CHILD("a user") {
		becomes_user();
		T(is(SCHED_OTHER, 0, -1, 0));
		T(is(SCHED_OTHER, 0, 4, 0));
		T(is(SCHED_OTHER, 0, 3, 0));
		T(setpriority(PRIO_PROCESS, 0, 3));
		T(setpriority(PRIO_PROCESS, 0, 4));
		T(is(SCHED_BATCH, 0, 4, 0));
		T(of_policy(SCHED_BATCH, 0));
		T(of_policy(SCHED_FIFO, 1));
		T(of_policy(SCHED_IDLE, 0));
		T(of_policy(SCHED_OTHER, 0));
		T(of_policy(SCHED_OTHER | 0x40000000, 0));
		T(of_policy(SCHED_IDLE | 0x40000000, 0));
		T(of_policy(SCHED_IDLE, 0));
		T(is(SCHED_IDLE, KEEP_POLICY, 4, 0));
		T(sched_setparam(0, &(struct sched_param){ 0 }));
		T(sched_setparam(1, &(struct sched_param){ 0 }));
		T(setpriority(PRIO_PROCESS, 1, 10));
		show("in the end");
	} END;
	CHILD("with RLIMIT_NICE 15") {
		limit(RLIMIT_NICE, 15);
		MUST(setpriority(PRIO_PROCESS, 0, 10));
		becomes_user();
		T(setpriority(PRIO_PROCESS, 0, 4));
		T(setpriority(PRIO_PROCESS, 0, 5));
		T(is(SCHED_OTHER, 0, 4, 0));
		T(is(SCHED_IDLE, 0, 6, 0));
		T(of_policy(SCHED_OTHER, 0));
		show("in the end");
	} END;
	CHILD("with RLIMIT_RTPRIO 10") {
		limit(RLIMIT_RTPRIO, 10);
		becomes_user();
		T(of_policy(SCHED_FIFO, 11));
		T(of_policy(SCHED_FIFO, 10));
		T(of_policy(SCHED_RR, 5));
		T(is(SCHED_RR, 0, 0, 10));
		T(is(SCHED_RR, 0, 0, 11));
		limit(RLIMIT_RTPRIO, 3);
		T(of_policy(SCHED_RR, 9));
		T(of_policy(SCHED_FIFO, 9));
		limit(RLIMIT_RTPRIO, 0);
		T(of_policy(SCHED_FIFO, 8));
		T(of_policy(SCHED_RR, 8));
		T(of_policy(SCHED_RR, 2));
		T(of_policy(SCHED_OTHER, 0));
		T(of_policy(SCHED_RR, 1));
	} END;
}

static void resets(void)
{
	SAY("-- reset on fork");
	is(SCHED_FIFO, RESET, 0, 10);
	CHILD("of SCHED_FIFO") {
		show("child");
	} END;
	is(SCHED_OTHER, RESET, -5, 0);
	CHILD("of nice -5") {
		show("child");
	} END;
	is(SCHED_OTHER, RESET, 5, 0);
	CHILD("of nice 5") {
		show("child");
	} END;
	is(SCHED_BATCH, RESET, 0, 0);
	CHILD("of SCHED_BATCH") {
		show("child");
	} END;
	is(SCHED_OTHER, 0, 0, 0);
}

static void try_setting(const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "kernel/%s", name);
	ssize_t got = put_setting(path, text);
	printf("%s = %s: %s, ", name, text, got < 0 ? err_name(errno) : "taken");
	snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
	printf("%s", read_file(path));
}

static void settings(void)
{
	SAY("-- settings");
	static const char *const runtimes[] = { "950000", "-1", "-2", "0", "1", "1000000", "1000001", "950000" };
	for (unsigned i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
		try_setting("sched_rt_runtime_us", runtimes[i]);
	static const char *const periods[] = { "0", "-1", "1", "949999", "950000", "2147483647", "1000000" };
	for (unsigned i = 0; i < sizeof periods / sizeof *periods; i++)
		try_setting("sched_rt_period_us", periods[i]);
	static const char *const slices[] = { "100", "0", "-5", "20", "100" };
	for (unsigned i = 0; i < sizeof slices / sizeof *slices; i++) {
		try_setting("sched_rr_timeslice_ms", slices[i]);
		struct timespec t;
		of_policy(SCHED_RR, 1);
		T(sched_rr_get_interval(0, &t));
		of_policy(SCHED_OTHER, 0);
		SAY("slice %ld ms", t.tv_nsec / 1000000);
	}
}

static long cpu_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One CPU: a SCHED_FIFO task that never sleeps, beside a normal one that has 60 ms to do. */
static void spinner(const char *runtime)
{
	MUST(put_setting("kernel/sched_rt_runtime_us", runtime));
	volatile int *done = (volatile int *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	struct sched_param normal = { 0 };
	/* Above the child until that is a normal task. */
	of_policy(SCHED_FIFO, 20);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		for (long from = cpu_ms(); cpu_ms() < from + 60;)
			;
		*done = 1;
		_exit(0);
	}
	MUST(sched_setscheduler(child, SCHED_OTHER, &normal));
	for (long from = cpu_ms(); cpu_ms() < from + LONG_MS && !*done;)
		;
	SAY("sched_rt_runtime_us %s: a normal task beside one that spins comes to its end: %s", runtime, *done ? "yes" : "no");
	of_policy(SCHED_OTHER, 0);
	reap(child);
}

int main(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	MUST(sched_setaffinity(0, sizeof one, &one));
	sizes();
	values();
	slices();
	users();
	resets();
	settings();
	spinner("-1");
	spinner("1000000");
	spinner("950000");
	return 0;
}
