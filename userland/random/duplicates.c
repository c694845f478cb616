/*
 * duplicates: eight threads draw ten million times between them; no two draws may be equal. First by the system
 * call, then once more by the vDSO, each thread from a state of its own.
 *
 * The first eight of each draw's bytes are kept in a table. Ten million perfect draws have two equal ones
 * with a probability of 3 in a million. Prints a line for each way and powers off.
 */
#include "check.h"
#include "vdso.h"
#include <pthread.h>
#include <sys/reboot.h>

#define THREADS 8
#define DRAWS 1250000
#define SLOTS (1u << 24)

static uint64_t drawn[THREADS][DRAWS];
static uint64_t table[SLOTS];
static long failures[THREADS];
static vgetrandom_fn *get;
static struct vgetrandom_params params;

static void *by_syscall(void *arg)
{
	long me = (long)arg;
	uint64_t pair[2];
	for (long i = 0; i < DRAWS; i++) {
		failures[me] += syscall(SYS_getrandom, pair, sizeof pair, 0) != sizeof pair;
		drawn[me][i] = pair[0];
	}
	return NULL;
}

static void *by_vdso(void *arg)
{
	long me = (long)arg;
	uint64_t pair[2];
	void *state = mmap(NULL, params.size, (int)params.prot, (int)params.flags, -1, 0);
	if (state == MAP_FAILED)
		abort();
	for (long i = 0; i < DRAWS; i++) {
		failures[me] += get(pair, sizeof pair, 0, state, params.size) != sizeof pair;
		drawn[me][i] = pair[0];
	}
	return NULL;
}

static void run(const char *way, void *draw(void *))
{
	pthread_t threads[THREADS];
	long equal = 0, failed = 0;
	memset(drawn, 0, sizeof drawn);
	memset(table, 0, sizeof table);
	memset(failures, 0, sizeof failures);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, draw, (void *)i) != 0)
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int t = 0; t < THREADS; t++) {
		failed += failures[t];
		for (long i = 0; i < DRAWS; i++) {
			uint64_t word = drawn[t][i];
			uint32_t at = word % SLOTS;
			while (table[at] != 0 && table[at] != word)
				at = (at + 1) % SLOTS;
			equal += table[at] == word;
			table[at] = word;
		}
	}
	printf("duplicates: %s: %d draws, %ld equal, %ld failed\n", way, THREADS * DRAWS, equal, failed);
	fflush(stdout);
}

int main(void)
{
	run("getrandom", by_syscall);
	get = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	if (get && get(NULL, 0, 0, &params, ~0ul) == 0)
		run("vdso", by_vdso);
	reboot(RB_POWER_OFF);
	return 1;
}
