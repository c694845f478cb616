/*
 * What a call has to give and cannot, for want of memory, it does not take: counts, events, signals, bytes and children are
 * still there for the next call, and a file that could not be opened is neither made nor emptied. Here nothing fails;
 * `cargo xtask abi taken --fail-alloc 0` makes each allocation of each call fail in turn. Sockets: unix/sock_taken.c.
 */
#include "failing.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static int a, b;
static char bytes[4096];

/* --- read and its like --- */

static void count_three(void)
{
	uint64_t three = 3;
	MUST(write(b, &three, sizeof three));
}

static long read_some(void)
{
	return read(b, bytes, sizeof bytes);
}

static int is_three(long size)
{
	return size == 8 && *(uint64_t *)bytes == 3;
}

static void expire(void)
{
	struct itimerspec soon = { .it_value = { 0, 1 } };
	MUST(timerfd_settime(b, TFD_TIMER_ABSTIME, &soon, NULL));
	struct pollfd expired = { .fd = b, .events = POLLIN };
	MUST(poll(&expired, 1, LONG_MS));
}

static int is_expired(long size)
{
	return size == 8 && *(uint64_t *)bytes == 1;
}

static void raise_two(void)
{
	union sigval value = { .sival_int = 5 };
	MUST(sigqueue(getpid(), SIGRTMIN, value));
	value.sival_int = 6;
	MUST(sigqueue(getpid(), SIGRTMIN, value));
}

static int are_two_signals(long size)
{
	struct signalfd_siginfo *info = (void *)bytes;
	return size == 2 * sizeof *info && info[0].ssi_int == 5 && info[1].ssi_int == 6;
}

static long wait_signal(void)
{
	siginfo_t info;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	struct timespec none = { 0, 0 };
	return sigtimedwait(&set, &info, &none) < 0 ? -1 : info.si_value.sival_int;
}

static int is_first_signal(long value)
{
	return value == 5 && wait_signal() == 6;
}

static void make_one(void)
{
	close((int)MUST(open("watched/a name", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)));
	MUST(unlink("watched/a name"));
}

static int is_made(long size)
{
	struct inotify_event *event = (void *)bytes;
	return size > 16 && event->mask == IN_CREATE && strcmp(event->name, "a name") == 0;
}

static void of_counts(void)
{
	b = (int)MUST(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	struct call count = { "read, eventfd", count_three, read_some, NULL, is_three };
	fail_each(&count);
	close(b);
	b = (int)MUST(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	struct call timer = { "read, timerfd", expire, read_some, NULL, is_expired };
	fail_each(&timer);
	close(b);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL));
	b = (int)MUST(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	struct call signals = { "read, signalfd", raise_two, read_some, NULL, are_two_signals };
	fail_each(&signals);
	close(b);
	struct call signal = { "sigtimedwait", raise_two, wait_signal, NULL, is_first_signal };
	fail_each(&signal);
	MUST(mkdir("watched", 0700));
	b = (int)MUST(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
	MUST(inotify_add_watch(b, "watched", IN_CREATE));
	struct call watch = { "read, inotify", make_one, read_some, NULL, is_made };
	fail_each(&watch);
	close(b);
}

static int pipe_ends[2];

static void fill_pipe(void)
{
	MUST(write(pipe_ends[1], "bytes", 5));
}

static long read_pipe(void)
{
	return read(pipe_ends[0], bytes, sizeof bytes);
}

static long splice_out(void)
{
	return splice(pipe_ends[0], NULL, b, NULL, 4096, SPLICE_F_NONBLOCK);
}

static int are_bytes(long size)
{
	return size == 5 && memcmp(bytes, "bytes", 5) == 0;
}

static int are_spliced(long size)
{
	memset(bytes, 0, 5);
	int whole = size == 5 && pread(b, bytes, 6, 0) == 5 && memcmp(bytes, "bytes", 5) == 0;
	MUST(ftruncate(b, 0));
	MUST(lseek(b, 0, SEEK_SET));
	return whole;
}

static void of_pipes(void)
{
	MUST(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK));
	struct call call = { "read, pipe", fill_pipe, read_pipe, NULL, are_bytes };
	fail_each(&call);
	b = (int)MUST(open("spliced", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	struct call out = { "splice, pipe to file", fill_pipe, splice_out, NULL, are_spliced };
	fail_each(&out);
	close(b);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

static void mark_ready(void)
{
	count_three();
}

static long wait_edge(void)
{
	struct epoll_event event;
	long count = epoll_wait(a, &event, 1, 0);
	/* An event that is lost is no failure of the call, so it is one here. */
	return count == 1 ? 1 : count == 0 ? 0 : -1;
}

static int is_edge(long count)
{
	return count == 1 && read_some() == 8;
}

static void of_epoll(void)
{
	a = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
	b = (int)MUST(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLET };
	MUST(epoll_ctl(a, EPOLL_CTL_ADD, b, &wanted));
	struct call call = { "epoll_wait, edge", mark_ready, wait_edge, NULL, is_edge };
	fail_each(&call);
	close(a);
	close(b);
}

static int sysv;

static void send_sysv(void)
{
	struct { long type; char text[1]; } message = { 7, { 'x' } };
	MUST(msgsnd(sysv, &message, 1, 0));
}

static long receive_sysv(void)
{
	struct { long type; char text[64]; } message = { 0 };
	long size = msgrcv(sysv, &message, 64, 7, IPC_NOWAIT);
	bytes[0] = message.text[0];
	return size;
}

static int is_x(long size)
{
	return size == 1 && bytes[0] == 'x';
}

static void of_queues(void)
{
	sysv = (int)MUST(msgget(IPC_PRIVATE, 0600));
	struct call system = { "msgrcv", send_sysv, receive_sysv, NULL, is_x };
	fail_each(&system);
	MUST(msgctl(sysv, IPC_RMID, NULL));
}

static pid_t child;

static void end_child(void)
{
	child = (pid_t)MUST(fork());
	if (child == 0)
		_exit(7);
	siginfo_t info;
	MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
}

static long wait_child(void)
{
	int status = 0;
	struct rusage *none = NULL;
	pid_t got = (pid_t)syscall(SYS_wait4, child, &status, WNOHANG, none);
	return got < 0 ? -1 : got == child ? WEXITSTATUS(status) : 0;
}

static int is_seven(long status)
{
	return status == 7;
}

static void of_children(void)
{
	struct call call = { "wait4", end_child, wait_child, NULL, is_seven };
	fail_each(&call);
}

/* --- open --- */

static void nothing_there(void)
{
	unlink("made");
}

static long open_new(void)
{
	return open("made", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int is_not_made(void)
{
	return access("made", F_OK) != 0 && errno == ENOENT;
}

static int is_opened(long fd)
{
	int whole = access("made", F_OK) == 0;
	close((int)fd);
	return whole;
}

static void file_there(void)
{
	write_file("kept", "text");
}

static long open_emptied(void)
{
	return open("kept", O_WRONLY | O_TRUNC | O_CLOEXEC);
}

static int is_full(void)
{
	struct stat st;
	return stat("kept", &st) == 0 && st.st_size == 4;
}

static int is_emptied(long fd)
{
	close((int)fd);
	struct stat st;
	return stat("kept", &st) == 0 && st.st_size == 0;
}

static void opens(void)
{
	struct call made = { "open, O_CREAT", nothing_there, open_new, is_not_made, is_opened };
	fail_each(&made);
	struct call emptied = { "open, O_TRUNC", file_there, open_emptied, is_full, is_emptied };
	fail_each(&emptied);
}

int main(void)
{
	scratch();
	failing_begin();
	of_counts();
	of_pipes();
	of_epoll();
	of_queues();
	of_children();
	opens();
	return 0;
}
