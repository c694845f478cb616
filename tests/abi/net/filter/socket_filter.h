/* What the programs about filters of sockets share: their instructions, and attaching them. */
#include "net.h"
#include <linux/filter.h>

#define LEN(a) (sizeof(a) / sizeof *(a))
#define LOAD(size, at) BPF_STMT(BPF_LD | (size) | BPF_ABS, (uint32_t)(at))
#define LOADX(size, at) BPF_STMT(BPF_LD | (size) | BPF_IND, (uint32_t)(at))
#define RET(what) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(what))
#define RETA BPF_STMT(BPF_RET | BPF_A, 0)
#define A(what) BPF_STMT(BPF_LD | BPF_IMM, (uint32_t)(what))
#define X(what) BPF_STMT(BPF_LDX | BPF_IMM, (uint32_t)(what))
#define TOLD(what) LOAD(BPF_W, SKF_AD_OFF + (what))

static UNUSED int attach(int fd, const struct sock_filter *filter, size_t len)
{
	struct sock_fprog program = { (unsigned short)len, (struct sock_filter *)filter };
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}
#define ATTACH(fd, ...) ({ struct sock_filter f_[] = { __VA_ARGS__ }; attach(fd, f_, LEN(f_)); })
#define DETACH(fd) setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){ 0 }, sizeof(int))

/* The answer of getsockopt: the number of instructions. */
static UNUSED int get_filter(int fd, void *to, socklen_t room)
{
	socklen_t len = room;
	return getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, to, &len) == 0 ? (int)len : -1;
}

/* What of these events comes as long as a segment may take to be sent again, and what is there at once. */
static UNUSED int in_time(int fd, short events)
{
	struct pollfd p = { fd, events, 0 };
	return poll(&p, 1, 20000) == 1 ? p.revents & events : 0;
}

static UNUSED int at_once(int fd, short events)
{
	struct pollfd p = { fd, events, 0 };
	return poll(&p, 1, 60);
}
