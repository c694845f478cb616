/* /proc/net: headings, and the lines of sockets that the program makes, without ports and addresses of structures. */
#include "net.h"
#include <sys/un.h>

static void heading(const char *file)
{
	char text[65536];
	strcpy(text, read_file(file));
	text[strcspn(text, "\n")] = 0;
	size_t n = strlen(text);
	while (n > 0 && text[n - 1] == ' ')
		text[--n] = 0;
	SAY("%s|%s|", file, text);
}

/* The fields that do not change from run to run of the line that has a word. */
static void line(const char *file, const char *word, int first, int count)
{
	char text[65536];
	strcpy(text, read_file(file));
	for (char *at = strtok(text, "\n"); at; at = strtok(NULL, "\n")) {
		if (!strstr(at, word))
			continue;
		size_t len = strlen(at);
		char *save, *field = strtok_r(at, " ", &save);
		printf("%s: %s bytes:", file, len == 127 || len == 149 ? "as many" : "other");
		for (int i = 0; field && i < first + count; i++, field = strtok_r(NULL, " ", &save))
			if (i >= first)
				printf(" %s", field);
		putchar('\n');
		return;
	}
	SAY("%s: nothing with that", file);
}

int main(void)
{
	static const char *const files[] = { "tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "raw", "raw6", "unix", "packet", "dev", "route", "arp",
		"igmp" };
	net_up();
	for (unsigned i = 0; i < sizeof files / sizeof files[0]; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/net/%s", files[i]);
		heading(path);
	}
	int a, b, l = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), on = 1;
	MUST(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	MUST(bind(l, NAME4("127.0.0.1", 20001)));
	MUST(listen(l, 7));
	line("/proc/net/tcp", "0100007F:4E21", 1, 3);
	connection(&a, &b);
	char port[32];
	snprintf(port, sizeof port, "0100007F:%04X 0100007F", port_of(a));
	MUST(send(b, "123", 3, 0));
	await(a, POLLIN);
	line("/proc/net/tcp", port, 3, 2);
	int u = (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0));
	MUST(bind(u, NAME6("::1", 20002)));
	line("/proc/net/udp6", ":4E22", 1, 3);
	int s = (int)MUST(socket(AF_UNIX, SOCK_SEQPACKET, 0));
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0net_proc" };
	MUST(bind(s, (struct sockaddr *)&name, 2 + 9));
	line("/proc/net/unix", "@net_proc", 2, 4);
	MUST(listen(s, 1));
	line("/proc/net/unix", "@net_proc", 2, 4);
	line("/proc/net/dev", "lo:", 0, 1);
	line("/proc/net/if_inet6", "lo", 0, 6);
	return 0;
}
