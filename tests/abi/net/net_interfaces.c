/*
 * Requests about network interfaces on sockets of every family (if_nametoindex asks on one of AF_UNIX): names, numbers,
 * flags and sizes are told anywhere, addresses on sockets of the internet only.
 */
#include "check.h"
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static void ask(const char *family, int fd)
{
	static const struct {
		const char *name;
		unsigned long request;
	} requests[] = { { "GIFINDEX", SIOCGIFINDEX }, { "GIFFLAGS", SIOCGIFFLAGS }, { "GIFMTU", SIOCGIFMTU },
		{ "GIFHWADDR", SIOCGIFHWADDR }, { "GIFTXQLEN", SIOCGIFTXQLEN }, { "GIFMETRIC", SIOCGIFMETRIC },
		{ "GIFADDR", SIOCGIFADDR }, { "GIFNETMASK", SIOCGIFNETMASK }, { "unknown", 0x89d0 } };
	struct ifreq request;
	SAY("-- %s", family);
	for (unsigned i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		memset(&request, 0, sizeof request);
		strcpy(request.ifr_name, "lo");
		/* whether the loopback is up, and so has addresses, is the system's matter */
		long result = ioctl(fd, requests[i].request, &request);
		SAY("%s: %s", requests[i].name, result == 0 || errno == EADDRNOTAVAIL ? "told" : err_name(errno));
		if (requests[i].request == SIOCGIFFLAGS)
			SAY("loopback %d", (request.ifr_flags & IFF_LOOPBACK) != 0);
		if (requests[i].request == SIOCGIFMTU)
			SAY("mtu %d", request.ifr_mtu);
		memset(&request, 0, sizeof request);
		strcpy(request.ifr_name, "nosuch0");
		T(ioctl(fd, requests[i].request, &request));
	}
	memset(&request, 0, sizeof request);
	request.ifr_ifindex = 1;
	T(ioctl(fd, SIOCGIFNAME, &request));
	SAY("%s", request.ifr_name);
	request.ifr_ifindex = 99;
	T(ioctl(fd, SIOCGIFNAME, &request));
	struct ifconf list = { .ifc_len = 0, .ifc_buf = NULL };
	T(ioctl(fd, SIOCGIFCONF, &list));
	T(ioctl(fd, SIOCGIFINDEX, NULL));
	close(fd);
}

int main(void)
{
	ask("AF_UNIX, datagrams", (int)MUST(socket(AF_UNIX, SOCK_DGRAM, 0)));
	ask("AF_UNIX, stream", (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0)));
	ask("AF_INET", (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)));
	ask("AF_INET6", (int)MUST(socket(AF_INET6, SOCK_DGRAM, 0)));
	char name[IF_NAMESIZE] = "";
	T(if_nametoindex("lo"));
	T(if_nametoindex("nosuch0"));
	SAY("%s", if_indextoname(1, name) ? name : err_name(errno));
	SAY("%s", if_indextoname(77, name) ? name : err_name(errno));
	return 0;
}
