/*
 * Resource limits: getrlimit, setrlimit and prlimit64 with their errors, the defaults an init's child has, lowering and
 * raising as a user, RLIMIT_AS, RLIMIT_STACK, RLIMIT_CPU's signals, and /proc/self/limits.
 */
#include "check.h"
#include <sys/resource.h>

static volatile int xcpus;

static void on_xcpu(int s) { xcpus++; }

static void show(const char *name, int what)
{
	struct rlimit rl;
	getrlimit(what, &rl);
	char soft[24], hard[24];
	snprintf(soft, sizeof soft, rl.rlim_cur == RLIM_INFINITY ? "unlimited" : "%lu", rl.rlim_cur);
	snprintf(hard, sizeof hard, rl.rlim_max == RLIM_INFINITY ? "unlimited" : "%lu", rl.rlim_max);
	SAY("%s %s %s", name, soft, hard);
}

#define RL(c, m) &(struct rlimit){ c, m }

int main(void)
{
	struct rlimit old;
	show("cpu", RLIMIT_CPU);
	show("fsize", RLIMIT_FSIZE);
	show("data", RLIMIT_DATA);
	show("stack", RLIMIT_STACK);
	show("core", RLIMIT_CORE);
	show("nofile", RLIMIT_NOFILE);
	show("as", RLIMIT_AS);
	show("locks", RLIMIT_LOCKS);
	show("nice", RLIMIT_NICE);
	T(setrlimit(RLIMIT_NOFILE, RL(100, 50)));
	T(setrlimit(99, RL(1, 1)));
	T(getrlimit(99, &old));
	T(setrlimit(RLIMIT_NOFILE, RL(100, 1 << 30)));
	T(prlimit(0, RLIMIT_NOFILE, RL(64, 128), &old));
	SAY("old right %d", old.rlim_cur != 64);
	show("nofile", RLIMIT_NOFILE);
	T(prlimit(999999999, RLIMIT_NOFILE, NULL, &old));
	T(prlimit(getppid(), RLIMIT_NOFILE, NULL, &old));
	CHILD("as uid 1000") {
		MUST(setuid(1000));
		T(setrlimit(RLIMIT_NOFILE, RL(128, 128)));
		T(setrlimit(RLIMIT_NOFILE, RL(32, 100)));
		T(setrlimit(RLIMIT_NOFILE, RL(32, 101)));
		T(prlimit(1, RLIMIT_NOFILE, NULL, &old));
	} END;
	CHILD("address space") {
		T(setrlimit(RLIMIT_AS, RL(64 << 20, 64 << 20)));
		T(mmap(NULL, 128 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
		OK(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	} END;
	CHILD("data") {
		T(setrlimit(RLIMIT_DATA, RL(16 << 20, 16 << 20)));
		T(mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
		OK(mmap(NULL, 32 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		OK(mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	} END;
	CHILD("cpu: soft limit") {
		alarm(60);	/* in case there is no limit */
		setrlimit(RLIMIT_CPU, RL(1, 10));
		for (;;)
			;
	} END;
	CHILD("cpu: hard limit, inherited") {
		T(setrlimit(RLIMIT_CPU, RL(1, 3)));
		signal(SIGXCPU, on_xcpu);
		CHILD("the child") {
			alarm(60);
			while (xcpus < 2)
				;
			getrlimit(RLIMIT_CPU, &old);
			SAY("twice over the soft limit, which is %ld now", (long)old.rlim_cur);
			fflush(stdout);
			for (;;)
				;
		} END;
		sleep_ms(100);
		SAY("the parent, which slept, got %d", xcpus);
	} END;
	CHILD("cpu: a limit of none") {
		alarm(60);
		T(setrlimit(RLIMIT_CPU, RL(0, 10)));
		for (;;)
			;
	} END;
	CHILD("cpu: a limit that is taken back") {
		T(setrlimit(RLIMIT_CPU, RL(1, RLIM_INFINITY)));
		T(setrlimit(RLIMIT_CPU, RL(RLIM_INFINITY, RLIM_INFINITY)));
		struct timespec from;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
		for (struct timespec now = from; now.tv_sec < from.tv_sec + 2;)
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} END;
	CHILD("memlock") {
		MUST(setrlimit(RLIMIT_MEMLOCK, RL(8192, 8192)));
		char *p = pages(8);
		T(mlock(p, 8192));
		T(mlock(p, 16384));
		MUST(setuid(1000));
		T(mlock(p, 16384));
		T(mlock(p, 8192));
	} END;
	/* the text form */
	const char *text = read_file("/proc/self/limits");
	SAY("%.*s", (int)strcspn(text, "\n"), text);
	const char *line = strstr(text, "Max open files");
	SAY("%.*s", (int)strcspn(line, "\n"), line);
	return 0;
}
