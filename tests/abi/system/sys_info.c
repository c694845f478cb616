/*
 * What a system says of itself: uname's shape, sysinfo against /proc/meminfo, getcpu, scheduling parameters and affinity,
 * host name, sync, reboot's checks, and unknown system calls (ENOSYS).
 */
#include "check.h"
#include <sched.h>
#include <sys/reboot.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

int main(void)
{
	struct utsname u;
	T(uname(&u));
	SAY("%s %s", u.sysname, u.machine);
	IS(u.release[0] >= '5' && strchr(u.release, '.') != NULL);
	IS(u.version[0] == '#');
	CHILD("names") {
		T(sethostname("a-new-name", 10));
		uname(&u);
		SAY("%s", u.nodename);
		printf("%s", read_file("/proc/sys/kernel/hostname"));
		T(sethostname("x", -1));
		T(sethostname("x", 65));
		T(setdomainname("dom", 3));
		uname(&u);
		SAY("%s", u.domainname);
		T(setuid(1000));
		T(sethostname("y", 1));
	} END;
	struct sysinfo si;
	T(sysinfo(&si));
	IS(si.totalram > 0 && si.freeram < si.totalram && si.procs > 0 && si.mem_unit > 0);
	long total = atol(strstr(read_file("/proc/meminfo"), "MemTotal:") + 9);
	IS(total == (long)(si.totalram * si.mem_unit / 1024));
	unsigned cpu = 99, node = 99;
	T(syscall(SYS_getcpu, &cpu, &node, NULL));
	IS(cpu < 64);
	SAY("node %u", node);
	T(syscall(SYS_getcpu, NULL, NULL, NULL));
	/* scheduling */
	struct sched_param sp = { -1 };
	T(sched_getscheduler(0));
	T(sched_getscheduler(-1));
	T(sched_getscheduler(999999999));
	T(sched_getparam(0, &sp));
	SAY("priority %d", sp.sched_priority);
	T(sched_get_priority_max(SCHED_FIFO));
	T(sched_get_priority_min(SCHED_FIFO));
	T(sched_get_priority_max(SCHED_OTHER));
	T(sched_get_priority_max(77));
	T(sched_setscheduler(0, 77, &sp));
	sp.sched_priority = 5;
	T(sched_setscheduler(0, SCHED_OTHER, &sp));
	sp.sched_priority = 0;
	T(sched_setscheduler(0, SCHED_FIFO, &sp));
	T(sched_setscheduler(0, SCHED_BATCH, &sp));
	T(sched_getscheduler(0));
	T(sched_setscheduler(0, SCHED_OTHER, &sp));
	T(sched_yield());
	cpu_set_t set;
	T(syscall(SYS_sched_getaffinity, 0, 4, &set));
	T(syscall(SYS_sched_getaffinity, -1, sizeof set, &set));
	T(syscall(SYS_sched_setaffinity, -1, sizeof set, &set));
	T(syscall(SYS_sched_getscheduler, -1));
	IS(syscall(SYS_sched_getaffinity, 0, sizeof set, &set) >= 8);
	IS(CPU_COUNT(&set) >= 1);
	CPU_ZERO(&set);
	T(sched_setaffinity(0, sizeof set, &set));
	CPU_SET(0, &set);
	T(sched_setaffinity(0, sizeof set, &set));
	T(sched_setaffinity(999999999, sizeof set, &set));
	T(syscall(SYS_getcpu, &cpu, NULL, NULL));
	SAY("pinned to %u", cpu);
	CHILD("as uid 1000") {
		MUST(setuid(1000));
		T(sched_setaffinity(1, sizeof set, &set));
		sp.sched_priority = 5;
		T(sched_setscheduler(0, SCHED_FIFO, &sp));
		T(reboot(RB_AUTOBOOT));
		T(syscall(SYS_reboot, 1, 2, 3, 0));
	} END;
	T(syscall(SYS_reboot, 1, 2, 3, 0));
	T(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x99, 0));
	T(reboot(RB_DISABLE_CAD));
	sync();
	/* unknown calls */
	T(syscall(400));
	T(syscall(1000));
	T(syscall(-1));
	T(syscall(0x7fffffff));
	T(syscall(0xffffffff00000000l | SYS_getpid) == getpid() ? 0 : -1);
	T(syscall(SYS_uselib, "x"));
	T(syscall(SYS_create_module));
	T(syscall(SYS_nfsservctl));
	T(syscall(SYS_personality, 0xffffffff));
	/* the registers that a call may not change */
	unsigned long r[6];
	__asm__ volatile("mov $1,%%rdi; mov $2,%%rsi; mov $3,%%rdx; mov $4,%%r10; mov $5,%%r8; mov $6,%%r9; syscall;"
			 "mov %%rdi,0(%%rbx); mov %%rsi,8(%%rbx); mov %%rdx,16(%%rbx); mov %%r10,24(%%rbx); mov %%r8,32(%%rbx); mov %%r9,40(%%rbx)"
			 : : "a"((long)SYS_getppid), "b"(r) : "rdi", "rsi", "rdx", "r10", "r8", "r9", "rcx", "r11", "memory");
	SAY("%lu %lu %lu %lu %lu %lu", r[0], r[1], r[2], r[3], r[4], r[5]);
	return 0;
}
