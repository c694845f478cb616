/*
 * /proc/net/tcp, udp and unix with more sockets than a kernel lists at once: each socket stands there once, however short the reads are,
 * and sockstat counts them all.
 */
#include "net.h"
#include <sys/un.h>

#define MOST 600

static ino_t inodes[MOST];
static int count;

static int keep(int fd)
{
	struct stat st;
	MUST(fstat(fd, &st));
	if (count < MOST)
		inodes[count++] = st.st_ino;
	return fd;
}

/* Reads a list with reads of so many bytes, and looks for each of the sockets at field `field`. */
static void list(const char *path, int field, size_t chunk)
{
	static char text[1 << 20];
	static int seen[MOST];
	size_t len = 0;
	ssize_t got;
	int fd = (int)MUST(open(path, O_RDONLY));
	while (len + chunk < sizeof text && (got = read(fd, text + len, chunk)) > 0)
		len += (size_t)got;
	text[len] = 0;
	close(fd);
	memset(seen, 0, sizeof seen);
	unsigned lines = 0, in_order = 0;
	char *save, *line = strtok_r(text, "\n", &save);
	while ((line = strtok_r(NULL, "\n", &save))) {
		char *rest, *word = strtok_r(line, " ", &rest);
		in_order += strtoul(word, NULL, 10) == lines++;
		for (int i = 0; word && i < field; i++)
			word = strtok_r(NULL, " ", &rest);
		for (int i = 0; word && i < count; i++)
			seen[i] += strtoul(word, NULL, 10) == inodes[i];
	}
	int once = 0;
	for (int i = 0; i < count; i++)
		once += seen[i] == 1;
	printf("%s by %zu: %d of %d once", path, chunk, once, count);
	if (strstr(path, "tcp"))
		printf(", numbers %s", in_order == lines ? "in order" : "not in order");
	putchar('\n');
}

static void lists(const char *path, int field)
{
	list(path, field, 100);
	list(path, field, 4096);
	list(path, field, 65536);
	count = 0;
}

static long in_use(const char *path, const char *protocol)
{
	char wanted[32];
	snprintf(wanted, sizeof wanted, "\n%s: inuse ", protocol);
	const char *at = strstr(read_file(path), wanted);
	return at ? strtol(at + strlen(wanted), NULL, 10) : -1;
}

int main(void)
{
	net_up();
	long four = in_use("/proc/net/sockstat", "UDP"), six = in_use("/proc/net/sockstat6", "UDP6"),
	     tcp = in_use("/proc/net/sockstat", "TCP");
	for (int i = 0; i < 150; i++)
		MUST(bind(keep((int)MUST(socket(AF_INET, SOCK_DGRAM, 0))), NAME4("127.0.0.1", 0)));
	lists("/proc/net/udp", 9);
	for (int i = 0; i < 129; i++)
		MUST(bind(keep((int)MUST(socket(AF_INET6, SOCK_DGRAM, 0))), NAME6("::1", 0)));
	lists("/proc/net/udp6", 9);
	for (int i = 0; i < 128; i++)
		keep((int)MUST(socket(AF_UNIX, SOCK_DGRAM, 0)));
	lists("/proc/net/unix", 6);
	SAY("UDP %ld more, UDP6 %ld more", in_use("/proc/net/sockstat", "UDP") - four, in_use("/proc/net/sockstat6", "UDP6") - six);
	int l = keep((int)MUST(socket(AF_INET, SOCK_STREAM, 0)));
	MUST(bind(l, NAME4("127.0.0.1", 20100)));
	MUST(listen(l, 10));
	/* The accepted ones all have the listener's port. */
	for (int i = 0; i < 200; i++) {
		MUST(connect(keep((int)MUST(socket(AF_INET, SOCK_STREAM, 0))), NAME4("127.0.0.1", 20100)));
		keep((int)MUST(accept(l, NULL, NULL)));
	}
	lists("/proc/net/tcp", 9);
	SAY("TCP %ld more", in_use("/proc/net/sockstat", "TCP") - tcp);
	return 0;
}
