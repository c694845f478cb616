/*
 * attack: a program without privileges tries to make a machine without a source of entropy hand out bytes.
 *
 * usage: attack [SECONDS]
 *
 * For a machine without RDRAND whose time is counted instructions; Alea and Linux run the same program. Runs as init,
 * which only makes the attacker's process. In rounds that last a second each that one causes all the interrupts it can
 * (alarms, TLB flushes and barriers on other CPUs, page faults, the serial line's), writes data of its choice to the
 * pool, and asks every interface. After half of the time four children ask in the calls that wait.
 *
 *     give NAME READY MS HEX    what an interface gave, whether the kernel called itself ready before, and when
 *     wait NAME                 the interface had nothing to give, or the call has not come back
 *
 * The host boots two machines and compares what they gave (`cargo xtask twins`, tests/tests/no_source.rs).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/random.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vdso.h"

enum { LEN = 32, ALARM_US = 50, FLUSHES = 300, FAULTS = 20, PAGES = 64, LINES = 20, WRITES = 100, WAITERS = 4 };

static unsigned char bytes[4096];
static volatile long alarms;
static volatile int stop;
static char *volatile page;
static int random_fd, urandom_fd;

static vgetrandom_fn *vdso;
static void *state;
static struct vgetrandom_params params;

static long ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What the kernel says of itself: a request for nothing is refused before it is ready. */
static int ready(void)
{
	return syscall(SYS_getrandom, bytes, 0, GRND_NONBLOCK) == 0;
}

static void give(const char *name, int was_ready, const unsigned char *at, long len)
{
	if (len <= 0) {
		printf("wait %s\n", name);
		return;
	}
	printf("give %s %d %ld ", name, was_ready, ms());
	for (long n = 0; n < len; n++)
		printf("%02x", at[n]);
	printf("\n");
}

static void open_vdso(void)
{
	vdso = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	if (!vdso || vdso(NULL, 0, 0, &params, ~0UL) != 0)
		vdso = NULL;
	else
		state = mmap(NULL, params.size, params.prot, params.flags, -1, 0);
}

static long from_vdso(unsigned flags)
{
	return vdso ? vdso(bytes, LEN, flags, state, params.size) : -1;
}

/* Sixteen bytes of a UUID's text. */
static long read_uuid(const char *path)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY), len = 0;
	if (read(fd, text, 36) != 36)
		text[0] = 0;
	close(fd);
	for (const char *at = text; *at; at += 2) {
		at += *at == '-';
		sscanf(at, "%2hhx", &bytes[len++]);
	}
	return len;
}

/* What a new program gets: its AT_RANDOM, and where its stack, its mappings and the vDSO lie. */
static void ask_exec(void)
{
	int was_ready = ready(), pipes[2];
	pipe(pipes);
	pid_t child = fork();
	if (child == 0) {
		dup2(pipes[1], 1);
		execl("/proc/self/exe", "attack", "auxv", NULL);
		_exit(1);
	}
	close(pipes[1]);
	long len = read(pipes[0], bytes, sizeof bytes);
	close(pipes[0]);
	waitpid(child, NULL, 0);
	give("AT_RANDOM", was_ready, bytes, len < 16 ? 0 : 16);
	give("layout", was_ready, bytes + 16, len - 16);
}

static int be_new_program(void)
{
	uintptr_t places[3] = { (uintptr_t)&places, getauxval(AT_SYSINFO_EHDR) };
	places[2] = (uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	write(1, (void *)getauxval(AT_RANDOM), 16);
	write(1, places, sizeof places);
	return 0;
}

static void ask_all(void)
{
	static const struct { const char *name; unsigned flags; } calls[] = {
		{ "getrandom(NONBLOCK)", GRND_NONBLOCK },
		{ "getrandom(NONBLOCK|RANDOM)", GRND_NONBLOCK | GRND_RANDOM },
		{ "getrandom(INSECURE)", GRND_INSECURE },
	};
	for (unsigned n = 0; n < sizeof calls / sizeof *calls; n++) {
		int was_ready = ready();
		give(calls[n].name, was_ready, bytes, syscall(SYS_getrandom, bytes, LEN, calls[n].flags));
	}
	int was_ready = ready();
	give("vDSO(NONBLOCK)", was_ready, bytes, from_vdso(GRND_NONBLOCK));
	give("/dev/random(O_NONBLOCK)", was_ready, bytes, read(random_fd, bytes, LEN));
	was_ready = ready();
	give("/dev/urandom", was_ready, bytes, read(urandom_fd, bytes, LEN));
	was_ready = ready();
	give("uuid", was_ready, bytes, read_uuid("/proc/sys/kernel/random/uuid"));
	ask_exec();
}

static const char *const waiters[WAITERS] = { "getrandom()", "getrandom(RANDOM)", "/dev/random", "vDSO()" };
static int answers[WAITERS];
static pid_t waiting[WAITERS];

static long ask_and_wait(int which)
{
	int blocking = open("/dev/random", O_RDONLY);
	switch (which) {
	case 0: return syscall(SYS_getrandom, bytes, LEN, 0);
	case 1: return syscall(SYS_getrandom, bytes, LEN, GRND_RANDOM);
	case 2: return read(blocking, bytes, LEN);
	default: return from_vdso(0);
	}
}

static void start_waiters(void)
{
	for (int n = 0; n < WAITERS; n++) {
		int pipes[2];
		pipe(pipes);
		answers[n] = pipes[0];
		waiting[n] = fork();
		if (waiting[n] == 0) {
			long len = ask_and_wait(n);
			_exit(len > 0 && write(pipes[1], bytes, len) != len);
		}
		close(pipes[1]);
	}
}

/* Shows who has come back; `last` ends the others. */
static void look_at_waiters(int last)
{
	for (int n = 0; n < WAITERS; n++) {
		struct pollfd answer = { answers[n], POLLIN, 0 };
		if (waiting[n] <= 0 || (!poll(&answer, 1, 0) && !last))
			continue;
		if (answer.revents & POLLIN)
			give(waiters[n], 1, bytes, read(answers[n], bytes, LEN));
		else
			give(waiters[n], 0, NULL, 0);
		kill(waiting[n], SIGKILL);
		waitpid(waiting[n], NULL, 0);
		waiting[n] = 0;
	}
}

static void on_alarm(int sig) { (void)sig; alarms++; }

static void alarm_often(long until)
{
	struct itimerval often = { { 0, ALARM_US }, { 0, ALARM_US } }, never = { { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &often, NULL);
	while (ms() < until)
		pause();
	setitimer(ITIMER_REAL, &never, NULL);
}

static void *spin(void *unused)
{
	while (!stop) {
		if (page)
			*page = 1;
	}
	return unused;
}

/* Each change of rights, and each barrier, has to be told to the CPU that runs the other thread. */
static void interrupt_cpus(void)
{
	pthread_t other;
	stop = 0;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&other, NULL, spin, NULL);
	for (int n = 0; n < FLUSHES; n++) {
		char *more = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*more = 1;
		munmap(more, 4096);
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	}
	stop = 1;
	pthread_join(other, NULL);
	munmap(page, 4096);
	page = NULL;
}

static void fault_often(void)
{
	for (int n = 0; n < FAULTS; n++) {
		char *more = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (int at = 0; at < PAGES; at++)
			more[at * 4096] = 1;
		munmap(more, PAGES * 4096);
	}
}

/* A line takes several interrupts of the serial port. */
static void print_often(void)
{
	static const char line[] = "...............................................................................\n";
	fflush(stdout);
	for (int n = 0; n < LINES; n++)
		write(1, line, sizeof line - 1);
}

static void write_often(void)
{
	static unsigned char chosen[512];
	memset(chosen, 'A', sizeof chosen);
	for (int n = 0; n < WRITES; n++) {
		chosen[0] = (unsigned char)n;
		write(n % 2 ? random_fd : urandom_fd, chosen, sizeof chosen);
	}
}

static void attack(long seconds)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	sigaction(SIGALRM, &sa, NULL);
	random_fd = open("/dev/random", O_RDWR | O_NONBLOCK);
	urandom_fd = open("/dev/urandom", O_RDWR);
	if (setgid(65534) || setuid(65534))
		_exit(1);
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	open_vdso();
	int was_ready = ready();
	give("boot_id", was_ready, bytes, read_uuid("/proc/sys/kernel/random/boot_id"));
	long start = ms();
	for (long round = 0; round < seconds; round++) {
		if (round == seconds / 2)
			start_waiters();
		ask_all();
		interrupt_cpus();
		fault_often();
		print_often();
		write_often();
		look_at_waiters(0);
		alarm_often(start + (round + 1) * 1000);
	}
	ask_all();
	look_at_waiters(1);
	int bits = -1;
	ioctl(random_fd, RNDGETENTCNT, &bits);
	printf("attack: %ld rounds, %ld alarms, %ld ms, %d bits\n", seconds, alarms, ms() - start, bits);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "auxv") == 0)
		return be_new_program();
	int status = -1;
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	setvbuf(stdout, NULL, _IOFBF, 65536);
	pid_t child = fork();
	if (child == 0)
		attack(argc > 1 ? atol(argv[1]) : 1);
	waitpid(child, &status, 0);
	int report = open("/proc/alea/random", O_RDONLY);
	ssize_t len = read(report, bytes, sizeof bytes);
	if (len > 0)
		write(1, bytes, (size_t)len);
	printf("attack: done %d\n", status);
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
