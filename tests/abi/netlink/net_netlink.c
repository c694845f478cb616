/*
 * Netlink: families and types, names and groups, dumps of links, and addresses with the attributes they have,
 * requests of one link, acknowledgements, refusals, and messages that are wrong in length or type.
 */
#include "net.h"
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

static char buf[65536] __attribute__((aligned(8)));
static int fd;

static void say_name(const char *what, int socket)
{
	struct sockaddr_nl name;
	socklen_t len = sizeof name;
	MUST(getsockname(socket, (struct sockaddr *)&name, &len));
	SAY("%s: %d bytes, pid %s, groups %x", what, (int)len, name.nl_pid == 0 ? "zero" : name.nl_pid == (unsigned)getpid() ? "own" : "other", name.nl_groups);
}

static void say_attributes(struct rtattr *a, int left)
{
	char seen[256] = { 0 };
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		seen[a->rta_type & 0xff] = 1;
	for (int i = 0; i < 256; i++)
		if (seen[i])
			printf(" %d", i);
}

static void say_message(struct nlmsghdr *h)
{
	void *body = NLMSG_DATA(h);
	IS(h->nlmsg_pid == (unsigned)getpid());
	printf("type %d flags %x seq %d", h->nlmsg_type, h->nlmsg_flags, h->nlmsg_seq);
	switch (h->nlmsg_type) {
	case NLMSG_ERROR:
		SAY(" error %s for type %d, %d bytes", ((struct nlmsgerr *)body)->error ? err_name(-((struct nlmsgerr *)body)->error) : "none",
		    ((struct nlmsgerr *)body)->msg.nlmsg_type, h->nlmsg_len);
		break;
	case NLMSG_DONE:
		SAY(" done %d, %d bytes", *(int *)body, h->nlmsg_len);
		break;
	case RTM_NEWLINK: {
		struct ifinfomsg *i = body;
		SAY(" family %d type %d index %d flags %x change %x", i->ifi_family, i->ifi_type, i->ifi_index, i->ifi_flags, i->ifi_change);
		for (struct rtattr *a = IFLA_RTA(i); (char *)a < (char *)h + h->nlmsg_len; a = (struct rtattr *)((char *)a + RTA_ALIGN(a->rta_len)))
			if (a->rta_type == IFLA_IFNAME || a->rta_type == IFLA_QDISC)
				SAY("attribute %d: %s", a->rta_type, (char *)RTA_DATA(a));
			else if (a->rta_type == IFLA_MTU || a->rta_type == IFLA_TXQLEN)
				SAY("attribute %d: %d", a->rta_type, *(int *)RTA_DATA(a));
		break;
	}
	case RTM_NEWADDR: {
		struct ifaddrmsg *i = body;
		printf(" family %d prefix %d flags %x scope %d index %d attributes", i->ifa_family, i->ifa_prefixlen, i->ifa_flags, i->ifa_scope, i->ifa_index);
		say_attributes(IFA_RTA(i), (int)IFA_PAYLOAD(h));
		putchar('\n');
		break;
	}
	case RTM_NEWROUTE: {
		struct rtmsg *r = body;
		printf(" family %d dst %d src %d tos %d table %d protocol %d scope %d type %d flags %x attributes", r->rtm_family, r->rtm_dst_len, r->rtm_src_len,
		       r->rtm_tos, r->rtm_table, r->rtm_protocol, r->rtm_scope, r->rtm_type, r->rtm_flags);
		say_attributes(RTM_RTA(r), (int)RTM_PAYLOAD(h));
		putchar('\n');
		break;
	}
	default:
		SAY(", %d bytes", h->nlmsg_len);
	}
}

static void answers(int s)
{
	for (int done = 0; !done;) {
		struct pollfd p = { s, POLLIN, 0 };
		if (poll(&p, 1, 300) == 0) {
			SAY("no more");
			return;
		}
		int n = (int)recv(s, buf, sizeof buf, MSG_DONTWAIT);
		if (n <= 0) {
			SAY("received %d: %s", n, n < 0 ? err_name(errno) : "");
			return;
		}
		for (struct nlmsghdr *h = (struct nlmsghdr *)buf; NLMSG_OK(h, (unsigned)n); h = NLMSG_NEXT(h, n)) {
			say_message(h);
			done |= h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
		}
	}
}

static long ask(int type, int flags, const void *body, size_t size)
{
	static int seq = 100;
	struct {
		struct nlmsghdr h;
		char body[256];
	} m = { .h = { .nlmsg_len = (unsigned)NLMSG_LENGTH(size), .nlmsg_type = (uint16_t)type, .nlmsg_flags = (uint16_t)flags, .nlmsg_seq = (unsigned)seq++ } };
	memcpy(m.body, body, size);
	return send(fd, &m, m.h.nlmsg_len, 0);
}

#define ASK(type, flags, body) do { SAY("-- " #type ", " #flags ", " #body); T(ask(type, flags, body, sizeof *(body))); answers(fd); } while (0)
#define DUMP (NLM_F_REQUEST | NLM_F_DUMP)

static void sockets(void)
{
	T(close(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)));
	T(close(socket(AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE)));
	T(close(socket(AF_NETLINK, SOCK_STREAM, NETLINK_ROUTE)));
	T(close(socket(AF_NETLINK, SOCK_SEQPACKET, NETLINK_ROUTE)));
	T(socket(AF_NETLINK, SOCK_RAW, -1));
	T(socket(AF_NETLINK, SOCK_RAW, 31));
	T(socket(AF_NETLINK, SOCK_RAW, 32));
	T(close(socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)));
	int a = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), b = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	struct sockaddr_nl name = { .nl_family = AF_NETLINK };
	say_name("fresh", a);
	T(listen(a, 1));
	T(accept(a, NULL, NULL));
	T(shutdown(a, SHUT_RDWR));
	T(recv(a, buf, 1, MSG_DONTWAIT));
	SAY("events %x", events(a));
	T(bind(a, (struct sockaddr *)&name, sizeof name - 1));
	name.nl_family = AF_INET;
	T(bind(a, (struct sockaddr *)&name, sizeof name));
	name.nl_family = AF_NETLINK;
	T(bind(a, (struct sockaddr *)&name, sizeof name));
	say_name("bound", a);
	T(bind(a, (struct sockaddr *)&name, sizeof name));
	name.nl_pid = 123456;
	T(bind(a, (struct sockaddr *)&name, sizeof name));
	name.nl_pid = (unsigned)getpid();
	T(bind(b, (struct sockaddr *)&name, sizeof name));
	name.nl_pid = 0;
	name.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR;
	T(bind(b, (struct sockaddr *)&name, sizeof name));
	say_name("second", b);
	int group = RTNLGRP_IPV4_ROUTE, none = 0, wild = 9999;
	T(setsockopt(b, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group));
	say_name("with a group", b);
	T(setsockopt(b, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof group));
	say_name("without", b);
	T(setsockopt(b, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &none, sizeof none));
	T(setsockopt(b, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &wild, sizeof wild));
	T(setsockopt(b, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &wild, 1));
	T(setsockopt(b, SOL_NETLINK, 99, &wild, sizeof wild));
	socklen_t len = sizeof none;
	T(getsockopt(b, SOL_NETLINK, NETLINK_PKTINFO, &none, &len));
	none = 1;
	T(setsockopt(b, SOL_NETLINK, NETLINK_EXT_ACK, &none, sizeof none));
	none = 0;
	T(getsockopt(b, SOL_NETLINK, NETLINK_EXT_ACK, &none, &len));
	SAY("ext ack %d", none);
	len = 1;
	T(getsockopt(b, SOL_NETLINK, NETLINK_EXT_ACK, &none, &len));
	name.nl_pid = 1;
	name.nl_groups = 0;
	T(connect(b, (struct sockaddr *)&name, sizeof name));
	T(sendto(b, buf, 16, 0, (struct sockaddr *)&name, sizeof name));
	T(sendto(b, buf, 16, 0, (struct sockaddr *)&name, 4));
	close(a), close(b);
}

static void requests(void)
{
	struct rtgenmsg any = { AF_UNSPEC }, four = { AF_INET }, six = { AF_INET6 }, weird = { 99 };
	struct ifinfomsg by_index = { .ifi_index = 1 }, by_none = { .ifi_index = 99 }, zero = { 0 };
	struct ifaddrmsg address4 = { .ifa_family = AF_INET };
	fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	struct sockaddr_nl name = { .nl_family = AF_NETLINK };
	MUST(bind(fd, (struct sockaddr *)&name, sizeof name));
	ASK(RTM_GETLINK, DUMP, &any);
	ASK(RTM_GETLINK, DUMP, &zero);
	ASK(RTM_GETADDR, DUMP, &any);
	ASK(RTM_GETADDR, DUMP, &four);
	ASK(RTM_GETADDR, DUMP, &six);
	ASK(RTM_GETADDR, DUMP, &weird);
	ASK(RTM_GETADDR, DUMP, &address4);
	ASK(RTM_GETLINK, NLM_F_REQUEST, &by_index);
	ASK(RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, &by_index);
	ASK(RTM_GETLINK, NLM_F_REQUEST, &by_none);
	ASK(RTM_GETLINK, NLM_F_REQUEST, &zero);
	ASK(RTM_GETLINK, NLM_F_REQUEST, &any);
	ASK(RTM_GETADDR, NLM_F_REQUEST, &any);
	ASK(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, &by_none);
	ASK(RTM_DELLINK, NLM_F_REQUEST | NLM_F_ACK, &by_none);
	ASK(RTM_GETLINK, 0, &by_index);
	ASK(RTM_GETLINK, NLM_F_ACK, &by_index);
	ASK(NLMSG_NOOP, NLM_F_REQUEST | NLM_F_ACK, &by_index);
	ASK(NLMSG_DONE, NLM_F_REQUEST, &by_index);
	ASK(200, NLM_F_REQUEST, &by_index);
	ASK(9999, NLM_F_REQUEST, &by_index);
	ASK(RTM_NEWLINK, NLM_F_REQUEST, &any);
	SAY("-- lengths");
	T(send(fd, buf, 0, 0));
	T(send(fd, buf, 1, 0));
	memset(buf, 0, 64);
	struct nlmsghdr *h = (struct nlmsghdr *)buf;
	h->nlmsg_type = RTM_GETLINK;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	static const unsigned lens[] = { 0, 1, 15, 16, 17, 33, 64, 65, 0xffffffff };
	for (unsigned i = 0; i < 9; i++) {
		h->nlmsg_len = lens[i];
		h->nlmsg_type = RTM_GETLINK;
		h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
		SAY("length %x: %ld", lens[i], (long)send(fd, buf, 64, 0));
		answers(fd);
		memset(buf, 0, 64);
	}
	T(send(fd, buf, 300000, MSG_DONTWAIT));
	close(fd);
	CHILD("without privilege") {
		MUST(setuid(1000));
		fd = (int)MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
		name.nl_pid = 0;
		MUST(bind(fd, (struct sockaddr *)&name, sizeof name));
		ASK(RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, &by_index);
		ASK(RTM_GETLINK, NLM_F_REQUEST, &by_none);
		name.nl_pid = 1;
		T(connect(fd, (struct sockaddr *)&name, sizeof name));
	} END;
}

int main(void)
{
	net_up();
	sockets();
	requests();
	return 0;
}
