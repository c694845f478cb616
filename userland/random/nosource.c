/*
 * nosource: what the interfaces do on a machine that has no source of entropy, and how it becomes ready.
 *
 * For a machine without RDRAND whose time is counted instructions, so that there is no jitter either. Prints
 * one line per fact, `yes` or `no`; ends by giving the pool 256 bits as an administrator may, and powers off.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define IS(fact) printf("%s: %s\n", #fact, (fact) ? "yes" : "no")
#define FAILS(call, error) (errno = 0, (call) == -1 && errno == (error))

static char bytes[256];

static void on_alarm(int sig) { (void)sig; }

static int polled(int fd)
{
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	poll(&p, 1, 0);
	return p.revents;
}

static long get(unsigned flags)
{
	return syscall(SYS_getrandom, bytes, 16, flags);
}

/* A signal ends a wait, so it was one. */
static int waits(int fd)
{
	struct itimerval soon = { { 0, 100000 }, { 0, 100000 } }, never = { { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &soon, NULL);
	int waited = FAILS(fd < 0 ? get(0) : read(fd, bytes, 16), EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
	return waited;
}

static int count(int fd)
{
	int n = -1;
	ioctl(fd, RNDGETENTCNT, &n);
	return n;
}

static void before(int random, int urandom)
{
	IS(FAILS(get(GRND_NONBLOCK), EAGAIN));
	IS(FAILS(get(GRND_NONBLOCK | GRND_RANDOM), EAGAIN));
	IS(FAILS(syscall(SYS_getrandom, NULL, 0, GRND_NONBLOCK), EAGAIN));
	IS(FAILS(get(8), EINVAL));
	IS(get(GRND_INSECURE) == 16);
	IS(FAILS(read(random, bytes, 16), EAGAIN));
	IS(read(urandom, bytes, 16) == 16);
	IS(polled(random) == POLLOUT);
	IS(polled(urandom) == (POLLIN | POLLOUT));
	IS(FAILS(ioctl(random, RNDRESEEDCRNG), ENODATA));
	IS(count(random) < 256);
	/* writing mixes and credits nothing */
	IS(write(random, bytes, 256) == 256);
	IS(FAILS(get(GRND_NONBLOCK), EAGAIN));
	fcntl(random, F_SETFL, 0);
	IS(waits(-1));
	IS(waits(random));
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct { struct rand_pool_info info; char data[32]; } pool = { { 256, 32 }, "" };
	sigaction(SIGALRM, &sa, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	int random = open("/dev/random", O_RDWR | O_NONBLOCK), urandom = open("/dev/urandom", O_RDWR);
	before(random, urandom);

	int pipes[2], status = -1;
	char answer = 0;
	IS(pipe(pipes) == 0);
	pid_t child = fork();
	if (child == 0) {
		/* one waits in the call, and tells when it is through */
		answer = get(0) == 16 ? 'y' : 'n';
		write(pipes[1], &answer, 1);
		_exit(0);
	}
	struct pollfd silent = { pipes[0], POLLIN, 0 };
	IS(poll(&silent, 1, 200) == 0);
	IS(ioctl(random, RNDADDENTROPY, &pool) == 0);
	IS(read(pipes[0], &answer, 1) == 1 && answer == 'y');
	waitpid(child, &status, 0);
	IS(get(GRND_NONBLOCK) == 16);
	IS(polled(random) == POLLIN);
	IS(count(random) == 256);
	printf("nosource: done\n");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
