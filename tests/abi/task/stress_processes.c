/*
 * Many processes and threads at once: rings of pipes, signals that must all arrive, futex hand-overs, fork storms and
 * exits in every order. Everything sent is received, and nothing is left over.
 */
#include "check.h"
#include <pthread.h>
#include <sys/time.h>

#define RING 12
#define LAPS 100

static void ring(void)
{
	int p[RING][2];
	long sum = 0;
	for (int i = 0; i < RING; i++)
		MUST(pipe(p[i]));
	for (int i = 0; i < RING - 1; i++) {
		if (MUST(fork()) == 0) {
			long token;
			for (int lap = 0; lap < LAPS; lap++) {
				if (read(p[i][0], &token, sizeof token) != sizeof token)
					_exit(1);
				token++;
				if (write(p[i + 1][1], &token, sizeof token) != sizeof token)
					_exit(2);
			}
			_exit(0);
		}
	}
	for (int lap = 0; lap < LAPS; lap++) {
		long token = 0;
		write(p[0][1], &token, sizeof token);
		read(p[RING - 1][0], &token, sizeof token);
		sum += token;
	}
	int bad = 0;
	for (int i = 0; i < RING - 1; i++) {
		int status;
		wait(&status);
		bad += status != 0;
	}
	SAY("ring: sum %ld, bad %d", sum, bad);
	for (int i = 0; i < RING; i++)
		MUST(close(p[i][0]) + close(p[i][1]));
}

static volatile int got;

static void count(int s) { got++; }

static void queued(void)
{
	struct sigaction sa = { .sa_handler = count };
	sigset_t set, old;
	sigaction(SIGRTMIN, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, &old);
	pid_t me = getpid();
	for (int i = 0; i < 10; i++) {
		if (MUST(fork()) == 0) {
			for (int k = 0; k < 50; k++)
				if (sigqueue(me, SIGRTMIN, (union sigval){ .sival_int = k }) != 0)
					_exit(1);
			_exit(0);
		}
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, &old, NULL);
	SAY("queued signals: %d", got);
}

/* A tree of processes, three a node, four deep: all must end, each with its own status. */
static int tree(int depth)
{
	pid_t kids[3];
	int sum = 1;
	if (depth == 0)
		return 1;
	for (int i = 0; i < 3; i++) {
		kids[i] = (pid_t)MUST(fork());
		if (kids[i] == 0)
			_exit(tree(depth - 1));
	}
	for (int i = 2; i >= 0; i--)
		sum += WEXITSTATUS(reap(kids[i]));
	return sum;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, less = PTHREAD_COND_INITIALIZER;
static int queue[8], queue_len;
static long consumed;

static void *producer(void *arg)
{
	for (int i = 1; i <= 500; i++) {
		pthread_mutex_lock(&mutex);
		while (queue_len == 8)
			pthread_cond_wait(&less, &mutex);
		queue[queue_len++] = i;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void *consumer(void *arg)
{
	for (int i = 0; i < 500; i++) {
		pthread_mutex_lock(&mutex);
		while (queue_len == 0)
			pthread_cond_wait(&more, &mutex);
		consumed += queue[--queue_len];
		pthread_cond_signal(&less);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void queues(void)
{
	pthread_t t[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, i % 2 ? producer : consumer, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	SAY("queue: %ld", consumed);
}

/* Timers hit while the process forks, execs nothing and does arithmetic with vector registers. */
static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = count, .sa_flags = SA_RESTART };
	struct itimerval it = { { 0, 1000 }, { 0, 1000 } }, off = { 0 };
	sigaction(SIGALRM, &sa, NULL);
	got = 0;
	setitimer(ITIMER_REAL, &it, NULL);
	double x = 1, y = 1;
	int bad = 0, n = 0;
	/* on a busy machine until the timer has hit often enough */
	for (; n < 60 || (got <= 10 && n < 100000); n++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			double z = 0;
			for (int k = 1; k < 20000; k++)
				z += 1.0 / k;
			_exit(z > 10.4 && z < 10.5 ? 0 : 1);
		}
		for (int k = 0; k < 20000; k++)
			x = x * 1.0000001 + 0.5;
		bad += reap(pid) != 0;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	for (long i = 0; i < n * 20000L; i++)
		y = y * 1.0000001 + 0.5;
	SAY("interrupted: bad %d, equal %d, ticks %d", bad, x == y, got > 10);
}

int main(void)
{
	ring();
	queued();
	SAY("tree: %d", tree(4));
	queues();
	interrupted();
	T(wait(NULL));
	return 0;
}
