/*
 * trace_attack: the worst that users of /proc/alea/trace can do: many tasks, full rings, readers that race, tracers that die,
 * programs that get other rights. As process 1 it mounts what it needs and powers off at the end. It prints `trace_attack: all`
 * if everything was as it should be, and what was not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int wrong;

#define IS(fact) do { if (!(fact)) { wrong++; printf("wrong: %s:%d: %s (errno %d)\n", __func__, __LINE__, #fact, errno); } } while (0)

struct seen {
	long calls, lost, exits, left, forks, words;
};

static int begin(const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	int fd = open("/proc/alea/trace", O_RDWR | O_CLOEXEC);
	if (fd >= 0 && write(fd, text, (size_t)len) != len) {
		int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* Adds up records; false if they do not hang together. */
static int add_up(const uint64_t *words, size_t count, struct seen *seen)
{
	for (size_t at = 0; at < count;) {
		size_t len = words[at] >> 16 & 0xffff;
		unsigned kind = words[at] & 0xff;
		if (len < 2 || len > 128 || at + len > count || kind < 1 || kind > 16)
			return 0;
		seen->calls += kind == 4 || kind == 16;
		seen->lost += kind == 2 ? (long)words[at + 2] : 0;
		seen->exits += kind == 14;
		seen->left += kind == 15;
		seen->forks += kind == 12;
		at += len;
	}
	seen->words += (long)count;
	return 1;
}

/* Reads until nobody is traced any more. */
static struct seen drain(int fd)
{
	struct seen seen = { 0 };
	static __thread uint64_t words[1 << 13];
	for (ssize_t got; (got = read(fd, words, sizeof words)) != 0;) {
		if (got < 0 && errno == EINTR)
			continue;
		IS(got > 0);
		if (got < 0)
			break;
		if (!add_up(words, (size_t)got / 8, &seen)) {
			IS(!"records hang together");
			break;
		}
	}
	return seen;
}

/* A child that begins with `act` when `*gate` is closed. */
static pid_t child(int *gate, void (*act)(void))
{
	int ends[2];
	char none;
	if (pipe2(ends, O_CLOEXEC))
		exit(2);
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		close(ends[1]);
		if (read(ends[0], &none, 1) < 0)
			_exit(1);
		act();
		_exit(0);
	}
	close(ends[0]);
	*gate = ends[1];
	return pid;
}

static void some_calls(void)
{
	for (int i = 0; i < 5000; i++) {
		syscall(SYS_getpid);
		syscall(SYS_access, "/no/such/file", 0);
	}
}

static void many_tasks(void)
{
	for (int i = 0; i < 1000; i++) {
		pid_t pid = fork();
		if (!pid) {
			syscall(SYS_getppid);
			_exit(0);
		}
		if (pid < 0 || i % 100 == 99)
			while (waitpid(-1, NULL, pid < 0 ? 0 : WNOHANG) > 0)
				;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void a_thousand(void)
{
	int gate;
	pid_t pid = child(&gate, many_tasks);
	int fd = begin("size 1024\npoints calls,fork,exec,exit,switch,wakeup,fault,lock\nfollow 1\ntrace %d\n", pid);
	IS(fd >= 0);
	close(gate);
	struct seen seen = drain(fd);
	IS(seen.lost || (seen.exits == 1001 && seen.forks == 1000));
	IS(waitpid(pid, NULL, 0) == pid);
	close(fd);
}

static void overrun(void)
{
	int gate, status;
	pid_t pid = child(&gate, some_calls);
	int fd = begin("size 8\ntrace %d\n", pid);
	IS(fd >= 0);
	close(gate);
	IS(waitpid(pid, &status, 0) == pid && !status);
	struct seen seen = drain(fd);
	IS(seen.lost > 1000 && seen.calls > 10);
	close(fd);
}

static int shared;
static struct seen by_reader[2];

static void *reader(void *of)
{
	by_reader[*(int *)of] = drain(shared);
	return NULL;
}

static void two_readers(void)
{
	int gate, own[2] = { 0, 1 };
	pthread_t threads[2];
	pid_t pid = child(&gate, some_calls);
	shared = begin("size 256\npoints calls,exit\ntrace %d\n", pid);
	IS(shared >= 0);
	for (int i = 0; i < 2; i++)
		IS(!pthread_create(&threads[i], NULL, reader, &own[i]));
	close(gate);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	long calls = by_reader[0].calls + by_reader[1].calls, lost = by_reader[0].lost + by_reader[1].lost;
	IS(lost || (calls >= 10000 && calls < 10010));
	IS(by_reader[0].exits + by_reader[1].exits == 1 || lost);
	IS(waitpid(pid, NULL, 0) == pid);
	close(shared);
}

static void for_ever(void)
{
	for (;;)
		syscall(SYS_getpid);
}

/* Sessions that die with their processes leave room for others, and their tasks go on. */
static void killed_tracers(void)
{
	int gate, status;
	pid_t pid = child(&gate, for_ever);
	close(gate);
	for (int i = 0; i < 40; i++) {
		pid_t tracer = fork();
		if (!tracer) {
			int fd = begin("points calls,switch,fault,wakeup,lock,draw\ntrace %d\n", pid);
			if (fd < 0)
				_exit(1);
			for (char bytes[4096];;)
				if (read(fd, bytes, sizeof bytes) <= 0)
					_exit(2);
		}
		usleep(3000 + 500 * (i % 8));
		IS(!kill(tracer, SIGKILL));
		IS(waitpid(tracer, &status, 0) == tracer && WIFSIGNALED(status));
	}
	IS(!waitpid(pid, NULL, WNOHANG));
	int fd = begin("trace %d\n", pid), second = begin("trace %d\n", pid);
	IS(fd >= 0 && second < 0 && errno == EBUSY);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	drain(fd);
	close(fd);
}

static void limits(void)
{
	int fds[40], used = 0;
	for (; used < 40; used++)
		if ((fds[used] = begin("size 8\ntrace %d\n", getpid())) < 0)
			break;
	/* The first has it. */
	IS(used == 1 && errno == EBUSY);
	close(fds[0]);
	for (used = 0; used < 40; used++)
		if ((fds[used] = begin("size 8\npoints reseed\nall\n")) < 0)
			break;
	IS(used == 32 && errno == EBUSY);
	while (used)
		close(fds[--used]);
	pid_t pid = fork();
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		/* So that it may trace children that execute nothing. */
		prctl(PR_SET_DUMPABLE, 1);
		IS(begin("all\n") < 0 && errno == EPERM);
		IS(begin("trace 1\n") < 0 && errno == EPERM);
		IS(begin("trace %d\n", getppid()) < 0 && errno == EPERM);
		IS(begin("size 99999\n") < 0 && errno == EINVAL);
		int own[8], n = 0, gate;
		for (; n < 8; n++) {
			pid_t other = child(&gate, some_calls);
			if ((own[n] = begin("trace %d\n", other)) < 0)
				break;
		}
		IS(n == 4 && errno == EMFILE);
		_exit(wrong != 0);
	}
	int status;
	IS(waitpid(pid, &status, 0) == pid && !status);
}

static void bad_commands(void)
{
	static char huge[5000];
	memset(huge, 'a', sizeof huge);
	const char *bad[] = { "x\n", "points\n", "points ,\n", "points calls,\n", "calls nosuch\n", "size -1\n", "size 99999999999999999999\n",
		"size 18446744073709551615\n", "trace\n", "trace x\n", "trace 1 2\n", "all 1\n", "strings\n", "follow yes\n", "\xff\xfe\n" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		IS(begin("%s", bad[i]) < 0 && errno == EINVAL);
	IS(begin("trace 999999\n") < 0 && errno == ESRCH);
	IS(begin("trace 0\n") < 0 && begin("trace -1\n") < 0 && begin("trace 2\n") < 0);
	int fd = open("/proc/alea/trace", O_RDWR);
	IS(write(fd, huge, sizeof huge) < 0 && errno == EINVAL);
	IS(syscall(SYS_write, fd, 8L, 16L) < 0 && errno == EFAULT);
	IS(read(fd, huge, 100) < 0 && errno == EINVAL);
	close(fd);
}

static void reads(void)
{
	int gate;
	char few[16];
	size_t size = (size_t)1 << 32;
	void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	IS(room != MAP_FAILED);
	pid_t pid = child(&gate, some_calls);
	int fd = begin("size 1024\ntrace %d\n", pid);
	close(gate);
	waitpid(pid, NULL, 0);
	IS(read(fd, few, sizeof few) < 0 && errno == EINVAL);
	IS(read(fd, few, 0) == 0);
	IS(read(fd, (void *)4096, 65536) < 0 && errno == EFAULT);
	struct seen seen = { 0 };
	ssize_t got = read(fd, room, size);
	IS(got > 0 && add_up(room, (size_t)got / 8, &seen) && !seen.lost);
	/* What the kernel could not put was not taken. */
	IS(seen.calls >= 10000);
	IS(read(fd, room, size) == 0);
	close(fd);
	munmap(room, size);
}

static void become_other(void)
{
	if (setgid(65534) || setuid(65534))
		_exit(1);
	execl("/tmp/other", "other", "calls", NULL);
	_exit(1);
}

/* A set-uid program runs on with its rights, and is not seen by who is not root. */
static void other_rights(void)
{
	char path[] = "/proc/self/exe";
	int from = open(path, O_RDONLY), to = open("/tmp/other", O_WRONLY | O_CREAT | O_TRUNC, 0755), gate, status;
	static char bytes[1 << 16];
	for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0;)
		IS(write(to, bytes, (size_t)n) == n);
	close(from);
	fchmod(to, 04755);
	close(to);
	pid_t tracer = fork();
	if (!tracer) {
		if (setgid(65534) || setuid(65534))
			_exit(1);
		/* Who has changed his identity cannot be looked into until he executes something. */
		execl("/tmp/plain", "plain", "tracer", NULL);
		_exit(1);
	}
	IS(waitpid(tracer, &status, 0) == tracer && !status);
	/* Root sees on. */
	pid_t pid = child(&gate, become_other);
	int fd = begin("size 1024\npoints calls,exec,exit\ntrace %d\n", pid);
	close(gate);
	struct seen seen = drain(fd);
	IS(!seen.left && seen.exits == 1 && seen.calls > 10000);
	waitpid(pid, &status, 0);
	IS(!status);
	close(fd);
}

/* As nobody: traces a child that executes a set-uid program. */
static int as_tracer(void)
{
	int gate, status;
	pid_t pid = child(&gate, become_other);
	int fd = begin("size 512\npoints calls,exec,exit\ntrace %d\n", pid);
	IS(fd >= 0);
	close(gate);
	struct seen seen = drain(fd);
	IS(seen.left == 1 && !seen.exits && seen.calls < 100);
	IS(waitpid(pid, &status, 0) == pid && !status);
	return wrong != 0;
}

static void *thread_calls(void *none)
{
	for (int i = 0; i < 200; i++)
		syscall(SYS_gettid);
	return none;
}

static void storm_of_threads(void)
{
	for (int round = 0; round < 20; round++) {
		pthread_t threads[16];
		for (int i = 0; i < 16; i++)
			if (pthread_create(&threads[i], NULL, thread_calls, NULL))
				_exit(1);
		for (int i = 0; i < 16; i++)
			pthread_join(threads[i], NULL);
	}
	execl("/tmp/plain", "plain", "calls", NULL);
	_exit(1);
}

static void threads(void)
{
	int gate, status;
	pid_t pid = child(&gate, storm_of_threads);
	int fd = begin("size 1024\npoints calls,fork,exec,exit,switch\ntrace %d\n", pid);
	int all = begin("size 64\npoints calls,switch,wakeup,fault,phase,draw,reseed,lock,fork,exec,exit\nall\n");
	IS(fd >= 0 && all >= 0);
	close(gate);
	struct seen seen = drain(fd);
	IS(seen.lost || (seen.exits == 321 && seen.forks == 320));
	IS(waitpid(pid, &status, 0) == pid && !status);
	close(all);
	close(fd);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "calls"))
		return some_calls(), 0;
	if (argc > 1 && !strcmp(argv[1], "tracer"))
		return as_tracer();
	if (getpid() == 1) {
		mount("proc", "/proc", "proc", 0, NULL);
		mkdir("/tmp", 01777);
	}
	IS(!symlink("/usr/lib/alea/trace_attack", "/tmp/plain"));
	struct { const char *name; void (*act)(void); } all[] = { { "bad_commands", bad_commands }, { "limits", limits }, { "reads", reads },
		{ "overrun", overrun }, { "two_readers", two_readers }, { "a_thousand", a_thousand }, { "killed_tracers", killed_tracers },
		{ "other_rights", other_rights }, { "threads", threads } };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		printf("trace_attack: %s\n", all[i].name);
		all[i].act();
	}
	printf(wrong ? "trace_attack: %d wrong\n" : "trace_attack: all\n", wrong);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return wrong != 0;
}
