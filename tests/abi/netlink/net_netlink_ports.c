/*
 * Port numbers of netlink are each protocol's own, and NETLINK_NO_ENOBUFS: who does not want to hear that messages were lost,
 * does not.
 */
#include "net.h"
#include <linux/netlink.h>
#include <sys/mount.h>

static int netlink(int protocol)
{
	return (int)MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, protocol));
}

static struct sockaddr_nl name_of(unsigned port)
{
	return (struct sockaddr_nl){ .nl_family = AF_NETLINK, .nl_pid = port };
}

static unsigned own_port(int fd)
{
	struct sockaddr_nl name;
	socklen_t len = sizeof name;
	MUST(getsockname(fd, (struct sockaddr *)&name, &len));
	return name.nl_pid;
}

static void ports(void)
{
	int route = netlink(NETLINK_ROUTE), other = netlink(NETLINK_ROUTE), events = netlink(NETLINK_KOBJECT_UEVENT);
	struct sockaddr_nl name = name_of(4711);
	T(bind(route, NAME(name)));
	T(bind(other, NAME(name)));
	T(bind(events, NAME(name)));
	close(route);
	T(bind(other, NAME(name)));
	close(other);
	close(events);
	/* The process's own number is the first choice for each protocol. */
	route = netlink(NETLINK_ROUTE), other = netlink(NETLINK_ROUTE), events = netlink(NETLINK_KOBJECT_UEVENT);
	name = name_of(0);
	T(bind(route, NAME(name)));
	T(bind(events, NAME(name)));
	T(bind(other, NAME(name)));
	IS(own_port(route) == (unsigned)getpid());
	IS(own_port(events) == (unsigned)getpid());
	IS(own_port(other) == (unsigned)getpid());
	close(route);
	close(other);
	close(events);
}

/* More events than a small buffer takes. */
static void flood(void)
{
	for (int i = 0; i < 64; i++)
		put_file("sys/devices/virtual/mem/null/uevent", "change");
}

static void drain(int fd)
{
	char event[4096];
	int events = 0, errors = 0;
	for (;;) {
		ssize_t n = recv(fd, event, sizeof event, 0);
		if (n >= 0) {
			events++;
		} else if (errno == EAGAIN) {
			break;
		} else {
			SAY("%s after %s", err_name(errno), events ? "events" : "nothing");
			errors++;
		}
	}
	SAY("events %s, errors %d", events ? "came" : "did not come", errors);
}

static void losses(void)
{
	int fd = netlink(NETLINK_KOBJECT_UEVENT), small = 2304, on = 1, off = 0;
	struct sockaddr_nl name = name_of(0);
	name.nl_groups = 1;
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small));
	MUST(bind(fd, NAME(name)));
	SAY("losses are told");
	flood();
	IS((events(fd) & (POLLERR | POLLIN)) == (POLLERR | POLLIN));
	drain(fd);
	SAY("once");
	flood();
	SAY("SO_ERROR %s", so_error(fd));
	drain(fd);
	SAY("or not");
	T(setsockopt(fd, 270, NETLINK_NO_ENOBUFS, &on, sizeof on));
	flood();
	IS((events(fd) & (POLLERR | POLLIN)) == POLLIN);
	SAY("SO_ERROR %s", so_error(fd));
	drain(fd);
	T(setsockopt(fd, 270, NETLINK_NO_ENOBUFS, &off, sizeof off));
	flood();
	drain(fd);
	SAY("what was lost before is told still");
	flood();
	T(setsockopt(fd, 270, NETLINK_NO_ENOBUFS, &on, sizeof on));
	drain(fd);
}

int main(void)
{
	ports();
	scratch();
	MUST(mkdir("sys", 0755));
	MUST(mount("sysfs", "sys", "sysfs", 0, NULL));
	losses();
	MUST(umount("sys"));
	return 0;
}
