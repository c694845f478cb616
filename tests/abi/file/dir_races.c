/*
 * A directory that is replaced by a rename, or removed, while somebody else makes files in it: what is in a directory
 * that has gone must have gone, too. Alea tells how many names it holds; on one CPU nothing can happen.
 */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

#define ROUNDS 20000

static atomic_int stop;

static void *makes(void *unused)
{
	(void)unused;
	while (!stop) {
		int fd = open("races/t/file", O_CREAT | O_WRONLY, 0644);
		if (fd >= 0) {
			if (write(fd, "some bytes", 10) != 10)
				SAY("%s", strerror(errno));
			close(fd);
		}
		mkdir("races/t/below", 0755);
		rename("races/other", "races/t/moved");
		unlink("races/t/file");
		rmdir("races/t/below");
		rmdir("races/t/moved");
	}
	return NULL;
}

/* Names that the kernel holds, where it tells. */
static long names(void)
{
	FILE *file = fopen("/proc/alea/objects", "r");
	char line[100];
	long number = 0;
	while (file && fgets(line, sizeof line, file))
		sscanf(line, "dentries %ld", &number);
	if (file)
		fclose(file);
	return number;
}

int main(void)
{
	pthread_t other;
	long before = names();
	int replaced = 0, removed = 0;
	MUST(mkdir("races", 0755));
	MUST(mkdir("races/t", 0755));
	MUST(pthread_create(&other, NULL, makes, NULL) ? -1 : 0);
	for (int i = 0; i < ROUNDS; i++) {
		mkdir("races/s", 0755);
		mkdir("races/other", 0755);
		if (rename("races/s", "races/t") == 0)
			replaced++;
		else if (errno != ENOTEMPTY && errno != EEXIST)
			SAY("rename: %s", strerror(errno));
		if (i % 4 == 0 && rmdir("races/t") == 0) {
			removed++;
			mkdir("races/t", 0755);
		}
	}
	stop = 1;
	pthread_join(other, NULL);
	nftw("races", remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	IS(names() - before < 50);
	IS(replaced > 0);
	IS(removed > 0);
	return 0;
}
