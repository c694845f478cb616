/*
 * residue: draws from every interface in every length class, for a debugger that stops it after each draw.
 *
 * The host stops the machine at the instruction after the system call (`residue_after_syscall`) or after the vDSO's
 * function (`residue_after_call`), reads `now`, which says what was drawn and where to, and searches everything else
 * for it. Nothing may run between the draw and the stop. Arguments name the interfaces to draw from; none means all.
 * cflags: -Wl,--strip-debug
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/random.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vdso.h"

/* What the host reads at each stop; `len` is what was asked for, the call's result stands in rax. */
struct now {
	char name[32];
	uint64_t len;
	/* where the bytes go, and where this thread's state of the vDSO lies (0: none) */
	uint64_t buffer, state;
	/* 1: the bytes are what was written; 2: a reseed, nothing is drawn; 3: the end; 4: the bytes are in registers */
	uint64_t kind;
};
volatile struct now now;
enum { DRAW, WRITTEN, RESEED, END, HELD };

/* The number, and up to five arguments; the stop comes with the call's result in rax. */
long residue_syscall(long number, long a, long b, long c, long d, long e);
long residue_call(vgetrandom_fn *f, void *buffer, long len, long flags, void *state, long size);
/* Reads a byte at `fresh`, a page that is not there yet, with `held` in registers that a handler would save. */
long residue_fault(const void *held, const void *fresh);
__asm__(".globl residue_fault\n"
	"residue_fault:\n"
	"push %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov (%rdi), %rbx\nmov 8(%rdi), %r12\nmov 16(%rdi), %r13\nmov 24(%rdi), %r14\nmov 32(%rdi), %r15\n"
	"movzbl (%rsi), %eax\n"
	"call residue_stop\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\nret\n"
	"residue_stop:\n"
	"push %rbp\njmp residue_after_call\n");
/* getrandom(to, len), with `held` in the vector registers. */
long residue_held(const void *held, void *to, long len, long wide);
__asm__(".globl residue_held\n"
	"residue_held:\n"
	"mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %r8\nxor %edx, %edx\n"
	"test %r8, %r8\njz 1f\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvmovdqu 32*\\n(%rax), %ymm\\n\n.endr\njmp 2f\n"
	"1:\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nmovdqu 16*\\n(%rax), %xmm\\n\n.endr\n"
	"2:\nmov $318, %eax\njmp residue_enter\n");
__asm__(".globl residue_syscall, residue_after_syscall, residue_call, residue_after_call\n"
	"residue_syscall:\n"
	"mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\nmov %r9, %r8\n"
	"residue_enter:\n"
	"syscall\n"
	"residue_after_syscall:\n"
	"ret\n"
	"residue_call:\n"
	"push %rbp\nmov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %ecx, %edx\nmov %r8, %rcx\nmov %r9, %r8\n"
	"call *%rax\n"
	"residue_after_call:\n"
	"pop %rbp\nret\n");

#define MOST (40 << 10)
static const long lengths[] = { 1,   7,   8,   15,  16,  32,   33,   64,   71,   128,	255, 256,
				257, 480, 481, 512, 519, 1024, 4095, 4096, 4097, 40000, MOST };
#define LENGTHS (sizeof lengths / sizeof lengths[0])

static unsigned char *bytes;
static void *state;
static vgetrandom_fn *vdso;
static struct vgetrandom_params params;
static int wanted_count;
static char **wanted;

static int is_wanted(const char *name)
{
	for (int i = 0; i < wanted_count; i++)
		if (strcmp(wanted[i], name) == 0)
			return 1;
	return wanted_count == 0;
}

static void announce(const char *name, void *buffer, long len, int kind)
{
	memset(bytes, 0, MOST);
	memset((void *)&now, 0, sizeof now);
	strncpy((char *)now.name, name, sizeof now.name - 1);
	now.buffer = (uint64_t)buffer;
	now.len = len;
	now.state = (uint64_t)state;
	now.kind = kind;
}

static void draw_getrandom(const char *name, unsigned flags)
{
	for (unsigned i = 0; is_wanted(name) && i < LENGTHS; i++) {
		announce(name, bytes, lengths[i], DRAW);
		residue_syscall(SYS_getrandom, (long)bytes, lengths[i], flags, 0, 0);
	}
}

static void draw_read(const char *name, const char *path, long call)
{
	int fd = open(path, O_RDONLY);
	for (unsigned i = 0; is_wanted(name) && i < LENGTHS; i++) {
		long len = lengths[i];
		/* two pieces, so that one request is drawn in several steps */
		struct iovec pieces[2] = { { bytes, len / 3 }, { bytes + len / 3, len - len / 3 } };
		announce(name, bytes, len, DRAW);
		if (call == SYS_readv)
			residue_syscall(call, fd, (long)pieces, 2, 0, 0);
		else
			residue_syscall(call, fd, (long)bytes, len, 0, 0);
	}
	close(fd);
}

static void draw_vdso(void)
{
	for (unsigned i = 0; vdso && is_wanted("vdso") && i < LENGTHS; i++) {
		announce("vdso", bytes, lengths[i], DRAW);
		residue_call(vdso, bytes, lengths[i], 0, state, params.size);
	}
}

/* Under a new base key: the next draw makes a CPU's key of it. */
static void draw_reseeded(const char *name, vgetrandom_fn *function)
{
	static const long some[] = { 16, 64, 255, 480, 4096 };
	int fd = open("/dev/urandom", O_RDONLY);
	for (unsigned i = 0; is_wanted(name) && i < sizeof some / sizeof some[0]; i++) {
		announce("reseed", bytes, 0, RESEED);
		residue_syscall(SYS_ioctl, fd, RNDRESEEDCRNG, 0, 0, 0);
		announce(name, bytes, some[i], DRAW);
		if (function)
			residue_call(function, bytes, some[i], 0, state, params.size);
		else
			residue_syscall(SYS_getrandom, (long)bytes, some[i], 0, 0, 0);
	}
	close(fd);
}

/* The buffer ends in a page that is not there: what does not fit was made, and must be gone. */
static void draw_fault(void)
{
	static const long before[] = { 8, 24, 100, 1000, 4096 };
	for (unsigned i = 0; is_wanted("fault") && i < sizeof before / sizeof before[0]; i++) {
		unsigned char *place = bytes + 2 * 4096 - before[i];
		mprotect(bytes + 2 * 4096, 4096, PROT_READ | PROT_WRITE);
		announce("fault", place, before[i] + 4096, DRAW);
		mprotect(bytes + 2 * 4096, 4096, PROT_NONE);
		residue_syscall(SYS_getrandom, (long)place, before[i] + 4096, 0, 0, 0);
	}
	mprotect(bytes + 2 * 4096, 4096, PROT_READ | PROT_WRITE);
}

/* Memory that is not there yet: its pages come with the draw. */
static void draw_fresh(void)
{
	for (unsigned i = 0; is_wanted("fresh") && i < LENGTHS; i++) {
		announce("fresh", bytes, lengths[i], DRAW);
		madvise(bytes, MOST, MADV_DONTNEED);
		residue_syscall(SYS_getrandom, (long)bytes, lengths[i], 0, 0, 0);
	}
}

static void draw_uuid(void)
{
	for (int i = 0; is_wanted("uuid") && i < 4; i++) {
		int fd = open("/proc/sys/kernel/random/uuid", O_RDONLY);
		announce("uuid", bytes, 36, DRAW);
		residue_syscall(SYS_read, fd, (long)bytes, 36, 0, 0);
		close(fd);
	}
}

/* What a program writes to be mixed in. */
static void write_seed(void)
{
	static const long some[] = { 16, 200, 256, 1000 };
	int fd = open("/dev/urandom", O_RDWR);
	for (unsigned i = 0; is_wanted("write") && i < sizeof some / sizeof some[0]; i++) {
		announce("write", bytes, some[i], WRITTEN);
		syscall(SYS_getrandom, bytes, some[i], 0);
		residue_syscall(SYS_write, fd, (long)bytes, some[i], 0, 0);
	}
	close(fd);
}

/* What the program has in its vector registers while the kernel uses them. */
static void hold_registers(void)
{
	static const long some[] = { 512, 4096, 40000 };
	static unsigned char held[512];
	int wide = __builtin_cpu_supports("avx2");
	for (unsigned i = 0; is_wanted("registers") && i < sizeof some / sizeof some[0]; i++) {
		announce("registers", held, wide ? 512 : 256, HELD);
		syscall(SYS_getrandom, held, sizeof held, 0);
		residue_held(held, bytes, some[i], wide);
	}
}

/* The same of other registers at a page fault. */
static void hold_over_fault(void)
{
	static unsigned char held[40];
	for (int i = 0; is_wanted("page_fault") && i < 4; i++) {
		announce("page_fault", held, sizeof held, HELD);
		syscall(SYS_getrandom, held, sizeof held, 0);
		madvise(bytes, MOST, MADV_DONTNEED);
		residue_fault(held, bytes + 4096 * i);
	}
}

/* The host stops at the new program's first instruction. */
static void run_program(char *self)
{
	for (int i = 0; is_wanted("at_random") && i < 4; i++) {
		if (fork() == 0) {
			execl(self, self, "--exit", NULL);
			_exit(1);
		}
		wait(NULL);
	}
}

static void draw_all(char *self)
{
	draw_getrandom("getrandom", 0);
	draw_getrandom("getrandom_nonblock", GRND_NONBLOCK);
	draw_getrandom("getrandom_random", GRND_RANDOM);
	draw_getrandom("getrandom_insecure", GRND_INSECURE);
	draw_read("random", "/dev/random", SYS_read);
	draw_read("urandom", "/dev/urandom", SYS_read);
	draw_read("urandom_pread", "/dev/urandom", SYS_pread64);
	draw_read("urandom_readv", "/dev/urandom", SYS_readv);
	draw_vdso();
	draw_reseeded("reseeded", NULL);
	if (vdso)
		draw_reseeded("reseeded_vdso", vdso);
	draw_fault();
	draw_fresh();
	draw_uuid();
	write_seed();
	hold_registers();
	hold_over_fault();
	run_program(self);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--exit") == 0)
		return 0;
	wanted_count = argc - 1;
	wanted = argv + 1;
	mount("proc", "/proc", "proc", 0, NULL);
	bytes = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	vdso = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	if (vdso && vdso(NULL, 0, 0, &params, ~0UL) == 0)
		state = mmap(NULL, params.size, params.prot, params.flags, -1, 0);
	cpu_set_t all;
	sched_getaffinity(0, sizeof all, &all);
	for (int cpu = 0; cpu < CPU_COUNT(&all); cpu++) {
		cpu_set_t one;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof one, &one);
		draw_all(argv[0]);
	}
	announce("end", bytes, 0, END);
	residue_syscall(SYS_getpid, 0, 0, 0, 0, 0);
	reboot(RB_POWER_OFF);
	return 1;
}
