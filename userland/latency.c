/*
 * latency: how long a task of the highest priority waits for its CPU while another user does the worst that the kernel
 * allows. The init of a boot (rdinit=/usr/lib/alea/latency), on Alea and on Linux.
 *
 * The victim, SCHED_FIFO 99, naps for 200 us again and again and notes how late it wakes. Meanwhile an attacker with uid
 * 1000, in a process of its own, makes one kind of system call as fast as it can. At the end the attacker and all that it
 * started are killed, which is measured too. Prints for every attack
 *     latency NAME WORST P99 SAMPLES PREPARING KILLING FLAGS    (nanoseconds)
 * where WORST and P99 are of the time after the attacker has prepared itself, PREPARING is the worst before that, KILLING
 * the time from SIGKILL to the last reaped process; then one `latency-all WORST P9999 SAMPLES NAME`, and `latency-end`.
 * An attack that this kernel refuses says `latency-skip NAME errno`. Knobs: alea.latency=GLOB,GLOB alea.latency_ms=N
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096L
#define KIB 1024L
#define MIB (1L << 20)
#define GIB (1L << 30)
#define TIB (1L << 40)
#define NAP_NS 200000
#define MOST_SAMPLES 400000
/* An attacker that has not prepared itself by then is measured as it is. */
#define PATIENCE_NS 20000000000ull

struct attack {
	const char *name;
	int (*prepare)(void);		/* an errno if the kernel refuses */
	void (*act)(void);
};

/* What an attack's own set-up needs: its errno is the answer of `prepare`. */
#define NEED(call) ({ long r_ = (long)(call); if (r_ == -1) return errno ? errno : EIO; r_; })

#include "latency_memory.h"
#include "latency_files.h"
#include "latency_tasks.h"
#include "latency_net.h"
#include "latency_rings.h"
#include "latency_trace.h"

static const struct attack attacks[] = {
	MEMORY_ATTACKS FILE_ATTACKS TASK_ATTACKS NET_ATTACKS RING_ATTACKS TRACE_ATTACKS
};
#define ATTACKS (sizeof attacks / sizeof *attacks)

static uint64_t *samples, *everything;
static size_t total;
static uint64_t worst_of_all;
static const char *worst_name = "none";

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Naps once: how late it woke. */
static uint64_t nap(void)
{
	uint64_t until = now_ns() + NAP_NS;
	struct timespec t = { (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
	uint64_t late = now_ns() - until;
	if (total < MOST_SAMPLES)
		everything[total++] = late;
	return late;
}

static void attacker(const struct attack *attack, int ready)
{
	struct sched_param normal = { 0 };
	sched_setscheduler(0, SCHED_OTHER, &normal);
	setpgid(0, 0);
	if (setgid(1000) != 0 || setuid(1000) != 0 || chdir("/tmp/attack") != 0)
		_exit(1);
	int error = attack->prepare ? attack->prepare() : 0;
	if (write(ready, &error, sizeof error) != sizeof error || error)
		_exit(1);
	close(ready);
	for (;;)
		attack->act();
}

/* Kills the attacker and all that it started: how long until the last is reaped. */
static uint64_t end_of(pid_t pid)
{
	uint64_t start = now_ns();
	for (;;) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		pid_t gone;
		while ((gone = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (gone < 0 && errno == ECHILD)
			return now_ns() - start;
		nap();
	}
}

static void measure(const struct attack *attack, uint64_t length)
{
	int pipe_fds[2], error = 0;
	/* Each has a file system of its own, which goes whole whatever it has left there. */
	if (pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC) != 0 || mount("tmpfs", "/tmp/attack", "tmpfs", 0, "mode=777") != 0)
		exit(1);
	pid_t pid = fork();
	if (pid == 0) {
		close(pipe_fds[0]);
		attacker(attack, pipe_fds[1]);
	}
	close(pipe_fds[1]);
	uint64_t start = now_ns(), before = 0, worst = 0, late;
	ssize_t got;
	while ((got = read(pipe_fds[0], &error, sizeof error)) < 0 && now_ns() - start < PATIENCE_NS)
		if ((late = nap()) > before)
			before = late;
	int prepared = got == sizeof error && error == 0;
	size_t count = 0;
	start = now_ns();
	while ((prepared || got < 0) && now_ns() - start < length && count < MOST_SAMPLES) {
		late = nap();
		samples[count++] = late;
		worst = late > worst ? late : worst;
	}
	int died = waitpid(pid, NULL, WNOHANG) == pid;
	uint64_t killing = end_of(pid);
	close(pipe_fds[0]);
	if (umount2("/tmp/attack", MNT_DETACH) != 0)
		exit(1);
	if (count == 0) {
		printf("latency-skip %s %d\n", attack->name, error);
		return;
	}
	qsort(samples, count, sizeof *samples, ascending);
	printf("latency %s %llu %llu %zu %llu %llu %s\n", attack->name, (unsigned long long)worst,
	       (unsigned long long)samples[count - 1 - count / 100], count, (unsigned long long)before,
	       (unsigned long long)killing, died ? "died" : prepared ? "-" : "unprepared");
	if (before > worst)
		worst = before;
	if (worst > worst_of_all) {
		worst_of_all = worst;
		worst_name = attack->name;
	}
}

static char wanted[2048];
static uint64_t length = 300000000;

static void read_knobs(void)
{
	char line[4096];
	int fd = open("/proc/cmdline", O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
	line[n > 0 ? n : 0] = 0;
	char *at = strstr(line, "alea.latency=");
	if (at)
		sscanf(at, "alea.latency=%2047s", wanted);
	if ((at = strstr(line, "alea.latency_ms=")) != NULL)
		length = strtoull(at + strlen("alea.latency_ms="), NULL, 10) * 1000000;
}

static int is_wanted(const char *name)
{
	if (!*wanted)
		return 1;
	char list[sizeof wanted], *next = list, *glob;
	strcpy(list, wanted);
	while ((glob = strsep(&next, ",")) != NULL)
		if (fnmatch(glob, name, 0) == 0)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 15)		/* an attack executes this program with very many arguments */
		return 0;
	mkdir("/proc", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mkdir("/dev", 0755);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	mkdir("/dev/pts", 0755);
	mount("devpts", "/dev/pts", "devpts", 0, "mode=620,ptmxmode=666");
	mkdir("/tmp", 01777);
	mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777");
	mkdir("/tmp/attack", 0755);
	setvbuf(stdout, NULL, _IOLBF, 0);
	read_knobs();
	size_t bytes = MOST_SAMPLES * sizeof *samples;
	samples = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	everything = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (samples == MAP_FAILED || everything == MAP_FAILED)
		return 1;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	write_file("/proc/self/oom_score_adj", "-1000");
	struct sched_param highest = { .sched_priority = 99 };
	if (sched_setscheduler(0, SCHED_FIFO, &highest) != 0)
		printf("latency-skip all %d\n", errno);
	for (int i = 0; i < 100; i++)
		nap();
	total = 0;
	for (size_t i = 0; i < ATTACKS; i++)
		if (is_wanted(attacks[i].name))
			measure(&attacks[i], length);
	if (total) {
		qsort(everything, total, sizeof *everything, ascending);
		printf("latency-all %llu %llu %zu %s\n", (unsigned long long)worst_of_all,
		       (unsigned long long)everything[total - 1 - total / 10000], total, worst_name);
	}
	printf("latency-end\n");
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return 0;
}
