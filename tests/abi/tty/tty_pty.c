/*
 * Pseudo-terminals: ptmx, lock and name, canonical input with erase and kill and end of file, echo, raw input with MIN
 * and TIME, output mapping, signals from ^C ^\ ^Z, window size, packet mode, hang-up, EIO.
 */
#include "check.h"
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>

static int m, s;

static void show(const char *what, int fd)
{
	char buf[256], text[1024] = { 0 };
	struct pollfd p = { fd, POLLIN, 0 };
	ssize_t n = -1;
	if (poll(&p, 1, 300) == 1)
		n = read(fd, buf, sizeof buf);
	else
		errno = EAGAIN;
	/* what is written comes to the master in pieces, what is read by the slave in lines */
	while (fd == m && n > 0 && poll(&p, 1, 60) == 1 && (p.revents & POLLIN))
		n += read(fd, buf + n, sizeof buf - (size_t)n);
	if (n < 0) {
		SAY("%s: %s", what, err_name(errno));
		return;
	}
	for (ssize_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)buf[i];
		char piece[8];
		snprintf(piece, sizeof piece, c == '\n' ? "\\n" : c == '\r' ? "\\r" : c < 32 || c > 126 ? "<%02x>" : "%c", c);
		strcat(text, piece);
	}
	SAY("%s: %zd \"%s\"", what, n, text);
}

static void type(const char *text) { write(m, text, strlen(text)); }

static void open_pair(void)
{
	int n = -1, lock = 0;
	char name[32];
	m = (int)MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	MUST(ioctl(m, TIOCGPTN, &n));
	MUST(ioctl(m, TIOCSPTLCK, &lock));
	snprintf(name, sizeof name, "/dev/pts/%d", n);
	s = (int)MUST(open(name, O_RDWR | O_NOCTTY));
}

int main(void)
{
	int n = -1, lock = 1;
	char name[32], buf[64];
	struct stat st;
	m = (int)MUST(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	T(ioctl(m, TIOCGPTN, &n));
	snprintf(name, sizeof name, "/dev/pts/%d", n);
	T(open(name, O_RDWR | O_NOCTTY));
	T(ioctl(m, TIOCGPTLCK, &lock));
	SAY("locked %d", lock);
	lock = 0;
	T(ioctl(m, TIOCSPTLCK, &lock));
	s = (int)MUST(open(name, O_RDWR | O_NOCTTY));
	fstat(s, &st);
	SAY("mode %o", st.st_mode);
	T(isatty(s));
	T(isatty(m));
	struct termios t, back;
	T(tcgetattr(s, &t));
	SAY("iflag %#x oflag %#x cflag %#x lflag %#x", t.c_iflag, t.c_oflag, t.c_cflag, t.c_lflag);
	for (int i = 0; i < 17; i++)
		printf("%d ", t.c_cc[i]);
	putchar('\n');
	struct winsize w = { 1, 1, 1, 1 };
	T(ioctl(s, TIOCGWINSZ, &w));
	SAY("%d %d %d %d", w.ws_row, w.ws_col, w.ws_xpixel, w.ws_ypixel);
	w = (struct winsize){ 25, 81, 0, 0 };
	T(ioctl(m, TIOCSWINSZ, &w));
	w.ws_row = 0;
	T(ioctl(s, TIOCGWINSZ, &w));
	SAY("%d %d", w.ws_row, w.ws_col);

	SAY("-- canonical");
	type("abc");
	show("echo", m);
	show("no line yet", s);
	type("d\n");
	show("echo", m);
	show("line", s);
	type("one\ntwo\n");
	show("first", s);
	show("second", s);
	show("echo", m);
	type("ab\177c\n");
	show("erase", s);
	show("erase echo", m);
	type("gone\025kept\n");
	show("kill", s);
	show("kill echo", m);
	type("two words\027x\n");
	show("werase", s);
	show("werase echo", m);
	type("\026\003\n");
	show("literal ^C", s);
	show("echo", m);
	type("\001\033\n");
	show("controls", s);
	show("control echo", m);
	type("end\004");
	show("eof after text", s);
	type("\004");
	show("eof alone", s);
	show("echo", m);
	type("a\rb\n");
	show("cr", s);
	show("cr second", s);
	show("echo", m);
	type("0123456789\n");
	T(read(s, buf, 4));
	T(ioctl(s, FIONREAD, &n));
	SAY("left %d", n);
	T(read(s, buf, 64));
	show("echo", m);

	SAY("-- output");
	write(s, "x\ny\tz\r\n", 7);
	show("opost", m);
	t.c_oflag &= ~(tcflag_t)OPOST;
	T(tcsetattr(s, TCSANOW, &t));
	write(s, "x\ny\n", 4);
	show("no opost", m);

	SAY("-- raw");
	back = t;
	cfmakeraw(&t);
	T(tcsetattr(s, TCSANOW, &t));
	type("ab\r\003");
	show("raw", s);
	show("no echo", m);
	t.c_cc[VMIN] = 3;
	t.c_cc[VTIME] = 0;
	tcsetattr(s, TCSANOW, &t);
	type("12");
	struct pollfd p = { s, POLLIN, 0 };
	T(poll(&p, 1, 50));
	type("345");
	T(read(s, buf, 64));
	t.c_cc[VMIN] = 0;
	tcsetattr(s, TCSANOW, &t);
	T(read(s, buf, 64));
	t.c_cc[VTIME] = 1;
	tcsetattr(s, TCSANOW, &t);
	struct timespec from;
	clock_gettime(CLOCK_MONOTONIC, &from);
	T(read(s, buf, 64));
	IS(elapsed_ms(&from) >= 90);
	t.c_cc[VMIN] = 5;
	tcsetattr(s, TCSANOW, &t);
	type("12");
	T(read(s, buf, 64));
	fcntl(s, F_SETFL, O_NONBLOCK);
	T(read(s, buf, 64));
	fcntl(s, F_SETFL, 0);
	T(tcsetattr(s, TCSANOW, &back));

	SAY("-- flush");
	type("pending\n");
	poll(&p, 1, LONG_MS);
	T(tcflush(s, TCIFLUSH));
	T(ioctl(s, FIONREAD, &n));
	SAY("left %d", n);
	show("echo", m);
	T(tcdrain(s));
	T(tcsendbreak(s, 0));
	T(tcflow(s, 9));
	T(ioctl(s, TIOCOUTQ, &n));
	SAY("%d", n);
	T(ioctl(s, TCGETS, 8));
	T(ioctl(s, 0x54ff, 0));
	T(tcgetattr((int)open("/dev/null", O_RDONLY), &t));

	SAY("-- hang-up");
	T(poll(&p, 1, 0));
	close(m);
	T(poll(&p, 1, 100));
	SAY("revents %#x", p.revents);
	T(read(s, buf, 10));
	T(write(s, "x", 1));
	T(ioctl(s, TIOCGWINSZ, &w));
	close(s);
	open_pair();
	write(s, "last", 4);
	close(s);
	show("data after the slave's close", m);
	show("then", m);
	p.fd = m;
	T(poll(&p, 1, 100));
	SAY("revents %#x", p.revents);
	close(m);
	return 0;
}
