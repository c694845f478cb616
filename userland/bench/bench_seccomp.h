/*
 * getpid under a filter of 50 rules: a child of its own has the filter, since it cannot be taken off again, and makes as many
 * calls as it is told. By number, the rules name 50 other calls; by argument, each looks at what getpid is given.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

enum { RULES = 50 };
static int to_filtered, from_filtered;
static pid_t filtered;

static void filtered_loop(int orders, int results)
{
	long n, bad, self = syscall(SYS_getpid, RULES + 1);
	while (read(orders, &n, sizeof n) == sizeof n) {
		bad = 0;
		for (long i = 0; i < n; i++)
			bad += syscall(SYS_getpid, RULES + 1) != self;
		if (write(results, &bad, sizeof bad) != sizeof bad)
			break;
	}
	_exit(0);
}

static long start_filtered(const struct sock_filter *filter, size_t len)
{
	int orders[2], results[2];
	struct sock_fprog program = { (unsigned short)len, (struct sock_filter *)filter };
	if (pipe(orders) < 0 || pipe(results) < 0)
		return 1;
	filtered = fork();
	if (filtered == 0) {
		close(orders[1]);
		close(results[0]);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			_exit(1);
		filtered_loop(orders[0], results[1]);
	}
	close(orders[0]);
	close(results[1]);
	to_filtered = orders[1];
	from_filtered = results[0];
	return filtered < 0;
}

static long start_by_number(void)
{
	struct sock_filter filter[RULES + 3] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	for (int rule = 0; rule < RULES; rule++)
		filter[rule + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 100 + rule, RULES - rule, 0);
	filter[RULES + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[RULES + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1);
	return start_filtered(filter, RULES + 3);
}

static long start_by_argument(void)
{
	struct sock_filter filter[RULES + 5] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, RULES + 1),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
	};
	for (int rule = 0; rule < RULES; rule++)
		filter[rule + 3] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule, RULES - rule, 0);
	filter[RULES + 3] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[RULES + 4] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1);
	return start_filtered(filter, RULES + 5);
}

static long run_filtered(long n)
{
	long bad = 1;
	if (write(to_filtered, &n, sizeof n) != sizeof n || read(from_filtered, &bad, sizeof bad) != sizeof bad)
		return 1;
	return bad;
}

static long stop_filtered(void)
{
	close(to_filtered);
	close(from_filtered);
	return !exited_with(filtered, 0);
}
