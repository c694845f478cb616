/*
 * A mount goes at the moment at which others read the tables of mounts, which keeps nothing busy, and at which others open a
 * file on it: either it goes or they have the file. On one CPU little can happen.
 */
#include "check.h"
#include "meet.h"
#include <pthread.h>
#include <sys/mount.h>

#define OTHERS 60
#define READS 300
#define OPENS 6000

static atomic_int stop, reading;

static void *read_tables(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop)) {
		read_file("/proc/self/mounts");
		read_file("/proc/self/mountinfo");
		atomic_store(&reading, 1);
	}
	return NULL;
}

static int opened;

static void delay(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

static void *open_file(void *unused)
{
	(void)unused;
	for (int i = 1; i <= OPENS; i++) {
		meet(1, 2 * i);
		delay(i % 64 * 4);
		opened = open("m/f", O_RDONLY);
		meet(1, 2 * i + 1);
	}
	return NULL;
}

static void beside_readers(void)
{
	pthread_t reader;
	long busy = 0;
	MUST(pthread_create(&reader, NULL, read_tables, NULL) ? -1 : 0);
	while (!atomic_load(&reading))
		sched_yield();
	for (int i = 0; i < READS; i++) {
		MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
		while (umount("m") != 0) {
			busy++;
			sched_yield();
		}
	}
	atomic_store(&stop, 1);
	pthread_join(reader, NULL);
	if (busy != 0)
		SAY("busy %ld times", busy);
	IS(busy == 0);
}

static void beside_opens(void)
{
	pthread_t opener;
	long both = 0;
	MUST(pthread_create(&opener, NULL, open_file, NULL) ? -1 : 0);
	for (int i = 1, gone = 1; i <= OPENS; i++) {
		if (gone) {
			MUST(mount("tmpfs", "m", "tmpfs", 0, NULL));
			close((int)MUST(open("m/f", O_WRONLY | O_CREAT, 0600)));
		}
		meet(0, 2 * i);
		gone = umount("m") == 0;
		meet(0, 2 * i + 1);
		both += gone && opened >= 0;
		if (opened >= 0)
			close(opened);
	}
	pthread_join(opener, NULL);
	umount("m");
	if (both != 0)
		SAY("opened and gone %ld times", both);
	IS(both == 0);
}

int main(void)
{
	char other[16];
	alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	scratch();
	MUST(mkdir("m", 0755));
	MUST(mkdir("more", 0755));
	for (int i = 0; i < OTHERS; i++) {
		snprintf(other, sizeof other, "more/%d", i);
		MUST(mkdir(other, 0755));
		MUST(mount("m", other, NULL, MS_BIND, NULL));
	}
	beside_readers();
	for (int i = 0; i < OTHERS; i++) {
		snprintf(other, sizeof other, "more/%d", i);
		MUST(umount(other));
	}
	beside_opens();
	return 0;
}
