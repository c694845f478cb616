/*
 * What threads and CPUs add; part of growth.c.
 *
 * Threads: N of them draw random bytes. CPUs: the same work on as many CPUs as the guest has. Under
 * -icount a guest's clock counts the instructions of all its CPUs, and a CPU that waits at `pause` or
 * is idle takes none: so these figures are what one operation costs the whole machine, interrupts
 * between CPUs and spinning included. Cache lines that move between CPUs cost nothing there.
 */

/* ---- drawing: threads that begin together ---- */

static struct {
	int open;		/* the gate, a futex */
	int arrived, gone;
	long threads, draws;	/* draws of each */
	int failed;
	uint64_t end;		/* when the last was done, and a futex that says so */
	int over;
} race;

static void doze(int *word, int value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void rouse(int *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

static void stay_on(long cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		perror("growth: sched_setaffinity");
}

static void *draw(void *cpu)
{
	char bytes[16];
	if (cpu)
		stay_on((long)cpu - 1);
	__atomic_add_fetch(&race.arrived, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&race.open, __ATOMIC_ACQUIRE))
		doze(&race.open, 0);
	for (long i = 0; i < race.draws; i++)
		if (syscall(SYS_getrandom, bytes, sizeof bytes, 0) != sizeof bytes)
			__atomic_store_n(&race.failed, 1, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&race.gone, 1, __ATOMIC_ACQ_REL) == race.threads) {
		race.end = now_ns();
		rouse(&race.over);
	}
	return NULL;
}

/* Nanoseconds of all draws of n threads, from the opened gate to the last draw; 0 with errno set. */
static uint64_t draw_together(long n, long draws, int one_per_cpu)
{
	static pthread_t threads[MOST];
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	memset(&race, 0, sizeof race);
	race.threads = n;
	race.draws = draws;
	for (long i = 0; i < n; i++) {
		int error = pthread_create(&threads[i], &small, draw, one_per_cpu ? (void *)(i + 1) : NULL);
		if (error) {
			errno = error;
			return 0;
		}
	}
	while (__atomic_load_n(&race.arrived, __ATOMIC_ACQUIRE) < n)
		usleep(1000);
	usleep(10000);	/* the last one falls asleep too */
	uint64_t from = now_ns();
	rouse(&race.open);
	while (!__atomic_load_n(&race.over, __ATOMIC_ACQUIRE))
		doze(&race.over, 0);
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	errno = EIO;
	return race.failed ? 0 : race.end - from;
}

/* Each thread wakes once and draws 100 times. */
static void curve_threads(const void *unused, long most)
{
	(void)unused;
	for (long n = 1; n <= most; n *= 10) {
		long times = n < 100 ? 100 / n : 1;
		uint64_t all = 0;
		for (long i = 0; i < times; i++) {
			uint64_t took = draw_together(n, 100, 0);
			if (!took) {
				printf("growth-skip threads %ld %d\n", n, errno);
				return;
			}
			all += took;
		}
		printf("growth threads %ld %llu\n", n, (unsigned long long)all / (uint64_t)(times * n * 100));
	}
}

/* ---- CPUs ---- */

static long cpus;

static int one_getpid(void)
{
	return syscall(SYS_getpid) <= 0;
}

static int one_exec(void)
{
	static char *const argv[] = { "true", NULL }, *const environment[] = { NULL };
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		execve("/bin/true", argv, environment);
		_exit(127);
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

static int there[2], back[2];

static int start_echo(void)
{
	char byte;
	if (pipe(there) != 0 || pipe(back) != 0)
		return errno;
	if (fork() == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	return 0;
}

static int one_ping(void)
{
	char byte = 7;
	return write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1 || byte != 7;
}

static void end_echo(void)
{
	close(there[1]);
	wait(NULL);
}

/* A page that a thread on every other CPU reads before it goes: all have it in their TLBs. They wait
 * at `pause`, in the program, so that each is one that the kernel must interrupt. */

static volatile char *page;
static long turn, readers_done;

static void *reader(void *cpu)
{
	stay_on((long)cpu);
	for (long seen = 0;; seen++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == seen)
			__builtin_ia32_pause();
		(void)page[0];
		__atomic_add_fetch(&readers_done, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int start_readers(void)
{
	stay_on(0);
	for (long cpu = 1; cpu < cpus; cpu++) {
		pthread_t thread;
		int error = pthread_create(&thread, NULL, reader, (void *)cpu);
		if (error)
			return error;
	}
	return 0;
}

static int one_shared_mapping(void)
{
	char *new = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (new == MAP_FAILED)
		return 1;
	*(volatile char *)new = 1;
	page = new;
	readers_done = 0;
	__atomic_add_fetch(&turn, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&readers_done, __ATOMIC_ACQUIRE) < cpus - 1)
		__builtin_ia32_pause();
	return munmap(new, 4096) != 0;
}

static const struct cpu_curve {
	const char *name;
	int (*start)(void);	/* returns an errno */
	int (*one)(void);	/* returns whether it failed; none: drawing on all CPUs */
	void (*end)(void);
	long times;
} cpu_curves[] = {
	{ "cpus_getpid", NULL, one_getpid, NULL, 20000 },
	{ "cpus_fork", NULL, one_process, NULL, 400 },
	{ "cpus_exec", NULL, one_exec, NULL, 200 },
	{ "cpus_mapping", start_readers, one_shared_mapping, NULL, 2000 },
	{ "cpus_getrandom", NULL, NULL, NULL, 20000 },
	{ "cpus_pipe", start_echo, one_ping, end_echo, 4000 },
};

static uint64_t time_of(const struct cpu_curve *c)
{
	if (!c->one)
		return draw_together(cpus, c->times, 1) / (uint64_t)cpus;
	int failed = 0;
	for (long i = 0; i < c->times / 10; i++)
		failed |= c->one();
	uint64_t from = now_ns();
	for (long i = 0; i < c->times; i++)
		failed |= c->one();
	uint64_t took = now_ns() - from;
	errno = EPROTO;
	return failed ? 0 : took;
}

static void cpu_curve(const void *which, long unused)
{
	const struct cpu_curve *c = which;
	cpu_set_t set;
	(void)unused;
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof set, &set);
	cpus = CPU_COUNT(&set);
	int error = c->start ? c->start() : 0;
	uint64_t took = error ? 0 : time_of(c);
	if (took)
		printf("growth %s %ld %llu\n", c->name, cpus, (unsigned long long)took / (uint64_t)c->times);
	else
		printf("growth-skip %s %ld %d\n", c->name, cpus, error ? error : errno);
	if (c->end)
		c->end();
}
