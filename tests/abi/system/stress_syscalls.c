/*
 * Wild arguments: tens of thousands of system calls with numbers, pointers, lengths and flags chosen to hurt, by
 * throw-away children, first as an ordinary user, then as root. Nothing is expected but that the system lives, that
 * the parent is unharmed, and that memory can still be had.
 */
#include "check.h"
#include <sys/prctl.h>
#include <sys/resource.h>

#define ROUNDS 120
#define CALLS 250

static uint64_t random_state;
static char *good, *edge, *read_only;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Not for these: they would end the test, the session or the machine, or wait for ever. */
static int spared(long n)
{
	static const short list[] = {
		SYS_exit, SYS_exit_group, SYS_pause, SYS_reboot, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo,
		SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal, SYS_fork, SYS_vfork, SYS_clone, SYS_clone3, SYS_rt_sigsuspend,
		SYS_rt_sigtimedwait, SYS_rt_sigreturn, SYS_umount2, SYS_mount, SYS_pivot_root, SYS_chroot, SYS_move_mount,
		SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
		SYS_unlink, SYS_unlinkat, SYS_rmdir, SYS_rename, SYS_renameat, SYS_renameat2, SYS_truncate, SYS_chmod, SYS_fchmodat,
		SYS_chown, SYS_lchown, SYS_fchownat, SYS_ptrace, SYS_process_vm_writev, SYS_setpriority, SYS_prlimit64, SYS_vhangup,
		SYS_swapon, SYS_swapoff, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load,
		SYS_acct, SYS_iopl, SYS_ioperm, SYS_syslog, SYS_quotactl, SYS_setns, SYS_unshare, SYS_sched_setscheduler,
		SYS_sched_setattr, SYS_sched_setparam, SYS_ioprio_set, SYS_migrate_pages, SYS_bpf, SYS_mlockall, SYS_mknod, SYS_mknodat,
	};
	for (unsigned i = 0; i < sizeof list / sizeof list[0]; i++)
		if (list[i] == n)
			return 1;
	return n == 335 || n == 336;	/* probes of the kernel itself, on newer Linux */
}

static long argument(void)
{
	static const long fixed[] = { 0, 1, 2, 3, 4, 7, 8, 15, 16, 64, 100, 4095, 4096, 4097, 65536, -1, -2, -100, INT_MAX, INT_MIN,
		(long)UINT_MAX, LONG_MAX, LONG_MIN, 0x7ffffffff000, 0x7fffffffefff, 0x800000000000, (long)0xffff800000000000ul,
		(long)0xffffffff80000000ul, (long)0xfffffffffffff000ul, 0x1000, 0x80000, 0x100000, 1l << 31, 1l << 32, 1l << 47 };
	switch (draw() % 6) {
	case 0:
		return (long)(good + draw() % 4096);
	case 1:
		return (long)(edge - draw() % 64);
	case 2:
		return (long)(read_only + draw() % 4096);
	case 3:
		return (long)(draw() % 64);
	case 4:
		return (long)draw();
	default:
		return fixed[draw() % (sizeof fixed / sizeof fixed[0])];
	}
}

static void storm(int round, int root)
{
	struct rlimit small = { 64, 64 }, memory = { 256 << 20, 256 << 20 }, file = { 1 << 20, 1 << 20 }, cpu = { 2, 2 };
	random_state = 0x2545f4914f6cdd1d * (uint64_t)(round + 1);
	setrlimit(RLIMIT_NOFILE, &small);
	setrlimit(RLIMIT_AS, &memory);
	setrlimit(RLIMIT_FSIZE, &file);
	setrlimit(RLIMIT_CPU, &cpu);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* output must not be written to by chance */
	int null = open("/dev/null", O_RDWR), fds[2];
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	pipe(fds);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	open("/proc/self/stat", O_RDONLY);
	open("/dev/urandom", O_RDWR);
	open(".", O_RDONLY);
	open("scrap", O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < 4096; i++)
		good[i] = (char)draw();
	if (!root && setuid(1000 + (unsigned)round) != 0)
		_exit(1);
	for (int i = 0; i < CALLS; i++) {
		long n = draw() % 16 ? (long)(draw() % 463) : argument();
		if (spared(n & 0xffffffff))
			continue;
		syscall(n, argument(), argument(), argument(), argument(), argument(), argument());
	}
	syscall(SYS_exit_group, 0);
}

static void storms(const char *who, int root)
{
	for (int round = 0; round < ROUNDS; round++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0)
			storm(round, root);
		/* most end at once; some sleep in a call, and then SIGKILL must help */
		for (int i = 0; i < 30; i++) {
			if (waitpid(pid, NULL, WNOHANG) != 0) {
				pid = 0;
				break;
			}
			sleep_ms(i < 10 ? 1 : 5);
		}
		if (pid) {
			kill(pid, SIGKILL);
			kill(pid, SIGCONT);
			waitpid(pid, NULL, 0);
		}
	}
	SAY("%s: survived", who);
}

int main(void)
{
	scratch();
	MUST(chmod(".", 0777));
	good = pages(2);
	edge = page_end();
	read_only = pages(1);
	MUST(mprotect(read_only, PAGE, PROT_READ));
	storms("as users", 0);
	/* as root in a corner of its own: a new root, where nothing can be broken */
	MUST(mkdir("jail", 0777));
	CHILD("root in a jail") {
		MUST(chroot("jail"));
		MUST(chdir("/"));
		MUST(mkdir("dev", 0777));
		MUST(mknod("dev/null", S_IFCHR | 0666, 0x103));
		MUST(mknod("dev/urandom", S_IFCHR | 0666, 0x109));
		storms("as root", 1);
	} END;
	char *p = pages(2000);
	memset(p, 1, 2000 * PAGE);
	IS(p[1999 * PAGE] == 1);
	CHILD("a child") {
		execl("/bin/true", "true", NULL);
	} END;
	return 0;
}
