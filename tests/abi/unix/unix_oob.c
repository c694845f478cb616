/*
 * A byte out of band on a stream of AF_UNIX: who reads it and when, the mark that it leaves, SO_OOBINLINE, MSG_PEEK, polls,
 * SIGURG for the owner of the socket, and what is refused; SIGURG of TCP.
 */
#include "check.h"
#include "net.h"
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SIOCATMARK_ 0x8905

static int a, b;

static void fresh(void)
{
	int pair[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	a = pair[0];
	b = pair[1];
}

static void done(void)
{
	close(a);
	close(b);
}

static void put(const char *text, int flags)
{
	ssize_t n = send(a, text, strlen(text), flags);
	SAY("send \"%s\" %s: %s", text, flags ? "out of band" : "", n < 0 ? err_name(errno) : n == (ssize_t)strlen(text) ? "ok" : "partly");
}

static void get(size_t room, int flags)
{
	char text[64] = "";
	struct iovec iov = { text, room };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(b, &msg, flags);
	SAY("recv %zu %s%s%s: %zd %s \"%s\"%s", room, flags & MSG_OOB ? "oob " : "", flags & MSG_PEEK ? "peek " : "",
	    flags & MSG_WAITALL ? "all " : "", n, n < 0 ? err_name(errno) : "", n > 0 ? text : "", msg.msg_flags & MSG_OOB ? " OOB" : "");
}

static void state(const char *what)
{
	int mark = -1, queued = -1;
	struct pollfd one = { b, POLLIN | POLLPRI | POLLRDBAND, 0 };
	int r = ioctl(b, SIOCATMARK_, &mark);
	ioctl(b, FIONREAD, &queued);
	poll(&one, 1, 0);
	SAY("%s: at the mark %d %s, %d to read, events %#x", what, mark, r ? err_name(errno) : "", queued, one.revents);
}

static void inlined(int on)
{
	MUST(setsockopt(b, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
}

static void basics(void)
{
	SAY("-- alone");
	fresh();
	state("empty");
	get(10, MSG_OOB);
	put("x", MSG_OOB);
	state("sent");
	get(10, MSG_OOB | MSG_PEEK);
	state("peeked");
	get(10, MSG_OOB);
	state("read");
	get(10, MSG_OOB);
	get(10, 0);
	state("nothing");
	put("y", MSG_OOB);
	get(10, 0);
	state("read in vain");
	get(10, MSG_OOB);
	done();
	SAY("-- among others");
	fresh();
	put("hello", 0);
	put("worldX", MSG_OOB);
	put("after", 0);
	state("sent");
	get(20, MSG_PEEK);
	get(20, 0);
	state("before the mark");
	get(20, MSG_PEEK);
	get(20, MSG_OOB);
	state("read the byte");
	get(20, MSG_PEEK);
	get(20, 0);
	state("all");
	done();
	SAY("-- the byte first, then the others");
	fresh();
	put("helloX", MSG_OOB);
	put("after", 0);
	get(20, MSG_OOB);
	state("read the byte");
	get(3, 0);
	get(20, MSG_PEEK);
	get(20, 0);
	state("at the mark");
	get(20, 0);
	state("all");
	done();
	SAY("-- not read");
	fresh();
	put("helloX", MSG_OOB);
	put("after", 0);
	get(5, 0);
	state("before it");
	get(3, 0);
	state("after it");
	get(10, MSG_OOB);
	get(20, 0);
	done();
	SAY("-- two of them");
	fresh();
	put("abX", MSG_OOB);
	put("cdY", MSG_OOB);
	put("ef", 0);
	state("sent");
	get(20, MSG_OOB | MSG_PEEK);
	get(20, 0);
	state("before the second");
	get(20, MSG_OOB);
	get(20, MSG_OOB);
	get(20, 0);
	state("all");
	done();
	SAY("-- one read, then another");
	fresh();
	put("X", MSG_OOB);
	get(1, MSG_OOB);
	put("Y", MSG_OOB);
	state("sent");
	get(1, MSG_OOB);
	state("both read");
	put("z", 0);
	state("more");
	get(10, 0);
	state("all");
	done();
}

static void in_line(void)
{
	SAY("-- in line");
	fresh();
	inlined(1);
	int on = -1;
	socklen_t len = sizeof on;
	T(getsockopt(b, SOL_SOCKET, SO_OOBINLINE, &on, &len));
	SAY("%d", on);
	put("helloX", MSG_OOB);
	put("after", 0);
	state("sent");
	get(20, MSG_OOB);
	get(20, MSG_PEEK);
	get(20, 0);
	state("at the mark");
	get(20, MSG_PEEK);
	get(1, 0);
	state("behind it");
	get(20, 0);
	done();
	fresh();
	put("X", MSG_OOB);
	put("z", 0);
	inlined(1);
	get(20, MSG_OOB);
	inlined(0);
	get(20, MSG_PEEK);
	get(20, MSG_OOB | MSG_PEEK);
	inlined(1);
	get(20, 0);
	state("read");
	get(20, 0);
	done();
}

static void waiting(void)
{
	SAY("-- all that there is room for");
	fresh();
	fcntl(b, F_SETFL, 0);
	put("helloX", MSG_OOB);
	put("after", 0);
	get(10, MSG_WAITALL);
	get(5, MSG_WAITALL);
	put("abcX", MSG_OOB);
	get(10, MSG_WAITALL);
	fcntl(b, F_SETFL, O_NONBLOCK);
	get(10, 0);
	done();
}

static void refusals(void)
{
	SAY("-- refusals");
	char c = 0;
	fresh();
	T(send(a, &c, 0, MSG_OOB));
	T(send(a, KERNEL_ADDRESS, 1, MSG_OOB));
	state("nothing");
	put("X", MSG_OOB);
	T(recv(b, KERNEL_ADDRESS, 1, MSG_OOB));
	state("lost");
	put("X", MSG_OOB);
	T(recv(b, &c, 0, MSG_OOB));
	state("after a read of nothing");
	put("X", MSG_OOB);
	T(recv(b, KERNEL_ADDRESS, 1, MSG_OOB | MSG_PEEK));
	get(1, MSG_OOB);
	shutdown(b, SHUT_RD);
	signal(SIGPIPE, SIG_IGN);
	T(send(a, "x", 1, MSG_OOB));
	T(send(a, "", 0, MSG_OOB));
	done();
	int one = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	T(send(one, "x", 1, MSG_OOB));
	T(send(one, "x", 0, MSG_OOB));
	T(recv(one, &c, 1, MSG_OOB));
	close(one);
	static const int kinds[] = { SOCK_DGRAM, SOCK_SEQPACKET };
	for (int i = 0; i < 2; i++) {
		int pair[2], mark = -1;
		MUST(socketpair(AF_UNIX, kinds[i], 0, pair));
		T(send(pair[0], "x", 1, MSG_OOB));
		T(recv(pair[1], &c, 1, MSG_OOB));
		T(ioctl(pair[1], SIOCATMARK_, &mark));
		SAY("%d", mark);
		MUST(send(pair[0], "x", 1, 0));
		T(ioctl(pair[1], SIOCATMARK_, &mark));
		SAY("%d", mark);
		close(pair[0]);
		close(pair[1]);
	}
	fresh();
	put("helloX", MSG_OOB);
	close(a);
	state("the sender is gone");
	get(20, 0);
	get(20, MSG_OOB);
	state("read");
	get(20, 0);
	get(20, 0);
	close(b);
}

/* What the peer of a socket that is closed is told. */
static void closed(const char *what)
{
	char c;
	close(b);
	ssize_t n = recv(a, &c, 1, 0);
	SAY("closed %s: %zd %s", what, n, n < 0 ? err_name(errno) : "");
	close(a);
}

static void closes(void)
{
	SAY("-- closes");
	fresh();
	put("X", MSG_OOB);
	closed("unread");
	fresh();
	put("X", MSG_OOB);
	get(1, MSG_OOB);
	closed("read");
	fresh();
	put("aX", MSG_OOB);
	get(1, MSG_OOB);
	closed("with bytes before");
	fresh();
	put("X", MSG_OOB);
	get(1, MSG_OOB);
	put("b", 0);
	get(1, 0);
	closed("with nothing left");
}

static void files(void)
{
	SAY("-- descriptors");
	int mem = (int)MUST(memfd_create("x", 0)), got = -1;
	union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
	for (int with = 0; with < 3; with++) {
		fresh();
		struct iovec iov = { "abX", with ? 1 : 3 };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control };
		struct cmsghdr *one = CMSG_FIRSTHDR(&msg);
		one->cmsg_level = SOL_SOCKET;
		one->cmsg_type = SCM_RIGHTS;
		one->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(one), &mem, sizeof mem);
		T(sendmsg(a, &msg, MSG_OOB));
		put("after", 0);
		for (int i = 0; i < 3; i++) {
			char text[20] = "";
			int oob = (with == 1) == (i == 0) ? MSG_OOB : 0;
			struct iovec in = { text, 19 };
			struct msghdr m = { .msg_iov = &in, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control };
			ssize_t n = recvmsg(b, &m, oob);
			int files = n >= 0 && CMSG_FIRSTHDR(&m) ? 1 : 0;
			SAY("%s: %zd \"%s\" with %d files, flags %#x", oob ? "oob" : "read", n, text, files, n < 0 ? 0 : m.msg_flags);
			if (files) {
				memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
				close(got);
			}
		}
		done();
	}
	close(mem);
}

static volatile sig_atomic_t came;

static void urgent(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	came = info->si_code == SI_KERNEL && info->si_pid == 0 ? 1 : 2;
}

static void told(const char *what)
{
	SAY("%s: %d", what, (int)came);
	came = 0;
}

static void signals(void)
{
	SAY("-- SIGURG");
	struct sigaction act = { .sa_sigaction = urgent, .sa_flags = SA_SIGINFO };
	sigaction(SIGURG, &act, NULL);
	fresh();
	put("X", MSG_OOB);
	told("no owner");
	T(fcntl(b, F_SETOWN, getpid()));
	T(fcntl(b, F_GETOWN) == getpid());
	put("x", 0);
	told("nothing urgent");
	put("X", MSG_OOB);
	told("the process");
	T(fcntl(a, F_SETOWN, getpid()));
	T(fcntl(b, F_SETOWN, 0));
	put("X", MSG_OOB);
	told("the sender's");
	T(fcntl(b, F_SETOWN, -getpgrp()));
	put("X", MSG_OOB);
	told("the group");
	struct f_owner_ex thread = { F_OWNER_TID, gettid() };
	T(fcntl(b, F_SETOWN_EX, &thread));
	T(fcntl(b, F_SETSIG, SIGUSR1));
	put("X", MSG_OOB);
	told("the thread");
	T(fcntl(b, F_SETSIG, 0));
	CHILD("another sends") {
		put("X", MSG_OOB);
		fflush(stdout);
	} END;
	told("another's");
	CHILD("another user's") {
		/* Named by one who may not signal the owner. */
		MUST(setresuid(1000, 1000, 1000));
		T(fcntl(b, F_SETOWN, getppid()));
		put("X", MSG_OOB);
		fflush(stdout);
	} END;
	told("another user's");
	int e = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLPRI | EPOLLET };
	while (recv(b, (char[9]){ 0 }, 9, 0) > 0)
		;
	MUST(epoll_ctl(e, EPOLL_CTL_ADD, b, &event));
	T(epoll_wait(e, &event, 1, 0));
	put("X", MSG_OOB);
	T(epoll_wait(e, &event, 1, 0));
	SAY("%#x", event.events);
	close(e);
	done();
	/* Of a connection that is accepted later, and of TCP. */
	for (int family = AF_UNIX; family <= AF_INET; family++) {
		struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "\0unix_oob" };
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		void *name = family == AF_UNIX ? (void *)&local : (void *)&in;
		socklen_t len = family == AF_UNIX ? sizeof local : sizeof in;
		int server = (int)MUST(socket(family, SOCK_STREAM, 0));
		a = (int)MUST(socket(family, SOCK_STREAM, 0));
		MUST(bind(server, name, len));
		MUST(getsockname(server, name, &len));
		MUST(listen(server, 1));
		MUST(fcntl(server, F_SETOWN, getpid()));
		MUST(connect(a, name, len));
		b = (int)MUST(accept(server, NULL, NULL));
		put("X", MSG_OOB);
		told("accepted");
		MUST(fcntl(b, F_SETOWN, getpid()));
		put("X", MSG_OOB);
		for (int i = 0; i < 1000 && !came; i++)
			sleep_ms(1);
		told("its own");
		done();
		close(server);
	}
}

/* A reader that waits, while bytes in and out of band come. */
static void *sends(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3000; i++)
		while (send(a, i % 3 ? "." : "!", 1, i % 3 ? 0 : MSG_OOB) != 1)
			sched_yield();
	shutdown(a, SHUT_WR);
	return NULL;
}

static void *takes(void *arg)
{
	long urgent = 0;
	char c;
	while (!__atomic_load_n((int *)arg, __ATOMIC_RELAXED))
		urgent += recv(b, &c, 1, MSG_OOB) == 1 && c == '!';
	return (void *)urgent;
}

static void crowd(void)
{
	SAY("-- at once");
	fresh();
	fcntl(b, F_SETFL, 0);
	pthread_t sender, taker;
	int over = 0;
	long dots = 0, marks = 0;
	char text[50];
	void *urgent;
	pthread_create(&sender, NULL, sends, NULL);
	pthread_create(&taker, NULL, takes, &over);
	for (ssize_t n; (n = recv(b, text, sizeof text, 0)) > 0;)
		for (ssize_t i = 0; i < n; i++)
			*(text[i] == '.' ? &dots : &marks) += 1;
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	pthread_join(sender, NULL);
	pthread_join(taker, &urgent);
	IS(dots == 2000);
	IS(marks + (long)urgent <= 1000);
	done();
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	net_up();
	basics();
	in_line();
	waiting();
	refusals();
	closes();
	files();
	signals();
	crowd();
	return 0;
}
