/*
 * fuzz_perf.h: those who watch and those who filter. Processes and threads open events of each other and of CPUs, whatever their
 * attributes, map, unmap and lead their buffers elsewhere while these are written, change, read and close them, fork, exec and end
 * meanwhile; others put filters of random instructions on themselves, and listeners that answer whatever they like.
 */
#ifndef ALEA_FUZZ_PERF_H
#define ALEA_FUZZ_PERF_H

#include "fuzz_calls.h"
#include <linux/filter.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#define PERF_PLACES 16

/* Descriptors, mappings and tasks of those who take part. */
static int perf_fds[PERF_PLACES];
static void *perf_maps[PERF_PLACES];
static u64 perf_sizes[PERF_PLACES];
static volatile pid_t *perf_pids;
static volatile u64 perf_watched[2];

__attribute__((noipa)) static void perf_target(void)
{
	perf_watched[1]++;
}

static void on_perf_trap(int sig)
{
	(void)sig;
}

static struct perf_event_attr perf_attr(void)
{
	struct perf_event_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.size = one_in(16) ? (unsigned)below(5000) : sizeof attr;
	attr.type = one_in(16) ? (unsigned)below(10) : one_in(4) ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE;
	attr.config = one_in(16) ? draw() : attr.type == PERF_TYPE_TRACEPOINT ? below(900) : below(12);
	attr.sample_period = one_in(8) ? draw() : below(200);
	attr.sample_type = one_in(4) ? below(1 << 25) : one_in(2) ? 0 : below(1 << 14);
	attr.read_format = below(one_in(8) ? 64 : 16);
	if (one_in(3)) {
		/* Bits that are about records, and now and then any. */
		u64 flags = draw() & (one_in(8) ? ~0UL : 0x1c93f3ffffUL);
		memcpy((char *)&attr + 40, &flags, 8);
	}
	attr.disabled = one_in(3);
	attr.inherit = one_in(2);
	if (one_in(6)) {
		static const unsigned kinds[] = {HW_BREAKPOINT_W, HW_BREAKPOINT_RW, HW_BREAKPOINT_X};
		attr.type = PERF_TYPE_BREAKPOINT;
		attr.bp_type = one_in(8) ? (unsigned)below(10) : PICK(kinds);
		attr.bp_addr = attr.bp_type == HW_BREAKPOINT_X ? (u64)&perf_target : (u64)&perf_watched[below(2)];
		attr.bp_len = one_in(8) ? below(20) : 8;
		attr.sigtrap = attr.remove_on_exec = one_in(4);
	}
	attr.wakeup_events = (unsigned)below(4);
	attr.sample_regs_user = one_in(4) ? draw() & 0xff0fff : 0;
	attr.sample_stack_user = one_in(4) ? (unsigned)below(9000) * 8 : 0;
	attr.sample_max_stack = (unsigned short)below(140);
	if (one_in(16))
		((volatile unsigned char *)&attr)[below(sizeof attr)] = (unsigned char)draw();
	return attr;
}

static void perf_step(void)
{
	static char buffer[4096];
	int at = (int)below(PERF_PLACES), fd = perf_fds[at];
	long size = (long)PAGE * (one_in(8) ? (long)below(40) : 1 + (1L << below(5)));
	switch (below(23)) {
	case 0: case 1: case 2: case 3: {
		struct perf_event_attr attr = perf_attr();
		pid_t pid = one_in(3) ? 0 : one_in(8) ? -1 : perf_pids[below(PERF_PLACES)];
		int group = one_in(3) ? perf_fds[below(PERF_PLACES)] : -1;
		long new = syscall(SYS_perf_event_open, &attr, pid, one_in(4) ? (int)below(4) - 1 : -1, group, one_in(8) ? below(32) : 0UL);
		TELL("[%d] event %u %#llx of %d: %ld\n", getpid(), attr.type, (unsigned long long)attr.config, pid, new);
		if (new >= 0) {
			if (fd > 0)
				close(fd);
			perf_fds[at] = (int)new;
		}
		break;
	}
	case 4: case 5: {
		void *map = mmap(NULL, one_in(32) ? 1UL << 62 : (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, one_in(16) ? PAGE : 0);
		if (map != MAP_FAILED) {
			if (perf_maps[at])
				munmap(perf_maps[at], perf_sizes[at]);
			perf_maps[at] = map;
			perf_sizes[at] = (u64)size;
		}
		break;
	}
	case 6:
		if (perf_maps[at] && munmap(perf_maps[at], one_in(4) ? PAGE : perf_sizes[at]) == 0)
			perf_maps[at] = NULL;
		break;
	case 7:
		/* Head, tail and all else in the first page are what the reader says. */
		if (perf_maps[at] && mprotect(perf_maps[at], perf_sizes[at], PROT_READ | PROT_WRITE) == 0)
			((volatile u64 *)perf_maps[at])[below(PAGE / 8)] = one_in(2) ? draw() : 0;
		break;
	case 8: ioctl(fd, PERF_EVENT_IOC_ENABLE, below(2)); break;
	case 9: ioctl(fd, PERF_EVENT_IOC_DISABLE, below(2)); break;
	case 10: ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, one_in(4) ? -1 : perf_fds[below(PERF_PLACES)]); break;
	case 11: {
		u64 period = one_in(4) ? draw() : below(1000);
		ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
		ioctl(fd, PERF_EVENT_IOC_REFRESH, below(3));
		ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, below(2));
		ioctl(fd, PERF_EVENT_IOC_RESET, below(2));
		break;
	}
	case 12: ioctl(fd, PERF_EVENT_IOC_SET_FILTER, one_in(2) ? "common_pid != 0" : one_in(2) ? "((((" : buffer); break;
	case 13: read(fd, buffer, below(sizeof buffer)); break;
	case 14:
		close(fd);
		perf_fds[at] = -1;
		break;
	case 15: {
		pid_t child = fork();
		if (child == 0) {
			perf_pids[below(PERF_PLACES)] = getpid();
			for (int i = 0; i < 10; i++)
				perf_step();
			if (one_in(4))
				execl("/proc/self/exe", "fuzz", "true", NULL);
			_exit(0);
		}
		break;
	}
	case 16: kill(perf_pids[below(PERF_PLACES)] > 1 ? perf_pids[below(PERF_PLACES)] : getpid(), one_in(8) ? SIGKILL : 0); break;
	case 17: prctl(one_in(2) ? PR_TASK_PERF_EVENTS_DISABLE : PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0); break;
	case 18: {
		/* Faults to be counted. */
		volatile char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (unsigned long page = 0; pages != MAP_FAILED && page < 4; page++)
			pages[page * PAGE] = 1;
		if (pages != MAP_FAILED)
			munmap((void *)pages, 4 * PAGE);
		break;
	}
	case 19: {
		struct perf_event_attr attr = perf_attr();
		ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr);
		break;
	}
	case 20:
		fcntl(fd, F_SETSIG, one_in(8) ? (int)below(66) : SIGRTMIN);
		fcntl(fd, F_SETOWN, one_in(4) ? 0 : perf_pids[below(PERF_PLACES)]);
		fcntl(fd, F_SETFL, one_in(4) ? 0 : O_ASYNC);
		break;
	case 21:
		/* Breakpoints to be met, by the program and by the kernel. */
		perf_target();
		perf_watched[0]++;
		read(fd, (void *)perf_watched, below(3) * 8);
		break;
	default: waitpid(-1, NULL, WNOHANG); break;
	}
}

static void *perf_thread(void *seed)
{
	state = (u64)seed;
	perf_pids[below(PERF_PLACES)] = (pid_t)syscall(SYS_gettid);
	for (int i = 0; i < 300; i++)
		perf_step();
	return NULL;
}

static void perfs(void)
{
	perf_pids = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (perf_pids == MAP_FAILED)
		return;
	memset(perf_fds, 0xff, sizeof perf_fds);
	signal(SIGRTMIN, SIG_IGN);
	signal(SIGTRAP, on_perf_trap);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			state ^= draw() + (u64)i;
			pthread_t t;
			if (one_in(2))
				pthread_create(&t, NULL, perf_thread, (void *)draw());
			perf_thread((void *)draw());
			_exit(0);
		}
	perf_thread((void *)draw());
}

/* ---- filters ---- */

/* A program that may be taken: mostly instructions that exist, with jumps that mostly stay inside. */
static unsigned short random_filter(struct sock_filter *code, unsigned most)
{
	static const unsigned short codes[] = { 0x20, 0x20, 0x20, 0x80, 0x00, 0x01, 0x60, 0x61, 0x02, 0x03, 0x07, 0x87, 0x04, 0x14, 0x24, 0x34, 0x3c,
		0x44, 0x54, 0x64, 0x74, 0x84, 0xa4, 0x0c, 0x1c, 0x05, 0x15, 0x15, 0x15, 0x15, 0x25, 0x35, 0x45, 0x1d, 0x2d, 0x3d, 0x4d, 0x06, 0x16 };
	static const unsigned actions[] = { 0x7fff0000, 0x7fff0000, 0x7fff0000, 0x7ffc0000, 0x7ff00001, 0x7fc00000, 0x00050000, 0x00030000, 0, 0x80000000 };
	unsigned len = 1 + (unsigned)below(most);
	for (unsigned at = 0; at < len; at++) {
		struct sock_filter *op = &code[at];
		unsigned left = len - at - 1;
		op->code = one_in(64) ? (unsigned short)draw() : PICK(codes);
		op->jt = (unsigned char)(left > 1 ? below(left < 255 ? left : 255) : 0);
		op->jf = (unsigned char)(left > 1 ? below(left < 255 ? left : 255) : 0);
		op->k = op->code == 0x20 ? (unsigned)below(one_in(32) ? 80 : 16) * 4 : one_in(4) ? (unsigned)draw() : (unsigned)below(one_in(2) ? 16 : 450);
		if (op->code == 0x05)
			op->k = left > 1 ? (unsigned)below(left) : 0;
		if (op->code == 0x06)
			op->k = PICK(actions);
	}
	code[len - 1] = (struct sock_filter){ 0x06, 0, 0, one_in(16) ? (unsigned)draw() : PICK(actions) };
	return (unsigned short)(one_in(32) ? below(70000) : len);
}

static void *filter_listener(void *fd)
{
	state = (u64)fd * 77;
	for (int i = 0; i < 40; i++) {
		struct seccomp_notif asked;
		memset(&asked, 0, sizeof asked);
		if (ioctl((int)(long)fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0 && errno != EINTR)
			break;
		struct seccomp_notif_resp answer = { one_in(8) ? draw() : asked.id, one_in(2) ? 0 : (long)draw(), one_in(2) ? 0 : -(int)below(200), one_in(4) };
		ioctl((int)(long)fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		if (one_in(10))
			break;
	}
	close((int)(long)fd);
	return NULL;
}

static void *filtered(void *seed)
{
	static __thread struct sock_filter code[4100];
	state = (u64)seed;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (int i = 0; i < 60; i++) {
		if (one_in(6)) {
			struct sock_fprog program = { random_filter(code, one_in(16) ? 4100 : one_in(2) ? 8 : 60), code };
			long flags = one_in(3) ? (long)below(64) : (long)(one_in(2) ? SECCOMP_FILTER_FLAG_NEW_LISTENER : SECCOMP_FILTER_FLAG_TSYNC);
			long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
			TELL("[%d] filter of %u, flags %#lx: %ld\n", getpid(), program.len, flags, fd);
			pthread_t t;
			if (fd > 0 && flags & SECCOMP_FILTER_FLAG_NEW_LISTENER && pthread_create(&t, NULL, filter_listener, (void *)fd) != 0)
				close((int)fd);
		} else if (one_in(4)) {
			pid_t child = fork();
			if (child == 0) {
				one_call();
				_exit(0);
			}
		} else {
			one_call();
		}
	}
	return NULL;
}

static void filters(void)
{
	for (int i = 0; i < 6; i++)
		if (fork() == 0) {
			pthread_t t;
			state ^= draw() + (u64)i;
			if (one_in(2))
				pthread_create(&t, NULL, filtered, (void *)draw());
			filtered((void *)draw());
			_exit(0);
		}
	while (waitpid(-1, NULL, 0) > 0)
		;
}

#endif
