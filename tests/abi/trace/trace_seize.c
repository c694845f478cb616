/*
 * trace_seize: PTRACE_SEIZE stops nobody; PTRACE_INTERRUPT does; stops of the whole process are events, in which
 * PTRACE_LISTEN waits for SIGCONT; children begin with an event.
 */
#include "trace.h"

static void run(void)
{
	for (;;)
		pause();
}

static pid_t child(void)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		run();
	return pid;
}

int main(void)
{
	siginfo_t info;
	SAY("-- seize and interrupt");
	pid_t a = child();
	T(ptrace(PTRACE_SEIZE, a, 4L, 0));
	T(ptrace(PTRACE_SEIZE, a, 0, 0x400L));
	T(ptrace(PTRACE_SEIZE, a, 0, (long)PTRACE_O_TRACESYSGOOD));
	T(ptrace(PTRACE_SEIZE, a, 0, 0));
	T(waitpid(a, NULL, WNOHANG | __WALL));
	T(ptrace(PTRACE_CONT, a, 0, 0));
	T(ptrace(PTRACE_INTERRUPT, a, 0, 0));
	stop_of("interrupted", a);
	T(ptrace(PTRACE_GETSIGINFO, a, 0, &info));
	SAY("signal %d, code %#x", info.si_signo, info.si_code);
	T(ptrace(PTRACE_INTERRUPT, a, 0, 0));
	T(ptrace(PTRACE_CONT, a, 0, 0));
	stop_of("once more", a);
	T(ptrace(PTRACE_CONT, a, 0, 0));

	SAY("-- a signal");
	kill(a, SIGWINCH);
	stop_of("the signal", a);
	T(ptrace(PTRACE_LISTEN, a, 0, 0));
	T(ptrace(PTRACE_CONT, a, 0, 0));

	SAY("-- the process stops, and is listened to");
	kill(a, SIGSTOP);
	stop_of("the signal", a);
	T(ptrace(PTRACE_CONT, a, 0, SIGSTOP));
	stop_of("the stop", a);
	T(ptrace(PTRACE_GETSIGINFO, a, 0, &info));
	SAY("signal %d, code %#x", info.si_signo, info.si_code);
	T(ptrace(PTRACE_LISTEN, a, 0, 0));
	T(waitpid(a, NULL, WNOHANG | __WALL));
	T(ptrace(PTRACE_GETSIGINFO, a, 0, &info));
	kill(a, SIGCONT);
	stop_of("it goes on", a);
	T(ptrace(PTRACE_CONT, a, 0, 0));
	stop_of("the signal", a);
	T(ptrace(PTRACE_CONT, a, 0, SIGCONT));

	SAY("-- listened to, and interrupted");
	kill(a, SIGSTOP);
	stop_of("the signal", a);
	T(ptrace(PTRACE_CONT, a, 0, SIGSTOP));
	stop_of("the stop", a);
	T(ptrace(PTRACE_LISTEN, a, 0, 0));
	T(ptrace(PTRACE_INTERRUPT, a, 0, 0));
	stop_of("interrupted", a);
	T(ptrace(PTRACE_CONT, a, 0, 0));
	T(waitpid(a, NULL, WNOHANG | __WALL));
	kill(a, SIGKILL);
	stop_of("its end", a);

	SAY("-- attach, and what is not for those");
	pid_t b = child();
	T(ptrace(PTRACE_ATTACH, b, 0, 0));
	stop_of("attached", b);
	T(ptrace(PTRACE_INTERRUPT, b, 0, 0));
	T(ptrace(PTRACE_LISTEN, b, 0, 0));
	T(ptrace(PTRACE_DETACH, b, 0, 0));
	T(ptrace(PTRACE_DETACH, b, 0, 0));

	SAY("-- attach to what is stopped");
	kill(b, SIGSTOP);
	int status;
	MUST(waitpid(b, &status, WUNTRACED));
	say_status("untraced", status);
	T(ptrace(PTRACE_SEIZE, b, 0, 0));
	stop_of("seized", b);
	T(ptrace(PTRACE_DETACH, b, 0, 0));
	T(ptrace(PTRACE_ATTACH, b, 0, 0));
	stop_of("attached", b);
	T(ptrace(PTRACE_DETACH, b, 0, 0));
	sleep_ms(20);
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", b);
	int fd = open(path, O_RDONLY);
	text[read(fd, text, sizeof text - 1)] = 0;
	close(fd);
	SAY("state %c", strrchr(text, ')')[2]);
	kill(b, SIGKILL);
	stop_of("its end", b);

	SAY("-- children of a seized one");
	pid_t c = (pid_t)MUST(fork());
	if (c == 0) {
		raise(SIGSTOP);
		pid_t grandchild = fork();
		if (grandchild == 0)
			_exit(2);
		waitpid(grandchild, &status, 0);
		execl("/proc/self/exe", "trace_seize", NULL);
	}
	MUST(waitpid(c, &status, WUNTRACED));
	MUST(ptrace(PTRACE_SEIZE, c, 0, (long)(PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL)));
	stop_of("seized", c);
	MUST(ptrace(PTRACE_LISTEN, c, 0, 0));
	kill(c, SIGCONT);
	stop_of("SIGCONT told", c);
	MUST(ptrace(PTRACE_CONT, c, 0, 0));
	stop_of("and as a signal", c);
	MUST(ptrace(PTRACE_CONT, c, 0, 0));
	stop_of("fork", c);
	unsigned long grandchild;
	MUST(ptrace(PTRACE_GETEVENTMSG, c, 0, &grandchild));
	stop_of("the new one", (pid_t)grandchild);
	MUST(ptrace(PTRACE_CONT, (pid_t)grandchild, 0, 0));
	stop_of("its end", (pid_t)grandchild);
	kill(c, SIGKILL);
	stop_of("the end", c);
	return 0;
}
