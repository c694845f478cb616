/*
 * batches: what a system call costs, and what is gained by doing more in each.
 *
 * The article "What a syscall actually costs" measures a raw getpid, and names the calls that do several things at once. Here 16 bytes are
 * the thing, in batches of 1, 8 and 64; a rung's time is that of one thing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/tcp.h>
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
static int file, ends[2], pipe_ends[2], echo_ends[2];
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

/* What the ring reads is written with one call. */
static void ring_pipes(int batch)
{
	must(write(pipe_ends[1], bytes, (size_t)batch * PIECE) == batch * PIECE, "write to the pipe");
	for (int i = 0; i < batch; i++)
		ring_add(&ring, IORING_OP_READ, pipe_ends[0], bytes[i], PIECE, 0);
	ring_do(&ring, (unsigned)batch, PIECE);
}

/* Two ends of a TCP connection over the loopback device. */
static void connect_echo(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	must(bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (struct sockaddr *)&at, &len) == 0, "getsockname");
	echo_ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(echo_ends[0], (struct sockaddr *)&at, len) == 0, "connect");
	echo_ends[1] = accept(listener, NULL, NULL);
	must(echo_ends[1] >= 0, "accept");
	for (int i = 0; i < 2; i++)
		must(setsockopt(echo_ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0, "TCP_NODELAY");
	close(listener);
}

/* There and back: four entries, each of which waits for the one before. */
static void ring_echoes(int batch)
{
	for (int i = 0; i < batch; i++) {
		ring_add(&ring, IORING_OP_SEND, echo_ends[0], bytes[i], PIECE, 0)->flags = IOSQE_IO_LINK;
		ring_add(&ring, IORING_OP_RECV, echo_ends[1], bytes[i], PIECE, 0)->flags = IOSQE_IO_LINK;
		ring_add(&ring, IORING_OP_SEND, echo_ends[1], bytes[i], PIECE, 0)->flags = IOSQE_IO_LINK;
		ring_add(&ring, IORING_OP_RECV, echo_ends[0], bytes[i], PIECE, 0);
	}
	ring_do(&ring, 4 * (unsigned)batch, PIECE);
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
	ring_open(&ring, 4 * MOST);
	must(pipe(pipe_ends) == 0, "pipe");
	connect_echo();
	measure("ring-nop", ring_nops);
	measure("ring-read", ring_reads);
	measure("ring-write", ring_writes);
	measure("ring-pipe", ring_pipes);
	measure("ring-echo", ring_echoes);
	experiment_end();
	return 0;
}
