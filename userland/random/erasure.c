/*
 * erasure: draws secrets from every interface, shows them masked, wipes its own copies and waits.
 *
 * Whoever looks at the machine's memory now must find none of them: the host test dumps it and
 * searches. Each line is `secret HEX`: the first and the last 16 bytes of a draw, every byte XOR 0xa5,
 * so that the terminal's own buffers hold no secret either.
 */
#include "check.h"
#include "vdso.h"

#define MASK 0xa5
#define SHOWN 16

static unsigned char secret[65536];

static void show(const unsigned char *bytes)
{
	printf("secret ");
	for (int i = 0; i < SHOWN; i++)
		printf("%02x", bytes[i] ^ MASK);
	printf("\n");
}

static void drawn(long got, size_t want)
{
	if (got != (long)want) {
		printf("drew %ld of %zu\n", got, want);
		exit(1);
	}
	show(secret);
	if (want >= 2 * SHOWN)
		show(secret + want - SHOWN);
	explicit_bzero(secret, want);
}

int main(void)
{
	static const size_t sizes[] = { 16, 24, 32, 64, 100, 256, 257, 1000, 4096, 5000, 65536 };
	int random = open("/dev/random", O_RDONLY), urandom = open("/dev/urandom", O_RDONLY);
	vgetrandom_fn *get = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	struct vgetrandom_params params = { 0 };
	if (!get || get(NULL, 0, 0, &params, ~0ul) != 0)
		exit(1);
	void *state = (void *)MUST(mmap(NULL, PAGE, (int)params.prot, (int)params.flags, -1, 0));
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			drawn(syscall(SYS_getrandom, secret, sizes[i], 0), sizes[i]);
			drawn(read(random, secret, sizes[i]), sizes[i]);
			drawn(read(urandom, secret, sizes[i]), sizes[i]);
			drawn(get(secret, sizes[i], 0, state, params.size), sizes[i]);
		}
	}
	printf("erasure: waiting\n");
	fflush(stdout);
	for (;;)
		pause();
}
