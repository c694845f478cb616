/*
 * perf_breakpoint: events of breakpoints and watchpoints: what is accepted, how many there may be beside a tracer's, what they count,
 * samples of them, their signal, changed addresses, exec and children.
 */
#include "perf.h"
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static volatile long watched, other, third;
static volatile char bytes[32] __attribute__((aligned(32)));

__attribute__((noipa)) static void target(void)
{
	other++;
}

static struct perf_event_attr breakpoint(unsigned type, const volatile void *at, unsigned long length)
{
	struct perf_event_attr attr = software(0);
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.bp_type = type;
	attr.bp_addr = (unsigned long)at;
	attr.bp_len = length;
	attr.exclude_kernel = 1;
	return attr;
}

#define TRY(type, at, length) ({ struct perf_event_attr attr = breakpoint(type, at, length); try_open(#type ", " #at ", " #length, &attr, 0, -1, -1, 0); })
#define WITH(change) ({ struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_W, &watched, 8); change; try_open(#change, &attr, 0, -1, -1, 0); })

static void accepted(void)
{
	SAY("-- what is accepted");
	TRY(HW_BREAKPOINT_EMPTY, &watched, 8);
	TRY(HW_BREAKPOINT_R, &watched, 8);
	TRY(HW_BREAKPOINT_W, &watched, 8);
	TRY(HW_BREAKPOINT_RW, &watched, 8);
	TRY(HW_BREAKPOINT_X, &target, 8);
	TRY(HW_BREAKPOINT_X | HW_BREAKPOINT_W, &target, 8);
	TRY(8, &watched, 8);
	TRY(HW_BREAKPOINT_X, &target, 1);
	TRY(HW_BREAKPOINT_X, &target, 4);
	TRY(HW_BREAKPOINT_X, (char *)&target + 1, 8);
	TRY(HW_BREAKPOINT_W, bytes, 1);
	TRY(HW_BREAKPOINT_W, bytes + 1, 1);
	TRY(HW_BREAKPOINT_W, bytes, 2);
	TRY(HW_BREAKPOINT_W, bytes + 1, 2);
	TRY(HW_BREAKPOINT_W, bytes, 3);
	TRY(HW_BREAKPOINT_W, bytes, 4);
	TRY(HW_BREAKPOINT_W, bytes + 2, 4);
	TRY(HW_BREAKPOINT_W, bytes + 4, 8);
	TRY(HW_BREAKPOINT_W, bytes, 16);
	TRY(HW_BREAKPOINT_W, bytes + 8, 16);
	TRY(HW_BREAKPOINT_W, bytes, 0);
	TRY(HW_BREAKPOINT_W, NULL, 0);
	TRY(HW_BREAKPOINT_W, NULL, 8);
	TRY(HW_BREAKPOINT_W, (void *)-8L, 8);
	TRY(HW_BREAKPOINT_W, (void *)-1L, 8);
	TRY(HW_BREAKPOINT_W, KERNEL_ADDRESS, 8);
	TRY(HW_BREAKPOINT_X, KERNEL_ADDRESS, 8);
	TRY(HW_BREAKPOINT_W, (void *)0x7ffffffff000, 8);
	WITH(attr.config = 5);
	WITH((attr.sample_type = PERF_SAMPLE_BRANCH_STACK, attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY));
	WITH((attr.sample_period = 1, attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR));
	WITH((attr.freq = 1, attr.sample_freq = 99));
	WITH(attr.sigtrap = 1);
	WITH((attr.sigtrap = 1, attr.remove_on_exec = 1));
	WITH((attr.inherit = 1, attr.inherit_thread = 1));
	WITH(attr.pinned = 1);
}

/* Opens as many as there may be. */
static int fill(int *fds, int most, pid_t pid)
{
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_W, &watched, 8);
	for (int n = 0; n < most; n++)
		if ((fds[n] = perf(&attr, pid, -1, -1, 0)) < 0)
			return n;
	return most;
}

static void empty(int *fds, int number)
{
	for (int n = 0; n < number; n++)
		close(fds[n]);
}

static long poke(pid_t pid, int n, unsigned long value)
{
	return ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg) + 8 * (size_t)n, value);
}

static void slots(void)
{
	SAY("-- how many there may be");
	int fds[8];
	int number = fill(fds, 8, 0);
	printf("%d, then %s\n", number, err_name(errno));
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_X, &target, 8);
	try_open("to execute", &attr, 0, -1, -1, 0);
	attr.disabled = 1;
	try_open("off", &attr, 0, -1, -1, 0);
	attr.bp_len = 4;
	try_open("wrong, too", &attr, 0, -1, -1, 0);
	close(fds[2]);
	attr.bp_len = 8;
	try_open("one less", &attr, 0, -1, -1, 0);
	fds[2] = fds[number - 1];
	empty(fds, number - 1);

	SAY("-- beside a tracer's");
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		watched = 1;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	T(poke(child, 0, (unsigned long)&watched));
	T(poke(child, 1, 0));
	number = fill(fds, 8, child);
	printf("%d, then %s\n", number, err_name(errno));
	T(poke(child, 2, (unsigned long)&watched));
	T(poke(child, 7, 1 << 4 | 1 << 24));
	T(poke(child, 0, (unsigned long)&other));
	empty(fds, number);
	T(poke(child, 2, (unsigned long)&watched));
	number = fill(fds, 8, child);
	printf("%d, then %s\n", number, err_name(errno));
	empty(fds, number);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void counted(void)
{
	SAY("-- what is counted");
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_W, &watched, 8);
	int writes = must_open(&attr, 0, -1, -1, 0);
	/* Never two of one place: QEMU tells of the first only. */
	attr.bp_type = HW_BREAKPOINT_RW;
	attr.bp_addr = (unsigned long)&third;
	int both = must_open(&attr, 0, -1, -1, 0);
	attr = breakpoint(HW_BREAKPOINT_X, &target, 8);
	int runs = must_open(&attr, 0, -1, -1, 0);
	attr = breakpoint(HW_BREAKPOINT_W, bytes + 4, 2);
	int two = must_open(&attr, 0, -1, -1, 0);
	for (int n = 0; n < 10; n++)
		watched = n;
	for (int n = 0; n < 5; n++) {
		third = n;
		other = third;
		other = watched;
	}
	for (int n = 0; n < 7; n++)
		target();
	bytes[3] = bytes[4] = bytes[5] = bytes[6] = 1;
	printf("%lu writes, %lu both, %lu runs, %lu of two bytes\n", (unsigned long)count_of(writes), (unsigned long)count_of(both),
	       (unsigned long)count_of(runs), (unsigned long)count_of(two));
	MUST(ioctl(writes, PERF_EVENT_IOC_DISABLE, 0));
	watched = 1;
	MUST(ioctl(writes, PERF_EVENT_IOC_ENABLE, 0));
	watched = 1;
	third = 1;
	MUST(ioctl(runs, PERF_EVENT_IOC_RESET, 0));
	target();
	printf("%lu writes, %lu both, %lu runs\n", (unsigned long)count_of(writes), (unsigned long)count_of(both), (unsigned long)count_of(runs));
	close(both);
	watched = 1;
	printf("%lu writes\n", (unsigned long)count_of(writes));
	close(writes);
	close(runs);
	close(two);
	watched = 1;
	target();

	SAY("-- what the kernel writes");
	int fds[2];
	MUST(pipe(fds));
	long value = 4;
	attr = breakpoint(HW_BREAKPOINT_W, &watched, 8);
	for (int n = 0; n < 3; n++) {
		attr.exclude_kernel = n == 0;
		attr.exclude_user = n == 2;
		int fd = must_open(&attr, 0, -1, -1, 0);
		MUST(write(fds[1], &value, sizeof value));
		MUST(read(fds[0], (void *)&watched, sizeof value));
		watched = 5;
		printf("%s: %lu\n", n == 0 ? "without" : n == 1 ? "with" : "only", (unsigned long)count_of(fd));
		close(fd);
	}
	close(fds[0]);
	close(fds[1]);
}

static uint64_t record[512];

static void sampled(void)
{
	SAY("-- samples");
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_X, &target, 8);
	attr.sample_period = 3;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_TID;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 1);
	for (int n = 0; n < 10; n++)
		target();
	int number = 0, good = 1;
	while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE) {
		struct perf_event_header *head = (void *)record;
		good &= record[1] == (unsigned long)target && record[3] == (unsigned long)target && (int)record[2] == getpid();
		good &= (head->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
		number++;
	}
	printf("%d of %lu\n", number, (unsigned long)count_of(fd));
	IS(good);
	munmap(ring.page, 2 * PAGE);
	close(fd);
}

static void *writer(void *unused)
{
	(void)unused;
	for (int n = 0; n < 10; n++)
		watched = n;
	return NULL;
}

static void children(void)
{
	SAY("-- children and threads");
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_W, &watched, 8);
	int own = must_open(&attr, 0, -1, -1, 0);
	attr.inherit = 1;
	int all = must_open(&attr, 0, -1, -1, 0);
	attr.inherit_thread = 1;
	int threads = must_open(&attr, 0, -1, -1, 0);
	pthread_t thread;
	pthread_create(&thread, NULL, writer, NULL);
	pthread_join(thread, NULL);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		watched = 1;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	watched = 1;
	printf("%lu %lu %lu\n", (unsigned long)count_of(own), (unsigned long)count_of(all), (unsigned long)count_of(threads));
	close(own);
	close(all);
	close(threads);
}

static void changed(void)
{
	SAY("-- changed");
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_W, &watched, 8);
	int fd = must_open(&attr, 0, -1, -1, 0);
	watched = 1;
	attr.sample_max_stack = 127;
	attr.bp_addr = (unsigned long)&other;
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	watched = 1;
	other = 1;
	other = 1;
	printf("%lu\n", (unsigned long)count_of(fd));
	attr.disabled = 1;
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	other = 1;
	printf("%lu\n", (unsigned long)count_of(fd));
	attr.disabled = 0;
	attr.bp_type = HW_BREAKPOINT_X;
	attr.bp_addr = (unsigned long)&target;
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	target();
	printf("%lu\n", (unsigned long)count_of(fd));
	attr.bp_len = 3;
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	attr.bp_len = 8;
	attr.sample_max_stack = 0;
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	attr.sample_max_stack = 127;
	attr.inherit = 1;
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	attr = software(PERF_COUNT_SW_DUMMY);
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	target();
	printf("%lu\n", (unsigned long)count_of(fd));
	close(fd);
	fd = must_open(&attr, 0, -1, -1, 0);
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	close(fd);
}

static volatile int times, code;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	times++;
	code = info->si_code;
}

static void told(void)
{
	SAY("-- the signal");
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	MUST(sigaction(SIGRTMIN, &action, NULL));
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_X, &target, 8);
	attr.sample_period = 1;
	attr.disabled = 1;
	int fd = must_open(&attr, 0, -1, -1, 0);
	MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC));
	MUST(fcntl(fd, F_SETSIG, SIGRTMIN));
	MUST(fcntl(fd, F_SETOWN, getpid()));
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	target();
	target();
	printf("%d times, code %d\n", times, code);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 2));
	for (int n = 0; n < 5; n++)
		target();
	printf("%d times, code %d, %lu counted\n", times, code, (unsigned long)count_of(fd));
	close(fd);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		watched = 1;
		target();
		return 0;
	}
	accepted();
	slots();
	counted();
	sampled();
	children();
	changed();
	told();
	return 0;
}
