/*
 * sys_written.c: texts that /proc/sys files of each kind take: NULs, signs, several numbers at once, terabytes, parts at an offset
 * or in two writes; what is read at an offset; and writers on two CPUs, after which one of them has been right.
 */
#include "check.h"
#include <pthread.h>
#include <sys/uio.h>

#define S(text) { text, sizeof text - 1 }

static const struct text { const char *bytes; size_t len; } texts[] = {
	S("5"), S("5\0" "6"), S("\0"), S("\0" "5"), S("5 \0x"), S("5 6"), S("5\n6"), S("5 6 7"), S("5 6 7 8"), S("-5 6"), S("5 -6"), S("5,6"), S("5;6"), S("5 x"),
	S("5\t6\n"), S("5\v"), S("5\f6"), S("00000000000000000000000000000005"), S("0000000000000000000000000005"), S("5                                5"),
	S("0x7fffffffffffffff"), S("18446744073709551615"), S("18446744073709551616"), S("-9223372036854775808"), S("-0"), S("- 5"), S("+5"), S("5e1"),
	S("9223372036854775807"), S("9223372036854775808"), S("4294967296"), S("4294967301"), S("-2147483648"), S("-2147483649"), S("0b1"), S("1\r\n"), S("/x"), S("|/x y"), S("../x"), S("%"), S("|"),
};

static const char *const names[] = {
	"vm/swappiness", "vm/max_map_count", "kernel/core_pattern", "kernel/hostname", "kernel/domainname", "kernel/pid_max",
	"net/ipv4/ip_local_port_range", "net/core/somaxconn", "kernel/randomize_va_space", "kernel/shmmax", "kernel/shmall", "fs/file-max",
	"vm/overcommit_kbytes", "vm/admin_reserve_kbytes", "vm/mmap_min_addr",
};

static char *path(const char *name)
{
	static char whole[128];
	snprintf(whole, sizeof whole, "/proc/sys/%s", name);
	return whole;
}

static void quoted(const char *text, size_t len)
{
	putchar('"');
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ')
			printf("\\%d", text[i]);
		else
			putchar(text[i]);
	putchar('"');
}

static char before[512];
static ssize_t before_len;

static void said(const char *name, ssize_t result)
{
	char now[512];
	int e = errno, fd = open(path(name), O_RDONLY);
	ssize_t n = read(fd, now, sizeof now);
	close(fd);
	if (result < 0)
		printf(" %s", err_name(e));
	else
		printf(" %zd", result);
	if (n != before_len || memcmp(now, before, (size_t)n)) {
		printf(" -> ");
		quoted(now, (size_t)n);
	}
	fd = open(path(name), O_WRONLY);
	write(fd, before, (size_t)before_len);
	close(fd);
	putchar('\n');
}

static void written(const char *name)
{
	int fd = open(path(name), O_RDWR);
	SAY("-- %s %s", name, fd < 0 ? err_name(errno) : "");
	if (fd < 0)
		return;
	before_len = pread(fd, before, sizeof before, 0);
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		lseek(fd, 0, SEEK_SET);
		errno = 0;
		ssize_t result = write(fd, texts[i].bytes, texts[i].len);
		quoted(texts[i].bytes, texts[i].len);
		said(name, result);
	}
	close(fd);
}

/* Not from the beginning, and by pieces. */
static void pieces(const char *name)
{
	SAY("-- pieces of %s", name);
	int fd = open(path(name), O_RDWR);
	before_len = pread(fd, before, sizeof before, 0);
	char got[64];
	T(pwrite(fd, "7", 1, 1)), said(name, 0);
	T(pwrite(fd, "7", 1, 1L << 40)), said(name, 0);
	T(pwrite(fd, "7", 1, -1)), said(name, 0);
	T(lseek(fd, 2, SEEK_SET));
	T(write(fd, "9", 1)), said(name, 0);
	T(lseek(fd, 0, SEEK_CUR));
	T(lseek(fd, 0, SEEK_END));
	T(lseek(fd, 0, SEEK_SET));
	T(write(fd, "8", 1));
	T(write(fd, "9", 1)), said(name, 0);
	T(write(fd, "", 0)), said(name, 0);
	struct iovec iov[3] = { { "1", 1 }, { "2", 1 }, { "3\n", 2 } };
	T(lseek(fd, 0, SEEK_SET));
	T(writev(fd, iov, 3)), said(name, 0);
	T(lseek(fd, 0, SEEK_SET));
	T(read(fd, got, 1));
	T(read(fd, got, sizeof got) > 0);
	T(read(fd, got, sizeof got));
	T(pread(fd, got, 1, 1) > 0);
	T(pread(fd, got, 1, 500));
	T(pread(fd, got, 1, 1L << 40));
	T(pread(fd, KERNEL_ADDRESS, 1, 0));
	T(lseek(fd, 0, SEEK_SET));
	T(write(fd, KERNEL_ADDRESS, 1));
	T(write(fd, NULL, 1));
	T(write(fd, got, 1L << 40));
	char *big = pages(40);
	memset(big, '5', 40 * PAGE);
	static const size_t len[] = { 2, 21, 22, 31, 32, 64, 127, 128, 4094, 4095, 4096 };
	for (unsigned i = 0; i < sizeof len / sizeof *len; i++) {
		lseek(fd, 0, SEEK_SET);
		printf("%zu:", len[i]);
		memset(big, i & 1 ? ' ' : '0', 40 * PAGE);
		big[len[i] - 1] = '5';
		errno = 0;
		said(name, write(fd, big, len[i]));
		memset(big, i & 1 ? '\n' : 0, 40 * PAGE);
		big[0] = '5';
		lseek(fd, 0, SEEK_SET);
		errno = 0;
		said(name, write(fd, big, len[i]));
	}
	munmap(big, 40 * PAGE);
	close(fd);
}

static void *writer(void *arg)
{
	int mine = *(int *)arg, fd = open("/proc/sys/kernel/core_pattern", O_RDWR), pair = open("/proc/sys/net/ipv4/ip_local_port_range", O_RDWR);
	char text[100], got[200], ports[64];
	memset(text, 'a' + mine, sizeof text);
	long torn = 0;
	for (int i = 0; i < 2000; i++) {
		pwrite(fd, text, 60 + (size_t)mine * 20, 0);
		int n = snprintf(ports, sizeof ports, "%d %d", 20000 + mine, 30000 + mine);
		pwrite(pair, ports, (size_t)n, 0);
		int low = 0, high = 0;
		n = (int)pread(pair, got, sizeof got - 1, 0);
		got[n] = 0;
		sscanf(got, "%d %d", &low, &high);
		torn += high < low;
	}
	close(fd), close(pair);
	return (void *)torn;
}

static void together(void)
{
	SAY("-- together");
	char pattern[256], range[64];
	strcpy(pattern, read_file("/proc/sys/kernel/core_pattern"));
	strcpy(range, read_file("/proc/sys/net/ipv4/ip_local_port_range"));
	pthread_t threads[2];
	int mine[2] = { 0, 1 };
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, writer, &mine[i]);
	for (int i = 0; i < 2; i++) {
		void *torn;
		pthread_join(threads[i], &torn);
		SAY("%ld", (long)torn);
	}
	T(put_setting("kernel/core_pattern", pattern) > 0);
	T(put_setting("net/ipv4/ip_local_port_range", range) > 0);
}

int main(void)
{
	MUST(put_setting("kernel/hostname", "(none)"));
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		written(names[i]);
	/* Kilobytes have made it 0. */
	MUST(put_setting("vm/overcommit_ratio", "50"));
	pieces("kernel/core_pattern");
	pieces("kernel/hostname");
	pieces("vm/swappiness");
	together();
	return 0;
}
