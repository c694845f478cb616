/*
 * A C library on a kernel: threads and their locks, thread-specific data, cancellation, signals, stdio, processes, names and
 * sockets, time, memory, random numbers. Prints what must be the same on every kernel. Built with musl by `cargo xtask runtimes`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int count, destroyed, turn, cleaned;
static __thread int own = 5;

static void destroy(void *value)
{
	__atomic_add_fetch(&destroyed, *(int *)value, __ATOMIC_SEQ_CST);
}

static void *worker(void *arg)
{
	static int one = 1;
	pthread_setspecific(key, &one);
	own += (int)(intptr_t)arg;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		count++;
		pthread_mutex_unlock(&lock);
	}
	sem_post(&semaphore);
	return (void *)(intptr_t)own;
}

static void *in_turn(void *arg)
{
	int me = (int)(intptr_t)arg;
	pthread_mutex_lock(&lock);
	while (turn != me)
		pthread_cond_wait(&changed, &lock);
	turn++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void clean(void *arg)
{
	cleaned = 1;
}

static void *cancelled(void *arg)
{
	pthread_cleanup_push(clean, NULL);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static void threads(void)
{
	pthread_t t[16];
	long sum = 0;
	void *result;
	pthread_key_create(&key, destroy);
	pthread_barrier_init(&barrier, NULL, 16);
	sem_init(&semaphore, 0, 0);
	for (int i = 0; i < 16; i++)
		pthread_create(&t[i], NULL, worker, (void *)(intptr_t)i);
	for (int i = 0; i < 16; i++) {
		sem_wait(&semaphore);
		pthread_join(t[i], &result);
		sum += (intptr_t)result;
	}
	printf("threads: count %d, sum %ld, destroyed %d, own %d\n", count, sum, destroyed, own);
	for (int i = 15; i >= 0; i--)
		pthread_create(&t[i], NULL, in_turn, (void *)(intptr_t)i);
	for (int i = 0; i < 16; i++)
		pthread_join(t[i], NULL);
	printf("turns %d\n", turn);
	pthread_create(&t[0], NULL, cancelled, NULL);
	pthread_cancel(t[0]);
	pthread_join(t[0], &result);
	printf("cancelled %d, cleaned %d\n", result == PTHREAD_CANCELED, cleaned);
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 20000000;
	if (until.tv_nsec >= 1000000000)
		until.tv_sec++, until.tv_nsec -= 1000000000;
	pthread_mutex_lock(&lock);
	printf("timed wait: %s\n", strerror(pthread_cond_timedwait(&changed, &lock, &until)));
	pthread_mutex_unlock(&lock);
	pthread_mutexattr_t attr;
	pthread_mutex_t robust;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&robust, &attr);
	pthread_mutex_lock(&robust);
	printf("locked twice: %s\n", strerror(pthread_mutex_lock(&robust)));
	pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
	printf("rwlock %d", pthread_rwlock_rdlock(&rw));
	printf(" %d", pthread_rwlock_tryrdlock(&rw));
	printf(" %d\n", pthread_rwlock_trywrlock(&rw) == EBUSY);
}

static volatile sig_atomic_t caught;

static void on_signal(int number, siginfo_t *info, void *context)
{
	caught += number == SIGUSR1 && info->si_pid == getpid();
}

static void signals(void)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &act, NULL);
	kill(getpid(), SIGUSR1);
	raise(SIGUSR1);
	printf("caught %d\n", caught);
	sigset_t set, old;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 42 });
	siginfo_t info;
	printf("waited %d, value", sigwaitinfo(&set, &info) == SIGUSR2);
	printf(" %d\n", info.si_value.sival_int);
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &(struct itimerspec){ .it_value = { 0, 5000000 } }, NULL);
	printf("timer %d\n", sigwaitinfo(&set, NULL) == SIGUSR2);
	timer_delete(timer);
}

static void files(void)
{
	char text[100] = "", path[] = "/tmp/libc-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w+");
	for (int i = 0; i < 10000; i++)
		fprintf(f, "%d %s\n", i, "line");
	fseek(f, 4, SEEK_SET);
	printf("%s", fgets(text, sizeof text, f));
	int lines = 1;
	while (fgets(text, sizeof text, f))
		lines++;
	printf("lines %d, last %s", lines, text);
	printf("size %ld\n", ftell(f));
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(map, "XX", 2);
	munmap(map, 4096);
	rewind(f);
	printf("%s", fgets(text, sizeof text, f));
	fclose(f);
	unlink(path);
	FILE *p = popen("echo from a pipe; exit 3", "r");
	printf("%s", fgets(text, sizeof text, p));
	printf("status %d\n", WEXITSTATUS(pclose(p)));
	printf("system %d\n", WEXITSTATUS(system("exit 7")));
	char *memory;
	size_t size;
	f = open_memstream(&memory, &size);
	fprintf(f, "%08.3f|%-6s|%+d|%x", 3.14159, "ab", 5, 255);
	fclose(f);
	printf("%s %zu\n", memory, size);
	double number;
	int whole;
	printf("%d", sscanf("2.5e3 77 word", "%lf %d %s", &number, &whole, text));
	printf(" %g %d %s\n", number, whole, text);
	glob_t g;
	printf("glob %d", glob("/etc/p*d", 0, NULL, &g));
	printf(" %s\n", g.gl_pathc ? g.gl_pathv[0] : "none");
	struct passwd *pw = getpwnam("root");
	printf("root %s, group %s\n", pw ? pw->pw_dir : "none", getgrgid(0) ? getgrgid(0)->gr_name : "none");
	regex_t re;
	regmatch_t m[2];
	regcomp(&re, "a(b+)c", REG_EXTENDED);
	printf("regex %d", regexec(&re, "xxabbbc", 2, m, 0));
	printf(" %d-%d\n", (int)m[1].rm_so, (int)m[1].rm_eo);
	printf("%ls %s\n", L"wide", realpath("/proc/../etc/./passwd", text));
}

static void processes(void)
{
	pid_t pid;
	int status, p[2];
	char *argv[] = { "sh", "-c", "echo spawned; exit 5", NULL };
	fflush(stdout);
	if (posix_spawnp(&pid, "sh", NULL, NULL, argv, (char *[]){ "PATH=/bin:/usr/bin", NULL }) == 0)
		waitpid(pid, &status, 0), printf("spawn %d\n", WEXITSTATUS(status));
	printf("spawn of nothing: %s\n", strerror(posix_spawn(&pid, "/none", NULL, NULL, argv, NULL)));
	pipe(p);
	for (int i = 0; i < 10; i++) {
		fflush(stdout);
		if (fork() == 0) {
			dprintf(p[1], "%d", i);
			_exit(i);
		}
	}
	int codes = 0;
	while (wait(&status) > 0)
		codes += WEXITSTATUS(status);
	char text[32] = "";
	printf("children %d, bytes %zd\n", codes, read(p[0], text, sizeof text));
	if (vfork() == 0)
		_exit(9);
	wait(&status);
	printf("vfork %d\n", WEXITSTATUS(status));
	struct rlimit rl;
	printf("limit %d\n", getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur > 0);
	printf("env %d", setenv("NEW", "value", 1));
	printf(" %s\n", getenv("NEW"));
}

static void *serve(void *arg)
{
	int l = (int)(intptr_t)arg, c = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	char text[1000];
	ssize_t n;
	while ((n = read(c, text, sizeof text)) > 0)
		write(c, text, (size_t)n);
	close(c);
	return NULL;
}

static void if_indexes(void)
{
	struct if_nameindex *all = if_nameindex();
	char name[IF_NAMESIZE] = "";
	printf("interfaces: %s %u, %u %s\n", all ? all[0].if_name : "none", all ? all[0].if_index : 0, if_nametoindex("lo"),
	       if_indextoname(1, name) ? name : "none");
	if_freenameindex(all);
}

static void sockets(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET }, *found = NULL;
	int error = getaddrinfo("localhost", "http", &hints, &found);
	char host[100] = "", service[100] = "";
	if (found)
		getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof host, service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV);
	printf("names: %s %s %s\n", error ? gai_strerror(error) : "ok", host, service);
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof name;
	bind(l, (void *)&name, len);
	listen(l, 5);
	getsockname(l, (void *)&name, &len);
	pthread_t t;
	pthread_create(&t, NULL, serve, (void *)(intptr_t)l);
	printf("connect %d\n", connect(c, (void *)&name, len));
	FILE *in = fdopen(c, "r"), *out = fdopen(dup(c), "w");
	int right = 0;
	for (int i = 0; i < 1000; i++) {
		char line[32], back[32] = "";
		snprintf(line, sizeof line, "line %d\n", i);
		fputs(line, out);
		fflush(out);
		right += fgets(back, sizeof back, in) && strcmp(line, back) == 0;
	}
	printf("echoed %d\n", right);
	fclose(out);
	shutdown(c, SHUT_WR);
	fclose(in);
	pthread_join(t, NULL);
	int e = epoll_create1(0), v = eventfd(0, 0), f = timerfd_create(CLOCK_MONOTONIC, 0), sv[2];
	epoll_ctl(e, EPOLL_CTL_ADD, v, &(struct epoll_event){ .events = EPOLLIN, .data.u32 = 1 });
	epoll_ctl(e, EPOLL_CTL_ADD, f, &(struct epoll_event){ .events = EPOLLIN, .data.u32 = 2 });
	timerfd_settime(f, 0, &(struct itimerspec){ .it_value = { 0, 1000000 } }, NULL);
	struct epoll_event ready[4];
	printf("epoll %d", epoll_wait(e, ready, 4, -1));
	printf(" %u\n", ready[0].data.u32);
	eventfd_write(v, 3);
	eventfd_t value;
	eventfd_read(v, &value);
	printf("event %d\n", (int)value);
	socketpair(AF_UNIX, SOCK_DGRAM, 0, sv);
	struct iovec iov[2] = { { "one ", 4 }, { "message", 7 } };
	printf("gathered %zd", writev(sv[0], iov, 2));
	printf(" read %zd\n", read(sv[1], host, sizeof host));
	fd_set set;
	FD_ZERO(&set);
	FD_SET(sv[1], &set);
	printf("select %d", select(sv[1] + 1, &set, NULL, NULL, &(struct timeval){ 0, 1000 }));
	printf(" poll %d\n", poll(&(struct pollfd){ sv[1], POLLOUT, 0 }, 1, -1));
	if_indexes();
}

static void others(void)
{
	struct utsname name;
	uname(&name);
	struct tm tm;
	time_t when = 1000000000;
	char text[100];
	gmtime_r(&when, &tm);
	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %a", &tm);
	printf("%s %s %ld\n", name.machine, text, (long)mktime(&tm));
	unsigned char random[32] = { 0 }, zero[32] = { 0 };
	printf("entropy %d", getentropy(random, 32));
	printf(" %d\n", memcmp(random, zero, 32) != 0);
	printf("getrandom %zd %zd\n", getrandom(random, 32, 0), getrandom(random, 8, GRND_RANDOM));
	long sum = 0;
	char *blocks[1000];
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 1000; i++) {
			size_t size = (size_t)((i * 7919 + round * 104729) % 30000 + 1);
			blocks[i] = malloc(size);
			memset(blocks[i], i, size);
			sum += (unsigned char)blocks[i][size - 1];
		}
		for (int i = 0; i < 1000; i++)
			free(blocks[(i * 7) % 1000]);
	}
	char *grown = malloc(10);
	for (size_t size = 10; size < 50000000; size *= 3)
		grown = realloc(grown, size), grown[size - 1] = 1;
	free(grown);
	printf("malloc %ld, too much: %s\n", sum, malloc(SIZE_MAX / 2) ? "given" : strerror(errno));
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("slept %d\n", (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec >= 10000000);
	printf("processors %d, page %ld\n", sysconf(_SC_NPROCESSORS_ONLN) > 0, sysconf(_SC_PAGESIZE));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	threads();
	signals();
	files();
	processes();
	sockets();
	others();
	return 0;
}
