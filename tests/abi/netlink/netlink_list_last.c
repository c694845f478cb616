/* NETLINK_LIST_MEMBERSHIPS to the last address of all: EFAULT, and the length is told. */
#include "net.h"
#include <linux/netlink.h>

int main(void)
{
	int fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), group = 2;
	socklen_t len = 32;
	setbuf(stdout, NULL);
	T(getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, (void *)-1L, &len));
	SAY("length %d", (int)len);
	MUST(setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group));
	for (long back = 1; back < 10; back++) {
		len = 32;
		T(getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, (void *)-back, &len));
		SAY("length %d", (int)len);
	}
	return 0;
}
