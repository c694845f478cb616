/*
 * check.h: what the ABI programs share. Each program states one Linux contract in its header comment
 * and prints what it sees; the lines must be the same on Linux and on Alea, so nothing that may
 * differ between two runs (addresses, pids, times) is ever printed raw.
 */
#ifndef ALEA_ABI_CHECK_H
#define ALEA_ABI_CHECK_H

#define _GNU_SOURCE
/* The programs hand bad arguments over on purpose. */
#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Wunused-result"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Warray-bounds"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))
#define PAGE 4096L
/* The lowest address that user space cannot have, and one that only the kernel has. */
#define NON_CANONICAL ((void *)0x0000800000000000UL)
#define KERNEL_ADDRESS ((void *)0xffffffff81000000UL)

static UNUSED const char *err_name(int e)
{
	const char *name = strerrorname_np(e);
	return name ? name : "E?";
}

static UNUSED long report(const char *what, long result)
{
	int e = errno;
	if (result == -1)
		printf("%s: %s\n", what, err_name(e));
	else
		printf("%s: %ld\n", what, result);
	errno = e;
	return result;
}

/* Evaluates a call once and prints its text with the result, or with the name of errno. */
#define T(call) ({ errno = 0; report(#call, (long)(call)); })
/* The same for calls whose result may be an address or a pid: prints ok or the error. */
#define OK(call) ({ errno = 0; long r_ = (long)(call); \
		    if (r_ == -1) report(#call, -1); else printf("%s: ok\n", #call); r_; })
/* A fact: yes or no. */
#define IS(fact) printf("%s: %s\n", #fact, (fact) ? "yes" : "no")
#define SAY(...) (printf(__VA_ARGS__), putchar('\n'))

/* Set-up that must work before anything can be tested. */
#define MUST(call) ({ long m_ = (long)(call); \
		      if (m_ == -1) { printf("SETUP %s: %s\n", #call, err_name(errno)); _exit(99); } m_; })

static UNUSED const char *sig_name(int sig)
{
	static char rt[16];
	const char *name = sigabbrev_np(sig);
	if (name)
		return name;
	snprintf(rt, sizeof rt, "%d", sig);
	return rt;
}

static UNUSED void say_status(const char *what, int status)
{
	if (WIFEXITED(status))
		printf("%s: exit %d\n", what, WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		printf("%s: killed by %s%s\n", what, sig_name(WTERMSIG(status)),
		       WCOREDUMP(status) ? " (core)" : "");
	else if (WIFSTOPPED(status))
		printf("%s: stopped by %s\n", what, sig_name(WSTOPSIG(status)));
	else if (WIFCONTINUED(status))
		printf("%s: continued\n", what);
	else
		printf("%s: status %#x\n", what, status);
}

static UNUSED int reap(pid_t pid)
{
	int status = -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* Runs a block in a child and prints how the child ended: CHILD("name") { ... } END */
#define CHILD(name) do { const char *child_name_ = (name); fflush(stdout); \
			 pid_t child_ = (pid_t)MUST(fork()); if (child_ == 0) {
#define END _exit(0); } say_status(child_name_, reap(child_)); } while (0)

static UNUSED void sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

static UNUSED long elapsed_ms(const struct timespec *from)
{
	struct timespec to;
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (to.tv_sec - from->tv_sec) * 1000 + (to.tv_nsec - from->tv_nsec) / 1000000;
}

/*
 * A limit for waiting: nothing but a hang takes as long. No program may count on something being done
 * after a while: the machine that runs this may stand still for a second between any two instructions.
 */
#define LONG_MS 60000

/* The state letter in a stat file of /proc, or 0 if it is gone. */
static UNUSED char state_in(const char *path)
{
	char text[512];
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *paren = strrchr(text, ')');
	return paren ? paren[2] : 0;
}

/* Waits until the process is in one of the states of /proc/PID/stat. */
static UNUSED int wait_state(pid_t pid, const char *states)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	for (int i = 0; i < LONG_MS / 5; i++) {
		char state = state_in(path);
		if (state == 0)
			return 0;
		if (strchr(states, state))
			return 1;
		sleep_ms(5);
	}
	return 0;
}

/* Waits until this process has `count` threads beside the caller, and all of them sleep. */
static UNUSED int wait_threads(int count)
{
	for (int i = 0; i < LONG_MS; i++) {
		int all = 0, asleep = 0;
		DIR *dir = opendir("/proc/self/task");
		for (struct dirent *d; dir && (d = readdir(dir));) {
			char path[300];
			if (d->d_name[0] == '.' || atoi(d->d_name) == (int)syscall(SYS_gettid))
				continue;
			snprintf(path, sizeof path, "/proc/self/task/%s/stat", d->d_name);
			all++;
			asleep += state_in(path) == 'S';
		}
		if (dir)
			closedir(dir);
		if (all == count && asleep == count)
			return 1;
		sleep_ms(1);
	}
	return 0;
}

/* n pages of readable and writable anonymous memory. */
static UNUSED char *pages(long n)
{
	return (char *)MUST(mmap(NULL, (size_t)(n * PAGE), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* A page followed by one that is not mapped; returns the end of the mapped one. */
static UNUSED char *page_end(void)
{
	char *p = pages(2);
	MUST(munmap(p + PAGE, (size_t)PAGE));
	return p + PAGE;
}

static UNUSED void write_file(const char *path, const char *text)
{
	int fd = (int)MUST(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		SAY("SETUP: short write to %s", path);
	close(fd);
}

/* One write to a file that is there: how many bytes it took, or -1 and errno. */
static UNUSED ssize_t put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0)
		return -1;
	ssize_t got = write(fd, text, strlen(text));
	int error = errno;
	close(fd);
	errno = error;
	return got;
}

/* The same for a setting below /proc/sys. */
static UNUSED ssize_t put_setting(const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof path, "/proc/sys/%s", name);
	return put_file(path, text);
}

/* The contents of a small file, as a string in a static buffer. */
static UNUSED const char *read_file(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return err_name(errno);
	size_t have = 0;
	ssize_t n;
	while (have < sizeof text - 1 && (n = read(fd, text + have, sizeof text - 1 - have)) > 0)
		have += (size_t)n;
	close(fd);
	text[have] = 0;
	return text;
}

/* What a file below /proc/sys says. */
static UNUSED const char *get_setting(const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "/proc/sys/%s", name);
	return read_file(path);
}

static UNUSED int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static char scratch_path[64];
static pid_t scratch_owner;

static UNUSED void scratch_done(void)
{
	if (getpid() == scratch_owner && chdir("/") == 0)
		nftw(scratch_path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Makes an empty folder of the program's own the working directory; it is removed at exit. */
static UNUSED void scratch(void)
{
	umask(022);
	strcpy(scratch_path, "/tmp/abi-XXXXXX");
	if (!mkdtemp(scratch_path))
		MUST(-1);
	MUST(chmod(scratch_path, 0755));
	MUST(chdir(scratch_path));
	scratch_owner = getpid();
	atexit(scratch_done);
}

/* Lines are never left in a buffer that a child would print a second time. */
static __attribute__((constructor)) void line_buffered(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

#endif
