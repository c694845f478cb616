/*
 * locking: ten producers draw random blocks for ten consumers, and all of them would wait for one lock if there were one.
 *
 * The program of the article "Locking in crypto/rand", with threads for goroutines and a queue of one place for its channel; then its
 * measure of one stream, and getrandom from 1, 2, 4 and 8 threads at once.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/random.h>

#include "experiments/experiment.h"

enum { PRODUCERS = 10, CONSUMERS = 10, MOST = 10000 };

struct block {
	size_t len;
	uint8_t *bytes;
};

/* A channel: a sender waits until somebody has taken what he gave. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int full, closed;
	struct block block;
} channel = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void draw(void *into, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t got = getrandom((char *)into + done, len - done, 0);
		must(got > 0, "getrandom");
		done += (size_t)got;
	}
}

static void send_block(struct block block)
{
	pthread_mutex_lock(&channel.lock);
	while (channel.full)
		pthread_cond_wait(&channel.changed, &channel.lock);
	channel.block = block, channel.full = 1;
	pthread_cond_broadcast(&channel.changed);
	pthread_mutex_unlock(&channel.lock);
}

/* False once the channel is closed and empty. */
static int receive_block(struct block *block)
{
	pthread_mutex_lock(&channel.lock);
	while (!channel.full && !channel.closed)
		pthread_cond_wait(&channel.changed, &channel.lock);
	int got = channel.full;
	if (got) {
		*block = channel.block;
		channel.full = 0;
		pthread_cond_broadcast(&channel.changed);
	}
	pthread_mutex_unlock(&channel.lock);
	return got;
}

static long blocks_each;

static void *produce(void *nothing)
{
	for (long i = 0; i < blocks_each; i++) {
		uint32_t number;
		draw(&number, sizeof number);
		struct block block = { number % MOST, malloc(MOST) };
		must(block.bytes != NULL, "malloc");
		draw(block.bytes, block.len);
		for (size_t at = 0; at < block.len; at++)
			block.bytes[at] = 'A' + block.bytes[at] % 26;
		send_block(block);
	}
	return nothing;
}

static void *consume(void *sum)
{
	struct block block;
	while (receive_block(&block)) {
		*(size_t *)sum += block.len;
		free(block.bytes);
	}
	return NULL;
}

static void producers_and_consumers(void)
{
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];
	size_t sums[CONSUMERS] = { 0 }, all = 0;
	blocks_each = calls(9999);
	int64_t start = now_ns();
	for (int i = 0; i < CONSUMERS; i++)
		must(pthread_create(&consumers[i], NULL, consume, &sums[i]) == 0, "pthread_create");
	for (int i = 0; i < PRODUCERS; i++)
		must(pthread_create(&producers[i], NULL, produce, NULL) == 0, "pthread_create");
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	pthread_mutex_lock(&channel.lock);
	channel.closed = 1;
	pthread_cond_broadcast(&channel.changed);
	pthread_mutex_unlock(&channel.lock);
	for (int i = 0; i < CONSUMERS; i++) {
		pthread_join(consumers[i], NULL);
		all += sums[i];
	}
	rung("block-made-and-taken", PRODUCERS * blocks_each, now_ns() - start);
	fact("blocks-have-bytes", all > 0);
}

static void one_stream(void)
{
	static uint8_t buffer[1 << 16];
	long count = calls(1000);
	int64_t start = now_ns();
	for (long i = 0; i < count; i++)
		draw(buffer, sizeof buffer);
	rung("stream-KiB", count * (long)(sizeof buffer >> 10), now_ns() - start);
}

static long draws_each;

static void *draw_often(void *nothing)
{
	uint8_t bytes[16];
	for (long i = 0; i < draws_each; i++)
		draw(bytes, sizeof bytes);
	return nothing;
}

/* The time of one of all draws together: with as many CPUs as threads, and no lock, it falls as their number rises. */
static void many_threads(void)
{
	for (int threads = 1; threads <= 8; threads *= 2) {
		char name[32];
		pthread_t all[8];
		draws_each = calls(1000000) / threads + 1;
		int64_t start = now_ns();
		for (int i = 0; i < threads; i++)
			must(pthread_create(&all[i], NULL, draw_often, NULL) == 0, "pthread_create");
		for (int i = 0; i < threads; i++)
			pthread_join(all[i], NULL);
		snprintf(name, sizeof name, "draw-by-%d-threads", threads);
		rung(name, threads * draws_each, now_ns() - start);
	}
}

int main(int argc, char **argv)
{
	experiment_begin(argc, argv);
	producers_and_consumers();
	one_stream();
	many_threads();
	experiment_end();
	return 0;
}
