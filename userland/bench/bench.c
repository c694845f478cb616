/*
 * bench: one static program that measures the same work on Alea and on Linux.
 *
 * Prints, for every repetition of every benchmark,
 *     bench NAME ITERATIONS TOTAL_NS ok       (or `FAIL reason` in place of `ok`)
 * then `bench-skip NAME reason` for what this kernel lacks, and at the end `bench-end`.
 * It says `ok` only if every iteration did the work: every child's exit status and every output
 * is compared, so that a failed exec can never be timed as a fast one.
 *
 * usage: bench [--filter GLOB[,GLOB...]] [--quick] [--reps N] [--list]
 * --quick does a tenth of the work, once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vdso.h"

#define LINES 200
#define LINES_FILE "/tmp/alea-bench-lines"
#define PAGES_FILE "/tmp/alea-bench-pages"
#define NAMES 100
#define NAMES_DIR "/tmp/alea-bench-names"

static char lines[LINES * 32];	/* what LINES_FILE holds */
static char grep_want[4096];	/* what `grep 7 LINES_FILE` prints */
static char sed_want[LINES * 32]; /* what `sed s/line/row/ LINES_FILE` prints */
static char *const environment[] = { "PATH=/bin:/sbin:/usr/bin:/usr/sbin", NULL };

/* ---- helpers ---- */

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Reaps `pid` and says whether it exited with exactly `code`. */
static int exited_with(pid_t pid, int code)
{
	int status;
	pid_t got;
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return got == pid && WIFEXITED(status) && WEXITSTATUS(status) == code;
}

/* Runs `sh -c script` with its output in a pipe; says whether it exited 0 and printed `want`. */
static int shell_prints(const char *script, const char *want)
{
	static char got[sizeof lines + 1];
	char *const argv[] = { "sh", "-c", (char *)script, NULL };
	int fds[2];
	size_t have = 0;
	if (pipe(fds) != 0)
		return 0;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		execve("/bin/sh", argv, environment);
		_exit(127);
	}
	close(fds[1]);
	for (;;) {
		ssize_t n = read(fds[0], got + have, sizeof got - 1 - have);
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	close(fds[0]);
	got[have] = 0;
	return pid > 0 && exited_with(pid, 0) && strcmp(got, want) == 0;
}

/* Two draws of at least eight bytes never agree, and neither is all zero. */
static int looks_drawn(const unsigned char *a, const unsigned char *b, size_t n)
{
	static const unsigned char zero[8];
	return memcmp(a, b, n) != 0 && memcmp(a, zero, 8) != 0 && memcmp(b, zero, 8) != 0;
}

/* ---- benchmarks: each does `n` iterations and returns how many checks failed ---- */

static long run_getpid(long n)
{
	long bad = 0, self = getpid();
	for (long i = 0; i < n; i++)
		bad += syscall(SYS_getpid) != self;
	return bad;
}

#include "bench_seccomp.h"
#include "bench_streams.h"

static unsigned char draw[65536], last_draw[65536];

static long getrandom_loop(long n, size_t len)
{
	long bad = 0;
	memcpy(last_draw, draw, len);
	for (long i = 0; i < n; i++)
		bad += syscall(SYS_getrandom, draw, len, 0) != (long)len;
	return bad + !looks_drawn(draw, last_draw, len);
}

static long prime_draws(void)
{
	memset(draw, 0, sizeof draw);
	return syscall(SYS_getrandom, draw, 256, 0) != 256;
}

static long run_getrandom_16(long n) { return getrandom_loop(n, 16); }
static long run_getrandom_256(long n) { return getrandom_loop(n, 256); }
static long run_getrandom_64k(long n) { return getrandom_loop(n, 65536); }

static int urandom_fd = -1;

static long open_urandom(void)
{
	urandom_fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	return prime_draws() + (urandom_fd < 0);
}

static long close_urandom(void) { return close(urandom_fd) != 0; }

static long run_read_urandom(long n)
{
	long bad = 0;
	memcpy(last_draw, draw, 16);
	for (long i = 0; i < n; i++)
		bad += read(urandom_fd, draw, 16) != 16;
	return bad + !looks_drawn(draw, last_draw, 16);
}

static long run_fopen_urandom(long n)
{
	long bad = 0;
	memcpy(last_draw, draw, 16);
	for (long i = 0; i < n; i++) {
		FILE *f = fopen("/dev/urandom", "rb");
		if (!f) {
			bad++;
			continue;
		}
		bad += fread(draw, 1, 16, f) != 16;
		bad += fclose(f) != 0;
	}
	return bad + !looks_drawn(draw, last_draw, 16);
}

static int pipe_a[2], pipe_b[2];
static pid_t partner;

static long open_pipe(void) { return pipe2(pipe_a, O_CLOEXEC) != 0; }
static long close_pipe(void) { return close(pipe_a[0]) + close(pipe_a[1]) != 0; }

static long run_pipe_1(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		char out = (char)i, in = 0;
		bad += write(pipe_a[1], &out, 1) != 1;
		bad += read(pipe_a[0], &in, 1) != 1 || in != out;
	}
	return bad;
}

static long start_echo(void)
{
	if (pipe2(pipe_a, O_CLOEXEC) != 0 || pipe2(pipe_b, O_CLOEXEC) != 0)
		return 1;
	partner = fork();
	if (partner == 0) {
		char c;
		close(pipe_a[1]);
		close(pipe_b[0]);
		while (read(pipe_a[0], &c, 1) == 1)
			if (write(pipe_b[1], &c, 1) != 1)
				_exit(1);
		_exit(11);
	}
	close(pipe_a[0]);
	close(pipe_b[1]);
	return partner < 0;
}

static long stop_echo(void)
{
	close(pipe_a[1]);
	close(pipe_b[0]);
	return !exited_with(partner, 11);
}

static long run_pingpong(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		char out = (char)i, in = 0;
		bad += write(pipe_a[1], &out, 1) != 1;
		bad += read(pipe_b[0], &in, 1) != 1 || in != out;
	}
	return bad;
}

static long run_mmap_touch(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		char *p = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) {
			bad++;
			continue;
		}
		for (int page = 0; page < 64; page++)
			((volatile char *)p)[page * 4096] += 1;
		bad += p[0] != 1 || p[63 * 4096] != 1;
		bad += munmap(p, 64 * 4096) != 0;
	}
	return bad;
}

/* A file of 64 pages, of which each tells its number. */
static int pages_fd = -1;

static long make_pages(void)
{
	char page[4096] = { 0 };
	long bad = 0;
	pages_fd = open(PAGES_FILE, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	for (int i = 0; i < 64; i++) {
		page[0] = (char)(i + 1);
		bad += write(pages_fd, page, sizeof page) != sizeof page;
	}
	return bad;
}

static long drop_pages(void) { return close(pages_fd) + unlink(PAGES_FILE) != 0; }

static long map_pages(long n, int prot)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		char *p = mmap(NULL, 64 * 4096, prot, MAP_PRIVATE, pages_fd, 0);
		if (p == MAP_FAILED) {
			bad++;
			continue;
		}
		for (int page = 0; page < 64; page++) {
			volatile char *first = p + page * 4096;
			bad += *first != page + 1;
			if (prot & PROT_WRITE)
				*first = 0;
		}
		bad += munmap(p, 64 * 4096) != 0;
	}
	return bad;
}

static long run_file_read(long n) { return map_pages(n, PROT_READ); }
static long run_file_write(long n) { return map_pages(n, PROT_READ | PROT_WRITE); }

static int names_fd = -1;

static long make_names(void)
{
	char path[64];
	long bad = mkdir(NAMES_DIR, 0755) != 0;
	for (int i = 0; i < NAMES; i++) {
		snprintf(path, sizeof path, NAMES_DIR "/name-%03d", i);
		bad += close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) != 0;
	}
	names_fd = open(NAMES_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return bad + (names_fd < 0);
}

static long drop_names(void)
{
	char path[64];
	long bad = close(names_fd) != 0;
	for (int i = 0; i < NAMES; i++) {
		snprintf(path, sizeof path, NAMES_DIR "/name-%03d", i);
		bad += unlink(path) != 0;
	}
	return bad + (rmdir(NAMES_DIR) != 0);
}

/* Counts the entries of what getdents64 gave. */
static long entries_in(const char *all, long len)
{
	long count = 0;
	for (long at = 0; at < len; count++) {
		unsigned short step;
		memcpy(&step, all + at + 16, sizeof step);
		at += step;
	}
	return count;
}

/* As readdir does: all entries, then once more to hear that there are no others. */
static long run_getdents(long n)
{
	static char all[32768];
	long bad = 0, len = 0;
	for (long i = 0; i < n; i++) {
		bad += lseek(names_fd, 0, SEEK_SET) != 0;
		len = syscall(SYS_getdents64, names_fd, all, sizeof all);
		bad += len <= 0 || syscall(SYS_getdents64, names_fd, all + len, sizeof all - (size_t)len) != 0;
	}
	return bad + (entries_in(all, len) != NAMES + 2);
}

/* Mappings of a page each, which cannot be merged: every second one is read-only. */
#define MAPPINGS 8000L
static char *mappings;

static long make_mappings(void)
{
	mappings = mmap(NULL, MAPPINGS * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long bad = mappings == MAP_FAILED;
	for (long i = 0; !bad && i < MAPPINGS; i += 2)
		bad += mprotect(mappings + i * 4096, 4096, PROT_READ) != 0;
	return bad;
}

static long drop_mappings(void) { return munmap(mappings, MAPPINGS * 4096) != 0; }

/* The whole of a file of /proc, whose lines must be at least so many. */
static long read_whole(const char *path, long lines, long n)
{
	static char piece[65536];
	long bad = 0;
	for (long i = 0; i < n; i++) {
		long len, count = 0;
		int fd = open(path, O_RDONLY);
		while ((len = read(fd, piece, sizeof piece)) > 0)
			for (char *at = piece; (at = memchr(at, '\n', (size_t)(piece + len - at))); at++)
				count++;
		bad += len < 0 || count < lines || close(fd) != 0;
	}
	return bad;
}

static long run_maps(long n) { return read_whole("/proc/self/maps", MAPPINGS, n); }
static long run_smaps(long n) { return read_whole("/proc/self/smaps", 20 * MAPPINGS, n); }

static long run_proc_stat(long n) { return read_whole("/proc/self/stat", 1, n); }
static long run_proc_status(long n) { return read_whole("/proc/self/status", 50, n); }

/* Pipes with nothing to read, but for the one that is ready. */
#define WATCHED 100
static struct pollfd watched[WATCHED];
static int watched_ends[WATCHED];
static int watching = -1;

static long open_watched(int ready)
{
	long bad = 0;
	for (int i = 0; i < WATCHED; i++) {
		int fds[2];
		if (pipe2(fds, O_CLOEXEC) != 0)
			return 1;
		watched[i] = (struct pollfd){ .fd = fds[0], .events = POLLIN };
		watched_ends[i] = fds[1];
	}
	bad += write(watched_ends[ready], "x", 1) != 1;
	return bad;
}

static long open_ten(void) { return open_watched(9); }
static long open_hundred(void) { return open_watched(WATCHED - 1); }

static long close_watched(void)
{
	long bad = 0;
	for (int i = 0; i < WATCHED; i++)
		bad += close(watched[i].fd) + close(watched_ends[i]) != 0;
	return bad;
}

static long poll_loop(long n, int count)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		watched[count - 1].revents = 0;
		bad += poll(watched, (nfds_t)count, -1) != 1 || watched[count - 1].revents != POLLIN;
	}
	return bad;
}

static long run_poll_10(long n) { return poll_loop(n, 10); }
static long run_poll_100(long n) { return poll_loop(n, WATCHED); }

static long select_loop(long n, int count)
{
	long bad = 0;
	int last = watched[count - 1].fd;
	fd_set all;
	FD_ZERO(&all);
	for (int i = 0; i < count; i++)
		FD_SET(watched[i].fd, &all);
	for (long i = 0; i < n; i++) {
		fd_set got = all;
		bad += select(last + 1, &got, NULL, NULL, NULL) != 1 || !FD_ISSET(last, &got);
	}
	return bad;
}

static long run_select_10(long n) { return select_loop(n, 10); }
static long run_select_100(long n) { return select_loop(n, WATCHED); }

static long open_epoll(void)
{
	long bad = open_hundred();
	watching = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < WATCHED; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)i };
		bad += epoll_ctl(watching, EPOLL_CTL_ADD, watched[i].fd, &event) != 0;
	}
	return bad;
}

static long close_epoll(void) { return close(watching) + close_watched() != 0; }

static long run_epoll(long n)
{
	long bad = 0;
	struct epoll_event events[8];
	for (long i = 0; i < n; i++)
		bad += epoll_wait(watching, events, 8, -1) != 1 || events[0].data.u32 != WATCHED - 1;
	return bad;
}

static long run_open_close(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		int fd = open(LINES_FILE, O_RDONLY);
		bad += fd < 0 || close(fd) != 0;
	}
	return bad;
}

static long run_stat(long n)
{
	long bad = 0;
	struct stat st;
	off_t size = (off_t)strlen(lines);
	for (long i = 0; i < n; i++) {
		st.st_size = -1;
		bad += stat(LINES_FILE, &st) != 0 || st.st_size != size;
	}
	return bad;
}

static long run_fork_exit(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(7);
		bad += pid < 0 || !exited_with(pid, 7);
	}
	return bad;
}

static char *const true_argv[] = { "true", NULL };

static long run_exec_true(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			execve("/bin/true", true_argv, environment);
			_exit(127);
		}
		bad += pid < 0 || !exited_with(pid, 0);
	}
	return bad;
}

static long run_spawn_true(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++) {
		pid_t pid;
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, true_argv, environment) != 0)
			bad++;
		else
			bad += !exited_with(pid, 0);
	}
	return bad;
}

static long run_shell_noop(long n)
{
	static char *const argv[] = { "sh", "-c", ":", NULL };
	long bad = 0;
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			execve("/bin/sh", argv, environment);
			_exit(127);
		}
		bad += pid < 0 || !exited_with(pid, 0);
	}
	return bad;
}

static long run_pipe_grep(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++)
		bad += !shell_prints("grep 7 " LINES_FILE, grep_want);
	return bad;
}

static long run_sed_pipeline(long n)
{
	long bad = 0;
	for (long i = 0; i < n; i++)
		bad += !shell_prints("cat " LINES_FILE " | sed s/line/row/", sed_want);
	return bad;
}

static volatile sig_atomic_t delivered;

static void on_signal(int sig) { delivered++; }

static long catch_signal(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	return sigaction(SIGUSR1, &sa, NULL) != 0;
}

static long uncatch_signal(void) { return signal(SIGUSR1, SIG_DFL) == SIG_ERR; }

static long run_signal(long n)
{
	long bad = 0, before = delivered, pid = getpid();
	for (long i = 0; i < n; i++)
		bad += syscall(SYS_kill, pid, SIGUSR1) != 0;
	return bad + labs(delivered - before - n);
}

/* Two threads on one CPU hand a word to and fro: two context switches an iteration. */
static int turn;
static pthread_t other_thread;

static void hand_over(int to)
{
	__atomic_store_n(&turn, to, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) == to)
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, to, NULL, NULL, 0);
}

static void *other_side(void *arg)
{
	while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) == 0)
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	while (__atomic_load_n(&turn, __ATOMIC_SEQ_CST) == 1)
		hand_over(0);
	return NULL;
}

static cpu_set_t all_cpus;

static long start_thread(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_getaffinity(0, sizeof all_cpus, &all_cpus);
	sched_setaffinity(0, sizeof one, &one);
	turn = 0;
	return pthread_create(&other_thread, NULL, other_side, NULL) != 0;
}

static long stop_thread(void)
{
	__atomic_store_n(&turn, 2, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	long bad = pthread_join(other_thread, NULL) != 0;
	sched_setaffinity(0, sizeof all_cpus, &all_cpus);
	return bad;
}

static long run_ctx_switch(long n)
{
	for (long i = 0; i < n; i++)
		hand_over(1);
	return turn != 0;
}

/* ---- the vDSO's getrandom ---- */

static vgetrandom_fn *vgetrandom;
static struct vgetrandom_params vparams;
static void *vstate;

static const char *need_vgetrandom(void)
{
	if (!getauxval(AT_SYSINFO_EHDR))
		return "no vDSO";
	vgetrandom = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	return vgetrandom ? NULL : "the vDSO has no __vdso_getrandom";
}

static long map_vstate(void)
{
	memset(&vparams, 0, sizeof vparams);
	if (vgetrandom(NULL, 0, 0, &vparams, ~(size_t)0) != 0 || vparams.size == 0)
		return 1;
	vstate = mmap(NULL, 4096, (int)vparams.prot, (int)vparams.flags, -1, 0);
	return prime_draws() + (vstate == MAP_FAILED);
}

static long unmap_vstate(void) { return munmap(vstate, 4096) != 0; }

static long draw_from_vdso(long n, long len)
{
	long bad = 0;
	memcpy(last_draw, draw, (size_t)len);
	for (long i = 0; i < n; i++)
		bad += vgetrandom(draw, (size_t)len, 0, vstate, vparams.size) != len;
	return bad + !looks_drawn(draw, last_draw, (size_t)len);
}

static long run_vdso_4(long n) { return draw_from_vdso(n, 4); }
static long run_vdso_16(long n) { return draw_from_vdso(n, 16); }
static long run_vdso_32(long n) { return draw_from_vdso(n, 32); }
static long run_vdso_1024(long n) { return draw_from_vdso(n, 1024); }

/* ---- the vDSO's clock ---- */

typedef int clock_fn(clockid_t id, struct timespec *to);
static clock_fn *vclock;

static const char *need_vclock(void)
{
	vclock = (clock_fn *)vdso_symbol("__vdso_clock_gettime");
	return vclock ? NULL : "the vDSO has no __vdso_clock_gettime";
}

static long run_vdso_clock(long n)
{
	long bad = 0;
	struct timespec before, now;
	if (vclock(CLOCK_MONOTONIC, &before) != 0)
		return 1;
	for (long i = 0; i < n; i++)
		bad += vclock(CLOCK_MONOTONIC, &now) != 0;
	return bad + (now.tv_sec < before.tv_sec || (now.tv_sec == before.tv_sec && now.tv_nsec <= before.tv_nsec));
}

/* ---- the table ---- */

struct benchmark {
	const char *name;
	long iterations;
	long (*run)(long n);
	long (*before)(void);		/* once a repetition, not timed */
	long (*after)(void);
	const char *(*missing)(void);	/* NULL, or why this kernel cannot run it */
};

static const struct benchmark benchmarks[] = {
	{ "getpid", 200000, run_getpid, NULL, NULL, NULL },
	{ "seccomp_getpid_50", 100000, run_filtered, start_by_number, stop_filtered, NULL },
	{ "seccomp_getpid_args_50", 50000, run_filtered, start_by_argument, stop_filtered, NULL },
	{ "getrandom_16", 100000, run_getrandom_16, prime_draws, NULL, NULL },
	{ "getrandom_256", 30000, run_getrandom_256, prime_draws, NULL, NULL },
	{ "getrandom_64k", 300, run_getrandom_64k, prime_draws, NULL, NULL },
	{ "vdso_getrandom_4", 200000, run_vdso_4, map_vstate, unmap_vstate, need_vgetrandom },
	{ "vdso_getrandom_16", 200000, run_vdso_16, map_vstate, unmap_vstate, need_vgetrandom },
	{ "vdso_getrandom_32", 200000, run_vdso_32, map_vstate, unmap_vstate, need_vgetrandom },
	{ "vdso_getrandom_1024", 10000, run_vdso_1024, map_vstate, unmap_vstate, need_vgetrandom },
	{ "vdso_clock_gettime", 200000, run_vdso_clock, NULL, NULL, need_vclock },
	{ "read_urandom_16", 100000, run_read_urandom, open_urandom, close_urandom, NULL },
	{ "fopen_urandom_16", 3000, run_fopen_urandom, prime_draws, NULL, NULL },
	{ "pipe_1", 50000, run_pipe_1, open_pipe, close_pipe, NULL },
	{ "pipe_pingpong", 5000, run_pingpong, start_echo, stop_echo, NULL },
	{ "ctx_switch", 5000, run_ctx_switch, start_thread, stop_thread, NULL },
	{ "signal_delivery", 20000, run_signal, catch_signal, uncatch_signal, NULL },
	{ "mmap_touch_64", 400, run_mmap_touch, NULL, NULL, NULL },
	{ "mmap_file_read_64", 400, run_file_read, make_pages, drop_pages, NULL },
	{ "mmap_file_write_64", 300, run_file_write, make_pages, drop_pages, NULL },
	{ "open_close", 20000, run_open_close, NULL, NULL, NULL },
	{ "stat", 30000, run_stat, NULL, NULL, NULL },
	{ "getdents_100", 2000, run_getdents, make_names, drop_names, NULL },
	{ "maps_8000", 20, run_maps, make_mappings, drop_mappings, NULL },
	{ "smaps_8000", 4, run_smaps, make_mappings, drop_mappings, NULL },
	{ "proc_stat", 1000, run_proc_stat, NULL, NULL, NULL },
	{ "proc_status", 1000, run_proc_status, NULL, NULL, NULL },
	{ "poll_10", 30000, run_poll_10, open_ten, close_watched, NULL },
	{ "poll_100", 5000, run_poll_100, open_hundred, close_watched, NULL },
	{ "select_10", 30000, run_select_10, open_ten, close_watched, NULL },
	{ "select_100", 5000, run_select_100, open_hundred, close_watched, NULL },
	{ "epoll_wait_1", 50000, run_epoll, open_epoll, close_epoll, NULL },
	{ "fork_exit", 400, run_fork_exit, NULL, NULL, NULL },
	{ "exec_true", 150, run_exec_true, NULL, NULL, NULL },
	{ "spawn_true", 150, run_spawn_true, NULL, NULL, NULL },
	{ "shell_noop", 120, run_shell_noop, NULL, NULL, NULL },
	{ "pipe_grep", 80, run_pipe_grep, NULL, NULL, NULL },
	{ "sed_pipeline", 60, run_sed_pipeline, NULL, NULL, NULL },
	{ "tcp_1k", 20000, run_stream_1k, stream_tcp, stop_stream, NULL },
	{ "tcp_4k", 10000, run_stream_4k, stream_tcp, stop_stream, NULL },
	{ "tcp_128k", 500, run_stream_128k, stream_tcp, stop_stream, NULL },
	{ "pipe_4k", 10000, run_stream_4k, stream_pipe, stop_stream, NULL },
	{ "pipe_64k", 1000, run_stream_64k, stream_pipe, stop_stream, NULL },
	{ "unix_64k", 1000, run_stream_64k, stream_unix, stop_stream, NULL },
	{ "touch_32m", 4, touch_large, NULL, NULL, NULL },
	{ "read_tmpfs_128k", 2000, run_read_128k, make_large_file, drop_large_file, NULL },
};

#define COUNT (sizeof benchmarks / sizeof benchmarks[0])

/* One repetition. The warm-up brings files, page tables and caches to the state of a busy system. */
/* No-operations that tell a plugin of QEMU's where a measurement is: xtask/bench/model/plugin.c. */
#define MARK_WARM 0x1ea0ae00
#define MARK_BEGIN 0x1ea0ae01
#define MARK_END 0x1ea0ae02
#define MARK(number) __asm__ volatile("nopl %c0(%%rax)" : : "i"(number) : "memory")

static void repeat(const struct benchmark *b, long n)
{
	long bad = b->before ? b->before() : 0;
	if (bad) {
		printf("bench %s 0 0 FAIL set-up\n", b->name);
		return;
	}
	MARK(MARK_WARM);
	bad += b->run(n / 10 ? n / 10 : 1);
	uint64_t start = now_ns();
	MARK(MARK_BEGIN);
	bad += b->run(n);
	MARK(MARK_END);
	uint64_t total = now_ns() - start;
	if (b->after)
		bad += b->after();
	char verdict[40] = "ok";
	if (bad)
		snprintf(verdict, sizeof verdict, "FAIL %ld checks", bad);
	printf("bench %s %ld %llu %s\n", b->name, n, (unsigned long long)total, verdict);
}

static int selected(const char *name, const char *filter)
{
	if (!filter || !*filter)
		return 1;
	while (*filter) {
		size_t len = strcspn(filter, ",");
		char glob[64] = { 0 };
		memcpy(glob, filter, len < sizeof glob ? len : sizeof glob - 1);
		if (fnmatch(glob, name, 0) == 0)
			return 1;
		filter += len + (filter[len] == ',');
	}
	return 0;
}

static int make_files(void)
{
	char *all = lines, *grep = grep_want, *sed = sed_want;
	for (int i = 0; i < LINES; i++) {
		char number[16];
		snprintf(number, sizeof number, "%03d", i);
		all += sprintf(all, "line %s of the input\n", number);
		sed += sprintf(sed, "row %s of the input\n", number);
		if (strchr(number, '7'))
			grep += sprintf(grep, "line %s of the input\n", number);
	}
	mkdir("/tmp", 01777);
	int fd = open(LINES_FILE, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t len = (ssize_t)strlen(lines);
	if (fd < 0 || write(fd, lines, (size_t)len) != len || close(fd) != 0) {
		perror("bench: " LINES_FILE);
		return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	const char *filter = NULL;
	long divide = 1, reps = 3;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc) {
			filter = argv[++i];
		} else if (strcmp(argv[i], "--reps") == 0 && i + 1 < argc) {
			reps = atol(argv[++i]);
		} else if (strcmp(argv[i], "--quick") == 0) {
			divide = 10;
			reps = 1;
		} else if (strcmp(argv[i], "--list") == 0) {
			for (size_t b = 0; b < COUNT; b++)
				puts(benchmarks[b].name);
			return 0;
		} else {
			fprintf(stderr, "usage: bench [--filter GLOB[,GLOB...]] [--quick] [--reps N] [--list]\n");
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);	/* nothing buffered that a fork could print twice */
	if (!make_files())
		return 1;
	for (size_t i = 0; i < COUNT; i++) {
		const struct benchmark *b = &benchmarks[i];
		const char *why;
		if (!selected(b->name, filter))
			continue;
		if (b->missing && (why = b->missing()) != NULL) {
			printf("bench-skip %s %s\n", b->name, why);
			continue;
		}
		for (long r = 0; r < reps; r++)
			repeat(b, b->iterations / divide > 0 ? b->iterations / divide : 1);
	}
	unlink(LINES_FILE);
	puts("bench-end");
	return 0;
}
