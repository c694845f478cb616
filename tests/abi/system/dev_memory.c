/*
 * The memory devices: null swallows and ends, zero gives zeros and can be mapped, full refuses with ENOSPC, their
 * positions, polls and mappings; kmsg takes lines and gives records; tty without a terminal.
 */
#include "check.h"
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

static char buf[8192];

static void device(const char *path)
{
	struct stat st;
	SAY("-- %s", path);
	MUST(stat(path, &st));
	SAY("%u:%u mode %o", major(st.st_rdev), minor(st.st_rdev), st.st_mode & 0777);
	int fd = (int)MUST(open(path, O_RDWR));
	memset(buf, 1, sizeof buf);
	T(read(fd, buf, 5000));
	SAY("first %d last %d after %d", buf[0], buf[4999], buf[5000]);
	T(write(fd, buf, 5000));
	T(write(fd, NULL, 10));
	T(read(fd, NULL, 10));
	T(read(fd, page_end() - 10, 100));
	T(lseek(fd, 100, SEEK_SET));
	T(lseek(fd, 100, SEEK_CUR));
	T(lseek(fd, 0, SEEK_END));
	T(pread(fd, buf, 10, 1l << 40));
	T(pwrite(fd, buf, 10, 1l << 40));
	T(ftruncate(fd, 0));
	T(fsync(fd));
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	T(poll(&p, 1, 0));
	SAY("revents %#x", p.revents);
	T(ioctl(fd, FIONREAD, buf));
	char *m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (m == MAP_FAILED) {
		SAY("private mapping: %s", err_name(errno));
	} else {
		m[5] = 1;
		SAY("private mapping: %d %d", m[0], m[PAGE]);
	}
	m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED) {
		SAY("shared mapping: %s", err_name(errno));
	} else {
		CHILD("child writes the shared mapping") { m[0] = 9; } END;
		SAY("shared mapping: %d", m[0]);
	}
	close(fd);
}

int main(void)
{
	device("/dev/null");
	device("/dev/zero");
	device("/dev/full");
	SAY("-- kmsg");
	int fd = (int)MUST(open("/dev/kmsg", O_RDWR | O_NONBLOCK));
	T(lseek(fd, 0, SEEK_END));
	T(read(fd, buf, sizeof buf));
	T(write(fd, "<5>a line for the log\n", 22));
	ssize_t n = read(fd, buf, sizeof buf - 1);
	buf[n > 0 ? n : 0] = 0;
	int prefix = -1;
	long sequence = -1, stamp = -1;
	sscanf(buf, "%d,%ld,%ld,", &prefix, &sequence, &stamp);
	SAY("prefix %d, sequence %d, time %d, text %s", prefix, sequence >= 0, stamp >= 0, strchr(buf, ';') ? strchr(buf, ';') + 1 : "none");
	T(read(fd, buf, sizeof buf));
	T(lseek(fd, 0, SEEK_SET));
	T(read(fd, buf, 1));
	T(read(fd, buf, sizeof buf) > 0);
	T(pread(fd, buf, 10, 0));
	close(fd);
	T(syscall(SYS_syslog, 10, NULL, 0) > 1000);
	T(syscall(SYS_syslog, 3, buf, -1));
	T(syscall(SYS_syslog, 3, NULL, 10));
	n = syscall(SYS_syslog, 3, buf, sizeof buf - 1);
	buf[n > 0 ? n : 0] = 0;
	IS(strstr(buf, "a line for the log") != NULL);
	T(syscall(SYS_syslog, 99, buf, 10));
	SAY("-- tty");
	T(open("/dev/tty", O_RDWR));
	SAY("-- missing drivers");
	MUST(chdir("/tmp"));
	T(mknod("abi-nodev", S_IFCHR | 0600, makedev(241, 7)));
	T(open("abi-nodev", O_RDWR));
	T(unlink("abi-nodev"));
	T(mknod("abi-nodev", S_IFBLK | 0600, makedev(241, 7)));
	T(open("abi-nodev", O_RDWR));
	T(unlink("abi-nodev"));
	return 0;
}
