/*
 * Several threads do to the same sockets whatever comes to mind: send and receive in all ways, look, pass descriptors of sockets through
 * sockets, ask for credentials or not, shut down, close and replace. Nothing hangs, and when all is closed nothing is left (the
 * runner counts).
 */
#include "../net.h"
#include "rights.h"
#include <pthread.h>
#include <sys/un.h>

#define THREADS 4
#define PAIRS 6
#define ROUNDS 3000

static int pairs[PAIRS][2];
static const int kinds[PAIRS] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM, 0, SOCK_STREAM };

static void replace(int at)
{
	int fresh[2];
	if (kinds[at] == 0)
		connection(&fresh[0], &fresh[1]);
	else if (socketpair(AF_UNIX, kinds[at], 0, fresh))
		return;
	for (int i = 0; i < 2; i++) {
		int old = __atomic_exchange_n(&pairs[at][i], fresh[i], __ATOMIC_SEQ_CST);
		if (old >= 0)
			close(old);
	}
}

static int any(unsigned *seed)
{
	return __atomic_load_n(&pairs[rand_r(seed) % PAIRS][rand_r(seed) % 2], __ATOMIC_SEQ_CST);
}

static void pass(int fd, unsigned *seed)
{
	char bytes[3000] = { 0 };
	int fds[3] = { any(seed), any(seed), fd };
	send_fds(fd, bytes, 1 + (size_t)rand_r(seed) % sizeof bytes, fds, 3, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take(int fd, int flags, unsigned *seed)
{
	char bytes[4000], control[256];
	struct iovec iov[2] = { { bytes, (size_t)rand_r(seed) % 2000 }, { bytes + 2000, (size_t)rand_r(seed) % 2000 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = (size_t)rand_r(seed) % sizeof control };
	if (recvmsg(fd, &msg, flags | MSG_DONTWAIT) < 0)
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int got;
			memcpy(&got, CMSG_DATA(c) + sizeof got * i, sizeof got);
			close(got);
		}
	}
}

static void *attack(void *number)
{
	unsigned seed = 1 + (unsigned)(intptr_t)number;
	char bytes[5000] = { 0 };
	static const int flags[] = { 0, MSG_PEEK, MSG_WAITALL, MSG_PEEK | MSG_WAITALL, MSG_TRUNC, MSG_OOB };
	for (int i = 0; i < ROUNDS; i++) {
		int fd = any(&seed), value = rand_r(&seed) % 2;
		switch (rand_r(&seed) % 12) {
		case 0:
		case 1:
			send(fd, bytes, (size_t)rand_r(&seed) % sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
			break;
		case 2:
			pass(fd, &seed);
			break;
		case 3:
		case 4:
		case 5:
			take(fd, flags[rand_r(&seed) % 6], &seed);
			break;
		case 6:
			setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &value, sizeof value);
			break;
		case 7:
			events(fd);
			break;
		case 8:
			recv(fd, NON_CANONICAL, 100, MSG_DONTWAIT);
			break;
		case 9:
			ioctl(fd, 0x541B /* FIONREAD */, &value);
			setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &value, sizeof value);
			send(fd, bytes, 10, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_OOB);
			break;
		case 10:
			if (rand_r(&seed) % 16 == 0)
				shutdown(fd, rand_r(&seed) % 3);
			break;
		default:
			if (rand_r(&seed) % 32 == 0)
				replace(rand_r(&seed) % PAIRS);
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	signal(SIGPIPE, SIG_IGN);
	alarm(LONG_MS / 1000);
	net_up();
	memset(pairs, -1, sizeof pairs);
	for (int i = 0; i < PAIRS; i++)
		replace(i);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&threads[i], NULL, attack, (void *)(intptr_t)i) == 0 ? 0 : -1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PAIRS; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
	SAY("all threads came to their end");
	return 0;
}
