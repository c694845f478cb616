/*
 * memfd_secret at its edges: what makes pages for another, a child that has it unlocked, futexes, reopening, and the order of errors.
 */
#include "check.h"
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define RW (PROT_READ | PROT_WRITE)
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static int secret(unsigned flags) { return (int)syscall(447, flags); }

int main(void)
{
	char path[64];
	int fd = (int)MUST(secret(0)), word;
	setbuf(stdout, NULL);
	MUST(ftruncate(fd, 4 * PAGE));
	char *at = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
	IS(at != MAP_FAILED);
	T(madvise(at, PAGE, MADV_POPULATE_READ));
	T(madvise(at, PAGE, MADV_POPULATE_WRITE));
	strcpy(at, "kept");
	T(madvise(at, PAGE, MADV_POPULATE_READ));
	T(syscall(SYS_futex, at + 64, FUTEX_WAKE, 1, NULL, NULL, 0));
	T(syscall(SYS_futex, at + 64, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0));
	T(syscall(SYS_futex, at + 64, FUTEX_WAIT, 1, NULL, NULL, 0));
	T(syscall(SYS_futex, at + 64, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0));
	CHILD("child") {
		T(madvise(at, PAGE, MADV_DONTNEED));
		T(madvise(at, PAGE, MADV_REMOVE));
		SAY("it has \"%s\"", at);
		T(madvise(at, PAGE, MADV_PAGEOUT));
		T(mlock(at, PAGE));
		T(munlock(at, PAGE));
	} END;
	SAY("its parent has \"%s\"", at);
	T(madvise(at, PAGE, MADV_DODUMP));
	T(madvise(at, PAGE, MADV_DONTFORK));
	T(madvise(at, PAGE, MADV_DOFORK));
	T(madvise(at, PAGE, MADV_WIPEONFORK));
	T(madvise(at, PAGE, MADV_FREE));
	T(madvise(at, PAGE, MADV_COLD));
	T(madvise(at, PAGE, MADV_WILLNEED));
	T(madvise(at, PAGE, MADV_DONTNEED_LOCKED));
	SAY("after that \"%s\"", at);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	T((word = open(path, O_RDWR)) < 0 ? -1 : 0);
	T((word = open(path, O_PATH)) < 0 ? -1 : 0);
	T(truncate(path, PAGE));
	T(chmod(path, 0600));
	T(access(path, R_OK));
	T(access(path, X_OK));
	T(execl(path, path, NULL));
	T(fcntl(fd, F_GET_SEALS));
	T(fcntl(fd, F_ADD_SEALS, 1));
	T(fcntl(fd, F_SETFL, O_APPEND));
	T(fcntl(fd, F_SETFL, O_DIRECT));
	int ends[2];
	MUST(pipe(ends));
	struct iovec part = { at, 4 };
	T(vmsplice(ends[1], &part, 1, 0));
	T(splice(fd, NULL, ends[1], NULL, 4, 0));
	T(copy_file_range(fd, NULL, fd, NULL, 1, 0));
	fd = (int)MUST(secret(0));
	T(ftruncate(fd, LONG_MAX));
	T((long)mmap(NULL, PAGE, RW, MAP_SHARED, fd, LONG_MAX / PAGE * PAGE) == -1 ? -1 : 0);
	char *far = mmap(NULL, PAGE, RW, MAP_SHARED, fd, LONG_MAX / PAGE * PAGE - 2 * PAGE);
	T((long)far == -1 ? -1 : 0);
	if (far != MAP_FAILED) {
		far[5] = 7;
		SAY("far %d", far[5]);
	}
	fd = (int)MUST(secret(0));
	struct rlimit limit = { 100, 100 };
	MUST(setrlimit(RLIMIT_FSIZE, &limit));
	signal(SIGXFSZ, SIG_IGN);
	T(ftruncate(fd, PAGE));
	limit.rlim_cur = limit.rlim_max = 2 * PAGE;
	MUST(setrlimit(RLIMIT_MEMLOCK, &limit));
	MUST(setresuid(1000, 1000, 1000));
	T((long)mmap(NULL, 8 * PAGE, RW, MAP_PRIVATE, fd, 0) == -1 ? -1 : 0);
	T((long)mmap(NULL, 8 * PAGE, RW | PROT_EXEC, MAP_SHARED, fd, 0) == -1 ? -1 : 0);
	T((long)mmap(NULL, 8 * PAGE, RW, MAP_SHARED, fd, 0) == -1 ? -1 : 0);
	return 0;
}
