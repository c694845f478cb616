/*
 * Committed memory: what counts as promised (Committed_AS), and what mode 2 of vm.overcommit_memory refuses beyond its limit.
 */
#include "check.h"
#include <sys/shm.h>

enum { MIB = 1 << 20 };
#define RW (PROT_READ | PROT_WRITE)
#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)
#define SHARED (MAP_SHARED | MAP_ANONYMOUS)

/* A line of /proc/meminfo, in KiB. */
static long meminfo(const char *name)
{
	const char *line = strstr(read_file("/proc/meminfo"), name);
	return line ? atol(line + strlen(name)) : -1;
}

static long before;

static void begin(void) { before = meminfo("Committed_AS:"); }

/* How many MiB more are promised than at the beginning. */
static void promised(const char *what)
{
	long more = meminfo("Committed_AS:") - before;
	printf("%s: %ld MiB\n", what, (more + (more < 0 ? -512 : 512)) / 1024);
}

static char *map(long mib, int prot, int flags)
{
	return mmap(NULL, (size_t)mib * MIB, prot, flags, -1, 0);
}

/* Maps, says what that promises, and unmaps. */
static void counts(const char *what, int prot, int flags)
{
	begin();
	char *at = map(64, prot, flags);
	promised(what);
	if (at != MAP_FAILED)
		munmap(at, 64 * MIB);
}

static void mappings(void)
{
	counts("private", RW, PRIVATE);
	counts("read only", PROT_READ, PRIVATE);
	counts("no reserve", RW, PRIVATE | MAP_NORESERVE);
	counts("grows down", RW, PRIVATE | MAP_GROWSDOWN);
	counts("shared", RW, SHARED);
	counts("shared, read only", PROT_READ, SHARED);
	counts("shared, no reserve", RW, SHARED | MAP_NORESERVE);
	begin();
	promised("all unmapped");
}

static void protection(void)
{
	char *at = (begin(), map(64, PROT_READ, PRIVATE));
	MUST(mprotect(at, 64 * MIB, RW));
	promised("made writable");
	MUST(mprotect(at, 64 * MIB, PROT_READ));
	promised("untouched, made read only again");
	MUST(mprotect(at, 64 * MIB, RW));
	at[0] = 1;
	MUST(mprotect(at, 64 * MIB, PROT_NONE));
	promised("touched, made inaccessible");
	MUST(munmap(at + 16 * MIB, 16 * MIB));
	promised("a hole in it");
	MUST(munmap(at, 64 * MIB));
	promised("unmapped");
}

static void moves(void)
{
	char *at = (begin(), map(32, RW, PRIVATE));
	MUST((at = mremap(at, 32 * MIB, 64 * MIB, MREMAP_MAYMOVE)) == MAP_FAILED ? -1 : 0);
	promised("grown");
	char *other = mremap(at, 64 * MIB, 64 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	promised("moved, the old one kept");
	MUST(munmap(other, 64 * MIB));
	MUST(munmap(at, 64 * MIB));
	promised("unmapped");
	void *old = sbrk(32 * MIB);
	promised("brk");
	MUST(brk(old));
	promised("brk back");
}

static void files(void)
{
	int fd = (int)(begin(), MUST(memfd_create("m", 0)));
	MUST(ftruncate(fd, 64 * MIB));
	promised("memfd of 64 MiB, empty");
	char *at = mmap(NULL, 64 * MIB, RW, MAP_SHARED, fd, 0);
	promised("mapped shared");
	memset(at, 1, 8 * MIB);
	promised("8 MiB of it written");
	MUST(munmap(at, 64 * MIB));
	at = mmap(NULL, 64 * MIB, RW, MAP_PRIVATE, fd, 0);
	promised("mapped privately");
	MUST(munmap(at, 64 * MIB));
	MUST(ftruncate(fd, 4 * MIB));
	promised("cut to 4 MiB");
	close(fd);
	promised("closed");
	int id = (int)MUST(shmget(IPC_PRIVATE, 64 * MIB, 0600));
	promised("segment");
	MUST(shmctl(id, IPC_RMID, NULL));
	id = (int)MUST(shmget(IPC_PRIVATE, 64 * MIB, 0600 | SHM_NORESERVE));
	promised("segment without reserve");
	MUST(shmctl(id, IPC_RMID, NULL));
}

static void forks(void)
{
	char *at = (begin(), map(64, RW, PRIVATE));
	CHILD("forked") {
		promised("with the child");
	} END;
	MUST(madvise(at, 64 * MIB, MADV_DONTFORK));
	CHILD("forked without") {
		promised("with the child");
	} END;
	promised("after the children");
	MUST(munmap(at, 64 * MIB));
}

/* Mode 2, with room for 64 MiB from here on. */
static void be_strict(void)
{
	char text[32];
	snprintf(text, sizeof text, "%ld", meminfo("Committed_AS:") + 64 * 1024 + 512);
	MUST(put_setting("vm/overcommit_kbytes", text));
	MUST(put_setting("vm/overcommit_memory", "2"));
}

static void refusals(void)
{
	be_strict();
	OK(map(80, RW, PRIVATE));
	OK(map(80, RW, PRIVATE | MAP_NORESERVE));
	OK(map(80, RW, SHARED | MAP_NORESERVE));
	OK(shmget(IPC_PRIVATE, 80 * MIB, 0600 | SHM_NORESERVE));
	char *read_only = map(80, PROT_READ, PRIVATE);
	T(mprotect(read_only, 80 * MIB, RW));
	T(mprotect(read_only, 16 * MIB, RW));
	IS(mremap(read_only, 16 * MIB, 80 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == ENOMEM);
	MUST(munmap(read_only, 80 * MIB));
	IS(sbrk(80 * MIB) == (void *)-1 && errno == ENOMEM);
	char *at = map(40, RW, PRIVATE);
	IS(at != MAP_FAILED);
	OK(map(40, RW, PRIVATE));
	T(fork());
	MUST(madvise(at, 40 * MIB, MADV_DONTFORK));
	CHILD("a small child") {} END;
	int fd = (int)MUST(memfd_create("m", 0));
	ssize_t got = 0, all = 0;
	while ((got = write(fd, at, MIB)) > 0)
		all += got;
	printf("a file in memory ends with %s, above 16 MiB: %d, below 32: %d\n", err_name(errno), all > 16 * MIB, all < 32 * MIB);
	close(fd);
	MUST(munmap(at, 40 * MIB));
}

/* What is left for administrators. */
static void reserves(void)
{
	MUST(put_setting("vm/admin_reserve_kbytes", "32768"));
	MUST(setresuid(1000, 1000, 1000));
	OK(map(40, RW, PRIVATE));
	OK(map(16, RW, PRIVATE));
}

static void limits(void)
{
	printf("ratio and limit, one in thousand: %d\n",
	       labs(meminfo("CommitLimit:") - meminfo("MemTotal:") / 2) < meminfo("MemTotal:") / 1000);
	MUST(put_setting("vm/overcommit_kbytes", "4096"));
	printf("ratio %s", read_file("/proc/sys/vm/overcommit_ratio"));
	printf("limit %ld\n", meminfo("CommitLimit:"));
	MUST(put_setting("vm/overcommit_ratio", "30"));
	printf("kbytes %s", read_file("/proc/sys/vm/overcommit_kbytes"));
}

int main(void)
{
	mappings();
	protection();
	moves();
	files();
	forks();
	OK(map(1 << 20, RW, PRIVATE));
	OK(map(1 << 20, RW, SHARED));
	MUST(put_setting("vm/overcommit_memory", "1"));
	char *huge = map(1 << 20, RW, PRIVATE);
	IS(huge != MAP_FAILED);
	MUST(put_setting("vm/overcommit_memory", "0"));
	T(fork());
	MUST(munmap(huge, 1L << 40));
	limits();
	char admin[32], user[32];
	snprintf(admin, sizeof admin, "%s", read_file("/proc/sys/vm/admin_reserve_kbytes"));
	snprintf(user, sizeof user, "%s", read_file("/proc/sys/vm/user_reserve_kbytes"));
	MUST(put_setting("vm/user_reserve_kbytes", "0"));
	CHILD("strict") {
		refusals();
	} END;
	CHILD("for administrators") {
		be_strict();
		reserves();
	} END;
	MUST(put_setting("vm/overcommit_memory", "0"));
	MUST(put_setting("vm/overcommit_ratio", "50"));
	MUST(put_setting("vm/admin_reserve_kbytes", admin));
	MUST(put_setting("vm/user_reserve_kbytes", user));
	return 0;
}
