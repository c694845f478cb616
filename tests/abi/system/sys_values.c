/*
 * Files below /proc/sys: which other values they take, and that they read as they were written, whether anything follows on this
 * machine or not. bindv6only, max_dgram_qlen and optmem_max are seen to act, on new sockets alone.
 */
#include "check.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct {
	const char *file, *values[8];
} settings[] = {
	{ "fs/overflowgid", { "0", "1000", "65535", "65536", "-1", "x" } },
	{ "fs/overflowuid", { "0", "1000", "65535", "65536", "-1", "x" } },
	{ "kernel/overflowgid", { "0", "1000", "65535", "65536", "-1", "x" } },
	{ "kernel/overflowuid", { "0", "1000", "65535", "65536", "-1", "x" } },
	{ "kernel/perf_cpu_time_max_percent", { "1", "50", "99", "101", "-1", "x" } },
	{ "net/core/optmem_max", { "0", "20480", "2147483647", "-1", "x" } },
	{ "net/ipv4/ip_forward", { "1", "2", "-1", "0", "x" } },
	{ "net/ipv6/bindv6only", { "1", "2", "255", "256", "-1", "0" } },
	{ "net/unix/max_dgram_qlen", { "0", "100", "2147483647", "-1", "x" } },
	{ "vm/dirty_background_ratio", { "0", "5", "100", "101", "-1", "x" } },
	{ "vm/dirty_ratio", { "0", "40", "100", "101", "-1", "x" } },
	{ "vm/swappiness", { "0", "10", "200", "201", "-1", "1 2" } },
	{ "vm/vfs_cache_pressure", { "0", "50", "2147483647", "-1", "x" } },
};

static void each(void)
{
	for (unsigned i = 0; i < sizeof settings / sizeof *settings; i++) {
		const char *file = settings[i].file;
		char before[64];
		snprintf(before, sizeof before, "%s", get_setting(file));
		printf("%s %s", file, before);
		for (int n = 0; n < 8 && settings[i].values[n]; n++) {
			ssize_t put = put_setting(file, settings[i].values[n]);
			printf("  %s: %s, %s", settings[i].values[n], put < 0 ? strerrorname_np(errno) : "ok", get_setting(file));
		}
		MUST(put_setting(file, before));
		printf("  and again %s", get_setting(file));
	}
}

static int only(int fd)
{
	int value = -1;
	socklen_t len = sizeof value;
	MUST(getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &value, &len));
	return value;
}

static void of_ipv6(void)
{
	static const int kinds[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW };
	int before = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0));
	for (int level = 1; level < 4; level++) {
		char text[4];
		snprintf(text, sizeof text, "%d", level);
		MUST(put_setting("net/ipv6/bindv6only", text));
		for (int i = 0; i < 3; i++) {
			int fd = (int)MUST(socket(AF_INET6, kinds[i], kinds[i] == SOCK_RAW ? IPPROTO_ICMPV6 : 0));
			SAY("bindv6only %d, socket %d: %d, one from before %d", level, kinds[i], only(fd), only(before));
			close(fd);
		}
	}
	int after = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0)), off = 0;
	MUST(put_setting("net/ipv6/bindv6only", "0"));
	SAY("one from then: %d", only(after));
	MUST(setsockopt(after, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off));
	SAY("and cleared: %d", only(after));
	close(before);
	close(after);
}

/* How many datagrams a socket takes that nobody reads, of at most 100. */
static int room(int receiver)
{
	struct sockaddr_un name;
	socklen_t len = sizeof name;
	int count = 0, fd = (int)MUST(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	MUST(getsockname(receiver, (struct sockaddr *)&name, &len));
	while (count < 100 && sendto(fd, "x", 1, 0, (struct sockaddr *)&name, len) == 1)
		count++;
	close(fd);
	return count;
}

static int receiver(void)
{
	struct sockaddr_un name = { AF_UNIX, "" };
	int fd = (int)MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
	MUST(bind(fd, (struct sockaddr *)&name, sizeof name.sun_family));
	return fd;
}

static void of_unix(void)
{
	int before = receiver();
	static const char *const lengths[] = { "3", "0", "60", "-1" };
	for (int i = 0; i < 4; i++) {
		MUST(put_setting("net/unix/max_dgram_qlen", lengths[i]));
		int fd = receiver();
		SAY("max_dgram_qlen %s: %d", lengths[i], room(fd));
		close(fd);
	}
	SAY("one from before: %d", room(before));
	MUST(put_setting("net/unix/max_dgram_qlen", "10"));
	close(before);
}

/* Whether control data are too long, which are none of any kind. */
static void controls(int fd, size_t len)
{
	static char zeros[200000];
	struct iovec piece = { "x", 1 };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = zeros, .msg_controllen = len };
	ssize_t sent = sendmsg(fd, &message, 0);
	SAY("  %zu: %s", len, sent < 0 ? strerrorname_np(errno) : "sent");
}

static void of_controls(void)
{
	static const char *const limits[] = { "131072", "1000", "0" };
	static const size_t sizes[] = { 36, 37, 999, 1000, 131071, 131072, 131073 };
	int fds[2];
	MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
	for (int i = 0; i < 3; i++) {
		MUST(put_setting("net/core/optmem_max", limits[i]));
		SAY("optmem_max %s", limits[i]);
		for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++)
			controls(fds[0], sizes[n]);
	}
	MUST(put_setting("net/core/optmem_max", "131072"));
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	each();
	of_ipv6();
	of_unix();
	of_controls();
	return 0;
}
