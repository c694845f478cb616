/*
 * Descriptors: lowest number first, dup, dup2, dup3, F_DUPFD, close-on-exec, F_GETFL and what F_SETFL may change,
 * limits (EMFILE, EBADF), close_range, and the file description shared by copies.
 */
#include "check.h"
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

int main(void)
{
	scratch();
	write_file("f", "0123456789");
	/* whatever the runner left open */
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	T(open("f", O_RDWR));
	T(open("f", O_RDONLY | O_CLOEXEC));
	T(dup(3));
	T(close(4));
	T(dup(3));
	T(dup2(3, 10));
	T(dup2(3, 3));
	T(dup2(99, 3));
	T(dup2(99, 99));
	T(dup2(3, -1));
	T(dup2(3, 1 << 20));
	T(dup3(3, 11, O_CLOEXEC));
	T(fcntl(11, F_GETFD));
	T(dup3(3, 3, 0));
	T(dup3(3, 12, O_NONBLOCK));
	T(dup3(99, 99, 0));
	T(fcntl(3, F_DUPFD, 20));
	T(fcntl(3, F_DUPFD, 20));
	T(fcntl(3, F_DUPFD_CLOEXEC, 20));
	T(fcntl(22, F_GETFD));
	T(fcntl(3, F_DUPFD, -1));
	T(fcntl(3, F_DUPFD, 1 << 30));
	T(fcntl(22, F_SETFD, 0));
	T(fcntl(22, F_GETFD));
	T(fcntl(22, F_SETFD, 0xff));
	T(fcntl(22, F_GETFD));
	T(ioctl(21, FIOCLEX));
	T(fcntl(21, F_GETFD));
	T(ioctl(21, FIONCLEX));
	T(fcntl(21, F_GETFD));
	/* status flags */
	SAY("flags %#o", fcntl(3, F_GETFL));
	T(fcntl(3, F_SETFL, O_APPEND | O_NONBLOCK | O_WRONLY | O_CREAT));
	SAY("flags %#o, of a copy %#o", fcntl(3, F_GETFL), fcntl(10, F_GETFL));
	T(fcntl(3, F_SETFL, 0));
	SAY("flags %#o", fcntl(3, F_GETFL));
	int n = 1;
	T(ioctl(3, FIONBIO, &n));
	SAY("flags %#o", fcntl(3, F_GETFL));
	T(fcntl(3, F_SETFL, 0));
	T(fcntl(3, 9999));
	T(fcntl(99, F_GETFD));
	/* a copy shares the offset, a second open does not */
	char c;
	read(3, &c, 1);
	T(lseek(10, 0, SEEK_CUR));
	int other = (int)T(open("f", O_RDWR));
	T(lseek(other, 0, SEEK_CUR));
	/* close_range */
	for (int fd = 30; fd < 40; fd++)
		dup2(3, fd);
	T(syscall(SYS_close_range, 32, 34, 0));
	T(syscall(SYS_close_range, 36, 37, CLOSE_RANGE_CLOEXEC));
	for (int fd = 30; fd < 40; fd++)
		SAY("%d: %d", fd, fcntl(fd, F_GETFD));
	T(syscall(SYS_close_range, 5, 4, 0));
	T(syscall(SYS_close_range, 5, 6, 8));
	T(syscall(SYS_close_range, 30, ~0u, 0));
	/* limits */
	struct rlimit rl, small;
	getrlimit(RLIMIT_NOFILE, &rl);
	SAY("limit %ld", (long)rl.rlim_cur);
	small = rl;
	small.rlim_cur = 12;
	setrlimit(RLIMIT_NOFILE, &small);
	int fd, opened = 0;
	while ((fd = open("f", O_RDONLY)) >= 0)
		opened++;
	SAY("opened %d, then %s", opened, err_name(errno));
	T(dup(3));
	T(dup2(3, 12));
	T(dup2(3, 11));
	T(fcntl(3, F_DUPFD, 12));
	T(fcntl(3, F_DUPFD, 5));
	int p[2];
	T(pipe(p));
	T(close(11));
	T(pipe(p));
	T(open("f", O_RDONLY));
	setrlimit(RLIMIT_NOFILE, &rl);
	T(close(-1));
	T(close(100));
	/* O_PATH */
	fd = (int)MUST(open("f", O_PATH));
	T(read(fd, &c, 1));
	T(write(fd, &c, 1));
	T(fchmod(fd, 0600));
	T(ioctl(fd, FIONREAD, &n));
	T(fcntl(fd, F_GETFD));
	SAY("flags %#o", fcntl(fd, F_GETFL));
	T(fcntl(fd, F_SETFL, 0));
	struct stat st;
	T(fstat(fd, &st));
	T(dup(fd) >= 0);
	OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
	T(lseek(fd, 0, SEEK_SET));
	return 0;
}
