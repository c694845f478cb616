/*
 * soak: everything at once for a while, as process 1.
 *
 * Kinds of work run side by side, each in processes of its own, until the time of `alea.soak=SECONDS` on the
 * kernel command line is over: forks, execs, threads, exits and execs from threads, pipes, signals, futexes,
 * mappings, files that shrink under their mappings, sockets, random draws, changes of the CPU, vector
 * registers. Each checks its own results. Then a line `soak NAME ROUNDS` for each, the free memory before and
 * after, the warnings that the kernel logged, and `soak-end ok` or `soak-end FAILED`. Powers off.
 * cflags: -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define KINDS 14
/* A kind that makes no progress for so many seconds hangs. */
#define PATIENCE 600

struct progress {
	_Atomic long rounds;
	_Atomic long failures;
};

static struct progress *progress;
static struct progress *mine;
static const char *name;
static volatile int *stop;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Notes what went wrong; the work goes on. */
static void check(int good, const char *what)
{
	if (good)
		return;
	int error = errno;
	if (atomic_fetch_add(&mine->failures, 1) < 5)
		printf("soak: %s: %s (errno %d)\n", name, what, error);
}

static int reap(pid_t pid)
{
	int status = -1;
	check(pid > 0, "fork");
	if (pid > 0)
		check(waitpid(pid, &status, 0) == pid, "waitpid");
	return status;
}

static unsigned roll(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void fork_exit(void)
{
	pid_t pids[4];
	for (int i = 0; i < 4; i++)
		if ((pids[i] = fork()) == 0)
			_exit(10 + i);
	for (int i = 0; i < 4; i++)
		check(reap(pids[i]) == (10 + i) << 8, "status of a child");
}

static void exec_true(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	check(reap(pid) == 0, "exec of true");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long counted;
static __thread long own = 7;

static void *count(void *arg)
{
	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&lock);
		counted++;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
		own += (long)arg;
	}
	return (void *)own;
}

static void threads(void)
{
	pthread_t t[6];
	counted = 0;
	for (long i = 0; i < 6; i++)
		check(pthread_create(&t[i], NULL, count, (void *)i) == 0, "pthread_create");
	pthread_mutex_lock(&lock);
	while (counted < 300)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	for (long i = 0; i < 6; i++) {
		void *value;
		check(pthread_join(t[i], &value) == 0, "pthread_join");
		check((long)value == 7 + 50 * i, "thread-local value");
	}
	check(counted == 300, "count under the mutex");
}

static void *spin(void *arg)
{
	for (;;)
		if (arg)
			syscall(SYS_getppid);
	return NULL;
}

static void *exec_from(void *arg)
{
	execl("/bin/true", "true", NULL);
	return arg;
}

static void exec_in_thread(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t t;
		for (long i = 0; i < 3; i++)
			pthread_create(&t, NULL, spin, (void *)(i & 1));
		pthread_create(&t, NULL, exec_from, NULL);
		for (;;)
			pause();
	}
	check(reap(pid) == 0, "exec by a thread");
}

static void *exit_from(void *arg)
{
	syscall(SYS_exit_group, 7);
	return arg;
}

static void exit_in_thread(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t t;
		for (long i = 0; i < 4; i++)
			pthread_create(&t, NULL, spin, (void *)(i & 1));
		pthread_create(&t, NULL, exit_from, NULL);
		pthread_exit(NULL);
	}
	check(reap(pid) == 7 << 8, "exit_group by a thread");
}

static void pipes(void)
{
	int p[2];
	check(pipe(p) == 0, "pipe");
	pid_t pids[3];
	for (int w = 0; w < 3; w++) {
		if ((pids[w] = fork()) == 0) {
			static char block[PAGE];
			memset(block, 'a' + w, sizeof block);
			close(p[0]);
			for (int i = 0; i < 40; i++)
				if (write(p[1], block, sizeof block) != sizeof block)
					_exit(1);
			_exit(0);
		}
	}
	close(p[1]);
	static char block[PAGE];
	long total = 0;
	size_t have = 0;
	ssize_t n;
	while ((n = read(p[0], block + have, sizeof block - have)) > 0) {
		have += (size_t)n;
		total += n;
		if (have == sizeof block) {
			check(memcmp(block, block + 1, sizeof block - 1) == 0, "torn block");
			have = 0;
		}
	}
	close(p[0]);
	check(total == 3 * 40 * PAGE, "bytes through a pipe");
	for (int w = 0; w < 3; w++)
		check(reap(pids[w]) == 0, "writer of a pipe");
}

static _Atomic long caught;

static void catch(int signal)
{
	(void)signal;
	caught++;
}

static void *signal_it(void *arg)
{
	for (int i = 0; i < 50; i++)
		if (syscall(SYS_tgkill, getpid(), (pid_t)(long)arg, SIGRTMIN) != 0)
			i--;
	return NULL;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = catch, .sa_flags = SA_RESTART };
	sigaction(SIGRTMIN, &action, NULL);
	caught = 0;
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, signal_it, (void *)(long)gettid());
	while (caught < 100)
		own++;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	check(caught == 100, "signals caught");
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			own++;
	kill(pid, SIGTERM);
	check(reap(pid) == SIGTERM, "a busy child that is killed");
}

static _Atomic int turn;

static void take_turns(int me)
{
	for (int i = 0; i < 200; i++) {
		while (turn != me)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
		turn = !me;
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static void *other_turns(void *arg)
{
	take_turns(1);
	return arg;
}

static void futexes(void)
{
	pthread_t t;
	turn = 0;
	pthread_create(&t, NULL, other_turns, NULL);
	take_turns(0);
	pthread_join(t, NULL);
}

static void *map_and_unmap(void *arg)
{
	unsigned seed = (unsigned)(long)arg;
	for (int i = 0; i < 30; i++) {
		size_t pages = 1 + roll(&seed) % 40, key = roll(&seed), forks = roll(&seed) % 4;
		char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		check(p != MAP_FAILED, "mmap");
		for (size_t at = 0; at < pages; at++) {
			check(p[at * PAGE] == 0, "a new page is zero");
			*(size_t *)(p + at * PAGE) = at ^ key;
		}
		if (forks == 0) {
			pid_t pid = fork();
			if (pid == 0) {
				for (size_t at = 0; at < pages; at++)
					if (*(size_t *)(p + at * PAGE) != (at ^ key))
						_exit(1);
				_exit(0);
			}
			*(size_t *)p ^= 0;
			check(reap(pid) == 0, "pages after fork");
		}
		mprotect(p, pages * PAGE, PROT_READ);
		for (size_t at = 0; at < pages; at++)
			check(*(size_t *)(p + at * PAGE) == (at ^ key), "pages kept");
		check(munmap(p, pages * PAGE) == 0, "munmap");
	}
	return NULL;
}

static void mappings(void)
{
	pthread_t t[3];
	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, map_and_unmap, (void *)(i + mine->rounds * 3));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

static __thread sigjmp_buf beyond;

static void bus(int signal)
{
	(void)signal;
	siglongjmp(beyond, 1);
}

struct shrinking {
	int fd;
	char *at;
	volatile int done;
};

static void *touch(void *arg)
{
	struct shrinking *s = arg;
	volatile long i = 0;
	while (!s->done) {
		i++;
		if (sigsetjmp(beyond, 1) == 0) {
			char *p = s->at + i % 16 * PAGE;
			char c = *(volatile char *)p;
			check(c == 0 || c == 'x', "a page of the file");
			*(volatile char *)p = 'x';
		}
	}
	return NULL;
}

static void shrinking_file(void)
{
	struct sigaction action = { .sa_handler = bus };
	sigaction(SIGBUS, &action, NULL);
	struct shrinking s = { .fd = memfd_create("soak", 0) };
	check(s.fd >= 0, "memfd_create");
	ftruncate(s.fd, 16 * PAGE);
	s.at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
	check(s.at != MAP_FAILED, "mmap of a file");
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, touch, &s);
	for (int i = 0; i < 50; i++) {
		check(ftruncate(s.fd, i % 5 * 3 * PAGE) == 0, "ftruncate");
		check(ftruncate(s.fd, 16 * PAGE) == 0, "ftruncate");
	}
	s.done = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	munmap(s.at, 16 * PAGE);
	close(s.fd);
}

static void sockets(void)
{
	int s[2];
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0, "socketpair");
	pid_t pid = fork();
	if (pid == 0) {
		char buf[700];
		ssize_t n;
		close(s[0]);
		while ((n = read(s[1], buf, sizeof buf)) > 0)
			if (write(s[1], buf, (size_t)n) != n)
				_exit(1);
		_exit(0);
	}
	close(s[1]);
	char out[512], in[512];
	for (int i = 0; i < 50; i++) {
		memset(out, i, sizeof out);
		check(write(s[0], out, sizeof out) == sizeof out, "write to a socket");
		size_t have = 0;
		ssize_t n = 1;
		while (have < sizeof in && n > 0 && (n = read(s[0], in + have, sizeof in - have)) > 0)
			have += (size_t)n;
		check(have == sizeof in && memcmp(in, out, sizeof in) == 0, "what comes back");
	}
	close(s[0]);
	check(reap(pid) == 0, "the other side of a socket");
}

static void draws(void)
{
	static uint64_t seen[2048];
	uint64_t two[2];
	for (int i = 0; i < 1000; i++) {
		check(getrandom(two, sizeof two, 0) == sizeof two, "getrandom");
		uint64_t *slot = &seen[two[0] % 2048];
		check(*slot != two[1], "a draw that was seen before");
		*slot = two[1];
	}
	static char much[65536];
	check(getrandom(much, sizeof much, 0) == sizeof much, "getrandom of 64 KiB");
}

static void hop(void)
{
	cpu_set_t all, one;
	check(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		check(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
		check(sched_getcpu() == cpu, "the CPU that was asked for");
		sched_yield();
		check(sched_getcpu() == cpu, "the CPU that was asked for, later");
	}
	check(sched_setaffinity(0, sizeof all, &all) == 0, "sched_setaffinity to all");
}

/* Holds a pattern in vector registers, by itself and across system calls. */
static void vectors(void)
{
	uint64_t seed = (uint64_t)gettid() * 0x9e3779b97f4a7c15u + (uint64_t)mine->rounds, got;
	for (int i = 0; i < 2000; i++) {
		long call = i % 8 ? SYS_gettid : SYS_sched_yield;
		__asm__ volatile("movq %2, %%xmm3\n\tmovq %2, %%xmm14\n\tmovq %2, %%xmm9\n\tsyscall\n\t"
				 "pxor %%xmm9, %%xmm14\n\tpxor %%xmm14, %%xmm3\n\tmovq %%xmm3, %0"
				 : "=r"(got), "+a"(call) : "r"(seed)
				 : "rcx", "r11", "memory", "xmm3", "xmm9", "xmm14");
		check(got == seed, "vector registers");
		seed += 0x100000001u;
	}
}

static const struct {
	const char *name;
	void (*once)(void);
} kinds[KINDS] = {
	{ "fork_exit", fork_exit }, { "exec_true", exec_true }, { "threads", threads },
	{ "exec_in_thread", exec_in_thread }, { "exit_in_thread", exit_in_thread },
	{ "pipes", pipes }, { "signals", signals }, { "futexes", futexes },
	{ "mappings", mappings }, { "shrinking_file", shrinking_file }, { "sockets", sockets },
	{ "draws", draws }, { "hop", hop }, { "vectors", vectors },
};

static void work(int kind)
{
	mine = &progress[kind];
	name = kinds[kind].name;
	while (!*stop) {
		kinds[kind].once();
		mine->rounds++;
	}
	_exit(0);
}

static long free_kib(void)
{
	char line[128];
	long kib = -1;
	FILE *f = fopen("/proc/meminfo", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "MemFree: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

/* Runs one round of each kind, so that caches that stay are filled before memory is counted. */
static void warm_up(void)
{
	*stop = 1;
	for (int round = 0; round < 4; round++)
		for (int kind = 0; kind < KINDS; kind++) {
			pid_t pid = fork();
			if (pid == 0) {
				mine = &progress[kind];
				name = kinds[kind].name;
				kinds[kind].once();
				_exit(0);
			}
			waitpid(pid, NULL, 0);
		}
	*stop = 0;
}

static int watch(double seconds)
{
	pid_t pids[KINDS];
	long last[KINDS] = { 0 };
	double moved[KINDS], start = now(), told = start;
	for (int kind = 0; kind < KINDS; kind++) {
		moved[kind] = start;
		if ((pids[kind] = fork()) == 0)
			work(kind);
	}
	int left = KINDS, hung = 0;
	while (left > 0 && !hung) {
		usleep(200000);
		double t = now();
		if (t - start >= seconds)
			*stop = 1;
		if (t - told >= 30) {
			told = t;
			printf("soak: %.0f s\n", t - start);
		}
		for (int kind = 0; kind < KINDS; kind++) {
			int status;
			if (pids[kind] > 0 && waitpid(pids[kind], &status, WNOHANG) == pids[kind]) {
				pids[kind] = 0;
				left--;
				if (status != 0) {
					printf("soak: %s ended with status %#x\n", kinds[kind].name, status);
					progress[kind].failures++;
				}
			}
			if (progress[kind].rounds != last[kind]) {
				last[kind] = progress[kind].rounds;
				moved[kind] = t;
			}
			if (pids[kind] > 0 && t - moved[kind] > PATIENCE) {
				printf("soak: %s hangs\n", kinds[kind].name);
				hung = 1;
			}
		}
	}
	return hung;
}

/* Prints what the kernel logged as a warning or worse: how many lines. */
static int warnings(void)
{
	static char log[256 * 1024];
	int found = 0, n = klogctl(3, log, sizeof log - 1);
	for (char *line = strtok(log, "\n"); n > 0 && line; line = strtok(NULL, "\n")) {
		int level = 9;
		if (sscanf(line, "<%d>", &level) == 1 && (level & 7) <= 4) {
			printf("soak: kernel: %s\n", line);
			found++;
		}
	}
	return found;
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/proc", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	char line[4096] = "";
	int fd = open("/proc/cmdline", O_RDONLY);
	read(fd, line, sizeof line - 1);
	close(fd);
	char *asked = strstr(line, "alea.soak=");
	double seconds = asked ? atof(asked + 10) : 10;
	progress = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	stop = (int *)(progress + KINDS);
	printf("soak: %.0f s on %ld CPUs\n", seconds, sysconf(_SC_NPROCESSORS_ONLN));
	warm_up();
	memset(progress, 0, KINDS * sizeof *progress);
	sleep(1);
	long before = free_kib();
	int bad = watch(seconds);
	sleep(1);
	long after = free_kib();
	for (int kind = 0; kind < KINDS; kind++) {
		printf("soak %s %ld\n", kinds[kind].name, progress[kind].rounds);
		bad |= progress[kind].failures != 0;
	}
	printf("soak-memory %ld %ld\n", before, after);
	int warned = warnings();
	printf("soak-warnings %d\n", warned);
	/* The kernel's table of process numbers grows until each was given out once. */
	bad |= warned != 0 || before - after > 8192;
	printf("soak-end %s\n", bad ? "FAILED" : "ok");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
