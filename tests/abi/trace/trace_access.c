/*
 * trace_access: who may trace whom; what /proc says; what becomes of tracees whose tracer ends; who waits for a process
 * that another one traces; memory of other processes.
 */
#include "trace.h"
#include <pthread.h>
#include <sys/prctl.h>

static char state_of(pid_t pid, int *tracer)
{
	char path[64], text[4096];
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	int fd = open(path, O_RDONLY);
	ssize_t got = read(fd, text, sizeof text - 1);
	close(fd);
	text[got > 0 ? got : 0] = 0;
	char *at = strstr(text, "TracerPid:");
	*tracer = at ? atoi(at + 10) : -1;
	at = strstr(text, "State:");
	return at ? at[7] : '?';
}

static pid_t sleeper(void)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static volatile pid_t tracee;

static void *other_thread(void *unused)
{
	(void)unused;
	T(ptrace(PTRACE_CONT, tracee, 0, 0));
	T(ptrace(PTRACE_PEEKDATA, tracee, &tracee, 0));
	int status;
	T(waitpid(tracee, &status, WNOHANG | __WALL | __WNOTHREAD));
	return NULL;
}

static char memory[3 * 4096] __attribute__((aligned(4096)));

int main(void)
{
	int tracer, status;
	SAY("-- whom");
	T(ptrace(PTRACE_ATTACH, getpid(), 0, 0));
	T(ptrace(PTRACE_ATTACH, 0, 0, 0));
	T(ptrace(PTRACE_ATTACH, -1, 0, 0));
	T(ptrace(PTRACE_ATTACH, 4000000, 0, 0));
	T(ptrace(PTRACE_ATTACH, 2, 0, 0));
	T(ptrace(PTRACE_CONT, getppid(), 0, 0));
	T(ptrace(PTRACE_PEEKDATA, 1, 0, 0));
	tracee = sleeper();
	T(ptrace(PTRACE_CONT, tracee, 0, 0));
	T(ptrace(PTRACE_ATTACH, tracee, 0, 0));
	T(ptrace(PTRACE_ATTACH, tracee, 0, 0));
	stop_of("attached", tracee);
	SAY("state %c", state_of(tracee, &tracer));
	IS(tracer == getpid());
	CHILD("somebody else") {
		T(ptrace(PTRACE_ATTACH, tracee, 0, 0));
		T(ptrace(PTRACE_CONT, tracee, 0, 0));
		fflush(stdout);
	} END;
	fflush(stdout);
	pthread_t thread;
	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_join(thread, NULL);
	MUST(ptrace(PTRACE_CONT, tracee, 0, 0));
	sleep_ms(20);
	SAY("state %c", state_of(tracee, &tracer));
	T(ptrace(PTRACE_PEEKDATA, tracee, memory, 0));
	kill(tracee, SIGKILL);
	stop_of("its end", tracee);

	SAY("-- twice");
	CHILD("traced already") {
		T(ptrace(PTRACE_TRACEME, 0, 0, 0));
		T(ptrace(PTRACE_TRACEME, 0, 0, 0));
		fflush(stdout);
	} END;

	SAY("-- other users");
	pid_t a = sleeper();
	CHILD("nobody") {
		MUST(setgid(65534));
		MUST(setuid(65534));
		T(ptrace(PTRACE_ATTACH, a, 0, 0));
		T(ptrace(PTRACE_SEIZE, a, 0, 0));
		T(ptrace(PTRACE_ATTACH, 1, 0, 0));
		MUST(prctl(PR_SET_DUMPABLE, 1));
		pid_t own = sleeper();
		T(ptrace(PTRACE_SEIZE, own, 0, 0));
		kill(own, SIGKILL);
		reap(own);
		pid_t shy = (pid_t)MUST(fork());
		if (shy == 0) {
			prctl(PR_SET_DUMPABLE, 0);
			for (;;)
				pause();
		}
		sleep_ms(20);
		T(ptrace(PTRACE_SEIZE, shy, 0, 0));
		kill(shy, SIGKILL);
		reap(shy);
		fflush(stdout);
	} END;
	kill(a, SIGKILL);
	reap(a);

	SAY("-- the tracer ends");
	pid_t b = sleeper(), c = sleeper();
	CHILD("the tracer") {
		MUST(ptrace(PTRACE_ATTACH, b, 0, 0));
		MUST(waitpid(b, &status, __WALL));
		MUST(ptrace(PTRACE_SEIZE, c, 0, (long)PTRACE_O_EXITKILL));
	} END;
	sleep_ms(20);
	SAY("state %c", state_of(b, &tracer));
	SAY("tracer %d", tracer);
	say_status("with EXITKILL", reap(c));
	kill(b, SIGKILL);
	say_status("without", reap(b));

	SAY("-- the parent waits for one that another traces");
	pid_t d = sleeper();
	int hand[2], ready[2];
	MUST(pipe(hand));
	MUST(pipe(ready));
	pid_t e = (pid_t)MUST(fork());
	if (e == 0) {
		MUST(ptrace(PTRACE_SEIZE, d, 0, 0));
		MUST(write(ready[1], "x", 1));
		char byte;
		MUST(read(hand[0], &byte, 1));
		stop_of("the tracer sees", d);
		MUST(ptrace(PTRACE_CONT, d, 0, SIGTERM));
		stop_of("the tracer sees", d);
		fflush(stdout);
		_exit(0);
	}
	char byte;
	MUST(read(ready[0], &byte, 1));
	kill(d, SIGTERM);
	sleep_ms(20);
	T(waitpid(d, &status, WNOHANG));
	fflush(stdout);
	MUST(write(hand[1], "x", 1));
	reap(e);
	say_status("then the parent", reap(d));

	SAY("-- memory of others");
	strcpy(memory, "hello");
	strcpy(memory + 4096, "world");
	pid_t f = sleeper();
	memset(memory, 0, sizeof memory);
	char one[6] = "", two[6] = "";
	struct iovec local[2] = { { one, 5 }, { two, 5 } }, remote[2] = { { memory, 5 }, { memory + 4096, 5 } };
	T(process_vm_readv(f, local, 2, remote, 2, 0));
	SAY("%s %s", one, two);
	struct iovec across = { memory + 4094, 4 }, to = { one, 4 };
	T(process_vm_readv(f, &to, 1, &across, 1, 0));
	IS(memcmp(one, "\0\0wo", 4) == 0);
	strcpy(one, "HELLO");
	T(process_vm_writev(f, local, 1, remote, 1, 0));
	strcpy(one, "-----");
	T(process_vm_readv(f, local, 1, remote, 1, 0));
	SAY("%s", one);
	remote[1].iov_base = (void *)8;
	T(process_vm_readv(f, local, 2, remote, 2, 0));
	T(process_vm_readv(f, local, 1, remote + 1, 1, 0));
	struct iovec text = { (void *)main, 4 };
	T(process_vm_readv(f, local, 1, &text, 1, 0));
	T(process_vm_writev(f, local, 1, &text, 1, 0));
	T(process_vm_readv(f, local, 1, remote, 1, 1));
	T(process_vm_readv(f, local, 1025, remote, 1, 0));
	T(process_vm_readv(4000000, local, 1, remote, 1, 0));
	T(process_vm_readv(f, local, 0, remote, 1, 0));
	remote[0].iov_len = -1;
	T(process_vm_readv(f, local, 1, remote, 1, 0));
	CHILD("nobody") {
		MUST(setgid(65534));
		MUST(setuid(65534));
		remote[0].iov_len = 5;
		T(process_vm_readv(f, local, 1, remote, 1, 0));
		T(process_vm_writev(f, local, 1, remote, 1, 0));
		fflush(stdout);
	} END;
	kill(f, SIGKILL);
	reap(f);
	return 0;
}
