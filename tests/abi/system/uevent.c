/*
 * Writes to uevent files of /sys: which texts are taken, and what a listener of NETLINK_KOBJECT_UEVENT hears, from whom.
 */
#include "check.h"
#include <grp.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/socket.h>

#define UUID "fe4d7c9d-b8c6-4a70-9ef1-3d8a58d18eed"

static int listener(unsigned groups)
{
	struct sockaddr_nl name = { AF_NETLINK, 0, 0, groups };
	int one = 1, s = (int)MUST(socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
	MUST(setsockopt(s, SOL_SOCKET, SO_PASSCRED, &one, sizeof one));
	MUST(bind(s, (struct sockaddr *)&name, sizeof name));
	return s;
}

/* What came, but the number. */
static void hear(int s)
{
	static unsigned long long last;
	char text[4096], control[256];
	struct sockaddr_nl from = { 0 };
	struct iovec part = { text, sizeof text };
	struct msghdr message = { &from, sizeof from, &part, 1, control, sizeof control, 0 };
	ssize_t len = recvmsg(s, &message, 0);
	if (len < 0) {
		printf("  nothing: %s\n", strerrorname_np(errno));
		return;
	}
	printf("  from port %u group %u, %u bytes of name\n", from.nl_pid, from.nl_groups, message.msg_namelen);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		struct ucred cred;
		memcpy(&cred, CMSG_DATA(c), sizeof cred);
		printf("  control %d %d: %d %u %u\n", c->cmsg_level, c->cmsg_type, cred.pid, cred.uid, cred.gid);
	}
	for (ssize_t at = 0; at < len; at += (ssize_t)strlen(text + at) + 1) {
		unsigned long long number;
		if (sscanf(text + at, "SEQNUM=%llu", &number) == 1) {
			printf("  a number, %s\n", number > last ? "greater" : "not greater");
			last = number;
		} else
			printf("  %s\n", text + at);
	}
}

static void tell(const char *path, const char *text, size_t len, int s)
{
	char name[128];
	snprintf(name, sizeof name, "sys/devices/virtual/%s/uevent", path);
	int fd = (int)MUST(open(name, O_WRONLY));
	printf("%s \"%s\": ", path, text);
	fflush(stdout);
	ssize_t got = write(fd, text, len);
	printf("%s\n", got < 0 ? strerrorname_np(errno) : got == (ssize_t)len ? "taken" : "in part");
	close(fd);
	hear(s);
}

int main(void)
{
	static const char *const texts[] = {
		"add", "change\n", "remove", "move", "online", "offline", "bind", "unbind", "", "\n", "adds", "ad", "Add", " add", "add ",
		"add\n\n", "add " UUID, "change " UUID "\n", "add " UUID " A=1 b=2c\n", "add " UUID " A=", "add " UUID " =1", "add " UUID " A",
		"add " UUID "A=1", "add " UUID " A=1 ", "add " UUID " A=1  B=2", "add " UUID " A_B=1", "add " UUID " A=/", "add fe4d7c9d",
		"add fe4d7c9d-b8c6-4a70-9ef1-3d8a58d18eeg", "add fe4d7c9db8c6-4a70-9ef1-3d8a58d18eed-",
	};
	struct stat st;
	scratch();
	MUST(mkdir("sys", 0755));
	MUST(mount("sysfs", "sys", "sysfs", 0, NULL));
	int s = listener(1), other = listener(2), both = listener(3);
	MUST(stat("sys/devices/virtual/mem/null/uevent", &st));
	printf("%o\n", st.st_mode);
	printf("%s", read_file("sys/devices/virtual/mem/null/uevent"));
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
		tell("mem/null", texts[i], strlen(texts[i]), s);
	tell("mem/null", "add\0", 4, s);
	tell("tty/tty", "add", 3, s);
	tell("mem/kmsg", "change", 6, s);
	tell("tty/console", "change", 6, s);
	hear(other);
	hear(both);
	unsigned long long before = strtoull(read_file("sys/kernel/uevent_seqnum"), NULL, 10);
	tell("mem/zero", "change", 6, s);
	IS(strtoull(read_file("sys/kernel/uevent_seqnum"), NULL, 10) == before + 1);
	tell("mem/zero", "nothing", 7, s);
	IS(strtoull(read_file("sys/kernel/uevent_seqnum"), NULL, 10) == before + 1);
	struct pollfd poller = { s, POLLIN, 0 };
	T(poll(&poller, 1, 0));
	MUST(close(s));
	MUST(close(both));
	MUST(close(other));
	CHILD("other user") {
		MUST(setgroups(0, NULL));
		MUST(setgid(1000));
		MUST(setuid(1000));
		T(open("sys/devices/virtual/mem/null/uevent", O_WRONLY));
		int own = listener(1);
		hear(own);
	} END;
	MUST(umount("sys"));
	return 0;
}
