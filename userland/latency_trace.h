/* latency_trace.h: attacks by ptrace, process_vm, seccomp and perf. Included by latency.c. */

/* A thousand tracees stop, and their tracer ends. */
static void tracer_ends(void)
{
	pid_t tracer = fork();
	if (tracer == 0) {
		for (int i = 0; i < 1000; i++) {
			pid_t pid = fork();
			if (pid == 0) {
				ptrace(PTRACE_TRACEME, 0, NULL, NULL);
				raise(SIGSTOP);
				_exit(0);
			}
			if (pid < 0)
				break;
			ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL);
		}
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		_exit(0);
	}
	if (tracer > 0)
		waitpid(tracer, NULL, 0);
}

static pid_t traced;

static int one_tracee(void)
{
	int error = touched();
	traced = (pid_t)NEED(fork());
	if (traced == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		for (;;)
			raise(SIGSTOP);
	}
	NEED(waitpid(traced, NULL, 0));
	return error;
}

static void peek_and_poke(void)
{
	for (long at = 0; at < 4096; at++) {
		long word = ptrace(PTRACE_PEEKDATA, traced, area + at * PAGE, NULL);
		ptrace(PTRACE_POKEDATA, traced, area + at * PAGE, (void *)word);
	}
	ptrace(PTRACE_SYSCALL, traced, NULL, NULL);
	waitpid(traced, NULL, 0);
}

static void read_and_write_other(void)
{
	static struct iovec here[1024], there[1024];
	for (int i = 0; i < 1024; i++)
		here[i] = there[i] = (struct iovec) { area + i % 48 * 2 * MIB, 2 * MIB };
	process_vm_readv(traced, here, 1024, there, 1024, 0);
	process_vm_writev(traced, here, 1024, there, 1024, 0);
}

/* All threads of a program are traced, and one of them executes another program. */
static void exec_traced(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		pthread_attr_t attr;
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 16 * KIB);
		word = 0;
		for (int i = 0; i < 300; i++)
			pthread_create(&threads[i], &attr, sleeper, NULL);
		execl("/usr/lib/alea/latency", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", NULL);
		_exit(1);
	}
	int status;
	waitpid(pid, &status, __WALL);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL);
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	pid_t stopped;
	while ((stopped = waitpid(-1, &status, __WALL)) > 0)
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, stopped, NULL, NULL);
}

/* Every call of every thread passes filters of 4096 instructions, which are put on all of them at once. */
static void filter_threads(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		static struct sock_filter filter[4096];
		for (int i = 0; i < 4095; i++)
			filter[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
		filter[4095] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		struct sock_fprog program = { 4096, filter };
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		waiting_threads();
		for (int i = 0; i < 6; i++)
			syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
		for (int i = 0; i < 500; i++)
			syscall(SYS_getppid);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static int sampled(void)
{
	NEED(prctl(PR_SET_DUMPABLE, 1));
	return 0;
}

/* A buffer as large as locked memory allows, and then many events of one task. */
static void perf_buffer(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = 10000, .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN,
		.exclude_kernel = 1, .exclude_hv = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	for (long pages = 4096; pages > 0 && fd >= 0; pages /= 2) {
		void *at = mmap(NULL, (size_t)(pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at == MAP_FAILED)
			continue;
		for (volatile int i = 0; i < 20000; i++)
			;
		munmap(at, (size_t)(pages + 1) * PAGE);
		break;
	}
	close(fd);
}

static void perf_many(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1, .exclude_hv = 1, .inherit = 1 };
	static int events[1000];
	int count = 0;
	raise_files();
	while (count < 1000 && (events[count] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0)) >= 0)
		count++;
	fork_and_wait();
	while (count > 0)
		close(events[--count]);
}

#define TRACE_ATTACKS \
	{ "ptrace_1000_tracees", NULL, tracer_ends }, \
	{ "ptrace_peek_poke", one_tracee, peek_and_poke }, \
	{ "process_vm_2GB", one_tracee, read_and_write_other }, \
	{ "ptrace_exec_300", NULL, exec_traced }, \
	{ "seccomp_tsync_500", NULL, filter_threads }, \
	{ "perf_buffer", sampled, perf_buffer }, \
	{ "perf_1000_events", sampled, perf_many },
