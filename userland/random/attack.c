/*
 * attack: a program without privileges tries to make a machine without a source of entropy hand out bytes.
 *
 * For a machine without RDRAND whose time is counted instructions. Runs as init, which only makes the attacker's
 * process; that one causes all the interrupts it can (alarms, TLB flushes of other CPUs, the serial line's) and draws
 * what may be drawn early. Prints one line per fact, `yes` or `no`, and powers off.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define IS(fact) printf("%s: %s\n", #fact, (fact) ? "yes" : "no")

enum { ALARMS = 100000, FLUSHES = 20000, LINES = 2000 };

static char bytes[64];
static volatile int alarms, stop;
static char *volatile page;

static void on_alarm(int sig) { (void)sig; alarms++; }

static int refused(void)
{
	return syscall(SYS_getrandom, bytes, sizeof bytes, GRND_NONBLOCK) == -1 && errno == EAGAIN;
}

static int credited(int random)
{
	int bits = -1;
	ioctl(random, RNDGETENTCNT, &bits);
	return bits;
}

static void alarm_often(void)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &often, NULL);
	while (alarms < ALARMS) {
		if (alarms % 1000 == 0)
			syscall(SYS_getrandom, bytes, sizeof bytes, GRND_INSECURE);
		pause();
	}
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

/* each change of rights has to be told to the CPU that runs the other thread */
static void flush_often(void)
{
	pthread_t other;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&other, NULL, spin, NULL);
	for (int n = 0; n < FLUSHES; n++) {
		char *more = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*more = 1;
		munmap(more, 4096);
	}
	stop = 1;
	pthread_join(other, NULL);
}

/* the line takes sixteen bytes an interrupt */
static void print_often(void)
{
	static const char line[] = "...............................................................................\n";
	for (int n = 0; n < LINES; n++)
		write(1, line, sizeof line - 1);
}

static void attack(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	sigaction(SIGALRM, &sa, NULL);
	int random = open("/dev/random", O_RDWR | O_NONBLOCK), urandom = open("/dev/urandom", O_RDONLY);
	if (setgid(65534) || setuid(65534))
		_exit(1);
	IS(refused());
	alarm_often();
	IS(alarms >= ALARMS && refused());
	flush_often();
	IS(refused());
	print_often();
	IS(refused());
	IS(read(urandom, bytes, sizeof bytes) == sizeof bytes);
	for (int n = 0; n < 1000; n++)
		write(random, bytes, sizeof bytes);
	IS(refused());
	IS(read(random, bytes, sizeof bytes) == -1 && errno == EAGAIN);
	IS(credited(random) == 0);
	fflush(stdout);
	_exit(0);
}

int main(void)
{
	int status = -1;
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		attack();
	waitpid(child, &status, 0);
	char text[4096];
	int report = open("/proc/alea/random", O_RDONLY);
	ssize_t len = read(report, text, sizeof text);
	if (len > 0)
		write(1, text, (size_t)len);
	printf("attack: done %d\n", status);
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
