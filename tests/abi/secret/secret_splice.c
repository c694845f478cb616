/*
 * secret_splice: vmsplice gives what lies before a page of memfd_secret, and says EFAULT only of the first.
 */
#include "check.h"
#include <sys/uio.h>
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

int main(void)
{
	int fd = (int)MUST(syscall(SYS_memfd_secret, 0)), ends[2];
	MUST(ftruncate(fd, PAGE));
	char *secret = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	char *open_ = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	secret[0] = open_[0] = 1;
	struct iovec both[2] = {{open_, PAGE}, {secret, PAGE}};
	MUST(pipe2(ends, O_NONBLOCK));
	T(vmsplice(ends[1], both, 2, 0));
	T(vmsplice(ends[1], both + 1, 1, 0));
	return 0;
}
