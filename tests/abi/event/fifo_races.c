/*
 * A FIFO's reader and writer open it at the same time, and the writer is gone at once: the reader gets what it wrote, never waits for
 * another.
 */
#include "check.h"
#include <pthread.h>

#define TURNS 3000
static pthread_barrier_t barrier;
static int refused;

static void *writer(void *arg)
{
	(void)arg;
	for (int turn = 0; turn < TURNS; turn++) {
		pthread_barrier_wait(&barrier);
		int fd = open("/tmp/fifo.races", O_WRONLY);
		refused += fd < 0 || write(fd, "x", 1) != 1;
		close(fd);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;
	int lost = 0;
	char c[2];
	unlink("/tmp/fifo.races");
	MUST(mkfifo("/tmp/fifo.races", 0600));
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, writer, NULL);
	for (int turn = 0; turn < TURNS; turn++) {
		pthread_barrier_wait(&barrier);
		int fd = (int)MUST(open("/tmp/fifo.races", O_RDONLY));
		lost += read(fd, c, 2) != 1 || read(fd, c, 2) != 0;
		close(fd);
	}
	pthread_join(thread, NULL);
	IS(lost == 0);
	IS(refused == 0);
	return 0;
}
