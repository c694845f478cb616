/*
 * NETLINK_LIST_MEMBERSHIPS: the groups that a socket is in, as words of 32 bits; how many bytes there are is told whatever fits. A socket
 * that was never asked to join or leave a group has none.
 */
#include "net.h"
#include <linux/netlink.h>

static void shown(const char *what, int fd, int room)
{
	unsigned words[8];
	socklen_t len = (socklen_t)room;
	memset(words, 0xee, sizeof words);
	int r = getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, words, &len);
	printf("%s, room %d: %s, length %d:", what, room, r ? err_name(errno) : "ok", (int)len);
	for (int at = 0; at < 4; at++)
		printf(" %x", words[at]);
	putchar('\n');
}

static void all(const char *what, int fd)
{
	const int rooms[] = { 0, 3, 4, 5, 7, 8, 9, 32 };
	for (size_t at = 0; at < sizeof rooms / sizeof *rooms; at++)
		shown(what, fd, rooms[at]);
}

static int asked(int fd, int option, int group)
{
	return setsockopt(fd, SOL_NETLINK, option, &group, sizeof group);
}

static void groups(int protocol, const char *what)
{
	struct sockaddr_nl name = { .nl_family = AF_NETLINK, .nl_groups = 0x80000005 };
	socklen_t len = 8;
	SAY("%s", what);
	int fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, protocol));
	all("new", fd);
	T(asked(fd, NETLINK_ADD_MEMBERSHIP, 0));
	shown("after a group that is none", fd, 8);
	T(asked(fd, NETLINK_ADD_MEMBERSHIP, 1000));
	T(asked(fd, NETLINK_DROP_MEMBERSHIP, -1));
	T(asked(fd, NETLINK_ADD_MEMBERSHIP, 33));
	T(asked(fd, NETLINK_ADD_MEMBERSHIP, 2));
	T(asked(fd, NETLINK_ADD_MEMBERSHIP, 2));
	all("in 2 and 33", fd);
	T(asked(fd, NETLINK_DROP_MEMBERSHIP, 2));
	T(asked(fd, NETLINK_DROP_MEMBERSHIP, 2));
	shown("without 2", fd, 8);
	T(getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, NULL, &len));
	T(getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, &name, NULL));
	shown("room for less than none", fd, -1);
	T(asked(fd, NETLINK_LIST_MEMBERSHIPS, 1));
	T(bind(fd, (struct sockaddr *)&name, sizeof name));
	shown("bound to 1, 3 and 32", fd, 8);
	close(fd);
	fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, protocol));
	name.nl_groups = 0;
	T(bind(fd, (struct sockaddr *)&name, sizeof name));
	shown("bound to none", fd, 8);
	close(fd);
	fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, protocol));
	T(asked(fd, NETLINK_DROP_MEMBERSHIP, 1));
	shown("asked to leave", fd, 8);
	close(fd);
}

int main(void)
{
	setbuf(stdout, NULL);
	groups(NETLINK_ROUTE, "NETLINK_ROUTE");
	groups(NETLINK_KOBJECT_UEVENT, "NETLINK_KOBJECT_UEVENT");
	return 0;
}
