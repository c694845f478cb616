/*
 * load: how long who is woken waits for a CPU. Workers as schbench has them, and one that sleeps, or is asked, beside programs that
 * compute or send all the time. Told: percentiles of the waits, and nanoseconds for a piece of the others' work.
 */
#include "load.h"

#define PIECES 100		/* of work for a request */

/* --- workers that one thread wakes --- */

static struct worker { _Atomic uint32_t wanted; _Atomic uint64_t at; char apart[48]; } workers[MOST_CPUS * 8];
static _Atomic uint32_t idle_workers;

static void *worker(void *of)
{
	struct worker *self = of;
	wait_for_go();
	for (;;) {
		atomic_store(&self->wanted, 0);
		atomic_fetch_add(&idle_workers, 1);
		while (!atomic_load(&self->wanted))
			futex(&self->wanted, FUTEX_WAIT_PRIVATE, 0);
		if (atomic_load(&shared->stop))
			return NULL;
		sample(now_ns() - atomic_load(&self->at));
		for (int i = 0; i < PIECES; i++)
			work_a_bit();
		atomic_fetch_add(&shared->work[0], PIECES);
	}
}

static void wake(struct worker *one)
{
	atomic_fetch_sub(&idle_workers, 1);
	atomic_store(&one->at, now_ns());
	atomic_store(&one->wanted, 1);
	futex(&one->wanted, FUTEX_WAKE_PRIVATE, 1);
}

/* Every millisecond all that have done their work get more. */
static void wakes(const char *kind, int count)
{
	pthread_t threads[MOST_CPUS * 8];
	begin();
	idle_workers = 0;
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, worker, &workers[i]) != 0)
			failed("pthread_create");
	let_go((uint32_t)count);
	for (uint64_t start = now_ns(); now_ns() - start < length;) {
		nap(MS);
		for (int i = 0; i < count; i++)
			if (!atomic_load(&workers[i].wanted))
				wake(&workers[i]);
	}
	while (atomic_load(&idle_workers) < (uint32_t)count)
		nap(MS);
	uint64_t done = shared->work[0];
	atomic_store(&shared->stop, 1);
	for (int i = 0; i < count; i++)
		wake(&workers[i]);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	if (done == 0)
		failed(kind);
	tell_samples(kind);
}

static void wakes_1(void) { wakes("wake_1_worker_per_cpu", cpus); }
static void wakes_5(void) { wakes("wake_5_workers_per_cpu", 5 * cpus); }

/* --- one that sleeps beside others --- */

/* How many pieces of work it did. */
static uint64_t sleep_and_sample(uint64_t until)
{
	uint64_t done = 0;
	for (; now_ns() < until; done += PIECES / 2) {
		uint64_t at = now_ns() + 2 * MS;
		struct timespec t = { (time_t)(at / 1000000000u), (long)(at % 1000000000u) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		sample(now_ns() - at);
		for (int i = 0; i < PIECES / 2; i++)
			work_a_bit();
	}
	return done;
}

static void nice_spinner(int number)
{
	MUST(setpriority(PRIO_PROCESS, 0, 19));
	spinner(number);
}

static void batch_spinner(int number)
{
	struct sched_param none = { 0 };
	MUST(sched_setscheduler(0, SCHED_BATCH, &none));
	spinner(number);
}

/* So long who has just been started competes with who started it, which is told apart. */
#define SETTLED (300 * MS)

/* One that sleeps beside `per_cpu` on each CPU that compute. */
static void beside(const char *kind, void (*job)(int), int per_cpu)
{
	begin();
	for (int i = 0; i < per_cpu * cpus; i++)
		child(job, i);
	uint64_t start = let_go((uint32_t)(per_cpu * cpus));
	uint64_t done = sleep_and_sample(start + SETTLED);
	uint64_t worst = 0;
	for (uint32_t i = 0; i < shared->count; i++)
		worst = shared->samples[i] > worst ? shared->samples[i] : worst;
	shared->count = 0;
	done += sleep_and_sample(start + SETTLED + length);
	uint64_t took = now_ns() - start;
	done += work_of(0, per_cpu * cpus);
	atomic_store(&shared->stop, 1);
	reap();
	tell(kind, "at_first", (double)worst);
	tell_samples(kind);
	tell(kind, "piece", (double)took * cpus / (double)done);
}

static void beside_1(void) { beside("sleeper_beside_1_per_cpu", spinner, 1); }
static void beside_4(void) { beside("sleeper_beside_4_per_cpu", spinner, 4); }
static void beside_16(void) { beside("sleeper_beside_16_per_cpu", spinner, 16); }
static void beside_nice(void) { beside("sleeper_beside_4_nice_19", nice_spinner, 4); }
static void beside_batch(void) { beside("sleeper_beside_4_batch", batch_spinner, 4); }

/* --- requests beside others --- */

static int ask[2], answer[2];

static void server(int number)
{
	char byte;
	(void)number;
	wait_for_go();
	while (MUST(read(ask[0], &byte, 1)) == 1 && byte) {
		for (int i = 0; i < 20; i++)
			work_a_bit();
		MUST(write(answer[1], &byte, 1));
	}
}

/* A pipe through which bytes go one by one, from one process to another. */
static void chatter(int number)
{
	char byte = 0;
	int fds[2];
	(void)number;
	MUST(pipe(fds));
	pid_t reader = (pid_t)MUST(fork());
	close(fds[reader != 0 ? 0 : 1]);
	if (reader == 0) {
		while (MUST(read(fds[0], &byte, 1)) == 1)
			;
		_exit(0);
	}
	wait_for_go();
	while (!atomic_load(&shared->stop))
		MUST(write(fds[1], &byte, 1));
	close(fds[1]);
	MUST(waitpid(reader, NULL, 0));
}

/* Who asks a server every other millisecond, beside others. */
static void requests(const char *kind, void (*job)(int), int per_cpu)
{
	begin();
	MUST(pipe(ask));
	MUST(pipe(answer));
	child(server, 0);
	for (int i = 0; i < per_cpu * cpus; i++)
		child(job, i);
	let_go((uint32_t)(per_cpu * cpus) + 1);
	char byte = 1;
	for (uint64_t start = now_ns(); now_ns() - start < length;) {
		nap(2 * MS);
		uint64_t asked = now_ns();
		MUST(write(ask[1], &byte, 1));
		MUST(read(answer[0], &byte, 1));
		sample(now_ns() - asked);
	}
	atomic_store(&shared->stop, 1);
	byte = 0;
	MUST(write(ask[1], &byte, 1));
	reap();
	for (int i = 0; i < 2; i++) {
		close(ask[i]);
		close(answer[i]);
	}
	tell_samples(kind);
}

static void requests_computing(void) { requests("request_beside_4_per_cpu", spinner, 4); }
static void requests_chatting(void) { requests("request_beside_2_pipes_per_cpu", chatter, 2); }
