/*
 * Writes that cross a limit: RLIMIT_FSIZE (what fits is written, then EFBIG and SIGXFSZ) and the largest length a file can
 * have, by write, pwrite, pwritev, appending, truncate, ftruncate, fallocate, and the calls that copy between files.
 */
#include "check.h"
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static volatile int raised;

static void count(int sig)
{
	(void)sig;
	raised++;
}

#define TRY(call) ({ raised = 0; T(call); if (raised) SAY("  SIGXFSZ"); })

static char text[100];

static void crossing(int fd, off_t limit)
{
	struct iovec parts[3] = { { text, 40 }, { text, 40 }, { text, 20 } };
	struct stat st;
	TRY(pwrite(fd, text, 100, limit - 50));
	TRY(pwrite(fd, text, 100, limit - 1));
	TRY(pwrite(fd, text, 100, limit));
	TRY(pwrite(fd, text, 0, limit));
	TRY(pwrite(fd, text, 1, limit - 1));
	TRY(pwritev(fd, parts, 3, limit - 60));
	TRY(pwritev(fd, parts, 3, limit));
	MUST(lseek(fd, limit - 10, SEEK_SET));
	TRY(write(fd, text, 100));
	TRY(write(fd, text, 100));
	TRY(writev(fd, parts, 3));
	MUST(fstat(fd, &st));
	SAY("length is the limit less %ld, position %ld", (long)(limit - st.st_size), (long)(limit - lseek(fd, 0, SEEK_CUR)));
	int append = (int)MUST(open("f", O_WRONLY | O_APPEND));
	TRY(write(append, text, 1));
	MUST(ftruncate(fd, limit - 7));
	TRY(write(append, text, 100));
	TRY(pwrite(append, text, 1, 0));
	close(append);
}

int main(void)
{
	struct rlimit limit = { 5000, 5000 };
	struct sigaction act = { .sa_handler = count };
	scratch();
	int fd = (int)MUST(open("f", O_RDWR | O_CREAT, 0600));
	sigaction(SIGXFSZ, &act, NULL);
	SAY("the largest length:");
	crossing(fd, LONG_MAX);
	TRY(pwrite(fd, text, 100, LONG_MAX - 100));
	TRY(ftruncate(fd, LONG_MAX));
	TRY(ftruncate(fd, 0));
	TRY(fallocate(fd, 0, LONG_MAX - 10, 11));
	MUST(ftruncate(fd, 0));
	SAY("a limit of the process:");
	MUST(setrlimit(RLIMIT_FSIZE, &limit));
	crossing(fd, 5000);
	TRY(ftruncate(fd, 5000));
	TRY(ftruncate(fd, 5001));
	TRY(truncate("f", 5001));
	TRY(fallocate(fd, 0, 4990, 20));
	TRY(fallocate(fd, FALLOC_FL_KEEP_SIZE, 4990, 20));
	/* copies */
	int from = (int)MUST(open("g", O_RDWR | O_CREAT, 0600));
	MUST(write(from, text, 100));
	off_t zero = 0, at = 4950;
	MUST(ftruncate(fd, 0));
	MUST(lseek(fd, 4950, SEEK_SET));
	TRY(sendfile(fd, from, &zero, 100));
	zero = 0;
	TRY(sendfile(fd, from, &zero, 100));
	zero = 0;
	TRY(copy_file_range(from, &zero, fd, &at, 100, 0));
	zero = 0;
	TRY(copy_file_range(from, &zero, fd, &at, 100, 0));
	int ends[2];
	MUST(pipe(ends));
	MUST(write(ends[1], text, 100));
	at = 4950;
	TRY(splice(ends[0], NULL, fd, &at, 100, 0));
	TRY(splice(ends[0], NULL, fd, &at, 100, 0));
	/* not a regular file */
	TRY(write(ends[1], text, 100));
	return 0;
}
