/*
 * fuzz_more.h: attacks of fuzz.c on what several tasks have together: internet sockets, watched files, descriptors of
 * processes, locks that lend priority, restartable sequences.
 */
#ifndef ALEA_FUZZ_MORE_H
#define ALEA_FUZZ_MORE_H

#include "fuzz_calls.h"
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/rseq.h>

/* ---- AF_INET ---- */

static int inet_fds[12];

static void inet_address(struct sockaddr_in6 *a, socklen_t *len, int family)
{
	static const uint16_t ports[] = { 0, 1, 80, 7001, 7002, 7003, 65535 };
	memset(a, 0, sizeof *a);
	if (family == AF_INET) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)a;
		v4->sin_family = AF_INET;
		v4->sin_port = htons(PICK(ports));
		v4->sin_addr.s_addr = one_in(6) ? (uint32_t)draw() : one_in(4) ? 0 : htonl(INADDR_LOOPBACK);
		*len = one_in(12) ? (socklen_t)below(30) : sizeof *v4;
	} else {
		a->sin6_family = AF_INET6;
		a->sin6_port = htons(PICK(ports));
		a->sin6_addr = one_in(4) ? in6addr_any : in6addr_loopback;
		*len = one_in(12) ? (socklen_t)below(40) : sizeof *a;
	}
	if (one_in(30))
		a->sin6_family = (sa_family_t)below(20);
}

static void inet_step(void)
{
	static char buffer[70000];
	unsigned k = (unsigned)below(COUNT(inet_fds));
	int fd = inet_fds[k], family = one_in(3) ? AF_INET6 : AF_INET;
	struct sockaddr_in6 address;
	socklen_t len;
	inet_address(&address, &len, family);
	size_t n = one_in(8) ? sizeof buffer : below(3000);
	TELL("[%d] inet step on %d\n", getpid(), fd);
	switch (below(18)) {
	case 0:
	case 1:
		if (fd > 0)
			close(fd);
		inet_fds[k] = socket(family, (one_in(2) ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK, one_in(10) ? (int)below(260) : 0);
		break;
	case 2: case 3: bind(fd, (void *)&address, len); break;
	case 4: listen(fd, (int)below(4) - 1); break;
	case 5: case 6: connect(fd, (void *)&address, len); break;
	case 7: {
		int c = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
		if (c > 0) {
			unsigned to = (unsigned)below(COUNT(inet_fds));
			close(inet_fds[to]);
			inet_fds[to] = c;
		}
		break;
	}
	case 8: case 9: send(fd, buffer, n, MSG_NOSIGNAL | (one_in(4) ? (int)(1u << below(20)) : 0)); break;
	case 10: case 11: recv(fd, buffer, n, MSG_DONTWAIT | (one_in(4) ? (int)(1u << below(20)) : 0)); break;
	case 12: sendto(fd, buffer, n, MSG_NOSIGNAL, (void *)&address, len); break;
	case 13: shutdown(fd, (int)below(4)); break;
	case 14: {
		int value = one_in(3) ? (int)draw() : (int)below(3);
		setsockopt(fd, one_in(2) ? SOL_SOCKET : one_in(2) ? IPPROTO_TCP : (int)below(60), (int)below(70), &value, (socklen_t)below(9));
		break;
	}
	case 15: {
		len = (socklen_t)below(64);
		getsockopt(fd, one_in(2) ? SOL_SOCKET : IPPROTO_TCP, (int)below(70), buffer, &len);
		getsockname(fd, (void *)buffer, &len);
		getpeername(fd, (void *)buffer, &len);
		break;
	}
	case 16: {
		struct linger l = { 1, (int)below(2) };
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
		ioctl(fd, one_in(2) ? FIONREAD : (unsigned long)(0x8900 + below(64)), buffer);
		break;
	}
	default: {
		struct pollfd p[12];
		for (unsigned i = 0; i < 12; i++)
			p[i] = (struct pollfd){ inet_fds[i], (short)draw(), 0 };
		poll(p, 12, (int)below(3));
	}
	}
}

static void *inet_thread(void *seed)
{
	state = (u64)seed;
	for (int i = 0; i < 400; i++)
		inet_step();
	return NULL;
}

/* Sockets of both families, their threads and children, all on the same few ports. */
static void internet(void)
{
	pthread_t t;
	if (one_in(2))
		pthread_create(&t, NULL, inet_thread, (void *)draw());
	if (one_in(3))
		fork();
	inet_thread((void *)draw());
}

/* ---- inotify ---- */

static int watch_fds[3];

static void watch_step(void)
{
	static const char *const names[] = { ".", "w", "w/a", "w/b", "w/c", "w/d", "w/d/e", "/dev", "/proc/self" };
	static __thread char buffer[4096];
	const char *a = PICK(names), *b = PICK(names);
	int fd = PICK(watch_fds);
	TELL("[%d] watch step %s %s\n", getpid(), a, b);
	switch (below(18)) {
	case 0: case 1: case 2: inotify_add_watch(fd, a, (uint32_t)(one_in(3) ? draw() & 0xf7ffffff : IN_ALL_EVENTS)); break;
	case 3: inotify_rm_watch(fd, (int)below(40)); break;
	case 4: case 5: read(fd, buffer, one_in(3) ? below(64) : sizeof buffer); break;
	case 6: mkdir(a, 0777); break;
	case 7: close(open(a, O_RDWR | O_CREAT, 0666)); break;
	case 8: unlink(a); break;
	case 9: rmdir(a); break;
	case 10: case 11: rename(a, b); break;
	case 12: link(a, b); break;
	case 13: syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2); break;
	case 14: {
		unsigned k = (unsigned)below(COUNT(watch_fds));
		close(watch_fds[k]);
		watch_fds[k] = inotify_init1(IN_NONBLOCK);
		break;
	}
	case 15:
		if (is_root && mount("none", "w", "tmpfs", 0, "") == 0 && one_in(2))
			umount2("w", MNT_DETACH);
		break;
	case 16: umount2("w", (int)below(4)); break;
	default: {
		int f = open(a, O_RDWR);
		write(f, "x", 1);
		ftruncate(f, (off_t)below(10));
		fchmod(f, 0666);
		close(f);
	}
	}
}

static void *watch_thread(void *seed)
{
	state = (u64)seed;
	for (int i = 0; i < 500; i++)
		watch_step();
	return NULL;
}

/* Names that come, go and move under watches that come and go. */
static void watches(void)
{
	pthread_t t[2];
	mkdir("w", 0777);
	for (unsigned i = 0; i < COUNT(watch_fds); i++)
		watch_fds[i] = inotify_init1(IN_NONBLOCK);
	for (unsigned i = 0; i < COUNT(t); i++)
		pthread_create(&t[i], NULL, watch_thread, (void *)draw());
	if (one_in(3))
		fork();
	watch_thread((void *)draw());
}

/* ---- pidfds ---- */

static int pid_fds[8];

static void *short_life(void *arg)
{
	for (u64 i = (u64)arg % 5; i > 0; i--)
		sched_yield();
	return NULL;
}

static void process_step(void)
{
	unsigned k = (unsigned)below(COUNT(pid_fds));
	int fd = pid_fds[k];
	switch (below(9)) {
	case 0: {
		close(fd);
		pid_t pid = one_in(3) ? getpid() + (int)below(6) : getpid();
		pid_fds[k] = (int)syscall(SYS_pidfd_open, pid, (one_in(2) ? O_EXCL : 0) | (one_in(3) ? O_NONBLOCK : 0));
		break;
	}
	case 1: {
		pthread_t t;
		if (pthread_create(&t, NULL, short_life, (void *)draw()) == 0)
			pthread_detach(t);
		break;
	}
	case 2: {
		int out = -1;
		u64 args[8] = { CLONE_PIDFD, (u64)&out, 0, 0, SIGCHLD, 0, 0, 0 };
		long pid = syscall(435, args, 64UL);
		if (pid == 0) {
			if (one_in(2))
				for (int i = 0; i < 3; i++)
					sched_yield();
			_exit(0);
		}
		close(fd);
		pid_fds[k] = out;
		break;
	}
	case 3: case 4: syscall(SYS_pidfd_send_signal, fd, one_in(3) ? (int)below(65) : 0, NULL, one_in(3) ? (int)below(8) : 0); break;
	case 5: {
		siginfo_t si;
		waitid((idtype_t)3, (id_t)fd, &si, WEXITED | WNOHANG);
		break;
	}
	case 6: {
		struct pollfd p = { fd, POLLIN, 0 };
		poll(&p, 1, (int)below(3));
		break;
	}
	case 7: close((int)syscall(SYS_pidfd_getfd, fd, (int)below(10), 0)); break;
	default:
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

static void handles(void)
{
	for (int s = 1; s < 32; s++)
		signal(s, SIG_IGN);
	for (int i = 0; i < 400; i++)
		process_step();
}

/* ---- futexes that lend priority ---- */

static uint32_t *pi_words;

static void pi_step(void)
{
	uint32_t *word = pi_words + below(4), *other = pi_words + below(4);
	struct timespec at;
	int flag = one_in(3) ? 0 : FUTEX_PRIVATE_FLAG;
	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += (long)below(3000000);
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	TELL("[%d] pi step on word %d\n", getpid(), (int)(word - pi_words));
	switch (below(14)) {
	case 0: case 1: case 2: syscall(SYS_futex, word, FUTEX_LOCK_PI | flag, 0, &at, NULL, 0); break;
	case 3: syscall(SYS_futex, word, FUTEX_TRYLOCK_PI | flag, 0, NULL, NULL, 0); break;
	case 4: case 5: case 6: syscall(SYS_futex, word, FUTEX_UNLOCK_PI | flag, 0, NULL, NULL, 0); break;
	case 7: case 8: syscall(SYS_futex, word, FUTEX_WAIT_REQUEUE_PI | FUTEX_CLOCK_REALTIME | flag, *word, &at, other, 0); break;
	case 9: syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PI | flag, 1, below(3), other, *word); break;
	case 10: syscall(SYS_futex, word, (one_in(2) ? FUTEX_WAKE : FUTEX_CMP_REQUEUE) | flag, 1, 1L, other, *word); break;
	case 11: *word = one_in(2) ? 0 : (uint32_t)draw() & 0xc000ffff; break;
	case 12: {
		struct timespec soon = { 0, (long)below(2000000) };
		syscall(SYS_futex, word, FUTEX_WAIT | flag, *word, &soon, NULL, 0);
		break;
	}
	default: {
		struct sched_param p = { .sched_priority = (int)below(4) };
		sched_setscheduler(0, p.sched_priority ? SCHED_RR : SCHED_OTHER, &p);
	}
	}
}

static void *pi_thread(void *seed)
{
	state = (u64)seed;
	for (u64 i = 20 + below(150); i > 0; i--)
		pi_step();
	return NULL;
}

/* Threads and processes lock, unlock, requeue and die with the same few words, which somebody spoils. */
static void lenders(void)
{
	pthread_t t;
	pi_words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 3; i++)
		if (one_in(3) && fork() == 0)
			break;
	for (int i = 0; i < 12; i++)
		if (pthread_create(&t, NULL, pi_thread, (void *)draw()) == 0)
			pthread_detach(t);
	pi_thread((void *)draw());
	if (one_in(4))
		munmap(pi_words, PAGE);
	pi_thread((void *)draw());
}

/* ---- rseq ---- */

static void rseq_signal(int signal)
{
	(void)signal;
}

static void *sequence_thread(void *seed)
{
	/* Room for a structure and a descriptor, both spoilt at will. */
	uint64_t *area = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	state = (u64)seed;
	if (area == MAP_FAILED)
		return NULL;
	/* The C library's own makes room. */
	syscall(334, (char *)__builtin_thread_pointer() + __rseq_offset, 32, 1, 0x53053053);
	for (int i = 0; i < 60; i++) {
		uint64_t *cs = area + 64;
		TELL("[%d] rseq step\n", getpid());
		switch (below(8)) {
		case 0: syscall(334, area + below(9), one_in(3) ? (long)below(80) : 32, (long)below(3), 7); break;
		case 1: syscall(334, area, 32, 0, 7); break;
		case 2: syscall(334, area, 32, 1, 7); break;
		case 3:
			cs[0] = one_in(4) ? draw() : 0;
			cs[1] = one_in(3) ? draw() : (u64)sequence_thread;
			cs[2] = one_in(3) ? draw() : 256;
			cs[3] = one_in(3) ? draw() : (u64)(area + 100);
			((uint32_t *)(area + 100))[-1] = 7;
			area[1] = one_in(4) ? draw() : (u64)cs;
			break;
		case 4: sched_yield(); break;
		case 5: raise(SIGUSR1); break;
		case 6:
			if (one_in(10))
				mprotect(area, PAGE, (int)below(4));
			break;
		default:
			if (one_in(4) && fork() == 0)
				_exit(0);
			usleep((useconds_t)below(500));
		}
	}
	return NULL;
}

static void sequences(void)
{
	pthread_t t;
	signal(SIGUSR1, rseq_signal);
	for (int i = 0; i < 6; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			pthread_create(&t, NULL, sequence_thread, (void *)draw());
			sequence_thread((void *)draw());
			_exit(0);
		}
		while (waitpid(-1, NULL, one_in(2) ? WNOHANG : 0) > 0)
			;
		draw();
	}
}

#endif
