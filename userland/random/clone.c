/*
 * clone: draws from every interface as soon as a byte arrives, and shows all of it.
 *
 * The host test saves the machine while this waits and restores it twice: the twins must have no byte
 * in common, from the first draw on. Each line is `draw NAME HEX`. Before waiting it draws as well, so
 * that the kernel and the vDSO's state have a batch of which a part is left.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vdso.h"

static unsigned char bytes[8192];

static void show(const char *name, const unsigned char *at, long len)
{
	printf("draw %s ", name);
	for (long i = 0; i < len; i++)
		printf("%02x", at[i]);
	printf("\n");
}

static vgetrandom_fn *vdso;
static void *state;
static struct vgetrandom_params params;

static void open_vdso(void)
{
	vdso = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	if (!vdso || vdso(NULL, 0, 0, &params, ~0UL) != 0)
		return;
	state = mmap(NULL, params.size, params.prot, params.flags, -1, 0);
}

static void draw_vdso(void)
{
	if (vdso && state != MAP_FAILED)
		show("vdso", bytes, vdso(bytes, 16, 0, state, params.size));
}

static void draw_all(int vdso_first)
{
	if (vdso_first)
		draw_vdso();
	int random = open("/dev/random", O_RDONLY), urandom = open("/dev/urandom", O_RDONLY);
	int uuid = open("/proc/sys/kernel/random/uuid", O_RDONLY);
	show("getrandom", bytes, syscall(SYS_getrandom, bytes, 16, 0));
	show("getrandom", bytes, syscall(SYS_getrandom, bytes, 64, 0));
	show("random", bytes, read(random, bytes, 32));
	show("urandom", bytes, read(urandom, bytes, 100));
	show("getrandom", bytes, syscall(SYS_getrandom, bytes, sizeof bytes, 0));
	if (!vdso_first)
		draw_vdso();
	if (read(uuid, bytes, 36) == 36)
		show("uuid", bytes, 36);
	close(random);
	close(urandom);
	close(uuid);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char byte;
	if (argc > 1) {
		show("at_random", (const unsigned char *)getauxval(AT_RANDOM), 16);
		return 0;
	}
	mount("proc", "/proc", "proc", 0, NULL);
	setvbuf(stdout, NULL, _IOFBF, 65536);
	open_vdso();
	printf("clone: before\n");
	draw_all(1);
	printf("clone: waiting\n");
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		return 1;
	/* `v` or any other byte: which draw is the first of all, before anything could have noticed. */
	draw_all(byte == 'v');
	if (fork() == 0) {
		execl(argv[0], argv[0], "auxv", NULL);
		_exit(1);
	}
	wait(NULL);
	printf("clone: done\n");
	fflush(stdout);
	for (;;)
		pause();
}
