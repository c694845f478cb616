/*
 * perf_sigtrap: events that send SIGTRAP to the task that is sampled: what stands in its details, while it is blocked, of breakpoints and of
 * software events, in threads, changed data, a child without a handler, exec.
 */
#include "perf.h"
#include <linux/hw_breakpoint.h>
#include <pthread.h>
#include <sys/wait.h>

#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif

static volatile long watched;
static volatile int times;
static volatile unsigned long address, data;
static volatile unsigned type, flags;
static volatile int code;

__attribute__((noipa)) static void target(void)
{
	__asm__ volatile("");
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	times++;
	code = info->si_code;
	address = (unsigned long)info->si_addr;
	memcpy((void *)&data, (char *)info + 24, 8);
	memcpy((void *)&type, (char *)info + 32, 4);
	memcpy((void *)&flags, (char *)info + 36, 4);
}

static void say(const char *what, const volatile void *expected)
{
	printf("%s: %d times, code %d, data %#lx, type %u, flags %u, address %s\n", what, times, code, data, type, flags,
	       address == (unsigned long)expected ? "right" : address == 0 ? "none" : "wrong");
	times = code = 0;
	address = data = type = flags = 0;
}

static struct perf_event_attr traps(uint32_t kind, uint64_t config)
{
	struct perf_event_attr attr = software(config);
	attr.type = kind;
	attr.sample_period = 1;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	attr.remove_on_exec = 1;
	attr.sigtrap = 1;
	attr.sig_data = 0x1122334455667788;
	return attr;
}

static struct perf_event_attr breakpoint(unsigned kind, const volatile void *at, unsigned long length)
{
	struct perf_event_attr attr = traps(PERF_TYPE_BREAKPOINT, 0);
	attr.bp_type = kind;
	attr.bp_addr = (unsigned long)at;
	attr.bp_len = length;
	return attr;
}

static void block(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	MUST(sigprocmask(how, &set, NULL));
}

static void one(void)
{
	SAY("-- a watchpoint");
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_RW, &watched, 1);
	int fd = must_open(&attr, 0, -1, -1, 0);
	watched = 1;
	say("off", &watched);
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	watched = 1;
	say("written", &watched);
	(void)watched;
	say("read", &watched);
	block(SIG_BLOCK);
	watched = 1;
	watched = 1;
	say("blocked", &watched);
	block(SIG_UNBLOCK);
	say("let through", &watched);
	attr.sig_data = 5;
	attr.sample_max_stack = 127;
	attr.disabled = 0;
	T(ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	watched = 1;
	say("other data", &watched);
	signal(SIGTRAP, SIG_IGN);
	watched = 1;
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	printf("%lu counted\n", (unsigned long)count_of(fd));
	close(fd);
}

static void handle(void)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	MUST(sigaction(SIGTRAP, &action, NULL));
}

static void executed(void)
{
	SAY("-- a breakpoint");
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_X, &target, 8);
	int fd = must_open(&attr, 0, -1, -1, 0);
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 3));
	for (int n = 0; n < 5; n++)
		target();
	say("5 calls", &target);
	printf("%lu counted\n", (unsigned long)count_of(fd));
	close(fd);
}

static void softwares(void)
{
	SAY("-- faults");
	struct perf_event_attr attr = traps(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	int fd = must_open(&attr, 0, -1, -1, 0);
	volatile char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	page[5] = 1;
	say("one", page + 5);
	close(fd);
	SAY("-- refused");
	attr.remove_on_exec = 0;
	try_open("not removed on exec", &attr, 0, -1, -1, 0);
	attr.remove_on_exec = 1;
	try_open("a CPU", &attr, -1, 0, -1, 0);
	try_open("the task on a CPU", &attr, 0, 0, -1, 0);
}

static void *thread(void *unused)
{
	(void)unused;
	for (int n = 0; n < 100; n++)
		watched = n;
	return NULL;
}

static void threads(void)
{
	SAY("-- threads");
	struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_RW, &watched, 1);
	attr.inherit = 1;
	attr.inherit_thread = 1;
	int fd = must_open(&attr, 0, -1, -1, 0);
	pthread_t all[3];
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (int n = 0; n < 3; n++) {
		pthread_create(&all[n], NULL, thread, NULL);
		pthread_join(all[n], NULL);
	}
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	say("written", &watched);
	printf("%lu counted\n", (unsigned long)count_of(fd));
	close(fd);
}

static void fatal(void)
{
	SAY("-- nobody handles it");
	fflush(stdout);
	CHILD("by default") {
		signal(SIGTRAP, SIG_DFL);
		struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_W, &watched, 8);
		int fd = must_open(&attr, 0, -1, -1, 0);
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		watched = 1;
		_exit(0);
	} END;
	CHILD("removed by exec") {
		signal(SIGTRAP, SIG_DFL);
		struct perf_event_attr attr = breakpoint(HW_BREAKPOINT_W, &watched, 8);
		int fd = must_open(&attr, 0, -1, -1, 0);
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		execl("/proc/self/exe", "perf_sigtrap", "x", NULL);
		_exit(1);
	} END;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		watched = 1;
		return 7;
	}
	handle();
	one();
	handle();
	executed();
	softwares();
	threads();
	fatal();
	return 0;
}
