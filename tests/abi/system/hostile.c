/*
 * What an attacker tries first: returns from signals that never came, timers that end beyond the end of time, more mappings than a
 * text of them should be made for, and files of /proc that were opened while it was still allowed. None of it may harm the kernel
 * or tell anything.
 */
#include "rights.h"
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/timerfd.h>

static void sigreturn_from(unsigned long sp)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		__asm__ volatile("mov %0, %%rsp; syscall" :: "r"(sp), "a"((long)SYS_rt_sigreturn) : "memory", "rcx", "r11");
		_exit(0);
	}
	say_status("sigreturn", reap(pid));
}

static void endless_timers(void)
{
	struct itimerval far = { { INT64_MAX, 999999 }, { 0, 1 } };
	struct itimerspec spec = { { INT64_MAX, 999999999 }, { 0, 1 } };
	sigset_t set;
	int number;
	uint64_t count;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	T(setitimer(ITIMER_REAL, &far, NULL));
	T(sigwait(&set, &number));
	T(setitimer(ITIMER_REAL, &(struct itimerval) { 0 }, NULL));
	far.it_value = far.it_interval;
	T(setitimer(ITIMER_REAL, &far, NULL));
	IS(alarm(0) > 1000000);
	timer_t timer;
	MUST(timer_create(CLOCK_MONOTONIC, NULL, &timer));
	T(timer_settime(timer, 0, &spec, NULL));
	T(sigwait(&set, &number));
	T(timer_gettime(timer, &spec));
	T(timer_delete(timer));
	int fd = (int)MUST(timerfd_create(CLOCK_MONOTONIC, 0));
	spec.it_value = (struct timespec) { 0, 1 };
	spec.it_interval = (struct timespec) { INT64_MAX, 999999999 };
	T(timerfd_settime(fd, 0, &spec, NULL));
	T(read(fd, &count, 8));
	T(timerfd_gettime(fd, &spec));
	close(fd);
}

static void many_mappings(void)
{
	static char block[65536];
	char *area = mmap(NULL, 16000 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (long i = 0; i < 16000; i += 2)
		MUST(mprotect(area + i * PAGE, PAGE, PROT_NONE));
	long lines = 0;
	int fd = (int)MUST(open("/proc/self/maps", O_RDONLY));
	for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;)
		for (ssize_t i = 0; i < n; i++)
			lines += block[i] == '\n';
	IS(lines > 16000);
	close(fd);
	MUST(munmap(area, 16000 * PAGE));
}

/* A file of /proc that was opened while its process was the opener's own tells nothing when it is another's. */
static void opened_before_exec(const char *file, const char *secret, int dumpable)
{
	static char text[1 << 16];
	char path[64];
	int ready[2], go[2];
	MUST(pipe(ready));
	MUST(pipe(go));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char *const args[] = { "./sleeper", "sleep", NULL }, *const env[] = { (char *)secret, NULL };
		MUST(setgid(1000));
		MUST(setuid(1000));
		if (dumpable)
			MUST(prctl(PR_SET_DUMPABLE, 1));
		MUST(write(ready[1], "u", 1));
		if (read(go[0], text, 1) == 1) {
			dup2(ready[1], 9);
			execve("./sleeper", args, env);
		}
		_exit(1);
	}
	pid_t spy = (pid_t)MUST(fork());
	if (spy == 0) {
		MUST(setgid(1000));
		MUST(setuid(1000));
		MUST(read(ready[0], text, 1));
		snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
		int fd = open(path, O_RDONLY);
		SAY("%s before exec: %s", file, fd >= 0 ? "open" : err_name(errno));
		MUST(write(go[1], "g", 1));
		MUST(read(ready[0], text, 1));
		ssize_t n = pread(fd, text, sizeof text - 1, 0);
		int seen = n > 0 && memmem(text, (size_t)n, secret, strlen(secret)) != NULL;
		SAY("%s after exec tells the secret: %s", file, seen ? "yes" : "no");
		fd = open(path, O_RDONLY);
		SAY("%s after exec: %s", file, fd >= 0 ? "open" : err_name(errno));
		_exit(0);
	}
	say_status("spy", reap(spy));
	kill(pid, SIGKILL);
	say_status("victim", reap(pid));
}

/* Messages without bytes fill a queue too. */
static void tiny_messages(int type, size_t len)
{
	int s[2];
	long sent = 0;
	MUST(socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, s));
	while (sent < 1000000 && send(s[0], "x", len, 0) == (ssize_t)len)
		sent++;
	SAY("type %d, %zu bytes: %s after %s", type, len, err_name(errno), sent > 100 && sent < 5000 ? "some" : "too few or too many");
	close(s[0]);
	close(s[1]);
}

/* Sockets in sockets: a chain that must not be let go of by recursion, and circles that nobody can receive any more. */
static void pass(int via, int fd)
{
	send_fds(via, "f", 1, &fd, 1, MSG_DONTWAIT);
}

static void sockets_in_sockets(void)
{
	int s[2], last = -1;
	for (int i = 0; i < 4000; i++) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		if (last >= 0) {
			pass(s[0], last);
			close(last);
		}
		close(s[0]);
		last = s[1];
	}
	T(close(last));
	for (int i = 0; i < 2000; i++) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		pass(s[0], s[1]);
		pass(s[1], s[0]);
		close(s[0]);
		close(s[1]);
	}
	/* what can still be received is not taken for garbage */
	int outer[2], inner[2], got = -1;
	char text[4] = "";
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, outer));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, inner));
	MUST(write(inner[1], "abc", 3));
	pass(inner[1], inner[0]);
	pass(outer[0], inner[0]);
	close(inner[0]);
	for (int i = 0; i < 600; i++) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		pass(s[0], s[1]);
		pass(s[1], s[0]);
		close(s[0]);
		close(s[1]);
	}
	char byte, control[CMSG_SPACE(sizeof got)];
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	T(recvmsg(outer[1], &m, 0));
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
	T(read(got, text, 3));
	SAY("received: %s", text);
}

/* A tower of epolls in which one event would travel along more ways than there are grains of sand. */
static void epolls_in_epolls(void)
{
	int level[4][40], last = 0;
	struct epoll_event event = { EPOLLIN, { 0 } };
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 40; j++)
			level[i][j] = (int)MUST(epoll_create1(0));
	int leaf = (int)MUST(eventfd(0, 0));
	for (int j = 0; j < 40; j++)
		MUST(epoll_ctl(level[0][j], EPOLL_CTL_ADD, leaf, &event));
	for (int i = 1; i < 4; i++)
		for (int j = 0; j < 40; j++)
			for (int k = 0; k < 40; k++)
				if (epoll_ctl(level[i][j], EPOLL_CTL_ADD, level[i - 1][k], &event) != 0)
					last = errno;
	SAY("refused in time: %s", err_name(last));
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 40; j++)
			close(level[i][j]);
	close(leaf);
	int inner = (int)MUST(epoll_create1(0));
	for (int i = 0; i < 3000; i++) {
		int outer = (int)MUST(epoll_create1(0));
		MUST(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event));
		close(outer);
	}
	close(inner);
}

/* Where another user's program lies is not told. */
static void hidden_addresses(void)
{
	pid_t parent = getpid();
	CHILD("a look at root's") {
		char path[64];
		unsigned long field[52] = { 0 };
		MUST(setgid(1000));
		MUST(setuid(1000));
		snprintf(path, sizeof path, "/proc/%d/stat", parent);
		char *at = strrchr(read_file(path), ')');
		int n = 2;
		for (char *word = strtok(at ? at + 1 : NULL, " "); word && n < 52; word = strtok(NULL, " "))
			field[n++] = strtoul(word, NULL, 10);
		void *head = NULL;
		size_t len = 0;
		T(syscall(SYS_get_robust_list, parent, &head, &len));
		SAY("code %lu to %lu, stack %lu, data %lu, heap %lu, arguments %lu", field[25], field[26], field[27], field[44], field[46], field[47]);
	} END;
}

/* A set-user-id program gains nothing while somebody else could change its working directory. */
static void shared_directories(void)
{
	CHILD("on its own") {
		MUST(setgid(1000));
		MUST(setuid(1000));
		T(execl("./sleeper", "sleeper", "id", NULL));
	} END;
	CHILD("with a companion") {
		MUST(setgid(1000));
		MUST(setuid(1000));
		pid_t own = getpid(), pid = (pid_t)MUST(syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0));
		if (pid == 0) {
			/* until the other is gone */
			MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
			while (getppid() == own)
				pause();
			_exit(0);
		}
		T(execl("./sleeper", "sleeper", "id", NULL));
	} END;
}

/* Who changes identity is not to be looked into until it says so. */
static void dumpable(void)
{
	CHILD("identities") {
		T(prctl(PR_GET_DUMPABLE));
		T(setuid(0));
		T(prctl(PR_GET_DUMPABLE));
		T(prctl(PR_SET_PDEATHSIG, SIGUSR1));
		T(setegid(5));
		T(prctl(PR_GET_DUMPABLE));
		int sig = -1;
		T(prctl(PR_GET_PDEATHSIG, &sig));
		IS(sig == 0);
		T(prctl(PR_SET_DUMPABLE, 1));
		T(setresuid(1000, 1000, 1000));
		T(prctl(PR_GET_DUMPABLE));
	} END;
}

/* A program of a user that wants to lie at address 0: it dies, as the call that would be refused is the last. */
static void first_page(void)
{
	static const unsigned char program[] = {
		0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0, 0x78, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0,
		1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 0, 0,
		0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x31, 0xff, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b,
	};
	int fd = (int)MUST(open("zero", O_WRONLY | O_CREAT, 0755));
	MUST(write(fd, program, sizeof program));
	MUST(ftruncate(fd, 4096));
	close(fd);
	CHILD("a program at 0") {
		MUST(setuid(1000));
		T(execl("./zero", "zero", NULL));
	} END;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "id") == 0) {
		SAY("effective user %d, real user %d", geteuid(), getuid());
		return 0;
	}
	if (argc > 1) {
		/* the set-user-id program */
		MUST(write(9, "r", 1));
		for (;;)
			pause();
	}
	scratch();
	for (unsigned long sp = 0; sp <= 16; sp += 4)
		sigreturn_from(sp);
	sigreturn_from(-8UL);
	sigreturn_from((unsigned long)NON_CANONICAL);
	sigreturn_from((unsigned long)KERNEL_ADDRESS);
	endless_timers();
	many_mappings();
	char block[4096];
	int in = (int)MUST(open("/proc/self/exe", O_RDONLY)), out = (int)MUST(open("sleeper", O_WRONLY | O_CREAT, 0700));
	for (ssize_t n; (n = read(in, block, sizeof block)) > 0;)
		MUST(write(out, block, (size_t)n));
	MUST(fchmod(out, 04755));
	close(in);
	close(out);
	opened_before_exec("environ", "SECRET=sesame", 1);
	opened_before_exec("mem", "SECRET=sesame", 0);
	tiny_messages(SOCK_STREAM, 1);
	tiny_messages(SOCK_SEQPACKET, 0);
	sockets_in_sockets();
	epolls_in_epolls();
	hidden_addresses();
	shared_directories();
	dumpable();
	first_page();
	return 0;
}
