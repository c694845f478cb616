/*
 * pthreads as static glibc makes them: mutex, condition, join with a result, thread-local storage,
 * once, keys, barriers, rwlocks, cancellation, detached threads, one pid and many tids.
 */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>

#define THREADS 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int local = 5;
static long counter;
static int ready, once_ran, key_destroyed;
static pid_t tids[THREADS], pids[THREADS];

static void count_once(void) { once_ran++; }
static void destroy(void *value) { __atomic_add_fetch(&key_destroyed, 1, __ATOMIC_SEQ_CST); }

static void *work(void *arg)
{
	long me = (long)arg;
	local += (int)me;
	tids[me] = (pid_t)syscall(SYS_gettid);
	pids[me] = getpid();
	pthread_once(&once, count_once);
	pthread_setspecific(key, (void *)(me + 1));
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&mutex);
		counter++;
		pthread_mutex_unlock(&mutex);
	}
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&mutex);
	ready++;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	return (void *)(me * 10 + local);
}

static void *forever(void *arg)
{
	for (;;)
		pause();
	return NULL;
}

static sem_t done;

static void *detached(void *arg)
{
	pthread_detach(pthread_self());
	sem_post(&done);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	pthread_barrier_init(&barrier, NULL, THREADS);
	pthread_key_create(&key, destroy);
	for (long i = 0; i < THREADS; i++)
		T(pthread_create(&threads[i], NULL, work, (void *)i));
	pthread_mutex_lock(&mutex);
	while (ready < THREADS)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < THREADS; i++) {
		void *result;
		pthread_join(threads[i], &result);
		SAY("thread %d returned %ld", i, (long)result);
	}
	SAY("counter %ld, once %d, keys destroyed %d, my local %d", counter, once_ran, key_destroyed, local);
	int same_pid = 1, distinct = 1;
	for (int i = 0; i < THREADS; i++) {
		same_pid &= pids[i] == getpid();
		distinct &= tids[i] != getpid();
		for (int k = 0; k < i; k++)
			distinct &= tids[i] != tids[k];
	}
	IS(same_pid);
	IS(distinct);
	/* a timed wait that nobody ends */
	struct timespec until, from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 50000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&mutex);
	SAY("timedwait: %s", err_name(pthread_cond_timedwait(&cond, &mutex, &until)));
	pthread_mutex_unlock(&mutex);
	IS(elapsed_ms(&from) >= 49);
	/* cancellation */
	void *result;
	pthread_create(&threads[0], NULL, forever, NULL);
	T(pthread_cancel(threads[0]));
	T(pthread_join(threads[0], &result));
	IS(result == PTHREAD_CANCELED);
	/* many short threads */
	sem_init(&done, 0, 0);
	for (int i = 0; i < 200; i++) {
		if (pthread_create(&threads[0], NULL, detached, NULL) != 0)
			SAY("thread %d not created", i);
		sem_wait(&done);
	}
	SAY("200 detached threads");
	/* signals to one thread */
	T(pthread_kill(pthread_self(), 0));
	T(syscall(SYS_tgkill, getpid(), 999999999, SIGUSR1));
	T(syscall(SYS_tgkill, -1, 1, SIGUSR1));
	T(syscall(SYS_tkill, 0, SIGUSR1));
	return 0;
}
