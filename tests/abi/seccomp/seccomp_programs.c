/*
 * Which programs seccomp takes and which it refuses; flags and operations that are not there; who may install one.
 */
#include "check.h"
#include "filters.h"

#define JUMP(k) BPF_STMT(BPF_JMP | BPF_JA, (k))
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
#define TRY(...) do { struct sock_filter f_[] = { __VA_ARGS__ }; fflush(stdout); \
	if (!fork()) { errno = 0; int r_ = install(0, f_, LEN(f_)); \
		printf("%s: %s\n", #__VA_ARGS__, r_ ? err_name(errno) : "taken"); fflush(stdout); _exit(0); } \
	wait(NULL); } while (0)

static void lengths(void)
{
	static struct sock_filter many[4097];
	for (size_t at = 0; at < LEN(many); at++)
		many[at] = (struct sock_filter)ALLOW;
	T(install(0, many, 0));
	T(install(0, many, 4097));
	T(install(0, many, 65535));
	CHILD("4096 instructions") { T(install(0, many, 4096)); fflush(stdout); } END;
	T(install(0, NULL, 1));
	T(install(0, KERNEL_ADDRESS, 1));
	T(install(0, NON_CANONICAL, 4096));
	T(seccomp(SECCOMP_SET_MODE_FILTER, 0, NULL));
	T(seccomp(SECCOMP_SET_MODE_FILTER, 0, KERNEL_ADDRESS));
	char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + PAGE, PAGE);
	memcpy(page + PAGE - 8, many, 8);
	T(install(0, (void *)(page + PAGE - 8), 2));
	CHILD("up to the edge of memory") { T(install(0, (void *)(page + PAGE - 8), 1)); fflush(stdout); } END;
	CHILD("a chain of 32768 instructions") {
		int n = 0;
		while (!install(0, many, 4096))
			n++;
		printf("%d, then %s\n", n, err_name(errno));
		for (n = 0; !install(0, many, 4); n++)
			;
		printf("%d, then %s\n", n, err_name(errno));
		fflush(stdout);
	} END;
}

static void refused(void)
{
	TRY(ALLOW);
	TRY(LOAD(nr));
	TRY(LOAD(nr), ALLOW);
	TRY(ALLOW, LOAD(nr));
	TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 60), ALLOW);
	TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), ALLOW);
	TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), ALLOW);
	TRY(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, -4), ALLOW);
	TRY(BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), ALLOW);
	TRY(BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), ALLOW);
	TRY(BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), ALLOW);
	TRY(BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0), ALLOW);
	TRY(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), ALLOW);
	TRY(BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0), ALLOW);
	TRY(BPF_STMT(BPF_LDX | BPF_W | BPF_ABS, 0), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 1), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 1), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 31), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 32), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_RSH | BPF_X, 32), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_NEG, 0), ALLOW);
	TRY(BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0), ALLOW);
	TRY(JUMP(0), ALLOW);
	TRY(JUMP(1), ALLOW);
	TRY(JUMP(-1), ALLOW);
	TRY(JUMP(0xfffffffe), ALLOW);
	TRY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), ALLOW);
	TRY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 0), ALLOW);
	TRY(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_X, 0, 0, 0), ALLOW);
	TRY(BPF_STMT(BPF_LD | BPF_MEM, 0), ALLOW);
	TRY(BPF_STMT(BPF_ST, 0), BPF_STMT(BPF_LD | BPF_MEM, 0), ALLOW);
	TRY(BPF_STMT(BPF_ST, 16), ALLOW);
	TRY(BPF_STMT(BPF_STX, 15), BPF_STMT(BPF_LDX | BPF_MEM, 15), ALLOW);
	TRY(BPF_STMT(BPF_STX, 15), BPF_STMT(BPF_LDX | BPF_MEM, 14), ALLOW);
	TRY(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_LD | BPF_MEM, 3), ALLOW);
	TRY(JUMP(1), BPF_STMT(BPF_LD | BPF_MEM, 3), ALLOW);
	TRY(BPF_STMT(BPF_RET | BPF_A, 0));
	TRY(BPF_STMT(BPF_RET | BPF_X, 0));
	TRY(BPF_STMT(0xffff, 0), ALLOW);
	TRY(BPF_STMT(0x100 | BPF_RET | BPF_K, 0));
}

static void asked(void)
{
	unsigned action;
	for (unsigned at = 0; at < 8; at++) {
		static const unsigned known[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
			SECCOMP_RET_ERRNO, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_TRACE, SECCOMP_RET_LOG, SECCOMP_RET_ALLOW };
		action = known[at];
		T(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action));
	}
	action = 0x7fff0001;
	T(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action));
	T(seccomp(SECCOMP_GET_ACTION_AVAIL, 1, &action));
	T(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, NULL));
	struct seccomp_notif_sizes sizes = { 0 };
	T(seccomp(SECCOMP_GET_NOTIF_SIZES, 0, &sizes));
	SAY("%u %u %u", sizes.seccomp_notif, sizes.seccomp_notif_resp, sizes.seccomp_data);
	T(seccomp(SECCOMP_GET_NOTIF_SIZES, 1, &sizes));
	T(seccomp(SECCOMP_GET_NOTIF_SIZES, 0, NULL));
	T(seccomp(4, 0, NULL));
	T(seccomp(-1, 0, NULL));
	T(seccomp(SECCOMP_SET_MODE_STRICT, 1, NULL));
	T(seccomp(SECCOMP_SET_MODE_STRICT, 0, &sizes));
	T(prctl(PR_SET_SECCOMP, 0));
	T(prctl(PR_SET_SECCOMP, 3, &sizes));
	T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
	struct sock_filter allow[] = { ALLOW };
	T(install(64, allow, 1));
	T(install(-1, allow, 1));
	T(install(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_NEW_LISTENER, allow, 1));
	T(install(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, allow, 1));
	CHILD("speculation") { T(install(SECCOMP_FILTER_FLAG_SPEC_ALLOW, allow, 1)); fflush(stdout); } END;
}

static void allowed(void)
{
	struct sock_filter allow[] = { ALLOW };
	CHILD("neither root nor no_new_privs") {
		MUST(setuid(1000));
		T(install(0, allow, 1));
		T(install(0, allow, 0));
		T(install(0, NULL, 1));
		T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
		say_line("Seccomp");
		no_new_privs();
		T(install(0, allow, 1));
		say_line("Seccomp");
		fflush(stdout);
	} END;
	CHILD("root") {
		struct sock_fprog program = { 1, allow };
		T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
		T(prctl(PR_GET_SECCOMP));
		T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
		T(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
		say_line("Seccomp");
		say_line("NoNewPrivs");
		fflush(stdout);
	} END;
}

int main(void)
{
	lengths();
	refused();
	asked();
	allowed();
	return 0;
}
