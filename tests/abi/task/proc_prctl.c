/*
 * prctl and arch_prctl: names, death signals, dumpable, no_new_privs, subreapers, timer slack, FS and GS bases (with
 * the range check), CPUID faulting queries, and unknown options.
 */
#include "check.h"
#include <asm/prctl.h>
#include <sys/prctl.h>

static int arch(int code, unsigned long arg) { return (int)syscall(SYS_arch_prctl, code, arg); }

static volatile int hups;

static void on_hup(int s) { hups++; }

int main(void)
{
	char name[32] = { 0 };
	int v = -1;
	T(prctl(PR_SET_NAME, "a name that is too long for it"));
	T(prctl(PR_GET_NAME, name));
	SAY("%s", name);
	printf("%s", read_file("/proc/self/comm"));
	int fd = (int)MUST(open("/proc/self/comm", O_WRONLY));
	T(write(fd, "by proc\n", 8));
	prctl(PR_GET_NAME, name);
	SAY("%s|", name);
	T(prctl(PR_GET_DUMPABLE));
	T(prctl(PR_SET_DUMPABLE, 2));
	T(prctl(PR_SET_DUMPABLE, 0));
	T(prctl(PR_GET_DUMPABLE));
	T(prctl(PR_SET_DUMPABLE, 1));
	T(prctl(PR_GET_PDEATHSIG, &v));
	SAY("%d", v);
	T(prctl(PR_SET_PDEATHSIG, 65));
	T(prctl(PR_SET_PDEATHSIG, SIGUSR1));
	T(prctl(PR_GET_PDEATHSIG, &v));
	SAY("%d", v);
	CHILD("not inherited") {
		prctl(PR_GET_PDEATHSIG, &v);
		SAY("%d", v);
	} END;
	T(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	T(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	T(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0));
	T(prctl(PR_GET_KEEPCAPS));
	T(prctl(PR_GET_TIMERSLACK));
	T(prctl(PR_SET_TIMERSLACK, 1234));
	T(prctl(PR_GET_TIMERSLACK));
	T(prctl(PR_GET_SECCOMP));
	T(prctl(PR_GET_TSC, &v));
	SAY("%d", v);
	T(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
	T(prctl(PR_MCE_KILL_GET, 1, 0, 0, 0));
	T(prctl(PR_MCE_KILL_GET, 0, 1, 0, 0));
	T(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
	T(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
	CHILD("of a child") {
		T(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
	} END;
	T(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_LATE, 0, 0));
	T(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
	T(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_DEFAULT, 0, 0));
	T(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
	T(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, 3, 0, 0));
	T(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, 0, 1, 0));
	T(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, 0, 0, 1));
	T(prctl(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 1, 0, 0));
	T(prctl(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 0, 0, 0));
	T(prctl(PR_MCE_KILL, 2, 0, 0, 0));
	T(prctl(PR_GET_CHILD_SUBREAPER, &v));
	SAY("%d", v);
	T(prctl(PR_SET_CHILD_SUBREAPER, 1));
	int fds[2], ready[2];
	MUST(pipe(fds));
	MUST(pipe(ready));
	pid_t me = getpid();
	CHILD("middle") {
		if (fork() == 0) {
			pid_t middle = getppid();
			prctl(PR_SET_PDEATHSIG, SIGHUP);
			signal(SIGHUP, on_hup);
			write(ready[1], "r", 1);
			while (getppid() == middle)
				sleep_ms(1);
			char seen[2] = { getppid() == me ? '1' : '0', (char)('0' + hups) };
			write(fds[1], seen, 2);
			_exit(0);
		}
		char c;
		read(ready[0], &c, 1);
	} END;
	char seen[3] = { 0 };
	read(fds[0], seen, 2);
	wait(NULL);
	SAY("adopted by the subreaper, death signals: %s", seen);
	T(prctl(99999));
	T(prctl(PR_SET_NAME, 8));
	T(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 0, 0, 0));
	/* bases */
	unsigned long base = 0, old;
	T(arch(ARCH_GET_FS, (unsigned long)&old));
	IS(old != 0);
	T(arch(ARCH_GET_GS, (unsigned long)&base));
	SAY("gs %lu", base);
	static unsigned long there = 0x1234;
	T(arch(ARCH_SET_GS, (unsigned long)&there));
	unsigned long got;
	__asm__ volatile("mov %%gs:0,%0" : "=r"(got));
	SAY("through gs %#lx", got);
	sleep_ms(20);
	__asm__ volatile("mov %%gs:0,%0" : "=r"(got));
	SAY("after a switch %#lx", got);
	CHILD("gs is inherited") {
		__asm__ volatile("mov %%gs:0,%0" : "=r"(got));
		SAY("%#lx", got);
	} END;
	T(arch(ARCH_SET_GS, 0x800000000000));
	T(arch(ARCH_SET_FS, 0xffffffff81000000));
	T(arch(ARCH_SET_GS, 0x7ffffffff000));
	T(arch(ARCH_SET_GS, 0x7fffffffe000));
	T(arch(ARCH_GET_FS, 8));
	T(arch(ARCH_SET_FS, old));
	T(arch(0x9999, 0));
	return 0;
}
