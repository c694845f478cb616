/*
 * poll_queues: who waits in whose queue. A watched file that changes its peer, a signalfd that outlives the process that
 * watched it, items that come and go: nothing stays behind in the queues, and nobody is forgotten. EPOLLEXCLUSIVE hands a
 * wake-up on that an epoll cannot use. What poll costs grows with the number of its entries, and no faster.
 */
#include "check.h"
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

static int ctl(int ep, int op, int fd, unsigned events)
{
	struct epoll_event ev = { .events = events, .data.fd = fd };
	return epoll_ctl(ep, op, fd, &ev);
}

/* How many events there are within so many milliseconds, and which. */
static void wait_for(const char *what, int ep, int ms)
{
	struct epoll_event ev = { 0 };
	int n = epoll_wait(ep, &ev, 1, ms);
	SAY("%s: %d, events %#x", what, n, n == 1 ? ev.events : 0);
}

static long free_kib(void)
{
	char text[4096];
	int fd = (int)MUST(open("/proc/meminfo", O_RDONLY));
	ssize_t n = MUST(read(fd, text, sizeof text - 1));
	text[n] = 0;
	close(fd);
	return atol(strstr(text, "MemFree:") + 8);
}

/* Whether so many rounds leave as much free as before: the first ones fill caches and do not count. */
static int keeps_memory(void (*round)(void), int rounds)
{
	for (int i = 0; i < rounds / 20; i++)
		round();
	long before = free_kib();
	for (int i = 0; i < rounds; i++)
		round();
	return before - free_kib() < 2048;
}

static int datagram(const char *name)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	strcpy(at.sun_path + 1, name);
	int s = (int)MUST(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	MUST(bind(s, (void *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))));
	return s;
}

static int point_at(int s, const char *name)
{
	struct sockaddr_un at = { .sun_family = name ? AF_UNIX : AF_UNSPEC };
	if (name)
		strcpy(at.sun_path + 1, name);
	size_t len = name ? offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name) : sizeof at;
	return connect(s, (void *)&at, (socklen_t)len);
}

static int ep, sender;

static void roaming_round(void)
{
	struct epoll_event ev;
	point_at(sender, "poll_queues-a");
	ctl(ep, EPOLL_CTL_ADD, sender, EPOLLIN | EPOLLOUT | EPOLLET);
	epoll_wait(ep, &ev, 1, 0);
	point_at(sender, NULL);
	ctl(ep, EPOLL_CTL_DEL, sender, 0);
}

static int fill(int s)
{
	int sent = 0;
	while (send(s, "x", 1, 0) == 1)
		sent++;
	return sent > 0 && errno == EAGAIN;
}

static int take_all(int s)
{
	char c;
	int got = 0;
	while (recv(s, &c, 1, 0) == 1)
		got++;
	return got > 0 && errno == EAGAIN;
}

/* A datagram socket that is watched, and whose peer changes meanwhile. */
static void roaming(void)
{
	int a = datagram("poll_queues-a"), b = datagram("poll_queues-b");
	sender = (int)MUST(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	ep = (int)MUST(epoll_create1(0));
	IS(keeps_memory(roaming_round, 40000));
	/* watched first, connected later: room at the new peer is told */
	T(ctl(ep, EPOLL_CTL_ADD, sender, EPOLLOUT | EPOLLET));
	T(point_at(sender, "poll_queues-a"));
	wait_for("connected", ep, 0);
	IS(fill(sender));
	wait_for("full", ep, 0);
	IS(take_all(a));
	wait_for("room at the first", ep, LONG_MS);
	wait_for("told once", ep, 0);
	IS(fill(sender));
	T(point_at(sender, "poll_queues-b"));
	IS(fill(sender));
	wait_for("both full", ep, 0);
	IS(take_all(b));
	wait_for("room at the second", ep, LONG_MS);
	IS(fill(sender));
	T(ctl(ep, EPOLL_CTL_MOD, sender, EPOLLOUT));
	wait_for("level, full", ep, 0);
	close(b);
	wait_for("the peer is gone", ep, LONG_MS);
	close(sender);
	close(a);
	close(ep);
}

/* A poll that sleeps hears of room, too. */
static void *make_room(void *fd)
{
	sleep_ms(30);
	take_all(*(int *)fd);
	return NULL;
}

static void sleeping_poll(void)
{
	int a = datagram("poll_queues-c");
	pthread_t thread;
	sender = (int)MUST(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	MUST(point_at(sender, "poll_queues-c"));
	IS(fill(sender));
	pthread_create(&thread, NULL, make_room, &a);
	struct pollfd p = { sender, POLLOUT, 0 };
	T(poll(&p, 1, LONG_MS));
	SAY("revents %#x", p.revents);
	pthread_join(thread, NULL);
	close(sender);
	close(a);
}

static int ready[2];

static void ready_round(void)
{
	ctl(ep, EPOLL_CTL_ADD, ready[0], EPOLLIN);
	ctl(ep, EPOLL_CTL_DEL, ready[0], 0);
}

/* What is ready when it is added and removed again leaves nothing behind. */
static void come_and_go(void)
{
	MUST(pipe(ready));
	write(ready[1], "x", 1);
	ep = (int)MUST(epoll_create1(0));
	IS(keeps_memory(ready_round, 100000));
	wait_for("removed", ep, 0);
	T(ctl(ep, EPOLL_CTL_ADD, ready[0], EPOLLIN));
	wait_for("added", ep, 0);
	close(ep);
	close(ready[0]);
	close(ready[1]);
}

#define COPIES 200
static int copies[COPIES], to_child[2], to_parent[2];

/* The process that adds and the one that removes are two: the queue is that of the first one's signals. */
static void shared_round(void)
{
	char c = 0;
	for (int i = 0; i < COPIES; i++)
		ctl(ep, EPOLL_CTL_ADD, copies[i], EPOLLIN);
	write(to_child[1], &c, 1);
	read(to_parent[0], &c, 1);
}

static void remover(void)
{
	char c;
	close(to_child[1]);
	while (read(to_child[0], &c, 1) == 1) {
		for (int i = 0; i < COPIES; i++)
			if (ctl(ep, EPOLL_CTL_DEL, copies[i], 0) != 0)
				_exit(1);
		write(to_parent[1], &c, 1);
	}
	_exit(0);
}

static void signals_over_fork(void)
{
	sigset_t usr1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	int sfd = (int)MUST(signalfd(-1, &usr1, SFD_NONBLOCK));
	ep = (int)MUST(epoll_create1(0));
	for (int i = 0; i < COPIES; i++)
		copies[i] = (int)MUST(dup(sfd));
	MUST(pipe(to_child));
	MUST(pipe(to_parent));
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		remover();
	IS(keeps_memory(shared_round, 300));
	close(to_child[1]);
	reap(pid);
	/* the child asks for its own signals, but nobody wakes the epoll for them */
	T(ctl(ep, EPOLL_CTL_ADD, sfd, EPOLLIN));
	CHILD("child's signal") {
		raise(SIGUSR1);
		wait_for("in the child", ep, 0);
		fflush(stdout);
	} END;
	wait_for("nothing in the parent", ep, 0);
	raise(SIGUSR1);
	wait_for("in the parent", ep, 0);
	T(ctl(ep, EPOLL_CTL_DEL, sfd, 0));
	/* the process that watches ends before the epoll does */
	CHILD("watches, and ends") {
		T(ctl(ep, EPOLL_CTL_ADD, sfd, EPOLLIN));
		fflush(stdout);
	} END;
	T(ctl(ep, EPOLL_CTL_MOD, sfd, EPOLLIN | EPOLLET));
	wait_for("asked again", ep, 0);
	T(ctl(ep, EPOLL_CTL_DEL, sfd, 0));
	T(ctl(ep, EPOLL_CTL_DEL, sfd, 0));
	for (int i = 0; i < COPIES; i++)
		close(copies[i]);
	close(sfd);
	close(ep);
}

struct waiting {
	int ep, got;
};

static void *wait_in(void *arg)
{
	struct waiting *w = arg;
	struct epoll_event ev;
	w->got = epoll_wait(w->ep, &ev, 1, LONG_MS);
	return NULL;
}

/* Two epolls watch one pipe. The first cannot use what comes, so the second must have it. */
static void exclusive(const char *what, unsigned first_wants, int first_waits)
{
	int p[2], idle = (int)MUST(epoll_create1(0));
	struct waiting first = { idle, -1 }, second = { (int)MUST(epoll_create1(0)), -1 };
	pthread_t a, b;
	MUST(pipe(p));
	MUST(ctl(idle, EPOLL_CTL_ADD, p[0], first_wants | EPOLLEXCLUSIVE));
	MUST(ctl(second.ep, EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLEXCLUSIVE));
	if (first_waits)
		pthread_create(&a, NULL, wait_in, &first);
	pthread_create(&b, NULL, wait_in, &second);
	IS(wait_threads(1 + first_waits));
	write(p[1], "x", 1);
	pthread_join(b, NULL);
	SAY("%s: the second got %d", what, second.got);
	if (first_waits) {
		close(p[1]);
		pthread_join(a, NULL);
		SAY("the first got %d", first.got);
	} else {
		wait_for("the first, asked later", idle, 0);
		close(p[1]);
	}
	close(p[0]);
	close(idle);
	close(second.ep);
}

static volatile int stop;

static void *look_often(void *arg)
{
	struct pollfd p = { *(int *)arg, POLLIN, 0 };
	while (!stop)
		poll(&p, 1, 0);
	return NULL;
}

static void *write_some(void *fd)
{
	for (int i = 0; i < 2000; i++)
		write(*(int *)fd, "x", 1);
	return NULL;
}

/* A look at an epoll takes nothing from those who wait in it. */
static void looked_at(void)
{
	int p[2], got = 0;
	char c;
	struct epoll_event ev;
	pthread_t looker, writer;
	ep = (int)MUST(epoll_create1(0));
	MUST(pipe2(p, O_NONBLOCK));
	MUST(ctl(ep, EPOLL_CTL_ADD, p[0], EPOLLIN));
	pthread_create(&looker, NULL, look_often, &ep);
	pthread_create(&writer, NULL, write_some, &p[1]);
	while (got < 2000 && epoll_wait(ep, &ev, 1, LONG_MS) == 1)
		while (read(p[0], &c, 1) == 1)
			got++;
	SAY("bytes that came through: %d", got);
	stop = 1;
	pthread_join(looker, NULL);
	pthread_join(writer, NULL);
	close(p[0]);
	close(p[1]);
	close(ep);
}

static long cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

enum { ENTRIES = 32000, PIPES = 500 };

static struct pollfd together[ENTRIES], apart[ENTRIES];

/*
 * CPU time of one poll of all entries: the best of five. A host that takes its CPU away from the guest counts too, so what is
 * compared should take as long.
 */
static long poll_cost(struct pollfd *all)
{
	long best = LONG_MAX;
	for (int i = 0; i < 5; i++) {
		long from = cpu_ns();
		poll(all, ENTRIES, 1);
		long took = cpu_ns() - from;
		best = took < best ? took : best;
	}
	return best;
}

/* CPU time of so many looks at one descriptor, each a call of its own: the best of five. */
static long lookups_cost(struct pollfd *one)
{
	long best = LONG_MAX;
	for (int i = 0; i < 5; i++) {
		long from = cpu_ns();
		for (int n = 0; n < ENTRIES; n++)
			poll(one, 1, 0);
		long took = cpu_ns() - from;
		best = took < best ? took : best;
	}
	return best;
}

/*
 * Entries that wait in one queue all together cost no more than entries that wait in many, and neither as much as a call for
 * each of them.
 */
static void many_entries(void)
{
	struct rlimit most = { ENTRIES, ENTRIES };
	int p[PIPES][2];
	MUST(setrlimit(RLIMIT_NOFILE, &most));
	for (int i = 0; i < PIPES; i++)
		MUST(pipe(p[i]));
	for (int i = 0; i < ENTRIES; i++) {
		together[i] = (struct pollfd){ p[0][0], POLLIN, 0 };
		apart[i] = (struct pollfd){ p[i % PIPES][0], POLLIN, 0 };
	}
	T(poll(together, ENTRIES, 1));
	T(poll(apart, ENTRIES, 1));
	long in_many = poll_cost(apart), in_one = poll_cost(together);
	long lookups = lookups_cost(together);
	if (in_one >= 6 * in_many || in_one >= lookups || in_many >= lookups)
		SAY("in one %ld ns, in many %ld ns, lookups %ld ns", in_one, in_many, lookups);
	IS(in_one < 6 * in_many);
	IS(in_one < lookups);
	IS(in_many < lookups);
	/* and a wake-up reaches them all */
	write(p[0][1], "x", 1);
	T(poll(together, ENTRIES, LONG_MS));
	for (int i = 0; i < PIPES; i++) {
		close(p[i][0]);
		close(p[i][1]);
	}
}

int main(void)
{
	roaming();
	sleeping_poll();
	come_and_go();
	signals_over_fork();
	exclusive("nobody waits in the first", EPOLLIN, 0);
	exclusive("the first waits for a hang-up", 0, 1);
	looked_at();
	many_entries();
	return 0;
}
