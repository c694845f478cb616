/*
 * What nobody should ask of the random devices: gigabytes written at once, pools with huge and negative sizes and counts,
 * a thousand readers at a time, and signals in the middle of every kind of request. Requests end with a whole number
 * of pieces of 4096 bytes or with all, never with nothing; no two draws are equal; the entropy count stays where it is.
 */
#include "check.h"
#include <linux/random.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/time.h>

#define READERS 1000
#define DRAWS 4
#define GIB (1UL << 30)

static volatile int ticks;
static int random_fd, urandom_fd;

static void on_alarm(int sig) { ticks++; }

static void every(long us)
{
	struct itimerval timer = { { us / 1000000, us % 1000000 }, { us / 1000000, us % 1000000 } };
	setitimer(ITIMER_REAL, &timer, NULL);
}

static int count(void)
{
	int n = -1;
	MUST(ioctl(random_fd, RNDGETENTCNT, &n));
	return n;
}

/* All of it, or a multiple of 4096 that is not nothing. */
static int sound(long n, long want)
{
	return n == want || (n > 0 && n < want && n % 4096 == 0);
}

static void interrupted(char *big)
{
	long len = 32 << 20;
	int bad = 0, cut = 0;
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	every(1000);
	do {
		long n[] = {
			read(random_fd, big, len),
			read(urandom_fd, big, len),
			syscall(SYS_getrandom, big, len, 0),
			syscall(SYS_getrandom, big, len, GRND_RANDOM),
			syscall(SYS_getrandom, big, len, GRND_INSECURE),
			write(random_fd, big, len),
			write(urandom_fd, big, len),
		};
		for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
			bad += !sound(n[i], len);
			cut += n[i] != len;
		}
	} while (cut == 0 && elapsed_ms(&from) < LONG_MS);
	every(0);
	IS(bad == 0);
	IS(cut > 0);
}

static void gigabytes(char *big)
{
	int bad = 0;
	every(20000);
	for (int i = 0; i < 3; i++) {
		long n = write(i & 1 ? urandom_fd : random_fd, big, 4 * GIB);
		bad += !(n > 0 && n <= 0x7ffff000 && n % 4096 == 0);
	}
	every(0);
	IS(bad == 0);
	T(write(random_fd, big, 8 << 20));
	T(write(random_fd, KERNEL_ADDRESS, SIZE_MAX));
	T(write(random_fd, NULL, SIZE_MAX));
	T(read(random_fd, KERNEL_ADDRESS, SIZE_MAX));
	IS(count() == 256);
}

static long add(char *at, int bits, int size)
{
	struct rand_pool_info info = { bits, size };
	memcpy(at, &info, sizeof info);
	return ioctl(random_fd, RNDADDENTROPY, at);
}

static void pools(void)
{
	/* the page ends where the data would have to go on */
	char *end = page_end();
	char *small = end - 64;
	T(add(small, 8, 56));
	T(add(small, 8, 57));
	T(add(small, 8, INT_MAX));
	T(add(small, 8, INT_MIN));
	T(add(small, 8, -1));
	T(add(small, 8, 0));
	T(add(small, 0, 16));
	T(add(small, -1, 16));
	T(add(small, INT_MIN, 16));
	T(add(small, INT_MAX, 16));
	T(add(small, INT_MAX, INT_MAX));
	T(add(small, INT_MAX, INT_MIN));
	T(add(small, -1, -1));
	T(ioctl(random_fd, RNDADDENTROPY, end));
	T(ioctl(random_fd, RNDADDENTROPY, end - 4));
	T(ioctl(random_fd, RNDADDENTROPY, NON_CANONICAL));
	T(ioctl(random_fd, RNDADDENTROPY, -1L));
	T(ioctl(random_fd, RNDADDTOENTCNT, &(int){ INT_MAX }));
	T(ioctl(random_fd, RNDADDTOENTCNT, &(int){ INT_MIN }));
	IS(count() == 256);
}

static unsigned char drawn[READERS * DRAWS][16];
static pthread_barrier_t start;

static void *reader(void *arg)
{
	long n = (long)arg, bad = 0;
	unsigned char(*mine)[16] = drawn + n * DRAWS;
	static __thread char bulk[4096];
	pthread_barrier_wait(&start);
	bad += syscall(SYS_getrandom, mine[0], 16, 0) != 16;
	bad += read(n & 1 ? random_fd : urandom_fd, mine[1], 16) != 16;
	bad += read(n & 1 ? urandom_fd : random_fd, bulk, sizeof bulk) != sizeof bulk;
	memcpy(mine[2], bulk + 77, 16);
	bad += write(random_fd, bulk, 100) != 100;
	bad += syscall(SYS_getrandom, mine[3], 16, GRND_NONBLOCK) != 16;
	return (void *)bad;
}

static int order(const void *a, const void *b) { return memcmp(a, b, 16); }

static void crowd(void)
{
	static pthread_t threads[READERS];
	pthread_attr_t attr;
	long bad = 0, equal = 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	pthread_barrier_init(&start, NULL, READERS);
	for (long i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], &attr, reader, (void *)i) != 0)
			MUST(-1);
	for (long i = 0; i < READERS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		bad += (long)result;
	}
	qsort(drawn, READERS * DRAWS, 16, order);
	for (long i = 1; i < READERS * DRAWS; i++)
		equal += order(drawn[i - 1], drawn[i]) == 0;
	IS(bad == 0);
	IS(equal == 0);
}

int main(void)
{
	/* without SA_RESTART, so that anything that gives EINTR shows it */
	struct sigaction sa = { .sa_handler = on_alarm };
	sigaction(SIGALRM, &sa, NULL);
	random_fd = MUST(open("/dev/random", O_RDWR));
	urandom_fd = MUST(open("/dev/urandom", O_RDWR));
	char *big = (char *)MUST(mmap(NULL, 4 * GIB, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	interrupted(big);
	gigabytes(big);
	pools();
	crowd();
	return 0;
}
