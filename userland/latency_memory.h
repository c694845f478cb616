/* latency_memory.h: attacks by calls on memory. Included by latency.c. */

#define BIG (96 * MIB)
#define MANY 60000L			/* mappings: about as many as a process may have */

static char *area, *other;
static long turn;

static char *map_private(long size, int prot, int flags)
{
	return mmap(NULL, (size_t)size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static int sparse_file(const char *name, long size)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);
	if (fd >= 0 && ftruncate(fd, size) != 0)
		return -1;
	return fd;
}

static int touched(void)
{
	area = (char *)NEED(map_private(BIG, PROT_READ | PROT_WRITE, 0));
	memset(area, 1, BIG);
	return 0;
}

static int many_mappings(void)
{
	area = (char *)NEED(map_private(2 * MANY * PAGE, PROT_NONE, 0));
	for (long i = 0; i < MANY; i += 2)
		NEED(mprotect(area + i * PAGE, PAGE, PROT_READ));
	return 0;
}

static int huge(void)
{
	area = (char *)NEED(map_private(32 * TIB, PROT_READ, 0));
	return 0;
}

static void populate_huge(void) { madvise(area, 32 * TIB, 22); }

static int terabyte(void)
{
	area = (char *)NEED(map_private(TIB, PROT_READ | PROT_WRITE, 0));
	other = (char *)NEED(map_private(TIB / PAGE, PROT_READ | PROT_WRITE, 0));
	return 0;
}

static void mincore_huge(void) { mincore(area, TIB, (unsigned char *)other); }

static int sparse_shared(void)
{
	int fd = (int)NEED(sparse_file("sparse", GIB));
	area = (char *)NEED(mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	return 0;
}

static void populate_shared(void)
{
	madvise(area, BIG, 22);
	madvise(area, BIG, MADV_REMOVE);
}

static int untouched(void)
{
	area = (char *)NEED(map_private(BIG, PROT_READ | PROT_WRITE, 0));
	return 0;
}

static void populate_write(void)
{
	madvise(area, BIG, 23);
	madvise(area, BIG, MADV_DONTNEED);
}

static void map_populate(void)
{
	char *p = map_private(BIG, PROT_READ | PROT_WRITE, MAP_POPULATE);
	if (p != MAP_FAILED)
		munmap(p, BIG);
}

static void lock_memory(void)
{
	mlock(area, 8 * MIB);
	munlock(area, 8 * MIB);
	madvise(area, 8 * MIB, MADV_DONTNEED);
}

static void protect_big(void)
{
	mprotect(area, BIG, turn++ & 1 ? PROT_READ : PROT_READ | PROT_WRITE);
}

static void move_big(void)
{
	char *to = mremap(area, BIG, BIG, MREMAP_MAYMOVE | 4);
	if (to == MAP_FAILED)
		return;
	munmap(area, BIG);
	area = to;
}

static void fork_and_wait(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void exit_big(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		touched();
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void unmap_many(void)
{
	munmap(area, 2 * MANY * PAGE);
	many_mappings();
}

static void protect_many(void)
{
	mprotect(area, 2 * MANY * PAGE, PROT_READ);
	for (long i = 0; i < MANY; i += 2)
		mprotect(area + i * PAGE, PAGE, PROT_NONE);
}

static void sync_many(void) { msync(area, 2 * MANY * PAGE, MS_ASYNC); }

static void advise_many(void)
{
	madvise(area, 2 * MANY * PAGE, MADV_DONTFORK);
	madvise(area, 2 * MANY * PAGE, MADV_DOFORK);
}

static void read_file_whole(const char *path)
{
	static char block[256 * KIB];
	int fd = open(path, O_RDONLY);
	while (fd >= 0 && read(fd, block, sizeof block) > 0)
		;
	close(fd);
}

static void read_maps(void) { read_file_whole("/proc/self/maps"); }
static void read_smaps(void) { read_file_whole("/proc/self/smaps"); }
static void read_rollup(void) { read_file_whole("/proc/self/smaps_rollup"); }

/* 512 MiB of addresses with one page of memory for each MiB of a file of one MiB. */
static int folded(void)
{
	int fd = (int)NEED(sparse_file("folded", MIB));
	area = (char *)NEED(map_private(512 * MIB, PROT_NONE, 0));
	for (long at = 0; at < 512 * MIB; at += MIB)
		NEED(mmap(area + at, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0));
	return 0;
}

static int zero_fd = -1;

static int zeros(void)
{
	zero_fd = (int)NEED(open("/dev/zero", O_RDONLY));
	return folded();
}

static void read_zeros(void) { (void)!read(zero_fd, area, 512 * MIB); }

static void readv_zeros(void)
{
	static struct iovec iov[1024];
	for (int i = 0; i < 1024; i++)
		iov[i] = (struct iovec) { area + i % 256 * 2 * MIB, 2 * MIB };
	(void)!readv(zero_fd, iov, 1024);
}

static void grow_and_shrink(void)
{
	char *start = sbrk(0);
	if (brk(start + BIG) == 0) {
		memset(start, 1, BIG);
		(void)!brk(start);
	}
}

static void draw(void) { (void)!getrandom(area, BIG, 0); }

static void lock_all(void)
{
	mlockall(MCL_CURRENT | 4);
	munlockall();
}

#define MEMORY_ATTACKS \
	{ "populate_read_32TB", huge, populate_huge }, \
	{ "mincore_1TB", terabyte, mincore_huge }, \
	{ "populate_shared", sparse_shared, populate_shared }, \
	{ "populate_write", untouched, populate_write }, \
	{ "map_populate", NULL, map_populate }, \
	{ "mlock", untouched, lock_memory }, \
	{ "mlockall_many", many_mappings, lock_all }, \
	{ "mprotect", touched, protect_big }, \
	{ "mremap", touched, move_big }, \
	{ "fork_big", touched, fork_and_wait }, \
	{ "exit_big", NULL, exit_big }, \
	{ "fork_many_mappings", many_mappings, fork_and_wait }, \
	{ "munmap_many", many_mappings, unmap_many }, \
	{ "mprotect_many", many_mappings, protect_many }, \
	{ "msync_many", many_mappings, sync_many }, \
	{ "madvise_many", many_mappings, advise_many }, \
	{ "read_maps", many_mappings, read_maps }, \
	{ "read_smaps", many_mappings, read_smaps }, \
	{ "read_smaps_rollup", many_mappings, read_rollup }, \
	{ "read_zeros", zeros, read_zeros }, \
	{ "readv_zeros", zeros, readv_zeros }, \
	{ "brk", NULL, grow_and_shrink }, \
	{ "getrandom", touched, draw },
