/*
 * fuzz_seals.h: seals against mappings, from several threads and processes at once: what is sealed against writing must not
 * change any more, whoever was mapping, remapping or punching it when the seal came. Memory is written to through system calls,
 * so that a page that is not there is an error and no signal.
 */
#ifndef ALEA_FUZZ_SEALS_H
#define ALEA_FUZZ_SEALS_H

#define SEALED_FILES 4
#define SEALED_PAGES 4UL
#define SEAL_ALL 0x3f
/* F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE; F_SEAL_EXEC. */
#define SEAL_CONTENTS 0xe
#define SEAL_EXEC 0x20

static int sealed_fds[SEALED_FILES];
static char *sealed_maps[8];

static u64 sum_of(int fd)
{
	static __thread u64 words[SEALED_PAGES * PAGE / sizeof(u64)];
	u64 sum = (u64)pread(fd, words, sizeof words, 0);
	for (unsigned i = 0; i < COUNT(words); i++)
		sum = sum * 31 + words[i];
	return sum;
}

/* What was sealed when it is read the first time is the same when it is read again. */
static void check_sealed(int fd)
{
	struct stat a, b;
	int seals = fcntl(fd, 1034 /* F_GET_SEALS */);
	if (seals < 0)
		return;
	if ((seals & SEAL_CONTENTS) == SEAL_CONTENTS) {
		u64 sum = sum_of(fd);
		usleep((useconds_t)below(300));
		if (sum != sum_of(fd))
			say("fuzz: FAILED: a sealed file changed, seals %#x\n", seals);
	}
	if (seals & SEAL_EXEC && fstat(fd, &a) == 0) {
		sched_yield();
		if (fstat(fd, &b) == 0 && (a.st_mode ^ b.st_mode) & 0111)
			say("fuzz: FAILED: sealed execute bits changed\n");
	}
}

static void seal_step(void)
{
	char path[64], **slot = &PICK(sealed_maps), *map = __atomic_load_n(slot, __ATOMIC_RELAXED);
	int *fd = &PICK(sealed_fds);
	u64 page = below(SEALED_PAGES), len = (1 + below(SEALED_PAGES)) * PAGE;
	TELL("[%d] seal step\n", getpid());
	switch (below(20)) {
	case 0: case 1: case 2:
		map = mmap(NULL, SEALED_PAGES * PAGE, (int)below(4), one_in(4) ? MAP_PRIVATE : MAP_SHARED, *fd, 0);
		if (map != MAP_FAILED)
			map = __atomic_exchange_n(slot, map, __ATOMIC_RELAXED);
		if (map != MAP_FAILED && map != NULL)
			munmap(map, SEALED_PAGES * PAGE);
		break;
	case 3: case 4: mprotect(map, len, (int)below(4)); break;
	case 5: case 6: case 7: syscall(SYS_getrandom, map + page * PAGE + below(PAGE - 16), 16, 0); break;
	case 8: madvise(map, len, one_in(2) ? 9 /* MADV_REMOVE */ : 4 /* MADV_DONTNEED */); break;
	case 9: mremap(map, one_in(2) ? 0 : len, len, MREMAP_MAYMOVE); break;
	case 10: pwrite(*fd, &page, sizeof page, (off_t)below(SEALED_PAGES * PAGE)); break;
	case 11: ftruncate(*fd, (off_t)(one_in(3) ? SEALED_PAGES * PAGE : below(6) * PAGE)); break;
	case 12: fallocate(*fd, one_in(2) ? 3 : 0, (off_t)(page * PAGE), (off_t)len); break;
	case 13: fchmod(*fd, (mode_t)below(01000)); break;
	case 14: fcntl(*fd, 1033 /* F_ADD_SEALS */, one_in(3) ? SEAL_CONTENTS : 1 << below(6)); break;
	case 15:
		snprintf(path, sizeof path, "/proc/self/fd/%d", *fd);
		close(open(path, (one_in(2) ? O_RDONLY : O_RDWR) | (one_in(4) ? O_TRUNC : 0)));
		break;
	case 16: munmap(map, len); break;
	case 17: {
		/* a fresh one in its place, for all threads; the old number may be in use just now */
		int fresh = (int)syscall(SYS_memfd_create, "sealed", one_in(4) ? 8 : 2);
		ftruncate(fresh, SEALED_PAGES * PAGE);
		dup2(fresh, *fd);
		close(fresh);
		break;
	}
	default: break;
	}
}

static void *seal_thread(void *seed)
{
	state = (u64)seed;
	for (int i = 0; i < 300; i++)
		seal_step();
	return NULL;
}

/* A child has its own table of descriptors, in which nobody puts another file under a number that it looks at. */
static void *seal_watcher(void *seed)
{
	state = (u64)seed;
	for (int i = 0; i < 60; i++)
		check_sealed(PICK(sealed_fds));
	return NULL;
}

static void seals(void)
{
	pthread_t t;
	for (int i = 0; i < SEALED_FILES; i++) {
		sealed_fds[i] = (int)syscall(SYS_memfd_create, "sealed", 2 /* MFD_ALLOW_SEALING */);
		ftruncate(sealed_fds[i], SEALED_PAGES * PAGE);
	}
	for (int round = 0; round < 3; round++) {
		pid_t watcher = fork();
		if (watcher == 0) {
			seal_watcher((void *)draw());
			_exit(0);
		}
		for (int i = 0; i < 3; i++)
			if (pthread_create(&t, NULL, seal_thread, (void *)draw()) == 0)
				pthread_detach(t);
		if (one_in(3))
			fork();
		seal_thread((void *)draw());
		while (waitpid(-1, NULL, one_in(2) ? WNOHANG : 0) > 0)
			;
	}
}

#endif
