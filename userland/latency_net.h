/* latency_net.h: attacks by many sockets, ports and connections. Included by latency.c. */

static struct sockaddr_in here;
static int listener = -1;

static int listening(void)
{
	socklen_t len = sizeof here;
	raise_files();
	listener = (int)NEED(socket(AF_INET, SOCK_STREAM, 0));
	here = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	NEED(bind(listener, (struct sockaddr *)&here, sizeof here));
	NEED(listen(listener, 100));
	NEED(getsockname(listener, (struct sockaddr *)&here, &len));
	return 0;
}

static void connect_again(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&here, sizeof here) == 0)
		close(accept(listener, NULL, NULL));
	close(fd);
}

/* Eight children that each take as many sockets as they can: one process has not enough descriptors. */
static int many_children(int (*take)(void))
{
	int error = 0;
	for (int i = 0; i < 8; i++) {
		int done[2];
		NEED(pipe(done));
		pid_t pid = fork();
		if (pid < 0)
			return errno;
		if (pid == 0) {
			while (take() == 0)
				;
			close(done[1]);
			for (;;)
				pause();
		}
		close(done[1]);
		(void)!read(done[0], &error, sizeof error);
		close(done[0]);
	}
	return error;
}

static int take_port(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&any, sizeof any);
}

/* All ports that connections may have are taken. */
static int all_ports(void)
{
	int error = listening();
	return error ? error : many_children(take_port);
}

/* A thousand for each child: the next one looks at all that are there. */
static int share_port(void)
{
	static int count;
	int on = 1, fd = count++ < 1000 ? socket(AF_INET, SOCK_DGRAM, 0) : -1;
	return fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ? -1 : bind(fd, (struct sockaddr *)&here, sizeof here);
}

/* Eight thousand sockets have one port, and each message is for one of them. */
static int one_port(void)
{
	raise_files();
	here = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(7777), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	return many_children(share_port);
}

static void send_to_port(void)
{
	static int fd = -1;
	if (fd < 0)
		fd = socket(AF_INET, SOCK_DGRAM, 0);
	sendto(fd, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&here, sizeof here);
}

/* One more, whose options the conflict with all others depends on. */
static void share_once(void)
{
	int on = 1, fd = socket(AF_INET, SOCK_DGRAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	bind(fd, (struct sockaddr *)&here, sizeof here);
	close(fd);
}

static void bind_again(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bind(fd, (struct sockaddr *)&any, sizeof any);
	close(fd);
}

/* As many sockets as one process may have, each with a name where its family has ports. */
static int many_sockets(int family, int type)
{
	raise_files();
	struct sockaddr_in any = { .sin_family = AF_INET };
	for (int i = 0; i < FILES; i++) {
		all[i] = (int)NEED(socket(family, type, 0));
		if (family == AF_INET)
			NEED(bind(all[i], (struct sockaddr *)&any, sizeof any));
	}
	return 0;
}

static int many_tcp(void) { return many_sockets(AF_INET, SOCK_STREAM); }
static int many_udp(void) { return many_sockets(AF_INET, SOCK_DGRAM); }
static int many_unix(void) { return many_sockets(AF_UNIX, SOCK_DGRAM); }

static void read_whole(const char *path)
{
	static char block[64 * KIB];
	int fd = open(path, O_RDONLY);
	while (read(fd, block, sizeof block) > 0)
		;
	close(fd);
}

static void list_tcp(void)
{
	read_whole("/proc/net/tcp");
	read_whole("/proc/net/tcp6");
	read_whole("/proc/net/sockstat");
	read_whole("/proc/net/snmp");
}

static void list_udp(void)
{
	read_whole("/proc/net/udp");
	read_whole("/proc/net/udp6");
}

static void list_unix(void) { read_whole("/proc/net/unix"); }

static void read_netstat(void) { read_whole("/proc/net/netstat"); }

/* One connection, which the end that connected closes first: its port waits for a minute then. */
static void connect_once(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	connect(fd, (struct sockaddr *)&here, sizeof here);
	int end = accept(listener, NULL, NULL);
	close(fd);
	close(end);
}

/* And now the listener's end closes first, so that the ports that wait are all one. */
static void wait_on_one_port(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	connect(fd, (struct sockaddr *)&here, sizeof here);
	close(accept(listener, NULL, NULL));
	close(fd);
}

/* As many as may wait. */
static int waiting(void (*connect_and_close)(void))
{
	int error = listening();
	for (int i = 0; i < 4096 && !error; i++)
		connect_and_close();
	return error;
}

static int many_waiting(void) { return waiting(connect_once); }
static int many_waiting_on_one(void) { return waiting(wait_on_one_port); }

static void close_and_look(void)
{
	connect_once();
	read_netstat();
}

static void bind_that_port(void)
{
	wait_on_one_port();
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bind(fd, (struct sockaddr *)&here, sizeof here);
	close(fd);
	read_netstat();
}

/* Connects to a listener as often as its backlog and the process's descriptors allow, and then closes it. */
static void close_listener(int family, struct sockaddr *name, socklen_t len)
{
	int count = 0, fd = socket(family, SOCK_STREAM, 0);
	bind(fd, name, len);
	listen(fd, FILES);
	getsockname(fd, name, &len);
	while (count < FILES && (all[count] = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0)) >= 0)
		connect(all[count++], name, len);
	close(fd);
	while (count > 0)
		close(all[--count]);
}

static void close_tcp_listener(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	close_listener(AF_INET, (struct sockaddr *)&any, sizeof any);
}

static void close_unix_listener(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0latency" };
	close_listener(AF_UNIX, (struct sockaddr *)&name, sizeof(sa_family_t) + 8);
}

/* The first is part of the preparation: to connect so often takes longer than an attack may last. */
static int closed_tcp_listener(void)
{
	raise_files();
	close_tcp_listener();
	return 0;
}

static int closed_unix_listener(void)
{
	raise_files();
	close_unix_listener();
	return 0;
}

#define NET_ATTACKS \
	{ "tcp_connect", listening, connect_again }, \
	{ "bind_all_ports", all_ports, bind_again }, \
	{ "list_tcp_4000", many_tcp, list_tcp }, \
	{ "list_udp_4000", many_udp, list_udp }, \
	{ "list_unix_4000", many_unix, list_unix }, \
	{ "close_tcp_listener_4000", closed_tcp_listener, close_tcp_listener }, \
	{ "close_unix_listener_4000", closed_unix_listener, close_unix_listener }, \
	{ "send_one_port_8000", one_port, send_to_port }, \
	{ "bind_one_port_8000", one_port, share_once }, \
	{ "netstat_all_ports", all_ports, read_netstat }, \
	{ "time_wait_4096", many_waiting, close_and_look }, \
	{ "time_wait_one_port", many_waiting_on_one, bind_that_port },
