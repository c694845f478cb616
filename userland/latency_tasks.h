/* latency_tasks.h: attacks by calls on processes, signals, futexes and messages. Included by latency.c. */

static void exec_arguments(void)
{
	static char *words[600];
	if (!words[0]) {
		char *text = malloc(100 * KIB);
		memset(text, 'x', 100 * KIB - 1);
		text[100 * KIB - 1] = 0;
		for (int i = 0; i < 19; i++)
			words[i] = text;
	}
	pid_t pid = fork();
	if (pid == 0) {
		execv("/usr/lib/alea/latency", words);
		_exit(1);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static int many_processes(void)
{
	for (int i = 0; i < 500; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return errno;
		if (pid == 0)
			for (;;)
				pause();
	}
	return 0;
}

static void kill_all(void)
{
	kill(-1, SIGCONT);
	kill(0, SIGCONT);
}

static void list_proc(void)
{
	static char block[64 * KIB];
	int fd = open("/proc", O_RDONLY | O_DIRECTORY);
	struct stat st;
	fstat(fd, &st);
	while (syscall(SYS_getdents64, fd, block, sizeof block) > 0)
		;
	close(fd);
}

static int word;
static pthread_t threads[500];

static void *sleeper(void *unused)
{
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return unused;
}

static void wake_threads(void)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 * KIB);
	word = 0;
	int count = 0;
	while (count < 400 && pthread_create(&threads[count], &attr, sleeper, NULL) == 0)
		count++;
	usleep(10000);
	word = 1;
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	while (count > 0)
		pthread_join(threads[--count], NULL);
}

static void exit_with_threads(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pthread_attr_t attr;
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 16 * KIB);
		word = 0;
		for (int i = 0; i < 400; i++)
			pthread_create(&threads[i], &attr, sleeper, NULL);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void queue_signals(void)
{
	sigset_t set;
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 20000; i++)
		if (sigqueue(getpid(), SIGRTMIN + i % 8, (union sigval) { .sival_int = i }) != 0)
			break;
	struct timespec none = { 0, 0 };
	for (int i = 0; i < 200; i++)
		sigtimedwait(&set, NULL, &none);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	while (sigtimedwait(&set, NULL, &none) > 0)
		;
}

static void many_timers(void)
{
	static timer_t timers[20000];
	struct sigevent quiet = { .sigev_notify = SIGEV_NONE };
	struct itimerspec soon = { { 0, 1000000 }, { 0, 1000000 } };
	int count = 0;
	while (count < 20000 && timer_create(CLOCK_MONOTONIC, &quiet, &timers[count]) == 0)
		timer_settime(timers[count++], 0, &soon, NULL);
	usleep(5000);
	while (count > 0)
		timer_delete(timers[--count]);
}

static void pass(int socket, int what)
{
	char byte = 0, control[CMSG_SPACE(250 * sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	*header = (struct cmsghdr) { .cmsg_len = CMSG_LEN(250 * sizeof(int)), .cmsg_level = SOL_SOCKET,
				     .cmsg_type = SCM_RIGHTS };
	for (int i = 0; i < 250; i++)
		memcpy(CMSG_DATA(header) + (size_t)i * sizeof(int), &what, sizeof(int));
	sendmsg(socket, &message, MSG_DONTWAIT);
}

/* Sockets that hold themselves: only the search for circles frees them. */
static void circles(void)
{
	int pairs[200][2], count = 0;
	while (count < 200 && socketpair(AF_UNIX, SOCK_DGRAM, 0, pairs[count]) == 0)
		count++;
	for (int i = 0; i < count; i++) {
		pass(pairs[i][0], pairs[i][1]);
		pass(pairs[i][0], pairs[(i + 1) % count][1]);
	}
	for (int i = 0; i < count; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
}

static int message_pair(void)
{
	static char text[64 * KIB];
	area = text;
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	int size = 8 * MIB;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	return 0;
}

static void send_many(void)
{
	static struct iovec iov[1024];
	for (int i = 0; i < 1024; i++)
		iov[i] = (struct iovec) { area, 64 * KIB };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 1024 };
	sendmsg(ends[0], &message, MSG_DONTWAIT);
	recvmsg(ends[1], &message, MSG_DONTWAIT);
}

static int many_zombies(void)
{
	int error = many_processes();
	for (int i = 0; i < 500 && !error; i++)
		if (fork() == 0)
			_exit(0);
	return error;
}

static void look_for_children(void)
{
	siginfo_t info;
	waitid(P_PGID, 999999, &info, WEXITED | WNOHANG | WNOWAIT);
	waitid(P_ALL, 0, &info, WSTOPPED | WNOHANG | WNOWAIT);
	setpriority(PRIO_USER, 0, 5);
	setpriority(PRIO_PGRP, 0, 5);
}

/* Threads that wait for one futex go over to another and back. */
static int waiting_threads(void)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 * KIB);
	for (int i = 0; i < 500; i++)
		if (pthread_create(&threads[i], &attr, sleeper, NULL) != 0)
			break;
	usleep(20000);
	return 0;
}

static void requeue(void)
{
	static int second;
	syscall(SYS_futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 0, INT32_MAX, &second, 0);
	syscall(SYS_futex, &second, FUTEX_CMP_REQUEUE_PRIVATE, 0, INT32_MAX, &word, 0);
}

static struct sockaddr_nl kernel_port = { .nl_family = AF_NETLINK };

/* As many requests as one message has room for, each of which is answered with everything. */
static void many_requests(void)
{
	static struct {
		struct nlmsghdr head;
		struct rtgenmsg what;
		char pad[3];
	} requests[9000];
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		requests[i].head = (struct nlmsghdr) { sizeof *requests, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 };
	(void)!sendto(fd, requests, sizeof requests, 0, (struct sockaddr *)&kernel_port, sizeof kernel_port);
	close(fd);
}

/* Empty requests are answered by short messages, which are dropped all at once. */
static void many_answers(void)
{
	static struct nlmsghdr requests[5000];
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), size = MIB;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		requests[i] = (struct nlmsghdr) { sizeof *requests, NLMSG_NOOP, NLM_F_ACK, 0, 0 };
	for (int i = 0; i < 3; i++)
		(void)!sendto(fd, requests, sizeof requests, 0, (struct sockaddr *)&kernel_port, sizeof kernel_port);
	close(fd);
}

/* The port numbers that a kernel might try first are taken. */
static int last_ports(void)
{
	raise_files();
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	unsigned port = 0xffffffffU - 4095;
	for (int i = 0; i < 8; i++) {
		int done[2], error;
		NEED(pipe(done));
		pid_t pid = fork();
		if (pid < 0)
			return errno;
		if (pid == 0) {
			for (unsigned at = port; ; at--) {
				struct sockaddr_nl name = { .nl_family = AF_NETLINK, .nl_pid = at };
				int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
				if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) != 0)
					break;
			}
			close(done[1]);
			for (;;)
				pause();
		}
		port -= (unsigned)limit.rlim_max - 16;
		close(done[1]);
		(void)!read(done[0], &error, sizeof error);
		close(done[0]);
	}
	int own = (int)NEED(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	NEED(bind(own, (struct sockaddr *)&kernel_port, sizeof kernel_port));
	return 0;
}

static void any_port(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	bind(fd, (struct sockaddr *)&kernel_port, sizeof kernel_port);
	close(fd);
}

#define TASK_ATTACKS \
	{ "netlink_requests", NULL, many_requests }, \
	{ "netlink_answers", NULL, many_answers }, \
	{ "netlink_ports", last_ports, any_port }, \
	{ "exec_arguments", NULL, exec_arguments }, \
	{ "kill_500", many_processes, kill_all }, \
	{ "list_proc_500", many_processes, list_proc }, \
	{ "futex_wake_400", NULL, wake_threads }, \
	{ "exit_400_threads", NULL, exit_with_threads }, \
	{ "sigqueue", NULL, queue_signals }, \
	{ "timers", NULL, many_timers }, \
	{ "unix_circles", NULL, circles }, \
	{ "unix_stream", message_pair, send_many }, \
	{ "wait_1000_children", many_zombies, look_for_children }, \
	{ "futex_requeue_500", waiting_threads, requeue },
