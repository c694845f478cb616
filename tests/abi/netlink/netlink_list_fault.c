/* NETLINK_LIST_MEMBERSHIPS tells how many bytes there are even where the words cannot be written. */
#include "net.h"
#include <linux/netlink.h>

int main(void)
{
	int fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), group = 2;
	socklen_t len = 32;
	MUST(setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group));
	T(getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, NULL, &len));
	SAY("length %d", (int)len);
	len = 32;
	unsigned *end = (unsigned *)(void *)(page_end() - 4);
	T(getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, end, &len));
	SAY("length %d, first word %x", (int)len, *end);
	return 0;
}
