/*
 * load: groups of senders and receivers, as hackbench has them: each sender of a group sends to each of its receivers, by
 * pipes or sockets, as threads or as processes. Told: nanoseconds for each message.
 */
#include "load.h"

#define PAIRS 20
#define MESSAGE 100
#define MOST_GROUPS 16

static struct ends { int read[PAIRS], write[PAIRS]; } groups[MOST_GROUPS];
static int sent_to_each;

static void send_all(int group)
{
	char message[MESSAGE] = { 0 };
	wait_for_go();
	for (int i = 0; i < sent_to_each; i++)
		for (int to = 0; to < PAIRS; to++)
			for (long done = 0; done < MESSAGE;)
				done += MUST(write(groups[group].write[to], message, (size_t)(MESSAGE - done)));
}

static void receive_all(int number)
{
	char message[MESSAGE];
	int fd = groups[number / PAIRS].read[number % PAIRS];
	wait_for_go();
	for (int i = 0; i < sent_to_each * PAIRS; i++)
		for (long done = 0; done < MESSAGE;)
			done += MUST(read(fd, message, (size_t)(MESSAGE - done)));
}

static void *send_all_thread(void *group) { send_all((int)(intptr_t)group); return NULL; }
static void *receive_all_thread(void *number) { receive_all((int)(intptr_t)number); return NULL; }

static void threads_of(int count, pthread_t *threads)
{
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int group = 0, at = 0; group < count; group++)
		for (int i = 0; i < PAIRS; i++) {
			intptr_t number = group * PAIRS + i;
			if (pthread_create(&threads[at++], &small, receive_all_thread, (void *)number) != 0 ||
			    pthread_create(&threads[at++], &small, send_all_thread, (void *)(intptr_t)group) != 0)
				failed("pthread_create");
		}
}

static void messages(const char *kind, int count, int by_sockets, int as_threads)
{
	static pthread_t threads[MOST_GROUPS * PAIRS * 2];
	begin();
	sent_to_each = 2000 / (count * PAIRS) + 1;
	for (int group = 0; group < count; group++)
		for (int i = 0; i < PAIRS; i++) {
			int fds[2];
			MUST(by_sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, fds) : pipe(fds));
			groups[group].read[i] = fds[0];
			groups[group].write[i] = fds[1];
		}
	if (as_threads)
		threads_of(count, threads);
	else
		for (int number = 0; number < count * PAIRS; number++) {
			child(receive_all, number);
			child(send_all, number / PAIRS);
		}
	uint64_t start = let_go((uint32_t)(count * PAIRS * 2));
	if (as_threads)
		for (int i = 0; i < count * PAIRS * 2; i++)
			pthread_join(threads[i], NULL);
	else
		reap();
	uint64_t took = now_ns() - start;
	for (int group = 0; group < count; group++)
		for (int i = 0; i < PAIRS; i++) {
			close(groups[group].read[i]);
			close(groups[group].write[i]);
		}
	tell(kind, "message", (double)took / ((double)count * PAIRS * PAIRS * sent_to_each));
}

static void pipes_1(void) { messages("hack_pipes_40_processes", 1, 0, 0); }
static void pipes_10(void) { messages("hack_pipes_400_processes", 10, 0, 0); }
static void sockets_1(void) { messages("hack_sockets_40_processes", 1, 1, 0); }
static void sockets_10(void) { messages("hack_sockets_400_processes", 10, 1, 0); }
static void pipes_threads_1(void) { messages("hack_pipes_40_threads", 1, 0, 1); }
static void sockets_threads_10(void) { messages("hack_sockets_400_threads", 10, 1, 1); }
