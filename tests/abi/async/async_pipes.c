/*
 * O_ASYNC of pipes and FIFOs: what makes each end's owner a signal, how often, with which code, band and descriptor; two
 * openings of one FIFO; who is told no more after O_ASYNC is off or the file is closed, and that a descriptor's copy changes nothing.
 */
#include "told.h"

static int BASE;
#define WITHIN 0
static char bytes[1 << 17];

static void reads(void)
{
	int p[2];
	MUST(pipe2(p, O_NONBLOCK));
	BASE = p[0];
	asks(p[0]);
	told_within("asked", BASE, 0);
	TOLD(write(p[1], "a", 1));
	TOLD(write(p[1], "b", 1));
	TOLD(write(p[1], "", 0));
	TOLD(write(p[1], (void *)1, 1));
	TOLD(read(p[0], bytes, 1));
	TOLD(write(p[1], bytes, sizeof bytes));
	TOLD(write(p[1], "c", 1));
	TOLD(write(p[1], "c", 1));
	int q[2];
	MUST(pipe(q));
	MUST(write(q[1], "text", 4));
	while (read(p[0], bytes, sizeof bytes) > 0)
		;
	TOLD(tee(q[0], p[1], 4, 0));
	TOLD(splice(q[0], NULL, p[1], NULL, 4, 0));
	TOLD(close(p[1]));
	TOLD(read(p[0], bytes, sizeof bytes));
	TOLD(read(p[0], bytes, sizeof bytes));
	close(p[0]);
	close(q[0]);
	close(q[1]);
}

static void writes(void)
{
	int p[2];
	MUST(pipe2(p, O_NONBLOCK));
	BASE = p[0];
	asks(p[1]);
	TOLD(write(p[1], "a", 1));
	TOLD(read(p[0], bytes, 1));
	TOLD(read(p[0], bytes, 1));
	TOLD(read(p[0], bytes, 0));
	TOLD(write(p[1], bytes, sizeof bytes));
	TOLD(write(p[1], "c", 1));
	TOLD(read(p[0], bytes, 1));
	TOLD(read(p[0], bytes, 4095));
	TOLD(fcntl(p[1], F_SETPIPE_SZ, 1 << 17));
	TOLD(close(p[0]));
	signal(SIGPIPE, SIG_IGN);
	TOLD(write(p[1], "c", 1));
	close(p[1]);
}

static void turns(void)
{
	int p[2], on = 1, off = 0;
	MUST(pipe(p));
	BASE = p[0];
	asks(p[0]);
	MUST(fcntl(p[0], F_SETFL, 0));
	TOLD(write(p[1], "a", 1));
	MUST(ioctl(p[0], FIOASYNC, &on));
	TOLD(write(p[1], "a", 1));
	MUST(ioctl(p[0], FIOASYNC, &off));
	TOLD(write(p[1], "a", 1));
	int copy = (int)MUST(dup(p[0]));
	MUST(ioctl(copy, FIOASYNC, &on));
	MUST(ioctl(p[0], FIOASYNC, &on));
	told_within("asked by the copy", BASE, 0);
	MUST(write(p[1], "a", 1));
	told_within("of the copy", copy, 0);
	MUST(close(copy));
	MUST(write(p[1], "a", 1));
	told_within("of the copy that is closed", copy, 0);
	MUST(fcntl(p[0], F_SETSIG, 0));
	TOLD(write(p[1], "a", 1));
	MUST(fcntl(p[0], F_SETSIG, SIGIO));
	TOLD(write(p[1], "a", 1));
	MUST(fcntl(p[0], F_SETSIG, SIGURG));
	TOLD(write(p[1], "a", 1));
	MUST(fcntl(p[0], F_SETOWN, 0));
	TOLD(write(p[1], "a", 1));
	asks(p[0]);
	pid_t child = fork();
	if (child == 0) {
		sleep_ms(100);
		_exit(0);
	}
	MUST(close(p[0]));
	MUST(write(p[1], "a", 1));
	told_within("closed here, open in a child", BASE, 0);
	MUST(waitpid(child, NULL, 0));
	signal(SIGPIPE, SIG_IGN);
	TOLD(write(p[1], "a", 1));
	close(p[1]);
}

static void fifos(void)
{
	unlink("/tmp/async");
	MUST(mkfifo("/tmp/async", 0600));
	int a = (int)MUST(open("/tmp/async", O_RDONLY | O_NONBLOCK));
	int b = (int)MUST(open("/tmp/async", O_RDWR));
	BASE = a;
	asks(a);
	asks(b);
	TOLD(write(b, "a", 1));
	TOLD(read(a, bytes, 1));
	int c = (int)MUST(open("/tmp/async", O_WRONLY | O_ASYNC));
	IS(fcntl(c, F_GETFL) & O_ASYNC);
	told_within("opened", BASE, 0);
	TOLD(write(c, "a", 1));
	TOLD(close(b));
	TOLD(close(c));
	c = (int)MUST(open("/tmp/async", O_WRONLY));
	told_within("opened again", BASE, 0);
	TOLD(close(c));
	close(a);
}

int main(void)
{
	told_begin();
	reads();
	writes();
	turns();
	fifos();
	return 0;
}
