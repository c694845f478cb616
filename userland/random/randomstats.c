/*
 * randomstats: sends what an interface delivers to the host, over /dev/vport0p1.
 *
 *   randomstats MEBIBYTES INTERFACE...
 *
 * Interfaces: getrandom, random, urandom, vdso, jitter. Requests have many lengths, so that the small ways
 * through the kernel and the long one all have their share; what arrives is in the order in which it was
 * drawn. For each interface a line `sent INTERFACE BYTES` tells how much came; an interface that does not
 * exist sends nothing. Mounts /proc and /dev itself and powers off: it is an init.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vdso.h"

#define BUFFER (1 << 20)

static unsigned char buffer[BUFFER];
static const size_t lengths[] = { 16, 8, 1, 32, 64, 100, 256, 257, 1000, 4096, 5000, 65536, 3, 48, 200000 };

static int fd = -1;
static vgetrandom_fn *vdso;
static void *state;
static struct vgetrandom_params params;

static long by_syscall(void *to, size_t len)
{
	return syscall(SYS_getrandom, to, len, 0);
}

static long by_read(void *to, size_t len)
{
	return read(fd, to, len);
}

static long by_vdso(void *to, size_t len)
{
	return vdso(to, len, 0, state, params.size);
}

/* A new opening makes new samples; what is left of one is not used. */
static long by_jitter(void *to, size_t len)
{
	int samples = open("/proc/alea/jitter_raw", O_RDONLY);
	long got = samples < 0 ? -1 : read(samples, to, len);
	close(samples);
	return got;
}

typedef long draw(void *, size_t);

static draw *open_interface(const char *name)
{
	if (strcmp(name, "getrandom") == 0)
		return by_syscall;
	if (strcmp(name, "jitter") == 0)
		return by_jitter;
	if (strcmp(name, "vdso") == 0) {
		vdso = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
		if (!vdso || vdso(NULL, 0, 0, &params, ~0UL) != 0)
			return NULL;
		state = mmap(NULL, params.size, params.prot, params.flags, -1, 0);
		return state == MAP_FAILED ? NULL : by_vdso;
	}
	char path[64];
	snprintf(path, sizeof path, "/dev/%s", name);
	close(fd);
	fd = open(path, O_RDONLY);
	return fd < 0 ? NULL : by_read;
}

static void die(const char *what)
{
	printf("randomstats: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	exit(1);
}

static void put_all(int to, size_t len)
{
	for (size_t done = 0; done < len;) {
		long wrote = write(to, buffer + done, len - done);
		if (wrote <= 0)
			die("/dev/vport0p1");
		done += wrote;
	}
}

static size_t send_interface(int to, const char *name, size_t want)
{
	draw *draw = open_interface(name);
	size_t sent = 0, next = 0;
	while (draw && sent < want) {
		size_t room = want - sent < BUFFER ? want - sent : BUFFER, have = 0;
		while (have < room) {
			size_t len = lengths[next++ % (sizeof lengths / sizeof *lengths)];
			if (draw == by_jitter || len > room - have)
				len = room - have;
			long got = draw(buffer + have, len);
			if (got <= 0)
				die(name);
			have += got;
		}
		put_all(to, have);
		sent += have;
	}
	return sent;
}

int main(int argc, char **argv)
{
	mount("proc", "/proc", "proc", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	int to = open("/dev/vport0p1", O_WRONLY);
	if (argc < 3 || to < 0)
		die("usage, or no channel");
	for (int i = 2; i < argc; i++) {
		size_t sent = send_interface(to, argv[i], strtoul(argv[1], NULL, 10) << 20);
		printf("sent %s %zu\n", argv[i], sent);
		fflush(stdout);
	}
	fsync(to);
	printf("randomstats: done\n");
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
