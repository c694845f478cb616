/*
 * A wild pointer in any argument of any system call is EFAULT (or another plain error), never a crash
 * of the caller or of the kernel. Every call is tried with NULL, an unmapped, a read-only (where the
 * kernel would write), a kernel and a non-canonical address.
 */
#include "check.h"
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <termios.h>

#define BAD 0xbadbadbadul	/* stands for the bad pointer in a row */

struct row {
	const char *name;
	long number, args[6];
	int writes;	/* the kernel writes there: a read-only page is bad too */
};

static int file, pipes[2], dir, epfd, tfd;
static char buf[256];
#define A(p) ((long)(p))

static const char *result(long r)
{
	static char text[24];
	if (r == -1)
		return err_name(errno);
	snprintf(text, sizeof text, "%ld", r);
	return text;
}

static void try(const struct row *row, void *const bad[], int count)
{
	printf("%s:", row->name);
	for (int i = 0; i < count; i++) {
		long a[6];
		if (i == 2 && !row->writes)
			continue;
		for (int k = 0; k < 6; k++)
			a[k] = row->args[k] == (long)BAD ? A(bad[i]) : row->args[k];
		errno = 0;
		printf(" %s", result(syscall(row->number, a[0], a[1], a[2], a[3], a[4], a[5])));
	}
	putchar('\n');
}

int main(void)
{
	scratch();
	file = (int)MUST(open("f", O_RDWR | O_CREAT, 0644));
	MUST(write(file, "0123456789abcdef", 16));
	MUST(lseek(file, 0, SEEK_SET));
	MUST(pipe(pipes));
	MUST(write(pipes[1], "abc", 3));
	dir = (int)MUST(open(".", O_RDONLY | O_DIRECTORY));
	epfd = (int)MUST(epoll_create1(0));
	tfd = (int)MUST(timerfd_create(CLOCK_MONOTONIC, 0));
	MUST(symlink("f", "link"));
	char *unmapped = pages(1), *read_only = pages(1);
	MUST(munmap(unmapped, PAGE));
	MUST(mprotect(read_only, PAGE, PROT_READ));
	void *const bad[] = { NULL, unmapped, read_only, KERNEL_ADDRESS, NON_CANONICAL };
	struct iovec one = { buf, 4 };
	const struct row rows[] = {
		{ "read", SYS_read, { file, BAD, 4 }, 1 },
		{ "write", SYS_write, { file, BAD, 4 }, 0 },
		{ "pread64", SYS_pread64, { file, BAD, 4, 0 }, 1 },
		{ "pwrite64", SYS_pwrite64, { file, BAD, 4, 0 }, 0 },
		{ "readv iov", SYS_readv, { file, BAD, 1 }, 0 },
		{ "writev iov", SYS_writev, { file, BAD, 1 }, 0 },
		{ "read pipe", SYS_read, { pipes[0], BAD, 1 }, 1 },
		{ "write pipe", SYS_write, { pipes[1], BAD, 1 }, 0 },
		{ "open", SYS_open, { BAD, O_RDONLY, 0 }, 0 },
		{ "openat", SYS_openat, { AT_FDCWD, BAD, O_RDONLY, 0 }, 0 },
		{ "openat2 how", SYS_openat2, { AT_FDCWD, A("f"), BAD, 24 }, 0 },
		{ "stat path", SYS_stat, { BAD, A(buf) }, 0 },
		{ "stat buf", SYS_stat, { A("f"), BAD }, 1 },
		{ "fstat", SYS_fstat, { file, BAD }, 1 },
		{ "lstat", SYS_lstat, { A("link"), BAD }, 1 },
		{ "newfstatat", SYS_newfstatat, { AT_FDCWD, A("f"), BAD, 0 }, 1 },
		{ "statx path", SYS_statx, { AT_FDCWD, BAD, 0, 0x7ff, A(buf) }, 0 },
		{ "statx buf", SYS_statx, { AT_FDCWD, A("f"), 0, 0x7ff, BAD }, 1 },
		{ "statfs", SYS_statfs, { A("/"), BAD }, 1 },
		{ "access", SYS_access, { BAD, R_OK }, 0 },
		{ "readlink path", SYS_readlink, { BAD, A(buf), 10 }, 0 },
		{ "readlink buf", SYS_readlink, { A("link"), BAD, 10 }, 1 },
		{ "getcwd", SYS_getcwd, { BAD, 100 }, 1 },
		{ "getdents64", SYS_getdents64, { dir, BAD, 100 }, 1 },
		{ "chdir", SYS_chdir, { BAD }, 0 },
		{ "chroot", SYS_chroot, { BAD }, 0 },
		{ "mkdir", SYS_mkdir, { BAD, 0755 }, 0 },
		{ "rmdir", SYS_rmdir, { BAD }, 0 },
		{ "unlink", SYS_unlink, { BAD }, 0 },
		{ "rename from", SYS_rename, { BAD, A("x") }, 0 },
		{ "rename to", SYS_rename, { A("f"), BAD }, 0 },
		{ "link", SYS_link, { A("f"), BAD }, 0 },
		{ "symlink", SYS_symlink, { BAD, A("y") }, 0 },
		{ "chmod", SYS_chmod, { BAD, 0644 }, 0 },
		{ "chown", SYS_chown, { BAD, 0, 0 }, 0 },
		{ "truncate", SYS_truncate, { BAD, 4 }, 0 },
		{ "mknod", SYS_mknod, { BAD, S_IFIFO | 0600, 0 }, 0 },
		{ "utimensat path", SYS_utimensat, { AT_FDCWD, BAD, A(buf), 0 }, 0 },
		{ "pipe2", SYS_pipe2, { BAD, 0 }, 1 },
		{ "poll", SYS_poll, { BAD, 1, 0 }, 1 },
		{ "select", SYS_select, { 8, A(buf), BAD, 0, A(buf) }, 1 },
		{ "epoll_ctl", SYS_epoll_ctl, { epfd, EPOLL_CTL_ADD, pipes[0], BAD }, 0 },
		{ "execve path", SYS_execve, { BAD, A(buf), 0 }, 0 },
		{ "wait4 status", SYS_wait4, { -1, BAD, WNOHANG, 0 }, 0 },
		{ "rt_sigaction new", SYS_rt_sigaction, { SIGUSR1, BAD, 0, 8 }, 0 },
		{ "rt_sigaction old", SYS_rt_sigaction, { SIGUSR1, 0, BAD, 8 }, 1 },
		{ "rt_sigprocmask new", SYS_rt_sigprocmask, { SIG_BLOCK, BAD, 0, 8 }, 0 },
		{ "rt_sigprocmask old", SYS_rt_sigprocmask, { SIG_BLOCK, 0, BAD, 8 }, 1 },
		{ "rt_sigpending", SYS_rt_sigpending, { BAD, 8 }, 1 },
		{ "rt_sigtimedwait", SYS_rt_sigtimedwait, { BAD, 0, A(buf), 8 }, 0 },
		{ "rt_sigsuspend", SYS_rt_sigsuspend, { BAD, 8 }, 0 },
		{ "sigaltstack new", SYS_sigaltstack, { BAD, 0 }, 0 },
		{ "sigaltstack old", SYS_sigaltstack, { 0, BAD }, 1 },
		{ "nanosleep", SYS_nanosleep, { BAD, 0 }, 0 },
		{ "clock_nanosleep", SYS_clock_nanosleep, { CLOCK_MONOTONIC, 0, BAD, 0 }, 0 },
		{ "clock_gettime", SYS_clock_gettime, { CLOCK_MONOTONIC, BAD }, 1 },
		{ "clock_getres", SYS_clock_getres, { CLOCK_MONOTONIC, BAD }, 1 },
		{ "gettimeofday", SYS_gettimeofday, { BAD, 0 }, 1 },
		{ "setitimer", SYS_setitimer, { 0, BAD, 0 }, 0 },
		{ "getitimer", SYS_getitimer, { 0, BAD }, 1 },
		{ "timerfd_settime", SYS_timerfd_settime, { tfd, 0, BAD, 0 }, 0 },
		{ "timerfd_gettime", SYS_timerfd_gettime, { tfd, BAD }, 1 },
		{ "uname", SYS_uname, { BAD }, 1 },
		{ "sysinfo", SYS_sysinfo, { BAD }, 1 },
		{ "getrusage", SYS_getrusage, { RUSAGE_SELF, BAD }, 1 },
		{ "getrlimit", SYS_getrlimit, { RLIMIT_NOFILE, BAD }, 1 },
		{ "setrlimit", SYS_setrlimit, { RLIMIT_NOFILE, BAD }, 0 },
		{ "prlimit64 new", SYS_prlimit64, { 0, RLIMIT_NOFILE, BAD, 0 }, 0 },
		{ "prlimit64 old", SYS_prlimit64, { 0, RLIMIT_NOFILE, 0, BAD }, 1 },
		{ "getgroups", SYS_getgroups, { 10, BAD }, 0 },
		{ "setgroups", SYS_setgroups, { 1, BAD }, 0 },
		{ "getresuid", SYS_getresuid, { A(buf), A(buf), BAD }, 1 },
		{ "futex wait", SYS_futex, { BAD, FUTEX_WAIT_PRIVATE, 1, 0 }, 0 },
		{ "futex wake", SYS_futex, { BAD, FUTEX_WAKE_PRIVATE, 1, 0 }, 0 },
		{ "futex wait shared", SYS_futex, { BAD, FUTEX_WAIT, 1, 0 }, 0 },
		{ "futex timeout", SYS_futex, { A(buf), FUTEX_WAIT_PRIVATE, 1, BAD }, 0 },
		{ "sched_getaffinity", SYS_sched_getaffinity, { 0, 128, BAD }, 1 },
		{ "sched_setaffinity", SYS_sched_setaffinity, { 0, 128, BAD }, 0 },
		{ "sched_getparam", SYS_sched_getparam, { 0, BAD }, 1 },
		{ "prctl name", SYS_prctl, { 15, BAD }, 0 },
		{ "prctl get name", SYS_prctl, { 16, BAD }, 1 },
		{ "ioctl FIONREAD", SYS_ioctl, { pipes[0], 0x541b, BAD }, 1 },
		{ "ioctl FIONBIO", SYS_ioctl, { pipes[0], 0x5421, BAD }, 0 },
		{ "fcntl F_GETLK", SYS_fcntl, { file, F_GETLK, BAD }, 0 },
		{ "sendfile offset", SYS_sendfile, { pipes[1], file, BAD, 1 }, 1 },
		{ "mount type", SYS_mount, { A("none"), A("/tmp"), BAD, 0, 0 }, 0 },
		{ "umount2", SYS_umount2, { BAD, 0 }, 0 },
		{ "sethostname", SYS_sethostname, { BAD, 4 }, 0 },
		{ "memfd_create", SYS_memfd_create, { BAD, 0 }, 0 },
		{ "waitid", SYS_waitid, { P_ALL, 0, BAD, WEXITED | WNOHANG, 0 }, 0 },
		{ "rt_sigqueueinfo", SYS_rt_sigqueueinfo, { getpid(), SIGUSR1, BAD }, 0 },
		{ "mincore", SYS_mincore, { A(read_only), PAGE, BAD }, 1 },
		{ "getcpu", SYS_getcpu, { BAD, 0 }, 1 },
		{ "socketpair", SYS_socketpair, { 1, 1, 0, BAD }, 1 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		try(&rows[i], bad, 5);
	T(readv(file, &one, 1));
	return 0;
}
