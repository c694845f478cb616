/*
 * perf_signal: the signal of an event's descriptor that has O_ASYNC: one for each sample, mapped or not, POLL_HUP for the last one that
 * REFRESH lets be taken; the signal of F_SETSIG, to whom F_SETOWN says; and when a watermark is passed. Records of switches.
 */
#include "perf.h"
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static volatile int times, hups, codes[64], bad;
static volatile int expected_fd;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	if (times < 64)
		codes[times] = info->si_code;
	times++;
	hups += info->si_code == POLL_HUP;
	bad += (info->si_code == POLL_IN && info->si_band != (POLLIN | POLLRDNORM)) || (info->si_code == POLL_HUP && info->si_band != (POLLHUP | POLLERR)) ||
	       (info->si_code != SI_KERNEL && info->si_fd != expected_fd);
}

static void handle(int number)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	MUST(sigaction(number, &action, NULL));
}

static void forget(void)
{
	times = hups = bad = 0;
}

static void own(int fd, int number)
{
	expected_fd = fd;
	MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
	MUST(fcntl(fd, F_SETSIG, number));
	MUST(fcntl(fd, F_SETOWN, getpid()));
}

static void refreshed(int number, int mapped)
{
	struct perf_event_attr attr = every_fault();
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = {0};
	if (mapped)
		ring = map(fd, 8);
	own(fd, number);
	forget();
	touch_pages(20);
	printf("off: %d\n", times);
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 3));
	touch_pages(20);
	printf("REFRESH 3: %d times, %d at the end, last code %d, bad %d, %lu counted\n", times, hups, codes[times - 1], bad, (unsigned long)count_of(fd));
	forget();
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	touch_pages(20);
	printf("REFRESH 1: %d times, code %d, bad %d, %lu counted\n", times, codes[0], bad, (unsigned long)count_of(fd));
	forget();
	MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_ASYNC));
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 2));
	touch_pages(20);
	printf("not asked for: %d\n", times);
	if (mapped)
		munmap(ring.page, 9 * PAGE);
	close(fd);
}

static void each(void)
{
	SAY("-- each sample");
	struct perf_event_attr attr = every_fault();
	int fd = must_open(&attr, 0, -1, -1, 0);
	own(fd, SIGRTMIN);
	forget();
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	touch_pages(20);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	IS(times >= 20 && times == (int)count_of(fd) && hups == 0 && bad == 0);
	SAY("-- an event that only counts");
	close(fd);
	attr.sample_period = 0;
	attr.disabled = 0;
	fd = must_open(&attr, 0, -1, -1, 0);
	own(fd, SIGRTMIN);
	forget();
	touch_pages(20);
	printf("%d\n", times);
	close(fd);
}

static void plain(void)
{
	SAY("-- SIGIO without F_SETSIG");
	struct perf_event_attr attr = every_fault();
	int fd = must_open(&attr, 0, -1, -1, 0);
	int on = 1;
	expected_fd = fd;
	MUST(fcntl(fd, F_SETOWN, getpid()));
	T(ioctl(fd, FIOASYNC, &on));
	IS(fcntl(fd, F_GETFL) & O_ASYNC);
	forget();
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	touch_pages(20);
	printf("%d times, code %d\n", times, codes[0]);
	int other = dup(fd);
	close(fd);
	forget();
	MUST(ioctl(other, PERF_EVENT_IOC_REFRESH, 1));
	touch_pages(20);
	printf("by another descriptor: %d times\n", times);
	close(other);
}

/* A child's samples are told to its parent. */
static void others(void)
{
	SAY("-- a child's, to the parent");
	int gate[2];
	MUST(pipe(gate));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		char byte;
		MUST(read(gate[0], &byte, 1));
		touch_pages(20);
		_exit(0);
	}
	struct perf_event_attr attr = every_fault();
	int fd = must_open(&attr, child, -1, -1, 0);
	own(fd, SIGRTMIN);
	forget();
	MUST(ioctl(fd, PERF_EVENT_IOC_REFRESH, 5));
	MUST(write(gate[1], "x", 1));
	waitpid(child, NULL, 0);
	printf("%d times, %d at the end, bad %d\n", times, hups, bad);
	close(fd);
	close(gate[0]);
	close(gate[1]);
}

static void watermark(void)
{
	SAY("-- a watermark, passed by what is no sample");
	int gate[2];
	MUST(pipe(gate));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		char byte;
		MUST(read(gate[0], &byte, 1));
		MUST(prctl(PR_SET_NAME, "renamed"));
		_exit(0);
	}
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
	attr.comm = 1;
	attr.watermark = 1;
	attr.wakeup_watermark = 1;
	int fd = must_open(&attr, child, -1, -1, 0);
	struct ring ring = map(fd, 1);
	own(fd, SIGRTMIN);
	forget();
	MUST(write(gate[1], "x", 1));
	waitpid(child, NULL, 0);
	printf("told: %s, bad %d\n", times > 0 ? "yes" : "no", bad);
	munmap(ring.page, 2 * PAGE);
	close(fd);
	close(gate[0]);
	close(gate[1]);
}

static uint64_t record[64];

/* Out when it sleeps, and in again, for the task and for the whole CPU. */
static void switches(void)
{
	SAY("-- switches");
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
	attr.context_switch = 1;
	attr.sample_id_all = 1;
	attr.sample_type = PERF_SAMPLE_TID;
	int own = must_open(&attr, 0, -1, -1, 0), cpu = must_open(&attr, -1, 0, -1, 0);
	struct ring of_own = map(own, 8), of_cpu = map(cpu, 64);
	MUST(syscall(SYS_sched_setaffinity, 0, 8, (unsigned long[]){1}));
	for (int n = 0; n < 3; n++)
		sleep_ms(5);
	MUST(ioctl(own, PERF_EVENT_IOC_DISABLE, 0));
	MUST(ioctl(cpu, PERF_EVENT_IOC_DISABLE, 0));
	struct perf_event_header *head = (void *)record;
	int sleeps = 0, good = 1, is_out = 0;
	while (next(&of_own, record, sizeof record)) {
		int out = (head->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
		good &= head->type == PERF_RECORD_SWITCH && head->size == 16 && out != is_out && (int)record[1] == getpid();
		sleeps += out && !(head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
		is_out = out;
	}
	printf("%d sleeps, good %d\n", sleeps, good);
	int last = -1, outs = 0;
	good = 1;
	while (next(&of_cpu, record, sizeof record)) {
		int out = (head->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0, who = (int)(record[2] >> 32), other = (int)(record[1] >> 32);
		good &= head->type == PERF_RECORD_SWITCH_CPU_WIDE && head->size == 24;
		if (!out && last >= 0)
			good &= who == last;
		last = out ? other : -1;
		outs += out && who == getpid() && !(head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	}
	printf("of the CPU: %s, good %d\n", outs >= 3 ? "all" : "too few", good);
	munmap(of_own.page, 9 * PAGE);
	munmap(of_cpu.page, 65 * PAGE);
	close(own);
	close(cpu);
}

int main(void)
{
	handle(SIGRTMIN);
	handle(SIGIO);
	SAY("-- not mapped");
	refreshed(SIGRTMIN, 0);
	SAY("-- mapped");
	refreshed(SIGRTMIN, 1);
	SAY("-- SIGIO");
	refreshed(SIGIO, 1);
	each();
	plain();
	others();
	watermark();
	switches();
	return 0;
}
