/*
 * The state behind the vDSO's getrandom: memory that may vanish. Forks, MADV_DONTNEED and MADV_WIPEONFORK, a state that
 * crosses a page, signal handlers that draw while their thread does, threads with states of their own, and what is left of
 * drawn bytes in the state and on the stack.
 */
#include "check.h"
#include "vdso.h"
#include <pthread.h>
#include <sys/time.h>

static vgetrandom_fn *get;
static struct vgetrandom_params p;

static char *new_page(void)
{
	return (char *)MUST(mmap(NULL, PAGE, (int)p.prot, (int)p.flags, -1, 0));
}

static int is_zero(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (at[i])
			return 0;
	return 1;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Equal neighbours after sorting. */
static int repeats(uint64_t *words, size_t n)
{
	int same = 0;
	qsort(words, n, sizeof *words, by_value);
	for (size_t i = 1; i < n; i++)
		same += words[i] == words[i - 1];
	return same;
}

enum { MANY = 20000, THREADS = 8 };
static uint64_t words[THREADS * MANY];
static volatile size_t handled;
static uint64_t in_handler[MANY];
static char *shared_state;

static void handler(int sig UNUSED)
{
	if (handled < MANY && get(&in_handler[handled], 8, 0, shared_state, p.size) == 8)
		handled++;
}

static void *draws(void *to)
{
	char *state = new_page();
	uint64_t *at = to;
	for (int i = 0; i < MANY; i++)
		if (i % 2 ? get(&at[i], 8, 0, state, p.size) != 8 : syscall(SYS_getrandom, &at[i], 8, 0) != 8)
			at[i] = 0;
	return NULL;
}

static void signals(void)
{
	struct sigaction sa = { .sa_handler = handler };
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	shared_state = new_page();
	MUST(sigaction(SIGALRM, &sa, NULL));
	MUST(setitimer(ITIMER_REAL, &often, NULL));
	size_t n = 0;
	/* until the handler came often enough, however slow the machine is */
	for (long i = 0; handled < 200 && i < 200000000; i++) {
		n = (size_t)i % MANY;
		get(&words[n], 8, 0, shared_state, p.size);
		words[n] += words[n] == 0;
	}
	MUST(setitimer(ITIMER_REAL, &never, NULL));
	IS(handled >= 200);
	for (size_t i = 0; i < handled; i++)
		words[MANY + i] = in_handler[i];
	SAY("repeats with handlers %d", repeats(words + MANY, handled));
}

static void threads(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		MUST(-pthread_create(&t[i], NULL, draws, &words[i * MANY]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	IS(words[0] != 0);
	SAY("repeats among threads %d", repeats(words, THREADS * MANY));
}

/* Draws and says how many of the drawn words are still to be found in the state. */
static int left_in(const char *state)
{
	uint64_t drawn[512];
	int found = 0;
	for (size_t len = 8; len <= sizeof drawn; len += 56) {
		if (get(drawn, len, 0, (void *)state, p.size) != (long)len)
			return -1;
		for (size_t i = 0; i < len / 8; i++)
			for (size_t at = 0; at + 8 <= p.size; at++)
				found += memcmp(state + at, &drawn[i], 8) == 0;
	}
	return found;
}

int main(void)
{
	get = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	if (!get || get(NULL, 0, 0, &p, ~0ul) != 0) {
		SAY("no getrandom");
		return 0;
	}
	char *s = new_page(), *two = (char *)MUST(mmap(NULL, 2 * PAGE, (int)p.prot, (int)p.flags, -1, 0));
	uint64_t a[4], b[4];
	SAY("across a page %ld", get(a, 16, 0, two + PAGE - 64, p.size));
	SAY("last of a page %ld", get(a, 16, 0, two + (PAGE - p.size) / 64 * 64, p.size));
	SAY("nothing %ld, wrong length %ld %ld", get(a, 0, 0, s, p.size), get(a, 8, 0, s, 0), get(a, 0, 8, s, p.size));
	SAY("bad buffer through the system call %ld", get((void *)-1, 16, 0, s, 1));
	/* every length, and no byte beyond it */
	static unsigned char big[20000];
	int beyond = 0, wrong = 0;
	for (size_t len = 0; len < 1200; len += 1 + len / 40) {
		memset(big, 0, len + 64);
		wrong += get(big, len, 0, s, p.size) != (long)len;
		beyond += !is_zero((char *)big + len, 64);
		wrong += len >= 16 && is_zero((char *)big + len - 8, 8);
	}
	SAY("lengths wrong %d beyond %d, long %ld", wrong, beyond, get(big, sizeof big, 0, s, p.size));
	SAY("drawn words left in the state %d", left_in(s));
	/* memory that is taken away */
	get(a, 32, 0, s, p.size);
	IS(!is_zero(s, p.size));
	T(madvise(s, PAGE, MADV_DONTNEED));
	IS(is_zero(s, p.size));
	SAY("after the loss %ld", get(b, 32, 0, s, p.size));
	IS(memcmp(a, b, 32) != 0);
	/* what a child gets of it, and of ordinary memory that was marked */
	char *marked = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	T(madvise(marked, PAGE, MADV_WIPEONFORK));
	memset(marked, 7, PAGE);
	int fds[2];
	MUST(pipe(fds));
	CHILD("child") {
		SAY("zeros %d %d", is_zero(s, PAGE), is_zero(marked, PAGE));
		SAY("draws %ld", get(a, 32, 0, s, p.size));
		write(fds[1], a, 32);
		CHILD("grandchild") {
			SAY("zeros %d", is_zero(s, PAGE));
			SAY("draws %ld", get(a, 32, 0, s, p.size));
		} END;
	} END;
	read(fds[0], a, 32);
	get(b, 32, 0, s, p.size);
	IS(memcmp(a, b, 32) != 0 && marked[0] == 7);
	T(madvise(s, PAGE, MADV_KEEPONFORK));
	T(madvise(s, PAGE, MADV_DODUMP));
	T(mlock(s, PAGE));
	T(mlockall(MCL_CURRENT));
	T(munlockall());
	signals();
	threads();
	return 0;
}
