/*
 * snapshots: one operation of the random generator, of which the host saves the machine at every instruction.
 *
 * usage: snapshots OPERATION [OTHER]
 * cflags: -Wl,--strip-debug
 *
 * Runs as init on a machine without a source of entropy and gives it a fixed seed, so that two copies of the machine
 * differ in nothing but the VM generation id. It prints where its marks and its log are, and runs OPERATION between the
 * marks `begin` and `end`, then draws from every interface, and comes to the mark `done`. It waits for nothing outside the
 * machine, which would let the host's time into it: the host finds `begin` by its symbol and stops there. With
 * OTHER it does that on CPU 1, and a thread on CPU 0 waits until the host says `go`, runs OTHER, comes to the mark
 * `other_end`, draws, too, and comes to `other_done`. What a call gave is in the log of its thread, whose count says how
 * many calls have returned. The host's side is xtask/check/src/snapshots/.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/random.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "vdso.h"

enum { LONGEST = 8192, ENTRIES = 40 };

struct entry {
	long len;
	unsigned char bytes[LONGEST];
};
struct log {
	volatile long count;
	struct entry entries[ENTRIES];
};
static struct log logs[2];
static volatile int go, waiting;

static int random_fd, urandom_fd;
static vgetrandom_fn *vdso;
static struct vgetrandom_params params;
/* of each thread */
static __thread void *state;

#define MARK __attribute__((noinline, noclone, used)) static void
MARK begin(void) { __asm__ volatile("nop" ::: "memory"); }
MARK end(void) { __asm__ volatile("nop; nop" ::: "memory"); }
MARK done(void) { __asm__ volatile("nop; nop; nop" ::: "memory"); }
MARK other_end(void) { __asm__ volatile("nop; nop; nop; nop" ::: "memory"); }
MARK other_done(void) { __asm__ volatile("nop; nop; nop; nop; nop" ::: "memory"); }

static void reseed(struct log *log)
{
	(void)log;
	if (ioctl(random_fd, RNDRESEEDCRNG) != 0)
		_exit(1);
}

static void *next(struct log *log)
{
	return log->entries[log->count].bytes;
}

static void returned(struct log *log, long len)
{
	log->entries[log->count].len = len;
	__asm__ volatile("" ::: "memory");
	log->count++;
}

static void getrandom_of(struct log *log, size_t len)
{
	void *to = next(log);
	returned(log, syscall(SYS_getrandom, to, len, 0));
}

static void pair(struct log *log) { getrandom_of(log, 16); }
static void words(struct log *log) { getrandom_of(log, 64); }
static void small(struct log *log) { getrandom_of(log, 100); }
static void stream(struct log *log) { getrandom_of(log, LONGEST); }
static void device(struct log *log)
{
	void *to = next(log);
	returned(log, read(urandom_fd, to, 32));
}
static void vdso_of(struct log *log)
{
	void *to = next(log);
	returned(log, vdso(to, 16, 0, state, params.size));
}

static void nothing(struct log *log) { (void)log; }

/* Thirty times 16 bytes are a batch, of which the last draw before had the first. */
static void use_up(struct log *log, void (*draw)(struct log *))
{
	long count = log->count;
	reseed(log);
	for (int n = 0; n < 30; n++) {
		draw(log);
		log->count = count;
	}
}
static void use_up_batch(struct log *log) { use_up(log, pair); }
static void use_up_state(struct log *log) { use_up(log, vdso_of); }

static const struct operation {
	const char *name;
	void (*prepare)(struct log *), (*run)(struct log *);
} operations[] = {
	{ "pair", pair, pair },
	{ "words", pair, words },
	{ "small", pair, small },
	{ "device", pair, device },
	{ "refill", use_up_batch, pair },
	{ "rekey", reseed, pair },
	{ "stream", pair, stream },
	{ "reseed", pair, reseed },
	{ "vdso", vdso_of, vdso_of },
	{ "vdso_refill", use_up_state, vdso_of },
	{ "vdso_rekey", reseed, vdso_of },
	{ "nothing", nothing, nothing },
};

static const struct operation *find(const char *name)
{
	for (unsigned n = 0; n < sizeof operations / sizeof *operations; n++)
		if (strcmp(operations[n].name, name) == 0)
			return &operations[n];
	printf("snapshots: no operation %s\n", name);
	fflush(stdout);
	_exit(1);
}

static void draw_all(struct log *log)
{
	void (*draws[])(struct log *) = { pair, vdso_of, words, small, device };
	for (unsigned n = 0; n < sizeof draws / sizeof *draws; n++)
		draws[n](log);
}

static void start_on(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		_exit(1);
	state = mmap(NULL, params.size, params.prot, params.flags, -1, 0);
}

static void *other(void *operation)
{
	const struct operation *other = operation;
	struct log *log = &logs[1];
	start_on(0);
	pair(log);
	vdso_of(log);
	waiting = 1;
	while (!go)
		;
	other->run(log);
	other_end();
	draw_all(log);
	other_done();
	return NULL;
}

static void seed(void)
{
	struct { struct rand_pool_info info; char data[32]; } pool = { { 256, 32 }, "the same seed in every machine" };
	random_fd = open("/dev/random", O_RDWR);
	urandom_fd = open("/dev/urandom", O_RDWR);
	if (ioctl(random_fd, RNDADDENTROPY, &pool) != 0)
		_exit(1);
	vdso = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	if (!vdso || vdso(NULL, 0, 0, &params, ~0UL) != 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	const struct operation *operation = find(argc > 1 ? argv[1] : "pair");
	seed();
	start_on(argc > 2);
	if (argc > 2) {
		pthread_create(&thread, NULL, other, (void *)find(argv[2]));
		while (!waiting)
			sched_yield();
	}
	memset(logs[0].entries, 0, sizeof logs[0].entries);
	vdso_of(&logs[0]);
	operation->prepare(&logs[0]);
	printf("snapshots: begin %p end %p done %p other_end %p other_done %p ", begin, end, done, other_end, other_done);
	printf("logs %p of %zu entries of %zu ", logs, sizeof *logs, sizeof *logs->entries);
	printf("go %p vdso %#lx\n", &go, getauxval(AT_SYSINFO_EHDR));
	fflush(stdout);
	tcdrain(1);
	begin();
	operation->run(&logs[0]);
	end();
	draw_all(&logs[0]);
	done();
	return 1;
}
