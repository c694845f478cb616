/*
 * fread: 16 random bytes, a million times, from the C library's files down to an instruction or two of one's own.
 *
 * The rungs of the article "From fread to syscall", and one that it lacks: the kernel's own code in user space (the vDSO).
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "experiments/experiment.h"
#include "vdso.h"

enum { LEN = 16 };

void randombytes_syscall(uint8_t *out, size_t len);
void randombytes_buffered(uint8_t *out, size_t len);
void randombytes_wiped(uint8_t *out, size_t len);
extern void *wiped_state;

static void randombytes_fread(uint8_t *out, size_t len)
{
	FILE *file = fopen("/dev/urandom", "rb");
	if (!file) {
		arc4random_buf(out, len);
		return;
	}
	if (fread(out, 1, len, file) != len) {
		fprintf(stderr, "fread() failed\n");
		exit(EXIT_FAILURE);
	}
	fclose(file);
}

static void randombytes_libc(uint8_t *out, size_t len)
{
	if (getrandom(out, len, 0) != (ssize_t)len)
		exit(EXIT_FAILURE);
}

static vgetrandom_fn *vgetrandom;
static void *vdso_state;
static size_t vdso_state_size;

static void randombytes_vdso(uint8_t *out, size_t len)
{
	if (vgetrandom(out, len, 0, vdso_state, vdso_state_size) != (long)len)
		exit(EXIT_FAILURE);
}

static void find_vdso(void)
{
	struct vgetrandom_params asked;
	vgetrandom = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	must(vgetrandom && vgetrandom(NULL, 0, 0, &asked, ~0ul) == 0, "__vdso_getrandom");
	vdso_state = mmap(NULL, 4096, (int)asked.prot, (int)asked.flags, -1, 0);
	must(vdso_state != MAP_FAILED, "a state of the vDSO's");
	vdso_state_size = asked.size;
}

static void measure(const char *name, long count, void (*randombytes)(uint8_t *, size_t))
{
	uint8_t out[LEN];
	randombytes(out, LEN);
	int64_t start = now_ns();
	for (long i = 0; i < count; i++)
		randombytes(out, LEN);
	rung(name, count, now_ns() - start);
}

/* Whether parent and child get the same bytes after a fork. */
static int equal_after_fork(void (*randombytes)(uint8_t *, size_t))
{
	uint8_t mine[LEN], others[LEN];
	int ends[2];
	randombytes(mine, LEN);
	must(pipe(ends) == 0, "pipe");
	pid_t child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		randombytes(others, LEN);
		_exit(write(ends[1], others, LEN) != LEN);
	}
	randombytes(mine, LEN);
	must(read(ends[0], others, LEN) == LEN && waitpid(child, NULL, 0) == child, "the child");
	close(ends[0]);
	close(ends[1]);
	return memcmp(mine, others, LEN) == 0;
}

int main(int argc, char **argv)
{
	experiment_begin(argc, argv);
	find_vdso();
	wiped_state = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(wiped_state != MAP_FAILED && madvise(wiped_state, 4096, MADV_WIPEONFORK) == 0, "MADV_WIPEONFORK");

	measure("fopen-fread-fclose", calls(1000000), randombytes_fread);
	measure("libc-getrandom", calls(1000000), randombytes_libc);
	measure("syscall", calls(1000000), randombytes_syscall);
	measure("buffered", calls(1000000), randombytes_buffered);
	measure("buffered-wiped-on-fork", calls(1000000), randombytes_wiped);
	measure("vdso", calls(1000000), randombytes_vdso);

	fact("buffered-repeats-after-fork", equal_after_fork(randombytes_buffered));
	fact("wiped-repeats-after-fork", equal_after_fork(randombytes_wiped));
	fact("vdso-repeats-after-fork", equal_after_fork(randombytes_vdso));
	experiment_end();
	return 0;
}
