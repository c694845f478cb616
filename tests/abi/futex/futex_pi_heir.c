/*
 * Futexes that lend priority, when an owner dies and the next one cannot be told, or is only just being queued.
 */
#include "futex_pi.h"

static volatile int word, cond, go;
static volatile int tids[2], results[2];

static int told[2];

/* Takes the page of the lock away while the main thread waits for it. */
static void *takes_page_away(void *arg)
{
	await_sleep(getpid());
	munmap(arg, PAGE);
	MUST(write(told[1], "x", 1));
	return NULL;
}

/* The owner dies, and the heir can write its number nowhere: nobody must stay the owner of a lock that is gone. */
static void heir_without_page(void)
{
	volatile int *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(pipe(told));
	fflush(stdout);
	pid_t owner = (pid_t)MUST(fork());
	if (owner == 0) {
		futex(shared, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
		shared[1] = 1;
		while (shared[2] == 0)
			sleep_ms(1);
		_exit(0);
	}
	for (int i = 0; i < LONG_MS && !shared[1]; i++)
		sleep_ms(1);
	pid_t heir = (pid_t)MUST(fork());
	if (heir == 0) {
		pthread_t t;
		pthread_create(&t, NULL, takes_page_away, (void *)shared);
		T(futex(shared, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
		pthread_join(t, NULL);
		fflush(stdout);
		_exit(0);
	}
	char c;
	MUST(read(told[0], &c, 1));
	shared[2] = 1;
	say_status("heir", reap(heir));
	say_status("owner", reap(owner));
	MUST(munmap((void *)shared, PAGE));
	close(told[0]);
	close(told[1]);
}

static void *owner_that_leaves(void *arg)
{
	tids[0] = tid();
	word = tids[0];
	go = 1;
	while (go != 2)
		;
	return arg;
}

static void *waits_to_be_moved(void *arg)
{
	tids[1] = tid();
	results[1] = futex(&cond, FUTEX_WAIT_REQUEUE_PI | P, 5, NULL, &word, 0) == 0 ? 0 : errno;
	if (results[1] == 0)
		UNLOCK(&word);
	return arg;
}

/* A waiter is moved to the lock of a thread that is just ending: it gets the lock, however the two meet. */
static void owner_leaves_while_moving(void)
{
	int got = 0;
	for (int round = 0; round < 100; round++) {
		pthread_t owner, waiter;
		go = 0;
		cond = 5;
		pthread_create(&owner, NULL, owner_that_leaves, NULL);
		while (go != 1)
			sleep_ms(1);
		tids[1] = 0;
		pthread_create(&waiter, NULL, waits_to_be_moved, NULL);
		while (!tids[1])
			sleep_ms(1);
		await_sleep(tids[1]);
		go = 2;
		for (volatile int spin = 0; spin < round * 300; spin++)
			;
		long moved = futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)0, &word, 5);
		pthread_join(owner, NULL);
		/* Too late: as with a lock that is not robust, somebody must notice that its owner is gone. */
		if (moved != 1) {
			word = 0;
			futex(&cond, FUTEX_CMP_REQUEUE_PI | P, 1, (void *)0, &word, 5);
		}
		pthread_join(waiter, NULL);
		got += results[1] == 0;
		word = 0;
	}
	SAY("%d of 100 got it", got);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	heir_without_page();
	owner_leaves_while_moving();
	return 0;
}
