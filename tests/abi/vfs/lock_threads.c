/*
 * Locks of a process with several threads: flock of one open file by two threads, one of which waits; and record locks,
 * where two threads wait for two other processes, and one of those asks for what the process has.
 */
#include "check.h"
#include <pthread.h>
#include <sys/file.h>
#include <sys/time.h>

static int fd, own_g;

/* Byte 1 is that of another file: what happens to it wakes nobody who waits for the others. */
static long set(int file, int type, long start, int cmd)
{
	if (start == 1)
		file = own_g;
	struct flock l = { .l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = 1 };
	return fcntl(file, cmd, &l);
}

static void *locks_exclusively(void *unused)
{
	(void)unused;
	return (void *)(long)flock(fd, LOCK_EX);
}

static void *waits_for(void *byte)
{
	return (void *)set(fd, F_WRLCK, (long)byte, F_SETLKW);
}

static void nothing(int sig)
{
	(void)sig;
}

/* One open file has one lock, whichever thread asked last. */
static void one_flock(void)
{
	pthread_t thread;
	void *result;
	int other = (int)MUST(open("f", O_RDWR)), third = (int)MUST(open("f", O_RDWR));
	MUST(flock(other, LOCK_SH));
	MUST(pthread_create(&thread, NULL, locks_exclusively, NULL) ? -1 : 0);
	sleep_ms(100);
	T(flock(fd, LOCK_SH));
	T(flock(other, LOCK_UN));
	pthread_join(thread, &result);
	IS(result == NULL);
	T(flock(third, LOCK_SH | LOCK_NB));
	T(flock(fd, LOCK_SH));
	T(flock(third, LOCK_SH | LOCK_NB));
	T(flock(third, LOCK_EX | LOCK_NB));
	T(flock(fd, LOCK_UN));
	T(flock(third, LOCK_EX | LOCK_NB));
	close(other);
	close(third);
}

/* A process that has a byte and does as it is told, one letter at a time. */
static pid_t helper(int byte, int pipes[4])
{
	MUST(pipe(pipes));
	MUST(pipe(pipes + 2));
	pid_t pid = (pid_t)MUST(fork());
	if (pid)
		return pid;
	char order;
	struct sigaction act = { .sa_handler = nothing };
	int file = (int)MUST(open("f", O_RDWR));
	own_g = (int)MUST(open("g", O_RDWR));
	sigaction(SIGALRM, &act, NULL);
	close(pipes[1]);
	while (read(pipes[0], &order, 1) == 1) {
		long result = 0;
		int e;
		errno = 0;
		if (order == 'l') {
			result = set(file, F_WRLCK, byte, F_SETLK);
		} else if (order == 'u') {
			result = set(file, F_UNLCK, byte, F_SETLK);
		} else {
			struct itimerval soon = { { 0, 0 }, { 0, 300000 } };
			setitimer(ITIMER_REAL, &soon, NULL);
			result = set(file, F_WRLCK, order - '0', F_SETLKW);
		}
		e = result ? errno : 0;
		/* The alarm must not come while the next order is read. */
		struct itimerval never = { { 0, 0 }, { 0, 0 } };
		setitimer(ITIMER_REAL, &never, NULL);
		MUST(write(pipes[3], &e, sizeof e));
	}
	_exit(0);
}

static const char *tell(int pipes[4], char order)
{
	int e = -1;
	MUST(write(pipes[1], &order, 1));
	MUST(read(pipes[2], &e, sizeof e));
	return e ? err_name(e) : "done";
}

static void two_waits(int first_ends)
{
	int a[4], b[4];
	pthread_t one, two;
	void *result;
	pid_t pid_a = helper(0, a), pid_b = helper(1, b);
	SAY("a takes 0: %s", tell(a, 'l'));
	SAY("b takes 1: %s", tell(b, 'l'));
	T(set(fd, F_WRLCK, 2, F_SETLK));
	T(set(fd, F_WRLCK, 3, F_SETLK));
	MUST(pthread_create(&one, NULL, waits_for, (void *)0) ? -1 : 0);
	sleep_ms(50);
	MUST(pthread_create(&two, NULL, waits_for, (void *)1) ? -1 : 0);
	sleep_ms(50);
	if (first_ends) {
		SAY("a gives 0 back: %s", tell(a, 'u'));
		pthread_join(one, &result);
	} else {
		SAY("b gives 1 back: %s", tell(b, 'u'));
		pthread_join(two, &result);
	}
	IS(result == NULL);
	SAY("a waits for 2: %s", tell(a, '2'));
	SAY("b waits for 3: %s", tell(b, '3'));
	if (first_ends) {
		SAY("b gives 1 back: %s", tell(b, 'u'));
		pthread_join(two, &result);
	} else {
		SAY("a gives 0 back: %s", tell(a, 'u'));
		pthread_join(one, &result);
	}
	IS(result == NULL);
	SAY("a waits for 2: %s", tell(a, '2'));
	T(set(fd, F_UNLCK, 2, F_SETLK));
	SAY("a waits for 2: %s", tell(a, '2'));
	for (int byte = 0; byte < 4; byte++)
		set(fd, F_UNLCK, byte, F_SETLK);
	for (int i = 0; i < 4; i++) {
		close(a[i]);
		close(b[i]);
	}
	kill(pid_a, SIGKILL);
	kill(pid_b, SIGKILL);
	reap(pid_a);
	reap(pid_b);
}

int main(void)
{
	scratch();
	write_file("f", "0123456789");
	write_file("g", "0123456789");
	fd = (int)MUST(open("f", O_RDWR));
	own_g = (int)MUST(open("g", O_RDWR));
	one_flock();
	two_waits(0);
	two_waits(1);
	return 0;
}
