/*
 * What a filter's answer does to a call: each action, which of several counts, strict mode, who inherits, threads and
 * TSYNC, and what the data of a call are.
 */
#include "check.h"
#include "filters.h"
#include <pthread.h>
#include <sched.h>
#include <ucontext.h>

static long ppid(void)
{
	return syscall(SYS_getppid, 11, 22, 33, 44, 55, 66);
}

static void trapped(int sig, siginfo_t *info, void *context)
{
	ucontext_t *user = context;
	greg_t *regs = user->uc_mcontext.gregs;
	printf("SIG%s code %d errno %d arch %#x syscall %d, rax %lld, at the call: %s\n", sig_name(sig), info->si_code,
	       info->si_errno, info->si_arch, info->si_syscall, regs[REG_RAX],
	       (greg_t)info->si_call_addr == regs[REG_RIP] ? "yes" : "no");
	regs[REG_RAX] = 77;
}

static void *call_it(void *arg)
{
	(void)arg;
	ppid();
	return (void *)1;
}

static void each(void)
{
	CHILD("allow") { answer_with(0, SYS_getppid, SECCOMP_RET_ALLOW); IS(ppid() > 0); fflush(stdout); } END;
	CHILD("log") { answer_with(0, SYS_getppid, SECCOMP_RET_LOG); IS(ppid() > 0); fflush(stdout); } END;
	CHILD("errno") {
		answer_with(0, SYS_getppid, SECCOMP_RET_ERRNO | EBADE);
		T(ppid());
		answer_with(0, SYS_getpgrp, SECCOMP_RET_ERRNO | 0);
		T(syscall(SYS_getpgrp));
		answer_with(0, SYS_getuid, SECCOMP_RET_ERRNO | 4095);
		SAY("%ld %d", syscall(SYS_getuid), errno);
		answer_with(0, SYS_geteuid, SECCOMP_RET_ERRNO | 4096);
		SAY("%ld %d", syscall(SYS_geteuid), errno);
		answer_with(0, 999, SECCOMP_RET_ERRNO | EBADE);
		T(syscall(999));
		answer_with(0, -1, SECCOMP_RET_ERRNO | EBADE);
		T(syscall(-1));
		fflush(stdout);
	} END;
	CHILD("trap") {
		struct sigaction act = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO };
		sigaction(SIGSYS, &act, NULL);
		answer_with(0, SYS_getppid, SECCOMP_RET_TRAP | 0x1234);
		T(ppid());
		fflush(stdout);
	} END;
	CHILD("trap, ignored") { signal(SIGSYS, SIG_IGN); answer_with(0, SYS_getppid, SECCOMP_RET_TRAP); ppid(); } END;
	CHILD("trap, not handled") { answer_with(0, SYS_getppid, SECCOMP_RET_TRAP); ppid(); } END;
	CHILD("trace, without a tracer") { answer_with(0, SYS_getppid, SECCOMP_RET_TRACE); T(ppid()); fflush(stdout); } END;
	CHILD("user_notif, without a listener") {
		answer_with(0, SYS_getppid, SECCOMP_RET_USER_NOTIF);
		T(ppid());
		fflush(stdout);
	} END;
	CHILD("kill_thread, the only one") { answer_with(0, SYS_getppid, SECCOMP_RET_KILL_THREAD); ppid(); } END;
	CHILD("kill_process") { signal(SIGSYS, SIG_IGN); answer_with(0, SYS_getppid, SECCOMP_RET_KILL_PROCESS); ppid(); } END;
	CHILD("an action that nobody knows") { answer_with(0, SYS_getppid, 0x7ffd0000); ppid(); } END;
	CHILD("kill_thread, one of two") {
		pthread_t thread;
		void *result = NULL;
		answer_with(0, SYS_getppid, SECCOMP_RET_KILL_THREAD);
		MUST(pthread_create(&thread, NULL, call_it, NULL));
		pthread_join(thread, &result);
		SAY("it was killed: %s", result ? "no" : "yes");
		fflush(stdout);
		_exit(3);
	} END;
	CHILD("kill_process, one of two") {
		pthread_t thread;
		answer_with(0, SYS_getppid, SECCOMP_RET_KILL_PROCESS);
		MUST(pthread_create(&thread, NULL, call_it, NULL));
		pthread_join(thread, NULL);
		_exit(3);
	} END;
	CHILD("division by zero in the program") {
		struct sock_filter filter[] = { LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 2),
			BPF_STMT(BPF_LDX | BPF_IMM, 0), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), RETURN(SECCOMP_RET_ALLOW) };
		install(0, filter, LEN(filter));
		ppid();
	} END;
}

static void precedence(void)
{
	static const unsigned order[] = { SECCOMP_RET_ALLOW, SECCOMP_RET_LOG, SECCOMP_RET_TRACE, SECCOMP_RET_USER_NOTIF,
		SECCOMP_RET_ERRNO | 5, SECCOMP_RET_TRAP, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS };
	for (int first = 0; first < 8; first++)
		for (int second = 0; second < 8; second++) {
			char name[32];
			snprintf(name, sizeof name, "%d then %d", first, second);
			CHILD(name) {
				answer_with(0, SYS_getppid, order[first]);
				answer_with(0, SYS_getppid, order[second]);
				errno = 0;
				long result = ppid();
				_exit(result > 0 ? 0 : errno);
			} END;
		}
	CHILD("the newest of two errors") {
		answer_with(0, SYS_getppid, SECCOMP_RET_ERRNO | 5);
		answer_with(0, SYS_getppid, SECCOMP_RET_ERRNO | 4);
		T(ppid());
		fflush(stdout);
	} END;
}

static void strict(void)
{
	CHILD("strict, exit") { prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); syscall(SYS_exit, 4); } END;
	CHILD("strict, write and exit") {
		seccomp(SECCOMP_SET_MODE_STRICT, 0, NULL);
		write(1, "written\n", 8);
		syscall(SYS_exit, 5);
	} END;
	CHILD("strict, getpid") { prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); syscall(SYS_getpid); syscall(SYS_exit, 4); } END;
	CHILD("strict, exit_group") { prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); _exit(4); } END;
	CHILD("strict, asking for the mode") {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		prctl(PR_GET_SECCOMP);
		syscall(SYS_exit, 4);
	} END;
}

static void inherited(void)
{
	CHILD("children") {
		answer_with(0, SYS_getppid, SECCOMP_RET_ERRNO | 5);
		CHILD("its child") { T(ppid()); say_line("Seccomp"); fflush(stdout); } END;
		fflush(stdout);
		if (!vfork()) {
			execl("/proc/self/exe", "seccomp_actions", "after", NULL);
			_exit(9);
		}
		int status;
		wait(&status);
		say_status("after exec", status);
		fflush(stdout);
	} END;
	CHILD("a filter that lets no write") {
		answer_with(0, SYS_write, SECCOMP_RET_ERRNO | EROFS);
		SAY("%s", write(1, "x", 1) < 0 ? err_name(errno) : "written");
		_exit(errno == EROFS ? 0 : 1);
	} END;
	CHILD("a filter against filters") {
		answer_with(0, SYS_seccomp, SECCOMP_RET_ERRNO | EXDEV);
		T(answer_with(0, SYS_getppid, SECCOMP_RET_ERRNO));
		T(prctl(PR_GET_SECCOMP));
		fflush(stdout);
	} END;
}

/* Each word of the data, and arguments above 32 bits. */
static void data(void)
{
	for (unsigned word = 0; word < 16; word++) {
		if (word == 2 || word == 3)
			continue;
		CHILD("a word") {
			struct sock_filter filter[] = { LOAD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
				RETURN(SECCOMP_RET_ALLOW), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word * 4),
				BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
				BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO), BPF_STMT(BPF_RET | BPF_A, 0) };
			MUST(install(0, filter, LEN(filter)));
			errno = 0;
			syscall(SYS_getppid, 0x1100000022L, 0x3300000044L, 0x5500000066L, 0x7700000088L, 0x9900000111L, 0x12200000133L);
			SAY("word %u: %#x", word, errno);
			fflush(stdout);
		} END;
	}
}

static int stage;

static void *spinning(void *arg)
{
	(void)arg;
	while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) == 0)
		;
	errno = 0;
	long result = ppid();
	return (void *)(long)(result > 0 ? 0 : errno);
}

static void *diverging(void *arg)
{
	(void)arg;
	answer_with(0, SYS_getpgrp, SECCOMP_RET_ERRNO | 9);
	__atomic_store_n(&stage, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) == 1)
		sched_yield();
	return NULL;
}

static void threads(void)
{
	CHILD("without TSYNC") {
		pthread_t thread;
		void *result;
		MUST(pthread_create(&thread, NULL, spinning, NULL));
		T(answer_with(0, SYS_getppid, SECCOMP_RET_ERRNO | 7));
		__atomic_store_n(&stage, 1, __ATOMIC_RELEASE);
		pthread_join(thread, &result);
		SAY("the other thread: %ld", (long)result);
		fflush(stdout);
	} END;
	CHILD("TSYNC") {
		pthread_t thread[3];
		void *result;
		no_new_privs();
		for (int at = 0; at < 3; at++)
			MUST(pthread_create(&thread[at], NULL, spinning, NULL));
		T(answer_with(0, SYS_getuid, SECCOMP_RET_ERRNO | 8));
		T(answer_with(SECCOMP_FILTER_FLAG_TSYNC, SYS_getppid, SECCOMP_RET_ERRNO | 7));
		__atomic_store_n(&stage, 1, __ATOMIC_RELEASE);
		for (int at = 0; at < 3; at++) {
			pthread_join(thread[at], &result);
			SAY("another thread: %ld", (long)result);
		}
		say_line("Seccomp");
		fflush(stdout);
	} END;
	CHILD("TSYNC, with a thread that has its own") {
		pthread_t thread;
		MUST(pthread_create(&thread, NULL, diverging, NULL));
		while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) == 0)
			sched_yield();
		IS(answer_with(SECCOMP_FILTER_FLAG_TSYNC, SYS_getppid, SECCOMP_RET_ERRNO | 7) > 0);
		T(answer_with(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SYS_getppid, SECCOMP_RET_ERRNO | 7));
		IS(ppid() > 0);
		say_line("Seccomp");
		T(answer_with(0, SYS_getppid, SECCOMP_RET_ERRNO | 7));
		__atomic_store_n(&stage, 2, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		T(answer_with(SECCOMP_FILTER_FLAG_TSYNC, SYS_getppid, SECCOMP_RET_ERRNO | 6));
		T(ppid());
		fflush(stdout);
	} END;
}

static void files(void)
{
	char text[256];
	for (int at = 0; at < 2; at++) {
		static const char *const names[] = { "/proc/sys/kernel/seccomp/actions_avail", "/proc/sys/kernel/seccomp/actions_logged" };
		int fd = MUST(open(names[at], O_RDONLY));
		ssize_t len = read(fd, text, sizeof text - 1);
		text[len < 0 ? 0 : len] = 0;
		printf("%s", text);
		close(fd);
	}
	int fd = MUST(open("/proc/sys/kernel/seccomp/actions_logged", O_RDWR));
	T(write(fd, "kill_process  trap", 18));
	T(pread(fd, text, sizeof text, 0));
	SAY("%.18s", text);
	T(pwrite(fd, "allow", 5, 0));
	T(pwrite(fd, "nonsense", 8, 0));
	T(pwrite(fd, "kill_process kill_thread trap errno user_notif trace log", 56, 0));
	close(fd);
	T(open("/proc/sys/kernel/seccomp/actions_avail", O_WRONLY | O_TRUNC) >= 0);
	CHILD("not root") {
		int own = open("/proc/sys/kernel/seccomp/actions_logged", O_RDWR);
		MUST(setuid(1000));
		T(write(own, "trap", 4));
		fflush(stdout);
	} END;
}

/* Thousands of filters in a chain go one after the other. */
static void long_chain(void)
{
	struct sock_filter allow[] = { RETURN(SECCOMP_RET_ALLOW) };
	CHILD("a long chain") {
		int n = 0;
		while (!install(0, allow, 1))
			n++;
		SAY("%d, then %s", n, err_name(errno));
		IS(ppid() > 0);
		say_line("Seccomp");
		fflush(stdout);
	} END;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "after")) {
		T(ppid());
		say_line("Seccomp");
		return 0;
	}
	each();
	precedence();
	strict();
	inherited();
	data();
	threads();
	files();
	long_chain();
	return 0;
}
