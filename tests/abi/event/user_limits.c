/*
 * What one user may have: pages of pipes (fs.pipe-user-pages-soft and -hard), and files that his epolls watch (fs.epoll.max_user_watches).
 * The limits bind nobody with CAP_SYS_RESOURCE or CAP_SYS_ADMIN but that of watches, which binds all.
 */
#include "check.h"
#include <sys/epoll.h>

static int ends[64][2];

static void close_all(void)
{
	for (int i = 0; i < 64; i++)
		if (ends[i][0] > 0)
			close(ends[i][0]), close(ends[i][1]), ends[i][0] = 0;
}

/* Makes pipes until one is refused, and says how large they are. */
static void make(int most)
{
	int last = -1;
	for (int i = 0; i < most; i++) {
		if (pipe(ends[i]) != 0) {
			printf("%d: %s\n", i, err_name(errno));
			ends[i][0] = 0;
			return;
		}
		int size = fcntl(ends[i][0], F_GETPIPE_SZ);
		if (size != last)
			printf("%d: %d bytes\n", i, last = size);
	}
	printf("%d made\n", most);
}

static void of_a_user(void)
{
	MUST(setresuid(1001, 1001, 1001));
}

static void soft(void)
{
	make(12);
	T(fcntl(ends[0][0], F_SETPIPE_SZ, 1 << 17));
	T(fcntl(ends[0][0], F_SETPIPE_SZ, 1 << 12));
	T(fcntl(ends[0][0], F_SETPIPE_SZ, 1 << 13));
	close_all();
	make(2);
	T(fcntl(ends[0][0], F_SETPIPE_SZ, 1 << 18));
	T(fcntl(ends[0][0], F_SETPIPE_SZ, 1 << 17));
}

static void hard(void)
{
	make(12);
	T(fcntl(ends[0][0], F_SETPIPE_SZ, 1 << 17));
	T(fcntl(ends[0][0], F_SETPIPE_SZ, 1 << 12));
	make(1);
	close_all();
	make(4);
}

/* A fifo counts as a pipe of who opens it first. */
static void fifo(void)
{
	make(7);
	MUST(mkfifo("/tmp/user_limits", 0666));
	int fd = open("/tmp/user_limits", O_RDWR | O_NONBLOCK);
	printf("fifo %d\n", fcntl(fd, F_GETPIPE_SZ));
	int again = (int)MUST(open("/tmp/user_limits", O_RDWR | O_NONBLOCK));
	printf("again %d\n", fcntl(again, F_GETPIPE_SZ));
	unlink("/tmp/user_limits");
}

static int add(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void watches(void)
{
	int epoll = (int)MUST(epoll_create1(0)), other = (int)MUST(epoll_create1(0));
	make(4);
	T(add(epoll, ends[0][0]));
	T(add(epoll, ends[1][0]));
	T(add(other, ends[1][0]));
	T(add(other, ends[2][0]));
	T(epoll_ctl(epoll, EPOLL_CTL_DEL, ends[0][0], NULL));
	T(add(other, ends[2][0]));
	T(add(epoll, ends[3][0]));
	close(ends[1][0]), close(ends[1][1]);
	T(add(epoll, ends[3][0]));
	T(add(epoll, ends[0][0]));
	T(add(epoll, ends[0][1]));
	close(other);
	T(add(epoll, ends[0][1]));
	T(add(epoll, ends[0][1]));
}

int main(void)
{
	char kept[64];
	MUST(put_setting("fs/pipe-user-pages-soft", "100"));
	CHILD("soft") {
		of_a_user();
		soft();
	} END;
	CHILD("fifo") {
		of_a_user();
		fifo();
	} END;
	CHILD("root") {
		make(12);
	} END;
	MUST(put_setting("fs/pipe-user-pages-soft", "0"));
	MUST(put_setting("fs/pipe-user-pages-hard", "100"));
	CHILD("hard") {
		of_a_user();
		hard();
	} END;
	MUST(put_setting("fs/pipe-user-pages-hard", "0"));
	MUST(put_setting("fs/pipe-user-pages-soft", "16384"));
	snprintf(kept, sizeof kept, "%s", read_file("/proc/sys/fs/epoll/max_user_watches"));
	IS(atol(kept) > 1000);
	MUST(put_setting("fs/epoll/max_user_watches", "3"));
	CHILD("watches") {
		of_a_user();
		watches();
	} END;
	CHILD("watches of root") {
		watches();
	} END;
	MUST(put_setting("fs/epoll/max_user_watches", kept));
	return 0;
}
