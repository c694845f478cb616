/*
 * fuzz_calls.h: what fuzz.c throws: where the values of arguments come from, the table of system calls, and what each child has to
 * work with. Nothing here starts a child.
 */
#ifndef ALEA_FUZZ_CALLS_H
#define ALEA_FUZZ_CALLS_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wunused-result"

#define PAGE 4096UL
#define LOG_FD 900
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

typedef uint64_t u64;

/* What one child may map. */
#define MEMORY_LIMIT (96UL << 20)

static __thread u64 state;
static int verbose;
static int is_root;

/* ---- random numbers and words for the log ---- */

static u64 draw(void)
{
	u64 z = (state += 0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static u64 below(u64 n) { return draw() % n; }
static int one_in(u64 n) { return below(n) == 0; }

#define PICK(list) ((list)[below(COUNT(list))])

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[400];
	va_list list;
	va_start(list, format);
	int n = vsnprintf(line, sizeof line, format, list);
	va_end(list);
	if (n > (int)sizeof line - 1)
		n = sizeof line - 1;
	if (syscall(SYS_write, LOG_FD, line, n) < 0)
		syscall(SYS_write, 1, line, n);
}

#define TELL(...) do { if (verbose) say(__VA_ARGS__); } while (0)

static u64 now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

/* ---- the values that arguments are drawn from ---- */

#define ARENA_PAGES 64UL
static char *arena;		/* ARENA_PAGES pages, of mixed protection; storms map and unmap in it */
static char *soup;		/* four pages of plausible words: pointers, descriptors, sizes */
static char *edge;		/* the end of a mapped page, before one that is not */
static char *read_only;
static pid_t kids[8];

static const long BOUNDS[] = {
	0, 1, 2, 3, 7, 8, 15, 16, 63, 64, 65, 100, 255, 256, 511, 1024, 4095, 4096, 4097, 8192, 65535, 65536, -1, -2, -3, -22, -100, -4095, -4096,
	0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0x100000000, -0x80000000L, INT64_MAX, INT64_MIN, INT64_MAX - 4095, 0x7ffffffff000, 0x7fffffffefff,
	0x7fffffffffff, 0x800000000000, (long)0xffff800000000000, (long)0xffffffff80000000, (long)0xfffffffffffff000, 1L << 62, 1L << 40, 0x200000, 0x1000000,
	INT64_MAX / 1000000000, 9223372036L, 9223372037L, 999999999, 1000000000, 18446744073L,
};

static long wild(void)
{
	switch (below(4)) {
	case 0: return (long)draw();
	case 1: return PICK(BOUNDS) + (long)below(3) - 1;
	case 2: return (long)(1UL << below(64));
	default: return PICK(BOUNDS);
	}
}

static long pointer(void)
{
	switch (below(14)) {
	case 0: return (long)(edge - below(64));
	case 1: return (long)(read_only + below(PAGE));
	case 2: return (long)(arena + below(ARENA_PAGES) * PAGE);
	case 3: return (long)(arena + below(ARENA_PAGES * PAGE));
	case 4: return PICK(BOUNDS);
	case 5: return 0;
	case 6: return (long)(edge - below(4096));
	default: return (long)(soup + below(3 * PAGE) / 8 * 8);
	}
}

static long length(void)
{
	static const long some[] = { 0, 1, 2, 4, 7, 8, 12, 16, 24, 32, 56, 64, 100, 128, 144, 256, 4095, 4096, 4097, 8192, 65536, 1 << 20 };
	return one_in(6) ? PICK(BOUNDS) : one_in(3) ? (long)below(300) : PICK(some);
}

static long flags(void)
{
	switch (below(6)) {
	case 0: return 0;
	case 1: return 1L << below(32);
	case 2: return 1L << below(20) | 1L << below(20);
	case 3: return (long)below(16);
	case 4: return (long)(draw() & draw() & 0xffffffff);
	default: return (long)(O_CLOEXEC | (one_in(2) ? O_NONBLOCK : 0));
	}
}

/* Fills the soup with words that look like members of structures. */
static void stir(void)
{
	u64 *words = (u64 *)soup;
	for (unsigned i = 0; i < 3 * PAGE / 8; i++)
		switch (below(10)) {
		case 0: words[i] = 0; break;
		case 1: words[i] = (u64)pointer(); break;
		case 2: words[i] = (u64)length(); break;
		case 3: words[i] = below(40); break;
		case 4: words[i] = below(40) | below(64) << 32; break;
		case 5: words[i] = (u64)wild(); break;
		case 6: words[i] = (u64)(soup + below(3 * PAGE)); break;
		case 7: words[i] = 1UL << below(64); break;
		case 8: words[i] = below(5000000); break;
		default: words[i] = 1 + below(3); break;
		}
}

static const char *const PATHS[] = {
	".", "..", "/", "a", "b", "d", "d/a", "d/e", "d/e/f", "d/e/../x", "link", "loop", "fifo", "sock", "/proc", "/proc/self", "/proc/self/fd", "/proc/self/mem",
	"/proc/self/maps", "/proc/self/exe", "/proc/self/fd/5", "/proc/self/fd/9", "/proc/self/cwd/a", "/proc/self/root", "/proc/1/status", "/proc/1/maps", "/proc/1/fd",
	"/proc/1/environ", "/proc/1/cwd", "/proc/self/comm", "/proc/self/oom_score_adj", "/proc/self/task", "/proc/self/environ", "/proc/self/auxv", "/proc/self/status",
	"/proc/self/stat", "/proc/self/limits", "/proc/self/mountinfo", "/proc/self/smaps", "/proc/self/pagemap", "/proc/meminfo", "/proc/stat", "/proc/mounts", "/proc/uptime",
	"/proc/kmsg", "/proc/sys/kernel/hostname", "/proc/sys/kernel/random/uuid", "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/random/poolsize", "/proc/sys/vm",
	"/proc/alea/syscalls", "/proc/alea/exec_phases", "/proc/interrupts", "/proc/self/", "", "a/", "d/", "nothing", "nothing/x", "/dev/null", "/dev/zero", "/dev/full",
	"/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/pts/0", "/dev/pts/ptmx", "/dev/kmsg", "/dev", "exe", "setuid", "sticky", "sticky/x", "m", "m/x", "m/..",
	"/proc/self/task/1/stat", "/proc/self/fdinfo", "/proc/self/fdinfo/5", "/proc/thread-self/stat", "/proc/cpuinfo", "/proc/loadavg", "/proc/filesystems", "/proc/self/ns",
};

static long path(void)
{
	static __thread char room[8][8300];
	static __thread unsigned next;
	if (one_in(12))
		return pointer();
	char *p = room[next++ % 8];
	if (one_in(30)) {
		static const unsigned sizes[] = { 254, 255, 256, 4094, 4095, 4096, 8192 };
		unsigned n = PICK(sizes);
		memset(p, one_in(2) ? '/' : 'x', n);
		p[n] = 0;
	} else if (one_in(30)) {
		/* it ends where the memory does */
		const char *s = PATHS[below(COUNT(PATHS))];
		return (long)memcpy(edge - strlen(s) - below(2), s, strlen(s));
	} else {
		strcpy(p, PICK(PATHS));
	}
	return (long)p;
}

static long descriptor(void)
{
	static const long odd[] = { -1, AT_FDCWD, 1023, 1 << 20, INT32_MAX, -0x80000000L, 0x100000003, 64, 63 };
	return one_in(16) ? PICK(odd) : (long)below(36);
}

static long process_id(void)
{
	static const long odd[] = { 0, -1, 2, -2, 99999, INT32_MAX, -0x80000000L, -0x7fffffff };
	switch (below(4)) {
	case 0: return (long)getpid();
	case 1: return PICK(odd);
	case 2: return 0;
	default: return kids[below(COUNT(kids))];
	}
}

static long iovec(void)
{
	struct iovec *v = (struct iovec *)(soup + below(2 * PAGE) / 16 * 16);
	for (int i = 0; i < 8; i++)
		v[i] = (struct iovec) { (void *)pointer(), (size_t)length() };
	return (long)v;
}

static long timespec(void)
{
	struct timespec *t = (struct timespec *)(soup + below(3 * PAGE) / 16 * 16);
	for (int i = 0; i < 2; i++) {
		t[i].tv_sec = one_in(6) ? wild() : 0;
		t[i].tv_nsec = one_in(6) ? wild() : (long)below(3000000);
	}
	return one_in(8) ? 0 : (long)t;
}

static long address(void)
{
	struct sockaddr_un *a = (struct sockaddr_un *)(soup + 256 + below(16) * 128);
	a->sun_family = one_in(8) ? (sa_family_t)draw() : AF_UNIX;
	strcpy(a->sun_path, one_in(3) ? "sock" : one_in(2) ? "sock2" : "d/sock");
	if (one_in(3))
		a->sun_path[0] = 0;
	return (long)a;
}

static long message(void)
{
	struct msghdr *m = (struct msghdr *)soup;
	char *control = soup + 1024;
	m->msg_name = one_in(2) ? NULL : (void *)address();
	m->msg_namelen = one_in(4) ? (socklen_t)length() : 110;
	m->msg_iov = (void *)iovec();
	m->msg_iovlen = one_in(8) ? (size_t)length() : below(8);
	m->msg_control = one_in(8) ? (void *)pointer() : control;
	m->msg_controllen = one_in(4) ? (size_t)length() : 16 + 4 * below(8);
	struct cmsghdr *c = (struct cmsghdr *)control;
	c->cmsg_len = one_in(5) ? (size_t)length() : m->msg_controllen;
	c->cmsg_level = one_in(8) ? (int)draw() : SOL_SOCKET;
	c->cmsg_type = one_in(3) ? (int)below(5) : SCM_RIGHTS;
	for (int i = 0; i < 8; i++)
		((int *)CMSG_DATA(c))[i] = (int)descriptor();
	return (long)m;
}

static const int IOCTLS[] = {
	0x5401, 0x5402, 0x5403, 0x5404, 0x5405, 0x5406, 0x5407, 0x5408, 0x5409, 0x540a, 0x540b, 0x540c, 0x540d, 0x540e, 0x540f, 0x5410, 0x5411, 0x5412, 0x5413, 0x5414, 0x5415, 0x5418,
	0x5419, 0x541a, 0x541b, 0x541c, 0x541d, 0x541e, 0x5420, 0x5421, 0x5422, 0x5423, 0x5424, 0x5425, 0x5426, 0x5427, 0x5428, 0x5429, 0x5450, 0x5451, 0x5452, 0x5460, (int)0x80045430,
	0x40045431, 0x40045436, (int)0x80045438, (int)0x80045439, 0x5441, (int)0x80045200, 0x40045201, (int)0x80085202, 0x40085203, 0x5204, 0x5206, 0x5207, (int)0x802c542a, 0x402c542b,
	0x402c542c, 0x402c542d, 0x5601, 0x4b33, 0x4b3a, 0x8901, 0x8902, 0x8903, 0x8904, 0x8905, 0x8912, 0x8927, 0x8933, 0x6601, 0x1260, 0x5453, 0x5457, 0x5458, (int)0x80047476, 0x7470,
};
static const int FCNTLS[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 36, 37, 38, 1024, 1025, 1026, 1030, 1031, 1032, 1033, 1034, 1035, 1036 };
static const int PRCTLS[] = { 1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 16, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 33, 34, 35, 36, 37, 38, 39, 40, 47, 0x53564d41, 0x59616d61 };
static const int CLONES[] = { 0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000, 0x4000, 0x8000, 0x10000, 0x20000, 0x40000, 0x80000, 0x100000, 0x200000, 0x400000, 0x800000, 0x1000000, 0x2000000,
	0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, (int)0x80000000 };
static const char *const FILE_SYSTEMS[] = { "tmpfs", "proc", "devpts", "sysfs", "devtmpfs", "ramfs", "none", "" };
static const int ADVICE[] = { 0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 100 };
static const int FUTEX_OPS[] = { 0, 1, 3, 4, 5, 9, 10, 128, 129, 131, 132, 133, 137, 138, 6, 7, 8, 11, 12, 13, 256 + 9, 256 + 128, 384 + 9, 2 };
static const int CLOCKS[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, -2, -6, 100, -1000 };

/*
 * One letter for each argument: f descriptor, d folder descriptor, p path, b buffer, l length, o offset, n small number,
 * F flags, m mode, s signal, t time, P process, u user, a memory address, L memory length, R protection, v iovec, k ioctl,
 * c fcntl, A socket address, M message, C clock, y prctl, Y clone flags, x file system, h advice, q futex operation, w futex word, z zero or any,
 * O open flags, T machine-wide number that must not be init's
 */
static const struct row { short number; const char *name, *kinds; } ROWS[] = {
#define R(name, kinds) { SYS_##name, #name, kinds }
	R(read, "fbl"), R(write, "fbl"), R(open, "pOm"), R(close, "f"), R(stat, "pb"), R(fstat, "fb"), R(lstat, "pb"), R(poll, "bnn"), R(lseek, "fon"),
	R(mmap, "aLRFfo"), R(mprotect, "aLR"), R(munmap, "aL"), R(brk, "z"), R(rt_sigaction, "sbbn"), R(rt_sigprocmask, "nbbn"), R(ioctl, "fkb"), R(ioctl, "fkn"),
	R(pread64, "fblo"), R(pwrite64, "fblo"), R(readv, "fvn"), R(writev, "fvn"), R(access, "pm"), R(pipe, "b"), R(select, "nbbbt"), R(sched_yield, ""),
	R(mremap, "aLLna"), R(msync, "aLn"), R(mincore, "aLb"), R(madvise, "aLh"), R(dup, "f"), R(dup2, "ff"), R(pause, ""), R(nanosleep, "tb"),
	R(getitimer, "nb"), R(alarm, "z"), R(setitimer, "ntb"), R(getpid, ""), R(sendfile, "ffbl"), R(socket, "nnn"), R(connect, "fAl"), R(accept, "fbb"),
	R(sendto, "fblFAl"), R(recvfrom, "fblFbb"), R(sendmsg, "fMF"), R(recvmsg, "fMF"), R(shutdown, "fn"), R(bind, "fAl"), R(listen, "fz"), R(getsockname, "fbb"),
	R(getpeername, "fbb"), R(socketpair, "nnnb"), R(setsockopt, "fnnbl"), R(getsockopt, "fnnbb"), R(wait4, "PbFb"), R(kill, "Ps"), R(uname, "b"),
	R(fcntl, "fcb"), R(fcntl, "fcn"), R(flock, "fn"), R(fsync, "f"), R(fdatasync, "f"), R(truncate, "po"), R(ftruncate, "fo"), R(getdents, "fbl"), R(getcwd, "bl"),
	R(chdir, "p"), R(fchdir, "f"), R(rename, "pp"), R(mkdir, "pm"), R(rmdir, "p"), R(creat, "pm"), R(link, "pp"), R(unlink, "p"), R(symlink, "pp"),
	R(readlink, "pbl"), R(chmod, "pm"), R(fchmod, "fm"), R(chown, "puu"), R(fchown, "fuu"), R(lchown, "puu"), R(umask, "m"), R(gettimeofday, "bb"),
	R(getrlimit, "nb"), R(getrusage, "zb"), R(sysinfo, "b"), R(times, "b"), R(getuid, ""), R(syslog, "nbl"), R(getgid, ""), R(setuid, "u"), R(setgid, "u"),
	R(geteuid, ""), R(getegid, ""), R(setpgid, "PP"), R(getppid, ""), R(getpgrp, ""), R(setsid, ""), R(setreuid, "uu"), R(setregid, "uu"), R(getgroups, "nb"),
	R(setgroups, "nb"), R(setresuid, "uuu"), R(getresuid, "bbb"), R(setresgid, "uuu"), R(getresgid, "bbb"), R(getpgid, "P"), R(setfsuid, "u"), R(setfsgid, "u"),
	R(getsid, "P"), R(capget, "bb"), R(capset, "bb"), R(rt_sigpending, "bl"), R(rt_sigtimedwait, "bbtn"), R(rt_sigqueueinfo, "Psb"), R(rt_sigsuspend, "bn"),
	R(sigaltstack, "bb"), R(utime, "pb"), R(mknod, "pmn"), R(personality, "z"), R(statfs, "pb"), R(fstatfs, "fb"), R(getpriority, "nP"), R(setpriority, "nTn"),
	R(sched_setparam, "Tb"), R(sched_getparam, "Pb"), R(sched_setscheduler, "Tnb"), R(sched_getscheduler, "P"), R(sched_get_priority_max, "n"),
	R(sched_get_priority_min, "n"), R(sched_rr_get_interval, "Pb"), R(mlock, "aL"), R(munlock, "aL"), R(mlockall, "n"), R(munlockall, ""), R(pivot_root, "pp"),
	R(prctl, "ybbbb"), R(prctl, "ynnnn"), R(prctl, "yzzzz"), R(arch_prctl, "zb"), R(setrlimit, "nb"), R(chroot, "p"), R(sync, ""), R(settimeofday, "bb"),
	R(mount, "ppxFb"), R(umount2, "pn"), R(sethostname, "bl"), R(setdomainname, "bl"), R(gettid, ""), R(readahead, "fol"), R(setxattr, "ppbln"), R(lsetxattr, "ppbln"),
	R(fsetxattr, "fpbln"), R(getxattr, "ppbl"), R(lgetxattr, "ppbl"), R(fgetxattr, "fpbl"), R(listxattr, "pbl"), R(llistxattr, "pbl"), R(flistxattr, "fbl"),
	R(removexattr, "pp"), R(lremovexattr, "pp"), R(fremovexattr, "fp"), R(tkill, "Ps"), R(time, "b"), R(futex, "wqntwn"), R(futex, "wqnnwz"), R(futex, "bqzzbz"),
	R(sched_setaffinity, "Tlb"), R(sched_getaffinity, "Plb"), R(epoll_create, "n"), R(getdents64, "fbl"), R(set_tid_address, "b"), R(restart_syscall, ""),
	R(fadvise64, "foln"), R(timer_create, "Cbb"), R(timer_settime, "nntb"), R(timer_gettime, "nb"), R(timer_getoverrun, "n"), R(timer_delete, "n"),
	R(clock_settime, "Ct"), R(clock_gettime, "Cb"), R(clock_getres, "Cb"), R(clock_nanosleep, "Cntb"), R(epoll_wait, "fbnn"), R(epoll_ctl, "fnfb"), R(tgkill, "PPs"),
	R(utimes, "pb"), R(waitid, "nPbFb"), R(openat, "dpOm"), R(mkdirat, "dpm"), R(mknodat, "dpmn"), R(fchownat, "dpuuF"), R(futimesat, "dpb"), R(newfstatat, "dpbF"),
	R(unlinkat, "dpF"), R(renameat, "dpdp"), R(linkat, "dpdpF"), R(symlinkat, "pdp"), R(readlinkat, "dpbl"), R(fchmodat, "dpm"), R(faccessat, "dpm"),
	R(pselect6, "nbbbtb"), R(ppoll, "bntbn"), R(set_robust_list, "bl"), R(get_robust_list, "Pbb"), R(splice, "fbfblF"), R(tee, "fflF"), R(sync_file_range, "foon"),
	R(vmsplice, "fvnF"), R(utimensat, "dpbF"), R(epoll_pwait, "fbnnbn"), R(signalfd, "fbn"), R(timerfd_create, "CF"), R(eventfd, "z"), R(fallocate, "fnoo"),
	R(timerfd_settime, "fntb"), R(timerfd_gettime, "fb"), R(accept4, "fbbF"), R(signalfd4, "fbnF"), R(eventfd2, "zF"), R(epoll_create1, "F"), R(dup3, "ffF"),
	R(pipe2, "bF"), R(preadv, "fvnoo"), R(pwritev, "fvnoo"), R(rt_tgsigqueueinfo, "PPsb"), R(recvmmsg, "fMnFt"), R(prlimit64, "Tnbb"), R(syncfs, "f"),
	R(sendmmsg, "fMnF"), R(getcpu, "bb"), R(renameat2, "dpdpn"), R(getrandom, "blF"), R(memfd_create, "pF"), R(membarrier, "nn"), R(mlock2, "aLn"),
	R(shmget, "nLm"), R(shmat, "naF"), R(shmdt, "a"), R(shmctl, "nnb"), R(semget, "nnm"), R(semop, "nbn"), R(semctl, "nnnb"), R(semtimedop, "nbnt"),
	R(msgget, "nm"), R(msgsnd, "nblF"), R(msgrcv, "nblnF"), R(msgctl, "nnb"), R(unshare, "F"), R(copy_file_range, "fbfblF"), R(preadv2, "fvnooF"), R(pwritev2, "fvnooF"), R(statx, "dpFzb"), R(close_range, "nnn"), R(close_range, "zzF"), R(openat2, "dpbl"),
	R(faccessat2, "dpmF"), R(epoll_pwait2, "fbntbn"), R(execve, "pbb"), R(execveat, "dpbbF"), R(clone3, "bl"), R(rt_sigreturn, ""), R(exit, "n"),
	{ 424, "pidfd_send_signal", "fsbF" }, { 434, "pidfd_open", "PF" }, { 438, "pidfd_getfd", "ffF" }, { 253, "inotify_init", "" }, { 254, "inotify_add_watch", "fpF" },
	{ 255, "inotify_rm_watch", "fn" }, { 294, "inotify_init1", "F" }, { 452, "fchmodat2", "dpmF" }, { 314, "sched_setattr", "TbF" }, { 315, "sched_getattr", "PblF" },
	{ 310, "process_vm_readv", "PvnvnF" }, { 311, "process_vm_writev", "PvnvnF" }, { 101, "ptrace", "nPbb" }, { 448, "process_mrelease", "fF" }, { 440, "process_madvise", "fvnhF" },
	{ 425, "io_uring_setup", "nb" }, { 426, "io_uring_enter", "fnnFbl" }, { 427, "io_uring_register", "fnbn" },
};

static long argument(char kind)
{
	static const long small_users[] = { 0, 1000, 1001, 65534, -1, 0xfffffffe, 0x80000000, 0x100000000 };
	if (one_in(20))
		return wild();
	switch (kind) {
	case 'f': return descriptor();
	case 'd': return one_in(3) ? descriptor() : AT_FDCWD;
	case 'p': return path();
	case 'b': return pointer();
	case 'l': return length();
	case 'o': return one_in(2) ? (long)below(20000) : wild();
	case 'n': return (long)below(one_in(4) ? 70 : 9);
	case 'F': return flags();
	case 'm': return one_in(2) ? (long)below(01000) : (long)(below(020) << 12 | below(010000));
	case 's': return (long)below(66);
	case 't': return timespec();
	case 'P': return process_id();
	case 'u': return PICK(small_users);
	case 'a': return (long)(arena + below(ARENA_PAGES + 2) * PAGE + (one_in(10) ? below(PAGE) : 0));
	case 'L': return one_in(10) ? wild() : (long)(below(24) * PAGE);
	case 'R': return (long)below(8);
	case 'v': return iovec();
	case 'k': return PICK(IOCTLS);
	case 'c': return PICK(FCNTLS);
	case 'A': return address();
	case 'M': return message();
	case 'C': return PICK(CLOCKS);
	case 'y': return PICK(PRCTLS);
	case 'Y': return PICK(CLONES) | PICK(CLONES) | PICK(CLONES) | (long)below(65);
	case 'x': return (long)PICK(FILE_SYSTEMS);
	case 'h': return PICK(ADVICE);
	case 'q': return PICK(FUTEX_OPS);
	case 'w': return (long)(soup + 3 * PAGE + below(8) * 4);
	case 'O': return (long)(below(4) | (one_in(2) ? O_CREAT : 0) | (one_in(2) ? O_NONBLOCK : 0) | (one_in(6) ? flags() : 0));
	default: return wild();
	}
}

/* Not allowed: the ends of the machine, of the log and of init's limits. */
static int spared(long number, const long *a)
{
	number &= 0xffffffff;
	if (number == SYS_reboot || number == SYS_fork || number == SYS_vfork || number == SYS_clone || number == SYS_exit_group)
		return 1;
	/* a number of a process is an int to the kernel, whatever stands above it */
	return (int)a[0] == 1 && (number == SYS_prlimit64 || number == SYS_setpriority || (number >= SYS_sched_setparam && number <= SYS_sched_setscheduler) ||
			     number == SYS_sched_setaffinity || number == 314);
}

static void one_call(void)
{
	const struct row *row = &PICK(ROWS);
	long number = row->number, a[6], n = 0;
	const char *name = row->name;
	for (; row->kinds[n]; n++)
		a[n] = argument(row->kinds[n]);
	for (; n < 6; n++)
		a[n] = one_in(2) ? 0 : wild();
	/* these end the sequence */
	if ((number == SYS_execve || number == SYS_execveat || number == SYS_rt_sigreturn || number == SYS_exit) && !one_in(12))
		return;
	if (number == SYS_syslog && a[0] >= 6 && a[0] <= 8)
		return;
	if (one_in(200)) {
		number = (long)below(480);
		name = "?";
	}
	if (number == SYS_mmap)
		a[3] = (one_in(2) ? MAP_PRIVATE : MAP_SHARED) | (one_in(2) ? MAP_ANONYMOUS : 0) | (one_in(2) ? MAP_FIXED : 0) | (one_in(4) ? flags() : 0);
	if (spared(number, a))
		return;
	TELL("[%d] %ld %s(%#lx, %#lx, %#lx, %#lx, %#lx, %#lx)\n", getpid(), number, name, a[0], a[1], a[2], a[3], a[4], a[5]);
	long result = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (verbose > 1)
		say("[%d]   = %ld (%d)\n", getpid(), result, errno);
	if (result > 0 && (number == SYS_fork || number == 435) && result < 1 << 22)
		kids[below(COUNT(kids))] = (pid_t)result;
}

/* ---- what each child has to work with ---- */

static void nothing(int signal) { (void)signal; }

/* Interrupts blocking calls a hundred times a second, for as long as the calls leave the timer alone. */
static void tick(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval often = { { 0, 10000 }, { 0, 10000 } };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static char *pages(unsigned long n, int protection)
{
	return mmap(NULL, n * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void memory(void)
{
	arena = pages(ARENA_PAGES + 2, PROT_READ | PROT_WRITE);
	mprotect(arena + 8 * PAGE, 8 * PAGE, PROT_READ);
	mprotect(arena + 24 * PAGE, 4 * PAGE, PROT_NONE);
	soup = pages(4, PROT_READ | PROT_WRITE);
	edge = pages(2, PROT_READ | PROT_WRITE) + PAGE;
	munmap(edge, PAGE);
	read_only = pages(1, PROT_READ);
	stir();
}

static void limits(void)
{
	struct rlimit files = { 64, 64 }, space = { MEMORY_LIMIT, MEMORY_LIMIT }, size = { 1 << 20, 1 << 20 }, core = { 0, 0 }, processes = { 40, 40 };
	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_AS, &space);
	setrlimit(RLIMIT_FSIZE, &size);
	setrlimit(RLIMIT_CORE, &core);
	setrlimit(RLIMIT_NPROC, &processes);
}

/* Descriptors of every kind, from 3 on. */
static void descriptors(void)
{
	int p[2];
	u64 set = ~0UL;
	struct epoll_event event = { EPOLLIN | EPOLLET, { .u64 = 1 } };
	pipe2(p, O_NONBLOCK);
	pipe(p);
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p);
	socketpair(AF_UNIX, SOCK_DGRAM, 0, p);
	socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, p);
	socket(AF_UNIX, SOCK_STREAM, 0);
	int epoll = epoll_create1(0);
	int event_fd = eventfd(1, EFD_NONBLOCK);
	epoll_ctl(epoll, EPOLL_CTL_ADD, event_fd, &event);
	epoll_ctl(epoll, EPOLL_CTL_ADD, p[0], &event);
	timerfd_create(CLOCK_MONOTONIC, 0);
	syscall(SYS_signalfd4, -1, &set, 8, SFD_NONBLOCK);
	int memory = memfd_create("m", MFD_ALLOW_SEALING);
	ftruncate(memory, 20000);
	open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
	open("/proc/self/maps", O_RDONLY);
	open("/proc/self/mem", O_RDWR);
	open("/proc/self/stat", O_RDONLY);
	open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	open("/proc/self/comm", O_RDWR);
	open("/dev/zero", O_RDWR);
	open("/dev/null", O_RDWR);
	open("/dev/urandom", O_RDWR);
	open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	open(".", O_RDONLY | O_DIRECTORY);
	open("a", O_RDWR | O_CREAT, 0666);
	open("d", O_PATH);
	open("fifo", O_RDWR | O_NONBLOCK);
	open("b", O_RDWR | O_CREAT | O_APPEND, 0666);
	socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	open("/dev/tty", O_RDWR);
}

#endif
