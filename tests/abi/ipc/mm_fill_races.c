/*
 * A hole of a file in memory is filled by who touches it through a mapping, while another CPU makes it a hole again, or fills it
 * by write(2) where there is room for just one such page: the access never fails. On one CPU little can happen.
 */
#include "check.h"
#include "meet.h"
#include <pthread.h>
#include <sys/mount.h>

#define PAGES 8
#define PUNCHES 30000
#define FILLS 6000

static int fd;
static volatile char *map;
static atomic_int stop;
static volatile long failed;

/* Returns to the access, which is made once more. */
static void on_bus(int sig)
{
	(void)sig;
	failed++;
}

static void punch(void)
{
	MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGES * PAGE));
}

static void *punch_on(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop))
		punch();
	return NULL;
}

static long refused;

static void *write_on(void *unused)
{
	(void)unused;
	for (int i = 1; i <= FILLS; i++) {
		meet(1, 2 * i);
		for (int at = 0; at < PAGES; at++)
			refused += pwrite(fd, "w", 1, at * PAGE + 1) != 1;
		meet(1, 2 * i + 1);
	}
	return NULL;
}

static void beside_punches(void)
{
	pthread_t other;
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	MUST(pthread_create(&other, NULL, punch_on, NULL) ? -1 : 0);
	for (int i = 0; i < PUNCHES && elapsed_ms(&start) < 3000; i++)
		map[i % PAGES * PAGE] = 1;
	atomic_store(&stop, 1);
	pthread_join(other, NULL);
	SAY("beside punches: %s", failed == 0 ? "never fails" : "fails now and then");
	failed = 0;
}

static void beside_writes(void)
{
	pthread_t other;
	long lost = 0;
	MUST(pthread_create(&other, NULL, write_on, NULL) ? -1 : 0);
	for (int i = 1; i <= FILLS; i++) {
		punch();
		meet(0, 2 * i);
		for (int at = 0; at < PAGES; at++)
			map[at * PAGE] = 'm';
		meet(0, 2 * i + 1);
		for (int at = 0; at < PAGES && refused == 0; at++)
			lost += map[at * PAGE] != 'm' || map[at * PAGE + 1] != 'w';
	}
	pthread_join(other, NULL);
	SAY("beside writes: %s", failed == 0 ? "never fails" : "fails now and then");
	SAY("the writes: %s", refused == 0 ? "never fail" : "fail now and then");
	IS(lost == 0);
}

int main(void)
{
	alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	scratch();
	signal(SIGBUS, on_bus);
	MUST(mkdir("m", 0755));
	MUST(mount("tmpfs", "m", "tmpfs", 0, "size=32k"));
	fd = (int)MUST(open("m/f", O_RDWR | O_CREAT, 0600));
	MUST(ftruncate(fd, PAGES * PAGE));
	map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	beside_punches();
	beside_writes();
	MUST(munmap((void *)map, PAGES * PAGE));
	close(fd);
	MUST(umount("m"));
	return 0;
}
