/*
 * trace_signals: a tracee stops before each signal, ignored ones too; its tracer sees and changes the details, gives
 * another signal or none; SIGKILL is not stopped; a stop of the whole process is told as one.
 */
#include "trace.h"

static volatile int caught, caught_code, caught_pid;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	caught = sig;
	caught_code = info->si_code;
	caught_pid = info->si_pid;
}

static void catch(int sig)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigaction(sig, &action, NULL);
}

static volatile int chld_code, chld_status;

static void on_chld(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	chld_code = info->si_code;
	chld_status = info->si_status;
}

/* Until SIGCHLD has come: on another CPU a stop may be seen before it is heard of. */
static void heard(void)
{
	while (!chld_code)
		sleep_ms(1);
}

int main(void)
{
	siginfo_t info;
	SAY("-- one signal");
	TRACED(a, { catch(SIGUSR1); catch(SIGUSR2); signal(SIGTERM, SIG_IGN); raise(SIGUSR1); _exit(caught); });
	T(ptrace(PTRACE_CONT, a, 0, 0));
	stop_of("raise", a);
	T(ptrace(PTRACE_GETSIGINFO, a, 0, &info));
	IS(info.si_signo == SIGUSR1 && info.si_code == SI_TKILL && info.si_pid == a);
	T(ptrace(PTRACE_CONT, a, 0, SIGUSR1));
	IS(stop_of("its end", a) == SIGUSR1 << 8);

	SAY("-- another one, or none");
	TRACED(b, { catch(SIGUSR1); catch(SIGUSR2); raise(SIGUSR1); int first = caught, from = caught_pid == getppid();
		    caught = 0; raise(SIGUSR1); _exit(first == SIGUSR2 && from && caught_code == SI_USER && caught == 0); });
	T(ptrace(PTRACE_CONT, b, 0, 0));
	stop_of("raise", b);
	T(ptrace(PTRACE_CONT, b, 0, SIGUSR2));
	stop_of("again", b);
	T(ptrace(PTRACE_CONT, b, 0, 0));
	stop_of("its end", b);

	SAY("-- other details");
	TRACED(c, { catch(SIGUSR1); raise(SIGUSR1); _exit(caught_pid == 4242 && caught_code == SI_QUEUE); });
	T(ptrace(PTRACE_CONT, c, 0, 0));
	stop_of("raise", c);
	MUST(ptrace(PTRACE_GETSIGINFO, c, 0, &info));
	info.si_code = SI_QUEUE;
	info.si_pid = 4242;
	T(ptrace(PTRACE_SETSIGINFO, c, 0, &info));
	T(ptrace(PTRACE_CONT, c, 0, SIGUSR1));
	stop_of("its end", c);

	SAY("-- ignored, blocked, fatal");
	TRACED(d, { signal(SIGTERM, SIG_IGN); raise(SIGTERM); sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR1);
		    sigprocmask(SIG_BLOCK, &set, NULL); raise(SIGUSR1); sigprocmask(SIG_UNBLOCK, &set, NULL); });
	T(ptrace(PTRACE_CONT, d, 0, 0));
	stop_of("ignored", d);
	T(ptrace(PTRACE_CONT, d, 0, SIGTERM));
	stop_of("blocked and let through", d);
	T(ptrace(PTRACE_CONT, d, 0, SIGUSR1));
	stop_of("killed", d);

	SAY("-- SIGKILL does not stop it");
	TRACED(e, raise(SIGUSR1));
	kill(e, SIGKILL);
	stop_of("killed", e);
	T(ptrace(PTRACE_CONT, e, 0, 0));

	SAY("-- a stop of the whole process");
	TRACED(f, _exit(7));
	T(ptrace(PTRACE_CONT, f, 0, SIGSTOP));
	stop_of("the group", f);
	T(ptrace(PTRACE_GETSIGINFO, f, 0, &info));
	T(ptrace(PTRACE_CONT, f, 0, 0));
	stop_of("its end", f);

	SAY("-- a signal while it sleeps, the call goes on");
	TRACED(g, { signal(SIGUSR1, SIG_IGN); struct timespec t = { 0, 300000000 }; _exit(nanosleep(&t, &t) == 0); });
	T(ptrace(PTRACE_CONT, g, 0, 0));
	sleep_ms(50);
	kill(g, SIGUSR1);
	stop_of("asleep", g);
	T(ptrace(PTRACE_CONT, g, 0, SIGUSR1));
	stop_of("its end", g);

	SAY("-- what the tracer hears");
	struct sigaction action = { .sa_sigaction = on_chld, .sa_flags = SA_SIGINFO };
	sigaction(SIGCHLD, &action, NULL);
	TRACED(h, raise(SIGUSR2));
	heard();
	SAY("SIGCHLD: code %d, status %s", chld_code, sig_name(chld_status));
	chld_code = 0;
	T(ptrace(PTRACE_CONT, h, 0, 0));
	heard();
	stop_of("raise", h);
	SAY("SIGCHLD: code %d, status %s", chld_code, sig_name(chld_status));
	siginfo_t found = { 0 };
	T(ptrace(PTRACE_CONT, h, 0, SIGUSR1));
	T(waitid(P_PID, h, &found, WEXITED | WNOWAIT));
	SAY("waitid: code %d, status %s", found.si_code, sig_name(found.si_status));
	stop_of("its end", h);
	T(waitpid(h, NULL, __WALL));

	SAY("-- waitid and stops");
	TRACED(i, raise(SIGUSR1));
	T(ptrace(PTRACE_CONT, i, 0, 0));
	T(waitid(P_PID, i, &found, WSTOPPED | WNOWAIT));
	SAY("code %d, status %s", found.si_code, sig_name(found.si_status));
	T(waitid(P_PID, i, &found, WEXITED));
	SAY("code %d, status %s", found.si_code, sig_name(found.si_status));
	T(waitpid(i, NULL, WNOHANG | __WALL));
	T(ptrace(PTRACE_KILL, i, 0, 0));
	stop_of("killed", i);

	SAY("-- masks and queues");
	TRACED(j, { sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR1); sigaddset(&set, SIGRTMIN);
		    sigprocmask(SIG_BLOCK, &set, NULL); raise(SIGUSR1); union sigval value = { .sival_int = 5 };
		    sigqueue(getpid(), SIGRTMIN, value); raise(SIGSTOP); });
	T(ptrace(PTRACE_CONT, j, 0, 0));
	stop_of("with signals waiting", j);
	unsigned long mask = 0;
	T(ptrace(PTRACE_GETSIGMASK, j, 8, &mask));
	SAY("mask %#lx", mask);
	T(ptrace(PTRACE_GETSIGMASK, j, 4, &mask));
	struct { uint64_t off; uint32_t flags; int32_t nr; } args = { 0, 0, 4 };
	siginfo_t infos[4];
	T(ptrace(PTRACE_PEEKSIGINFO, j, &args, infos));
	IS(infos[0].si_signo == SIGUSR1 && infos[0].si_pid == j);
	args.flags = 1;
	T(ptrace(PTRACE_PEEKSIGINFO, j, &args, infos));
	IS(infos[0].si_signo == SIGRTMIN && infos[0].si_value.sival_int == 5);
	args.off = 1;
	T(ptrace(PTRACE_PEEKSIGINFO, j, &args, infos));
	args.nr = -1;
	T(ptrace(PTRACE_PEEKSIGINFO, j, &args, infos));
	args.flags = 2;
	T(ptrace(PTRACE_PEEKSIGINFO, j, &args, infos));
	mask = 0;
	T(ptrace(PTRACE_SETSIGMASK, j, 8, &mask));
	T(ptrace(PTRACE_CONT, j, 0, 0));
	stop_of("let through", j);
	T(ptrace(PTRACE_CONT, j, 0, 0));
	stop_of("and the other", j);
	T(ptrace(PTRACE_DETACH, j, 0, SIGUSR2));
	stop_of("detached with a signal", j);
	return 0;
}
