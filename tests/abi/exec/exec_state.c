/*
 * What survives execve and what does not: handlers become default, ignored stays ignored, mask and pending
 * signals stay, alternate stack and timers of the old program, umask, cwd, close-on-exec, pids, alarm.
 */
#include "check.h"
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

static void on_signal(int s) {}

static const char *disposition(int sig)
{
	struct sigaction sa;
	sigaction(sig, NULL, &sa);
	return sa.sa_handler == SIG_DFL ? "default" : sa.sa_handler == SIG_IGN ? "ignored" : "handler";
}

static void child(char **argv)
{
	sigset_t set;
	stack_t ss;
	SAY("USR1 %s, USR2 %s, HUP %s", disposition(SIGUSR1), disposition(SIGUSR2), disposition(SIGHUP));
	sigprocmask(SIG_BLOCK, NULL, &set);
	SAY("TERM blocked %d, INT blocked %d", sigismember(&set, SIGTERM), sigismember(&set, SIGINT));
	sigpending(&set);
	SAY("TERM pending %d", sigismember(&set, SIGTERM));
	sigaltstack(NULL, &ss);
	SAY("altstack flags %d size %zu", ss.ss_flags, ss.ss_size);
	SAY("same pid %d, same parent %d", atoi(argv[2]) == getpid(), atoi(argv[3]) == getppid());
	char cwd[64];
	SAY("cwd %s, umask %o", getcwd(cwd, sizeof cwd), umask(0));
	for (int fd = 20; fd < 24; fd++)
		SAY("fd %d: %s", fd, fcntl(fd, F_GETFD) < 0 ? err_name(errno) : "open");
	SAY("offset %ld", (long)lseek(21, 0, SEEK_CUR));
	struct itimerval it;
	getitimer(ITIMER_REAL, &it);
	IS(it.it_value.tv_sec > 90);
	struct rlimit rl;
	getrlimit(RLIMIT_NOFILE, &rl);
	SAY("nofile %ld", (long)rl.rlim_cur);
	SAY("nice %d, dumpable %d, keepcaps %d, pdeathsig %d", getpriority(PRIO_PROCESS, 0),
	    prctl(PR_GET_DUMPABLE), prctl(PR_GET_KEEPCAPS), ({ int s = -1; prctl(PR_GET_PDEATHSIG, &s); s; }));
	char name[16];
	prctl(PR_GET_NAME, name);
	SAY("name %s", name);
	SAY("no_new_privs %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	SAY("locks: %s", ({ struct flock l = { .l_type = F_WRLCK }; fcntl(21, F_GETLK, &l);
			    l.l_type == F_UNLCK ? "mine or none" : "another's"; }));
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		child(argv);
		return 0;
	}
	scratch();
	write_file("f", "0123456789");
	CHILD("exec") {
		char pid[16], ppid[16];
		stack_t ss = { .ss_sp = pages(8), .ss_size = 8 * PAGE };
		sigset_t set;
		signal(SIGUSR1, on_signal);
		signal(SIGUSR2, SIG_IGN);
		sigaltstack(&ss, NULL);
		sigemptyset(&set);
		sigaddset(&set, SIGTERM);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGTERM);
		MUST(chdir("/tmp"));
		umask(027);
		int fd = (int)MUST(open(scratch_path, O_RDONLY));
		int f = (int)MUST(openat(fd, "f", O_RDWR));
		MUST(lseek(f, 5, SEEK_SET));
		MUST(dup2(f, 21));
		MUST(dup3(f, 20, O_CLOEXEC));
		MUST(fcntl(f, F_DUPFD, 22));
		MUST(fcntl(f, F_DUPFD_CLOEXEC, 23));
		struct itimerval it = { { 0, 0 }, { 100, 0 } };
		setitimer(ITIMER_REAL, &it, NULL);
		struct rlimit rl = { 100, 200 };
		setrlimit(RLIMIT_NOFILE, &rl);
		MUST(nice(2));
		prctl(PR_SET_NAME, "renamed");
		prctl(PR_SET_DUMPABLE, 0);
		prctl(PR_SET_KEEPCAPS, 1);
		prctl(PR_SET_PDEATHSIG, SIGHUP);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		snprintf(pid, sizeof pid, "%d", getpid());
		snprintf(ppid, sizeof ppid, "%d", getppid());
		execl("/proc/self/exe", "x", "child", pid, ppid, NULL);
	} END;
	return 0;
}
