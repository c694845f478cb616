/*
 * A transfer that waits keeps nobody else who has the same open file from it: a splice that waits for room in a pipe, and a
 * reader of /dev/kmsg that waits for a line. Who waits for such a reader can be killed.
 */
#include "full_pipe.h"

/* Runs a block in a child that is given two seconds: SOON("name") { ... } DONE */
#define SOON(name) do { const char *name_ = (name); fflush(stdout); \
			pid_t pid_ = (pid_t)MUST(fork()); if (pid_ == 0) {
#define DONE _exit(0); } ended(name_, pid_); } while (0)

enum { MOST = 16 };
static pid_t late[MOST];
static int many;

static void ended(const char *name, pid_t pid)
{
	int status;
	for (int i = 0; i < 400; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			say_status(name, status);
			return;
		}
		sleep_ms(5);
	}
	SAY("%s: waits", name);
	late[many++] = pid;
}

static pid_t asleep(void (*act)(void))
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		act();
		_exit(0);
	}
	IS(wait_state(pid, "S"));
	return pid;
}

static void from_here(void)
{
	to_pipe(NULL);
}

static void from_there(void)
{
	off_t at = 7;
	to_pipe(&at);
}

static void beside_a_splice(void (*act)(void))
{
	MUST(lseek(file, 1000, SEEK_SET));
	pid_t pid = asleep(act);
	SOON("lseek") {
		T(lseek(file, 0, SEEK_CUR));
	} DONE;
	SOON("read") {
		T(read(file, bytes, 10));
	} DONE;
	SOON("write") {
		T(write(file, bytes, 10));
	} DONE;
	SOON("a lock from here") {
		struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = 0, .l_len = 1 };
		T(fcntl(file, F_SETLK, &l));
	} DONE;
	SOON("another splice, killed") {
		alarm(1);
		to_pipe(NULL);
	} DONE;
	kill(pid, SIGKILL);
	say_status("who waited", reap(pid));
	for (; many; many--)
		reap(late[many - 1]);
}

static int log_fd;

static void lines(void)
{
	while (read(log_fd, bytes, sizeof bytes) > 0)
		;
}

int main(void)
{
	fill();
	beside_a_splice(from_here);
	beside_a_splice(from_there);

	log_fd = (int)MUST(open("/dev/kmsg", O_RDONLY));
	MUST(lseek(log_fd, 0, SEEK_END));
	pid_t pid = asleep(lines);
	SOON("lseek") {
		T(lseek(log_fd, 0, SEEK_END));
	} DONE;
	SOON("another reader, killed") {
		alarm(1);
		lines();
	} DONE;
	kill(pid, SIGKILL);
	say_status("who waited", reap(pid));
	return 0;
}
