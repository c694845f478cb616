/*
 * SO_ATTACH_FILTER, SO_DETACH_FILTER, SO_LOCK_FILTER, SO_GET_FILTER: which programs are taken, what they count
 * for a socket, who may change them, and what a socket tells of its own; on sockets of every family.
 */
#include "socket_filter.h"

static int one(uint16_t code, uint32_t k)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	/* Every cell is written, and jumps have somewhere to go. */
	struct sock_filter program[40];
	for (uint32_t i = 0; i < 16; i++)
		program[i] = (struct sock_filter)BPF_STMT(BPF_ST, i);
	program[16] = (struct sock_filter){ code, 0, 0, k };
	for (size_t i = 17; i < LEN(program); i++)
		program[i] = (struct sock_filter)RET(1);
	int taken = attach(fd, program, LEN(program)) == 0;
	if (!taken && errno != EINVAL)
		SAY("code %x: %s", code, err_name(errno));
	close(fd);
	return taken;
}

static void opcodes(void)
{
	for (uint32_t code = 0; code < 0x200; code++) {
		uint32_t ks[] = { 0, 1, 15, 16, 31, 32, 21, 22, 23 };
		unsigned taken = 0;
		for (size_t i = 0; i < LEN(ks); i++)
			taken |= (unsigned)one((uint16_t)code, ks[i]) << i;
		if (taken)
			SAY("code %x: %x", code, taken);
	}
	for (uint32_t size = 0; size < 3; size++)
		for (int at = -4; at < 72; at++)
			printf("%d%s", one((uint16_t)(BPF_LD | BPF_ABS | size << 3), (uint32_t)(SKF_AD_OFF + at)), at == 71 ? "\n" : "");
	SAY("%d %d %d", one(0x20, (uint32_t)SKF_NET_OFF), one(0x20, (uint32_t)SKF_LL_OFF), one(0x20, (uint32_t)SKF_LL_OFF - 1));
}

static void arguments(int fd)
{
	struct sock_filter all = RET(-1);
	struct sock_fprog program = { 1, &all }, none = { 0, &all }, nowhere = { 1, NULL }, bad = { 1, NON_CANONICAL };
	struct sock_fprog many = { 4097, &all };
	int zero = 0;
	T(DETACH(fd));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program - 1));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program + 1));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, 3));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, -1));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, NON_CANONICAL, sizeof program));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, NON_CANONICAL, 5));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &none, sizeof none));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &nowhere, sizeof nowhere));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &bad, sizeof bad));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &many, sizeof many));
	T(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &zero, 3));
	T(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, NON_CANONICAL, 4));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &zero, 3));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &zero, 8));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &fd, 4));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &(int){ -1 }, 4));
}

static void told(int fd)
{
	struct sock_filter got[8] = { 0 };
	T(get_filter(fd, got, sizeof got));
	T(ATTACH(fd, LOAD(BPF_B, 3), TOLD(SKF_AD_PROTOCOL), RETA));
	T(get_filter(fd, got, 0));
	T(get_filter(fd, NON_CANONICAL, 0));
	T(get_filter(fd, got, 2));
	T(get_filter(fd, NON_CANONICAL, 3));
	T(get_filter(fd, got, 3));
	for (int i = 0; i < 4; i++)
		SAY("%x %d %d %x", got[i].code, got[i].jt, got[i].jf, got[i].k);
	T(get_filter(fd, got, 100));
	socklen_t len = (socklen_t)-1;
	T(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, got, &len));
	T(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, got, NULL));
	T(DETACH(fd));
	T(get_filter(fd, got, 100));
	T(DETACH(fd));
}

static int locked(int fd)
{
	int value = -1;
	socklen_t len = sizeof value;
	return getsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &value, &len) == 0 ? value : -1;
}

static void locks(int fd)
{
	struct sock_fprog wrong = { 0, NULL };
	int on = 7, off = 0;
	T(locked(fd));
	T(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof off));
	T(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, 3));
	T(ATTACH(fd, RET(-1)));
	T(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof on));
	T(locked(fd));
	T(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof on));
	T(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof off));
	T(ATTACH(fd, RET(-1)));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &wrong, sizeof wrong));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &wrong, 7));
	T(setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &(int){ -1 }, 4));
	T(DETACH(fd));
	T(get_filter(fd, NULL, 0));
}

/* The most instructions of a kind that a socket takes, behind which one returns. */
static int most(struct sock_filter of, struct sock_filter before)
{
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0)), low = 0, high = 4096;
	struct sock_filter program[4096];
	while (low < high) {
		int half = (low + high + 1) / 2, n = 0;
		program[n++] = before;
		while (n < half)
			program[n++] = of;
		program[n - 1] = (struct sock_filter)RET(1);
		if (attach(fd, program, (size_t)n) == 0) {
			low = half;
			MUST(DETACH(fd));
		} else {
			if (errno != ENOMEM)
				SAY("%s", err_name(errno));
			high = half - 1;
		}
	}
	close(fd);
	return low;
}
#define MOST(...) SAY("at most %d of %s", most((struct sock_filter)__VA_ARGS__, (struct sock_filter)A(1)), #__VA_ARGS__)

static void charged(void)
{
	MOST(A(1));
	MOST(LOAD(BPF_W, 0));
	MOST(LOAD(BPF_W, 1));
	MOST(LOAD(BPF_H, 0x7fff));
	MOST(LOAD(BPF_H, 0x8000));
	MOST(LOAD(BPF_B, 1));
	MOST(LOAD(BPF_B, SKF_NET_OFF));
	MOST(LOADX(BPF_W, 0));
	MOST(LOADX(BPF_B, 5));
	MOST(BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0));
	MOST(BPF_STMT(BPF_ALU | BPF_MOD | BPF_X, 0));
	MOST(TOLD(SKF_AD_IFINDEX));
	MOST(TOLD(SKF_AD_CPU));
	MOST(TOLD(SKF_AD_VLAN_TAG_PRESENT));
	/* The old one and the new one count until one is there. */
	int fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	static struct sock_filter long_one[900];
	for (size_t i = 0; i < LEN(long_one); i++)
		long_one[i] = (struct sock_filter)LOAD(BPF_W, 1);
	long_one[LEN(long_one) - 1] = (struct sock_filter)RET(1);
	T(attach(fd, long_one, 900));
	long_one[299] = (struct sock_filter)RET(1);
	T(attach(fd, long_one, 300));
	long_one[199] = (struct sock_filter)RET(1);
	T(attach(fd, long_one, 200));
	long_one[199] = (struct sock_filter)LOAD(BPF_W, 1);
	T(attach(fd, long_one, 300));
	close(fd);
}

int main(void)
{
	net_up();
	opcodes();
	static const int kinds[][3] = { { AF_INET, SOCK_DGRAM, 0 }, { AF_INET6, SOCK_STREAM, 0 }, { AF_UNIX, SOCK_DGRAM, 0 },
		{ AF_UNIX, SOCK_STREAM, 0 }, { AF_NETLINK, SOCK_RAW, 0 }, { AF_INET, SOCK_RAW, IPPROTO_ICMP } };
	for (size_t i = 0; i < LEN(kinds); i++) {
		SAY("-- %d %d", kinds[i][0], kinds[i][1]);
		int fd = (int)MUST(socket(kinds[i][0], kinds[i][1], kinds[i][2]));
		arguments(fd);
		told(fd);
		locks(fd);
		close(fd);
	}
	charged();
	return 0;
}
