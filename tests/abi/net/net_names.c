/*
 * Families, types, protocols and names of the internet's sockets: what may be bound and connected to with
 * nothing but a loopback, dual-stack listeners, wrong lengths and families, privileged ports.
 */
#include "net.h"

static int tcp4(void) { return (int)MUST(socket(AF_INET, SOCK_STREAM, 0)); }
static int tcp6(void) { return (int)MUST(socket(AF_INET6, SOCK_STREAM, 0)); }

#define WITH(make, call) do { int fd = make(); T(call); close(fd); } while (0)

static void families(void)
{
	T(socket(AF_INET, 0, 0));
	T(socket(AF_INET, SOCK_SEQPACKET, 0));
	T(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
	T(socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
	T(socket(AF_INET, SOCK_STREAM, 255));
	T(socket(AF_INET, SOCK_STREAM, 256));
	T(socket(AF_INET, SOCK_STREAM, -1));
	T(socket(AF_INET, SOCK_STREAM | 0x10, 0));
	T(socket(AF_INET6, SOCK_STREAM, IPPROTO_UDP));
	T(socket(AF_INET6, SOCK_RDM, 0));
	T(socket(AF_UNSPEC, SOCK_STREAM, 0));
	T(socket(99, SOCK_STREAM, 0));
	T(socket(-1, SOCK_STREAM, 0));
	int sv[2];
	T(socketpair(AF_INET, SOCK_STREAM, 0, sv));
	T(socketpair(AF_INET, SOCK_STREAM, IPPROTO_UDP, sv));
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
	IS(fcntl(fd, F_GETFL) == (O_RDWR | O_NONBLOCK));
	IS(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	T(lseek(fd, 0, SEEK_SET));
	T(pread(fd, sv, 1, 0));
	T(ftruncate(fd, 0));
	T(fsync(fd));
	struct stat st;
	T(fstat(fd, &st));
	SAY("mode %o, size %ld", st.st_mode, (long)st.st_size);
	close(fd);
	fd = open("/dev/null", O_RDWR);
	T(bind(fd, NAME4("127.0.0.1", 0)));
	T(listen(fd, 0));
	T(send(fd, "x", 1, 0));
	T(getsockname(fd, NULL, NULL));
	close(fd);
	T(listen(fd, 0));
}

static void binds(void)
{
	struct sockaddr_in name = in4("127.0.0.1", 0);
	WITH(tcp4, bind(fd, NAME4("0.0.0.0", 0)));
	WITH(tcp4, bind(fd, NAME4("127.9.8.7", 0)));
	WITH(tcp4, bind(fd, NAME4("10.0.0.1", 0)));
	WITH(tcp4, bind(fd, NAME4("8.8.8.8", 0)));
	WITH(tcp4, bind(fd, NAME4("224.0.0.1", 0)));
	WITH(tcp4, bind(fd, NAME4("255.255.255.255", 0)));
	WITH(tcp4, bind(fd, NAME4("127.255.255.255", 0)));
	WITH(tcp4, bind(fd, NAME4("127.0.0.0", 0)));
	WITH(tcp4, bind(fd, NAME6("::1", 0)));
	WITH(tcp4, bind(fd, (struct sockaddr *)&name, 15));
	WITH(tcp4, bind(fd, (struct sockaddr *)&name, 2));
	WITH(tcp4, bind(fd, (struct sockaddr *)&name, 0));
	WITH(tcp4, bind(fd, (struct sockaddr *)&name, 100));
	WITH(tcp4, bind(fd, (struct sockaddr *)&name, 129));
	WITH(tcp4, bind(fd, (struct sockaddr *)&name, -1));
	WITH(tcp4, bind(fd, NULL, 16));
	name.sin_family = AF_UNSPEC;
	WITH(tcp4, bind(fd, NAME(name)));
	name.sin_addr.s_addr = 0;
	WITH(tcp4, bind(fd, NAME(name)));
	name.sin_family = AF_UNIX;
	WITH(tcp4, bind(fd, NAME(name)));
	WITH(tcp6, bind(fd, NAME6("::", 0)));
	WITH(tcp6, bind(fd, NAME6("::1", 0)));
	WITH(tcp6, bind(fd, NAME6("::ffff:127.0.0.1", 0)));
	WITH(tcp6, bind(fd, NAME6("::ffff:10.0.0.1", 0)));
	WITH(tcp6, bind(fd, NAME6("2001:db8::1", 0)));
	WITH(tcp6, bind(fd, NAME6("fe80::1", 0)));
	WITH(tcp6, bind(fd, NAME6("ff02::1", 0)));
	WITH(tcp6, bind(fd, NAME4("127.0.0.1", 0)));
	struct sockaddr_in6 six = in6("::1", 0);
	WITH(tcp6, bind(fd, (struct sockaddr *)&six, 24));
	WITH(tcp6, bind(fd, (struct sockaddr *)&six, 23));
	six.sin6_family = AF_UNSPEC;
	WITH(tcp6, bind(fd, NAME(six)));
	CHILD("privileged") {
		WITH(tcp4, bind(fd, NAME4("127.0.0.1", 80)));
		MUST(setuid(1000));
		WITH(tcp4, bind(fd, NAME4("127.0.0.1", 80)));
		WITH(tcp4, bind(fd, NAME4("127.0.0.1", 1024)));
		WITH(tcp6, bind(fd, NAME6("::1", 1023)));
	} END;
}

static void connects(void)
{
	struct sockaddr_in name = in4("127.0.0.1", 1);
	WITH(tcp4, connect(fd, NAME4("10.0.0.1", 1)));
	WITH(tcp4, connect(fd, NAME4("224.0.0.1", 1)));
	WITH(tcp4, connect(fd, NAME4("255.255.255.255", 1)));
	WITH(tcp4, connect(fd, NAME4("127.255.255.255", 1)));
	WITH(tcp4, connect(fd, NAME4("0.0.0.0", 1)));
	WITH(tcp4, connect(fd, NAME4("127.0.0.1", 0)));
	WITH(tcp4, connect(fd, NAME6("::1", 1)));
	WITH(tcp4, connect(fd, (struct sockaddr *)&name, 15));
	WITH(tcp4, connect(fd, (struct sockaddr *)&name, 1));
	WITH(tcp4, connect(fd, NON_CANONICAL, 16));
	WITH(tcp6, connect(fd, NAME6("2001:db8::1", 1)));
	WITH(tcp6, connect(fd, NAME6("fe80::1", 1)));
	WITH(tcp6, connect(fd, NAME6("ff02::1", 1)));
	WITH(tcp6, connect(fd, NAME6("::", 1)));
	WITH(tcp6, connect(fd, NAME6("::ffff:127.0.0.1", 1)));
	WITH(tcp6, connect(fd, NAME6("::ffff:10.0.0.1", 1)));
	WITH(tcp6, connect(fd, NAME4("127.0.0.1", 1)));
}

static void dual(void)
{
	int l = tcp6(), on = 1;
	T(bind(l, NAME6("::", 0)));
	T(setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
	T(listen(l, 5));
	int port = port_of(l), c = tcp4(), d = tcp6(), e = tcp6();
	WITH(tcp4, bind(fd, NAME4("127.0.0.1", port)));
	WITH(tcp4, bind(fd, NAME4("0.0.0.0", port)));
	T(connect(c, NAME4("127.0.0.1", port)));
	int s = (int)MUST(accept(l, NULL, NULL));
	say_names("dual, by four", s, port, port_of(c));
	close(s);
	T(connect(d, NAME6("::1", port)));
	s = (int)MUST(accept(l, NULL, NULL));
	say_names("dual, by six", s, port, port_of(d));
	close(s);
	T(connect(e, NAME6("::ffff:127.0.0.1", port)));
	say_names("mapped", e, 0, port);
	s = (int)MUST(accept(l, NULL, NULL));
	close(s);
	close(c);
	close(d);
	close(e);
	close(l);
	l = tcp6();
	T(setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
	T(bind(l, NAME6("::", 0)));
	T(listen(l, 5));
	port = port_of(l);
	WITH(tcp4, connect(fd, NAME4("127.0.0.1", port)));
	WITH(tcp6, connect(fd, NAME6("::ffff:127.0.0.1", port)));
	WITH(tcp6, connect(fd, NAME6("::1", port)));
	int four = tcp4();
	T(bind(four, NAME4("0.0.0.0", port)));
	T(listen(four, 5));
	WITH(tcp4, connect(fd, NAME4("127.0.0.1", port)));
	close(four);
	close(l);
	/* an exact address is preferred */
	l = tcp4();
	MUST(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
	MUST(bind(l, NAME4("127.0.0.2", 0)));
	MUST(listen(l, 5));
	port = port_of(l);
	WITH(tcp4, connect(fd, NAME4("127.0.0.1", port)));
	c = tcp4();
	T(connect(c, NAME4("127.0.0.2", port)));
	say_names("to the second", c, 0, port);
	close(c);
	c = tcp4();
	MUST(bind(c, NAME4("127.0.0.3", 0)));
	T(connect(c, NAME4("127.0.0.2", port)));
	say_names("from the third", c, port_of(c), port);
	close(c);
	close(l);
}

static void lengths(void)
{
	int l = listener4(1);
	char name[32];
	memset(name, 0x55, sizeof name);
	socklen_t len = 4;
	T(getsockname(l, (struct sockaddr *)name, &len));
	SAY("length %d, %02x", (int)len, name[4]);
	len = (socklen_t)-1;
	T(getsockname(l, (struct sockaddr *)name, &len));
	len = 16;
	T(getsockname(l, NON_CANONICAL, &len));
	T(getsockname(l, (struct sockaddr *)name, NULL));
	T(getpeername(l, (struct sockaddr *)name, &len));
	T(accept4(l, NULL, NULL, 0x1234));
	close(l);
}

int main(void)
{
	net_up();
	families();
	binds();
	connects();
	dual();
	lengths();
	return 0;
}
