/*
 * prctl's PR_SET_SPECULATION_CTRL and PR_GET_: what is asked about, what may be asked for, arguments that are too many, and what
 * /proc/self/status says. With an argument, on a machine that has what is asked for (`alea.predictors=1`): how often the
 * CPU is told (/proc/alea/vm_exits) as two processes take turns of which none, one or both have asked.
 */
#include "check.h"
#include <sys/prctl.h>

enum { STORES, BRANCHES, FLUSH, NOTHING };

static void ask(int which)
{
	T(prctl(PR_GET_SPECULATION_CTRL, which, 0, 0, 0));
}

static void want(int which, unsigned long what)
{
	T(prctl(PR_SET_SPECULATION_CTRL, which, what, 0, 0));
}

static void status(void)
{
	char *text = strdup(read_file("/proc/self/status"));
	char *found = strstr(text, "Speculation_Store_Bypass");
	char *end = found ? strstr(found, "Cpus_allowed") : 0;
	if (!end)
		end = found ? strstr(found, "x86_Thread") : 0;
	if (end)
		*end = 0;
	printf("%s", found ? found : "no line\n");
	free(text);
}

static void answers(void)
{
	for (int which = STORES; which <= NOTHING; which++) {
		SAY("%d", which);
		ask(which);
		want(which, PR_SPEC_ENABLE);
		want(which, PR_SPEC_DISABLE);
		ask(which);
		want(which, PR_SPEC_DISABLE_NOEXEC);
		ask(which);
		status();
		CHILD("inherited, and forced") {
			ask(which);
			want(which, PR_SPEC_FORCE_DISABLE);
			ask(which);
			want(which, PR_SPEC_ENABLE);
			status();
		} END;
		want(which, PR_SPEC_ENABLE);
		ask(which);
		want(which, 0);
		want(which, 3);
		want(which, ~0UL);
	}
	T(prctl(PR_GET_SPECULATION_CTRL, STORES, 1, 0, 0));
	T(prctl(PR_GET_SPECULATION_CTRL, STORES, 0, 1, 0));
	T(prctl(PR_GET_SPECULATION_CTRL, NOTHING, 0, 0, 1));
	T(prctl(PR_SET_SPECULATION_CTRL, STORES, 0, 1, 0));
	T(prctl(PR_SET_SPECULATION_CTRL, NOTHING, 0, 0, 1));
	T(prctl(PR_GET_SPECULATION_CTRL, 1UL << 32, 0, 0, 0));
}

static long told(const char *kind)
{
	const char *at = strstr(read_file("/proc/alea/vm_exits"), kind);
	return at ? atol(at + strlen(kind)) : -1;
}

#define TURNS 100

/* Two processes take turns: how often the CPU is told meanwhile, in hundreds of a turn. */
static void turns(const char *what, int which, int parent_asks, int child_asks)
{
	int there[2], back[2];
	char byte = 0;
	MUST(pipe(there));
	MUST(pipe(back));
	pid_t child = MUST(fork());
	if (!child) {
		if (child_asks)
			prctl(PR_SET_SPECULATION_CTRL, which, PR_SPEC_DISABLE, 0, 0);
		while (read(there[0], &byte, 1) == 1 && byte == 0)
			write(back[1], &byte, 1);
		_exit(0);
	}
	if (parent_asks)
		prctl(PR_SET_SPECULATION_CTRL, which, PR_SPEC_DISABLE, 0, 0);
	write(there[1], &byte, 1);
	read(back[0], &byte, 1);
	long register_before = told("predictors "), barrier_before = told("barrier ");
	for (int i = 0; i < TURNS; i++) {
		write(there[1], &byte, 1);
		read(back[0], &byte, 1);
	}
	long writes = told("predictors ") - register_before, barriers = told("barrier ") - barrier_before;
	SAY("%s: register %ld, barriers %ld", what, (writes + TURNS / 4) / TURNS, (barriers + TURNS / 4) / TURNS);
	byte = 1;
	write(there[1], &byte, 1);
	waitpid(child, 0, 0);
	if (parent_asks)
		prctl(PR_SET_SPECULATION_CTRL, which, PR_SPEC_ENABLE, 0, 0);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
}

int main(int argc, char **argv)
{
	answers();
	if (argc > 1) {
		turns("nobody", STORES, 0, 0);
		turns("stores of one", STORES, 0, 1);
		turns("stores of both", STORES, 1, 1);
		turns("branches of one", BRANCHES, 0, 1);
		turns("branches of both", BRANCHES, 1, 1);
	}
	return 0;
}
