/*
 * leader_calls.c: what calls say of a process's first thread that has ended while another goes on.
 */
#include "check.h"
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static int said[2], go[2];
static char secret[16] = "secret";

static long queued(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	const char *at = strstr(read_file(path), "SigQ:");
	return at ? strtol(at + 5, NULL, 10) : -1;
}

static volatile int took;

static void took_it(int sig)
{
	took = (int)syscall(SYS_gettid) != getpid() ? sig : -1;
}

/* What the thread that goes on sees of the first. */
static void from_within(void)
{
	pid_t leader = getpid();
	unsigned word = (unsigned)leader;
	int p[2], id;
	struct timespec t;
	puts("from within:");
	T(syscall(SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	word = (unsigned)leader;
	T(syscall(SYS_futex, &word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1, ._sigev_un._tid = leader };
	T(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
	T(syscall(SYS_timer_settime, id, 0, &(struct itimerspec){ { 0, 0 }, { 0, 1 } }, NULL));
	MUST(pipe(p));
	struct f_owner_ex owner = { F_OWNER_TID, leader };
	T(fcntl(p[0], F_SETOWN_EX, &owner));
	owner.pid = -1;
	T(fcntl(p[0], F_GETOWN_EX, &owner));
	IS(owner.pid == leader);
	T(fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK));
	T(write(p[1], "x", 1));
	T(clock_gettime(((clockid_t)~leader << 3) | 6, &t));
	T(clock_gettime(((clockid_t)~leader << 3) | 2, &t));
	T(syscall(SYS_tgkill, leader, leader, SIGRTMIN));
	T(kill(leader, SIGUSR2));
	IS(took == SIGUSR2);
	T(sigqueue(leader, SIGRTMIN + 1, (union sigval){ 1 }));
	IS(took == SIGRTMIN + 1);
	T(syscall(SYS_rt_tgsigqueueinfo, leader, leader, SIGRTMIN, &(siginfo_t){ .si_code = SI_QUEUE }));
	T(setpgid(0, 0));
	T(setpgid(leader, leader));
	T(getsid(0) == getsid(leader));
	kill(leader, SIGSTOP);
}

static void *goes_on(void *unused)
{
	char c, path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
	for (int i = 0; i < 5000 && state_in(path) != 'Z'; i++)
		sleep_ms(1);
	MUST(write(said[1], "x", 1));
	MUST(read(go[0], &c, 1));
	from_within();
	MUST(write(said[1], "x", 1));
	MUST(read(go[0], &c, 1));
	_exit(7);
	return unused;
}

int main(void)
{
	char c, bytes[16];
	cpu_set_t cpus;
	struct sched_param normal = { 0 }, fifo = { .sched_priority = 5 };
	struct rlimit limit;
	void *list;
	size_t len;
	long before = queued(getpid());
	MUST(pipe(said));
	MUST(pipe(go));
	signal(SIGUSR2, took_it);
	signal(SIGRTMIN + 1, took_it);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		pthread_t t;
		MUST(-!!pthread_create(&t, NULL, goes_on, NULL));
		syscall(SYS_exit, 3);
	}
	MUST(read(said[0], &c, 1));
	T(sched_getaffinity(child, sizeof cpus, &cpus));
	T(sched_setaffinity(child, sizeof cpus, &cpus));
	T(sched_setscheduler(child, SCHED_FIFO, &fifo));
	T(sched_getscheduler(child));
	T(sched_setscheduler(child, SCHED_OTHER, &normal));
	T(setpriority(PRIO_PROCESS, (id_t)child, 5));
	T(getpriority(PRIO_PROCESS, (id_t)child));
	T(prlimit(child, RLIMIT_NOFILE, NULL, &limit));
	struct iovec here = { bytes, 16 }, there = { secret, 16 };
	T(process_vm_readv(child, &here, 1, &there, 1, 0));
	T(syscall(SYS_get_robust_list, child, &list, &len));
	T(syscall(SYS_kcmp, child, child, KCMP_VM, 0, 0));
	T(syscall(SYS_kcmp, child, child, KCMP_FILE, 0, 0));
	T(syscall(SYS_kcmp, child, child, KCMP_FILES, 0, 0));
	T(syscall(SYS_ioprio_get, 1, child));
	int whole = (int)MUST(syscall(SYS_pidfd_open, child, 0));
	int thread = (int)OK(syscall(SYS_pidfd_open, child, O_EXCL));
	T(poll(&(struct pollfd){ whole, POLLIN, 0 }, 1, 0));
	T(poll(&(struct pollfd){ thread, POLLIN, 0 }, 1, 0));
	T(syscall(SYS_pidfd_send_signal, whole, 0, NULL, 0));
	T(syscall(SYS_pidfd_send_signal, thread, 0, NULL, 0));
	T(syscall(SYS_pidfd_getfd, whole, 1, 0));
	T(syscall(SYS_pidfd_getfd, thread, 1, 0));
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_TASK_CLOCK };
	T(syscall(SYS_perf_event_open, &attr, child, -1, -1, 0) == -1 ? -1 : 0);
	T(ptrace(PTRACE_SEIZE, child, 0, 0));
	T(syscall(SYS_tgkill, child, child, SIGSTOP));
	MUST(write(go[1], "x", 1));
	int status = 0;
	T(waitpid(child, &status, WUNTRACED) == child);
	say_status("child", status);
	T(kill(child, SIGCONT));
	MUST(read(said[0], &c, 1));
	puts("goes on");
	MUST(write(go[1], "x", 1));
	say_status("child", reap(child));
	SAY("%ld are queued", queued(getpid()) - before);
	T(poll(&(struct pollfd){ whole, POLLIN, 0 }, 1, 0));
	T(poll(&(struct pollfd){ thread, POLLIN, 0 }, 1, 0));
	T(syscall(SYS_pidfd_send_signal, thread, 0, NULL, 0));
	return 0;
}
