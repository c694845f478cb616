/*
 * Running out: a process that takes all memory is killed by SIGKILL (or refused) and the system goes on; a limit on its
 * address space gives ENOMEM; many descriptors, processes and pipes end in errors, not in a crash.
 */
#include "check.h"
#include <sys/resource.h>

int main(void)
{
	/* descriptors */
	CHILD("descriptors") {
		struct rlimit rl = { 300, 300 };
		setrlimit(RLIMIT_NOFILE, &rl);
		int p[2], n = 0;
		while (pipe(p) == 0)
			n++;
		SAY("pipes end with %s, many %d", err_name(errno), n > 100);
	} END;
	/* processes */
	CHILD("processes") {
		struct rlimit rl = { 60, 60 };
		MUST(setrlimit(RLIMIT_NPROC, &rl));
		MUST(setuid(7777));
		int n = 0;
		pid_t pid, kids[100];
		while (n < 100 && (pid = fork()) >= 0) {
			if (pid == 0)
				for (;;)
					pause();
			kids[n++] = pid;
		}
		SAY("fork ends with %s after %d", err_name(errno), n);
		for (int i = 0; i < n; i++)
			kill(kids[i], SIGKILL);
		while (wait(NULL) > 0)
			;
		pid = fork();
		if (pid == 0)
			_exit(0);
		SAY("then works again %d", pid > 0);
		wait(NULL);
	} END;
	/* memory */
	CHILD("all memory") {
		static const char ballast[] = "1000";
		int fd = open("/proc/self/oom_score_adj", O_WRONLY);
		write(fd, ballast, 4);
		for (;;) {
			char *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (p == MAP_FAILED)
				raise(SIGKILL);
			memset(p, 1, 4 << 20);
		}
	} END;
	char *p = pages(1000);
	memset(p, 1, 1000 * PAGE);
	SAY("memory is there again: %d", p[999 * PAGE]);
	return 0;
}
