/*
 * futex: value mismatch EAGAIN, timeouts ETIMEDOUT (relative and absolute), wake counts, bitsets,
 * requeue, private and shared keys, PI basics, and every argument error.
 */
#include "check.h"
#include <linux/futex.h>
#include <pthread.h>

static int word, other;

static long futex(int *p, int op, int val, const void *timeout, int *p2, int val3)
{
	return syscall(SYS_futex, p, op, val, timeout, p2, val3);
}

static int waiting;

static void on_signal(int sig) {}

static void *waiter(void *arg)
{
	__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
	return (void *)futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void *bit_waiter(void *arg)
{
	__atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
	return (void *)futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 2);
}

static void start(pthread_t *t, int n, void *(*f)(void *))
{
	waiting = 0;
	for (int i = 0; i < n; i++)
		pthread_create(&t[i], NULL, f, NULL);
	while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < n)
		sleep_ms(1);
	wait_threads(n);
}

static void join(pthread_t *t, int n)
{
	long sum = 0;
	void *r;
	for (int i = 0; i < n; i++) {
		pthread_join(t[i], &r);
		sum += (long)r;
	}
	SAY("%d waiters returned, sum %ld", n, sum);
}

int main(void)
{
	struct timespec t0 = { 0, 0 }, ms20 = { 0, 20000000 }, bad = { 0, 1000000000 }, neg = { -1, 0 }, from, to;
	T(futex(&word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAIT_PRIVATE, 0, &t0, NULL, 0));
	T(futex(&word, FUTEX_WAIT_PRIVATE, 0, &bad, NULL, 0));
	T(futex(&word, FUTEX_WAIT_PRIVATE, 0, &neg, NULL, 0));
	clock_gettime(CLOCK_MONOTONIC, &from);
	T(futex(&word, FUTEX_WAIT_PRIVATE, 0, &ms20, NULL, 0));
	IS(elapsed_ms(&from) >= 20);
	clock_gettime(CLOCK_MONOTONIC, &to);
	T(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &to, NULL, -1));
	clock_gettime(CLOCK_REALTIME, &to);
	T(futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &to, NULL, -1));
	T(futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0));
	T(futex((int *)((char *)&word + 1), FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
	T(futex((int *)((char *)&word + 2), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	T(futex(NULL, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
	T(futex((int *)KERNEL_ADDRESS, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	T(futex(&word, 99, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_FD, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAKE_PRIVATE | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0));
	T(futex(&word, FUTEX_REQUEUE_PRIVATE, -1, (void *)1, &other, 0));
	T(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &other, 5));
	T(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &other, 0));
	char *ro = pages(1);
	mprotect(ro, PAGE, PROT_READ);
	T(futex((int *)ro, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0));
	T(futex((int *)ro, FUTEX_WAIT, 1, NULL, NULL, 0));

	pthread_t th[4];
	start(th, 4, waiter);
	T(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAKE_PRIVATE, 2, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAKE, 10, NULL, NULL, 0));
	T(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
	join(th, 4);
	start(th, 3, bit_waiter);
	T(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 1));
	T(futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 10, NULL, NULL, 3));
	join(th, 3);
	start(th, 4, waiter);
	T(futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)2, &other, 0));
	T(futex(&word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
	T(futex(&other, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
	join(th, 4);
	start(th, 1, waiter);
	/* op: other = 1 (SET), then compare old == 0 (EQ): wake both */
	T(futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &other, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)));
	SAY("other %d", other);
	join(th, 1);

	/* shared between processes */
	int *s = (int *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		_exit(futex(s, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 ? 0 : 1);
	wait_state(pid, "S");
	int woken = 0;
	for (int i = 0; i < LONG_MS && !woken; i++, sleep_ms(1))
		woken = (int)futex(s, FUTEX_WAKE, 1, NULL, NULL, 0);
	SAY("woken %d", woken);
	say_status("waiter in another process", reap(pid));

	/* a signal ends the wait */
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		struct sigaction sa = { .sa_handler = on_signal };
		sigaction(SIGUSR1, &sa, NULL);
		T(futex(s, FUTEX_WAIT, 0, NULL, NULL, 0));
		_exit(0);
	}
	wait_state(pid, "S");
	kill(pid, SIGUSR1);
	say_status("interrupted", reap(pid));

	/* PI futexes: a free one is taken, an owned one is refused by trylock */
	int pi = 0;
	T(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	IS(pi == syscall(SYS_gettid));
	T(futex(&pi, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	T(futex(&pi, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	SAY("pi %d", pi);
	T(futex(&pi, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	return 0;
}
