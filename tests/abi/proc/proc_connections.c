/*
 * Many connections of one listener: to make one, and to end it, costs about as much as with few, whichever end closes first.
 */
#include "net.h"
#include <sys/resource.h>

enum { FEW = 250, MANY = 4000, TIMES = 2 };

static int ours[MANY], theirs[MANY];

static long cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long least(long one, long other)
{
	return one < other ? one : other;
}

static void close_all(int *fds, int count)
{
	for (int i = 0; i < count; i++)
		MUST(close(fds[i]));
}

/* CPU time of the ends of so many connections, for each: the best of a few. */
static long cost(int count, int listener_first)
{
	long best = LONG_MAX;
	for (int t = 0; t < TIMES; t++) {
		struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
		socklen_t len = sizeof name;
		int l = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
		MUST(bind(l, (struct sockaddr *)&name, sizeof name));
		MUST(listen(l, 10));
		MUST(getsockname(l, (struct sockaddr *)&name, &len));
		for (int i = 0; i < count; i++) {
			ours[i] = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
			MUST(connect(ours[i], (struct sockaddr *)&name, sizeof name));
			theirs[i] = (int)MUST(accept(l, NULL, NULL));
		}
		long from = cpu_ns();
		close_all(listener_first ? theirs : ours, count);
		close_all(listener_first ? ours : theirs, count);
		long took = (cpu_ns() - from) / count;
		best = least(best, took);
		MUST(close(l));
	}
	return best;
}

int main(void)
{
	struct rlimit most = { 2 * MANY + 16, 2 * MANY + 16 };
	net_up();
	MUST(setrlimit(RLIMIT_NOFILE, &most));
	for (int listener_first = 0; listener_first < 2; listener_first++) {
		long few = LONG_MAX, many = LONG_MAX;
		/* A busy host makes one of them longer now and then: the best of so many as it takes. */
		for (int tries = 0; tries == 0 || (tries < 8 && many >= 3 * few); tries++) {
			few = least(few, cost(FEW, listener_first));
			many = least(many, cost(MANY, listener_first));
		}
		if (many >= 3 * few)
			SAY("of few %ld ns, of many %ld ns each", few, many);
		SAY("%s first: %s", listener_first ? "the listener's ends" : "the other ends",
		    many < 3 * few ? "as much with many" : "more with many");
	}
	return 0;
}
