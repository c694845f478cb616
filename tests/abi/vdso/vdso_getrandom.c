/*
 * The vDSO's getrandom: parameters, bytes that differ, fork safety, wrong lengths and flags falling back to the system call,
 * and flags refused as the system call refuses them. Prints one line and stops when there is no vDSO function.
 */
#include "check.h"
#include "vdso.h"

static unsigned char a[4096], b[4096];

int main(void)
{
	vgetrandom_fn *get = (vgetrandom_fn *)vdso_symbol("__vdso_getrandom");
	struct vgetrandom_params p = { 0 };
	SAY("present %d", get != NULL);
	if (!get)
		return 0;
	SAY("query %ld", get(NULL, 0, 0, &p, ~0ul));
	SAY("prot %#x flags %#x, size sane %d", p.prot, p.flags, p.size >= 96 && p.size <= 4096);
	char *s = mmap(NULL, PAGE, (int)p.prot, (int)p.flags, -1, 0);
	IS(s != MAP_FAILED);
	for (size_t n = 0; n <= 300; n += 37)
		SAY("%zu bytes: %ld", n, get(a, n, 0, s, p.size));
	SAY("flags 1: %ld, 4: %ld, 2: %ld, 8: %ld", get(a, 16, 1, s, p.size), get(a, 16, 4, s, p.size), get(a, 16, 2, s, p.size),
	    get(a, 16, 8, s, p.size));
	/* GRND_RANDOM | GRND_INSECURE, without and with GRND_NONBLOCK: the system call says EINVAL, Linux's vDSO does not */
	SAY("flags 6: %ld", get(a, 16, 6, s, p.size));
	SAY("flags 7: %ld", get(a, 16, 7, s, p.size));
	SAY("wrong size: %ld", get(a, 16, 0, s, p.size + 1));
	get(a, 4096, 0, s, p.size);
	get(b, 4096, 0, s, p.size);
	IS(memcmp(a, b, 4096) != 0);
	/* 32-byte draws never repeat */
	int same = 0;
	for (int i = 0; i < 2000; i++) {
		memcpy(b, a, 32);
		get(a, 32, 0, s, p.size);
		same += memcmp(a, b, 32) == 0;
	}
	SAY("repeats %d", same);
	/* nor in a child */
	int fds[2];
	MUST(pipe(fds));
	CHILD("child") {
		get(a, 32, 0, s, p.size);
		write(fds[1], a, 32);
	} END;
	get(a, 32, 0, s, p.size);
	read(fds[0], b, 32);
	IS(memcmp(a, b, 32) != 0);
	return 0;
}
