/*
 * huge.h: what programs about huge pages share: memory that begins at 2 MiB, and what /proc says of it.
 */
#ifndef ALEA_ABI_HUGE_H
#define ALEA_ABI_HUGE_H

#include "check.h"
#include <setjmp.h>
#include <sys/mount.h>

#define HUGE (2L << 20)
#define PAGES 512
#define RW (PROT_READ | PROT_WRITE)

/* Says for which mappings the machine wants huge pages. */
static UNUSED void enabled(const char *word)
{
	mkdir("/sys", 0555);
	if (access("/sys/kernel/mm", F_OK) != 0)
		MUST(mount("sysfs", "/sys", "sysfs", 0, NULL));
	int fd = (int)MUST(open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY));
	MUST(write(fd, word, strlen(word)));
	MUST(close(fd));
}

/* Changes a setting of the thread that makes huge pages. */
static UNUSED void khugepaged(const char *name, const char *value)
{
	char path[128];
	snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/khugepaged/%s", name);
	int fd = (int)MUST(open(path, O_WRONLY));
	MUST(write(fd, value, strlen(value)));
	MUST(close(fd));
}

/* So many times 2 MiB of fresh memory that begin at a multiple of that, with nothing mapped just beside. */
static UNUSED char *aligned(long count, int prot)
{
	char *all = mmap(NULL, (size_t)((count + 2) * HUGE), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(all == MAP_FAILED ? -1 : 0);
	char *at = (char *)(((uintptr_t)all + HUGE) & ~(uintptr_t)(HUGE - 1));
	MUST(munmap(all, (size_t)((count + 2) * HUGE)));
	char *got = mmap(at, (size_t)(count * HUGE), prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	MUST(got == at ? 0 : -1);
	return at;
}

static UNUSED void drop(char *at, long count)
{
	MUST(munmap(at, (size_t)(count * HUGE)));
}

/* A number that smaps has of the mapping that holds an address. */
static UNUSED long field(const char *at, const char *name)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long low, high;
	int is_it = 0;
	long value = -1;
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
			is_it = low <= (unsigned long)at && (unsigned long)at < high;
		else if (is_it && strncmp(line, name, strlen(name)) == 0)
			value = atol(line + strlen(name));
	}
	if (f)
		fclose(f);
	return value;
}

/* KiB of huge pages, and of all resident ones, in the mapping that holds an address. */
static UNUSED long huge(const char *at) { return field(at, "AnonHugePages:"); }
static UNUSED long rss(const char *at) { return field(at, "Rss:"); }

static UNUSED long status(const char *name)
{
	const char *line = strstr(read_file("/proc/self/status"), name);
	return line ? atol(line + strlen(name)) : -1;
}

/* Does something in a child, and waits for its end. */
#define IN_CHILD(...) do { \
	fflush(stdout); \
	pid_t pid_ = (pid_t)MUST(fork()); \
	if (pid_ == 0) { \
		__VA_ARGS__; \
		fflush(stdout); \
		_exit(0); \
	} \
	MUST(waitpid(pid_, NULL, 0)); \
} while (0)

static UNUSED sigjmp_buf out_of_fault;
static UNUSED void on_fault(int sig)
{
	(void)sig;
	siglongjmp(out_of_fault, 1);
}

/* Whether a write to an address faults; what it writes is what was there. */
static UNUSED int faults(char *at)
{
	signal(SIGSEGV, on_fault);
	if (sigsetjmp(out_of_fault, 1))
		return 1;
	*(volatile char *)at = *(volatile char *)at;
	return 0;
}

#endif
