/*
 * batches: what a system call costs, and what is gained by doing more in each.
 *
 * The article "What a syscall actually costs" measures a raw getpid, and names the calls that do several things at once. Here 16 bytes are
 * the thing, in batches of 1, 8 and 64; a rung's time is that of one thing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "experiments/experiment.h"
#include "experiments/syscall/ring.h"

enum { PIECE = 16, MOST = 64 };

static char bytes[MOST][PIECE];
static struct iovec pieces[MOST];
static struct mmsghdr messages[MOST];
static int file, ends[2];
static struct ring ring;

static void pwrites(int batch)
{
	for (int i = 0; i < batch; i++)
		must(pwrite(file, bytes[i], PIECE, i * PIECE) == PIECE, "pwrite");
}

static void pwritevs(int batch)
{
	must(pwritev(file, pieces, batch, 0) == batch * PIECE, "pwritev");
}

static void preads(int batch)
{
	for (int i = 0; i < batch; i++)
		must(pread(file, bytes[i], PIECE, i * PIECE) == PIECE, "pread");
}

static void preadvs(int batch)
{
	must(preadv(file, pieces, batch, 0) == batch * PIECE, "preadv");
}

/* Two UDP sockets of the loopback device, which nobody has switched on before the first process. */
static void connect_ends(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof at;
	ends[0] = socket(AF_INET, SOCK_DGRAM, 0);
	ends[1] = socket(AF_INET, SOCK_DGRAM, 0);
	if (getpid() == 1)
		must(ioctl(ends[0], SIOCSIFFLAGS, &lo) == 0, "the loopback device");
	must(bind(ends[1], (struct sockaddr *)&at, len) == 0, "bind");
	must(getsockname(ends[1], (struct sockaddr *)&at, &len) == 0, "getsockname");
	must(connect(ends[0], (struct sockaddr *)&at, len) == 0, "connect");
}

/* The other end takes all with one call, whatever they were sent with. */
static void receive(int batch)
{
	must(recvmmsg(ends[1], messages, (unsigned)batch, 0, NULL) == batch, "recvmmsg");
}

static void sendtos(int batch)
{
	for (int i = 0; i < batch; i++)
		must(sendto(ends[0], bytes[i], PIECE, 0, NULL, 0) == PIECE, "sendto");
	receive(batch);
}

static void sendmmsgs(int batch)
{
	must(sendmmsg(ends[0], messages, (unsigned)batch, 0) == batch, "sendmmsg");
	receive(batch);
}

static void ring_nops(int batch)
{
	for (int i = 0; i < batch; i++)
		ring_add(&ring, IORING_OP_NOP, -1, NULL, 0, 0);
	ring_do(&ring, (unsigned)batch, 0);
}

static void ring_reads(int batch)
{
	for (int i = 0; i < batch; i++)
		ring_add(&ring, IORING_OP_READ, file, bytes[i], PIECE, (unsigned long)(i * PIECE));
	ring_do(&ring, (unsigned)batch, PIECE);
}

static void ring_writes(int batch)
{
	for (int i = 0; i < batch; i++)
		ring_add(&ring, IORING_OP_WRITE, file, bytes[i], PIECE, (unsigned long)(i * PIECE));
	ring_do(&ring, (unsigned)batch, PIECE);
}

static void measure(const char *name, void (*work)(int batch))
{
	static const int batches[] = { 1, 8, 64 };
	for (int i = 0; i < 3; i++) {
		char row[64];
		int batch = batches[i];
		long rounds = calls(1000000) / batch + 1;
		work(batch);
		int64_t start = now_ns();
		for (long round = 0; round < rounds; round++)
			work(batch);
		snprintf(row, sizeof row, "%s-%d", name, batch);
		rung(row, rounds * batch, now_ns() - start);
	}
}

int main(int argc, char **argv)
{
	experiment_begin(argc, argv);
	for (int i = 0; i < MOST; i++) {
		pieces[i] = (struct iovec){ bytes[i], PIECE };
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &pieces[i], .msg_iovlen = 1 };
	}
	file = open("/tmp/batches", O_RDWR | O_CREAT | O_TRUNC, 0600);
	must(file >= 0 && pwritev(file, pieces, MOST, 0) == MOST * PIECE, "/tmp/batches");
	connect_ends();

	long count = calls(10000000);
	int64_t start = now_ns();
	for (long i = 0; i < count; i++)
		syscall(SYS_getpid);
	rung("getpid", count, now_ns() - start);
	measure("pwrite", pwrites);
	measure("pwritev", pwritevs);
	measure("pread", preads);
	measure("preadv", preadvs);
	measure("sendto", sendtos);
	measure("sendmmsg", sendmmsgs);
	ring_open(&ring, MOST);
	measure("ring-nop", ring_nops);
	measure("ring-read", ring_reads);
	measure("ring-write", ring_writes);
	experiment_end();
	return 0;
}
