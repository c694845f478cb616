/*
 * perf_open: what perf_event_open(2) accepts and refuses: sizes of the attributes, bits that nobody knows, flags, whom and
 * where, groups, kinds of events, who may.
 */
#include "perf.h"

static void sizes(void)
{
	char bytes[PAGE + 64];
	struct perf_event_attr *attr = (void *)bytes;
	static const unsigned all[] = {0, 1, 63, 64, 65, 72, 80, 96, 104, 112, 120, 128, 136, 144, 4096, 4097, 0xffffffff};
	SAY("-- sizes");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		memset(bytes, 0, sizeof bytes);
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = PERF_COUNT_SW_DUMMY;
		attr->size = all[i];
		int fd = perf(attr, 0, -1, -1, 0);
		printf("size %u: %s, then %u\n", all[i], fd < 0 ? err_name(errno) : "ok", attr->size);
		if (fd >= 0)
			close(fd);
	}
	memset(bytes, 0, sizeof bytes);
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	attr->size = 200;
	bytes[199] = 1;
	T(perf(attr, 0, -1, -1, 0));
	IS(attr->size == 136);
	T(perf(NULL, 0, -1, -1, 0));
	T(perf(KERNEL_ADDRESS, 0, -1, -1, 0));
	char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(two + PAGE, PAGE);
	struct perf_event_attr *edge = (void *)(two + PAGE - 64);
	*(uint32_t *)edge = PERF_TYPE_SOFTWARE;
	edge->config = PERF_COUNT_SW_DUMMY;
	edge->size = 64;
	try_open("at the edge", edge, 0, -1, -1, 0);
	edge->size = 72;
	try_open("over the edge", edge, 0, -1, -1, 0);
}

#define WITH(change) ({ struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY); change; try_open(#change, &attr, 0, -1, -1, 0); })

static void bits(void)
{
	SAY("-- bits");
	WITH(attr.__reserved_1 = 1);
	WITH(attr.__reserved_2 = 1);
	WITH(attr.__reserved_3 = 1);
	WITH(attr.sample_type = 1 << 25);
	WITH(attr.sample_type = 1ULL << 63);
	WITH(attr.read_format = 1 << 4);
	WITH(attr.read_format = 1 << 5);
	WITH(attr.inherit_thread = 1);
	WITH((attr.inherit_thread = 1, attr.inherit = 1));
	WITH((attr.remove_on_exec = 1, attr.enable_on_exec = 1));
	WITH(attr.remove_on_exec = 1);
	WITH(attr.sigtrap = 1);
	WITH(attr.sample_type = PERF_SAMPLE_BRANCH_STACK);
	WITH((attr.sample_type = PERF_SAMPLE_BRANCH_STACK, attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER));
	WITH((attr.sample_type = PERF_SAMPLE_BRANCH_STACK, attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY));
	WITH((attr.sample_type = PERF_SAMPLE_BRANCH_STACK, attr.branch_sample_type = 1ULL << 40));
	WITH(attr.sample_type = PERF_SAMPLE_REGS_USER);
	WITH((attr.sample_type = PERF_SAMPLE_REGS_USER, attr.sample_regs_user = 0xff0fff));
	WITH((attr.sample_type = PERF_SAMPLE_REGS_USER, attr.sample_regs_user = 1 << 12));
	WITH((attr.sample_type = PERF_SAMPLE_REGS_USER, attr.sample_regs_user = 1 << 24));
	WITH((attr.sample_type = PERF_SAMPLE_REGS_USER, attr.sample_regs_user = 1ULL << 32));
	WITH((attr.sample_type = PERF_SAMPLE_REGS_INTR, attr.sample_regs_intr = 1));
	WITH((attr.sample_type = PERF_SAMPLE_STACK_USER, attr.sample_stack_user = 8));
	WITH((attr.sample_type = PERF_SAMPLE_STACK_USER, attr.sample_stack_user = 7));
	WITH((attr.sample_type = PERF_SAMPLE_STACK_USER, attr.sample_stack_user = 65528));
	WITH((attr.sample_type = PERF_SAMPLE_STACK_USER, attr.sample_stack_user = 65536));
	WITH(attr.sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);
	WITH(attr.sample_type = PERF_SAMPLE_WEIGHT);
	WITH((attr.inherit = 1, attr.sample_type = PERF_SAMPLE_READ));
	WITH((attr.inherit = 1, attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_TID));
	WITH((attr.freq = 1, attr.sample_freq = 99));
	WITH((attr.freq = 1, attr.sample_freq = 10000000));
	WITH(attr.sample_period = 1ULL << 63);
	WITH(attr.sample_period = (1ULL << 63) - 1);
	WITH((attr.use_clockid = 1, attr.clockid = CLOCK_MONOTONIC));
	WITH((attr.use_clockid = 1, attr.clockid = CLOCK_MONOTONIC_RAW));
	WITH((attr.use_clockid = 1, attr.clockid = CLOCK_REALTIME));
	WITH((attr.use_clockid = 1, attr.clockid = CLOCK_BOOTTIME));
	WITH((attr.use_clockid = 1, attr.clockid = CLOCK_TAI));
	WITH((attr.use_clockid = 1, attr.clockid = CLOCK_PROCESS_CPUTIME_ID));
	WITH(attr.precise_ip = 3);
	WITH(attr.aux_output = 1);
	WITH(attr.namespaces = 1);
	WITH((attr.pinned = 1, attr.exclusive = 1));
}

static void kinds(void)
{
	SAY("-- kinds");
	for (unsigned config = 0; config < 14; config++) {
		char what[32];
		struct perf_event_attr attr = software(config);
		snprintf(what, sizeof what, "software %u", config);
		try_open(what, &attr, 0, -1, -1, 0);
	}
	struct perf_event_attr attr = software(1ULL << 32 | PERF_COUNT_SW_DUMMY);
	try_open("software, high bits", &attr, 0, -1, -1, 0);
	attr.config = UINT64_MAX;
	try_open("software, all bits", &attr, 0, -1, -1, 0);
	static const unsigned types[] = {PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_RAW, 4242, 0x7fffffff, 0xffffffff};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		char what[32];
		attr = software(0);
		attr.type = types[i];
		snprintf(what, sizeof what, "type %u", types[i]);
		try_open(what, &attr, 0, -1, -1, 0);
	}
}

static void whom(void)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
	SAY("-- whom and where");
	try_open("pid 0, cpu -1", &attr, 0, -1, -1, 0);
	try_open("pid 0, cpu 0", &attr, 0, 0, -1, 0);
	try_open("pid -1, cpu 0", &attr, -1, 0, -1, 0);
	try_open("pid -1, cpu -1", &attr, -1, -1, -1, 0);
	try_open("pid -2, cpu -1", &attr, -2, -1, -1, 0);
	try_open("pid 0, cpu -2", &attr, 0, -2, -1, 0);
	try_open("pid 0, cpu 100000", &attr, 0, 100000, -1, 0);
	try_open("pid -1, cpu 100000", &attr, -1, 100000, -1, 0);
	try_open("pid of nobody", &attr, 4194303, -1, -1, 0);
	try_open("init", &attr, 1, -1, -1, 0);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0)
		_exit(0);
	siginfo_t info;
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	try_open("zombie", &attr, child, -1, -1, 0);
	waitpid(child, NULL, 0);
	SAY("-- flags");
	try_open("NO_GROUP", &attr, 0, -1, -1, PERF_FLAG_FD_NO_GROUP);
	try_open("OUTPUT", &attr, 0, -1, -1, PERF_FLAG_FD_OUTPUT);
	try_open("all but cgroup", &attr, 0, -1, -1, PERF_FLAG_FD_NO_GROUP | PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_CLOEXEC);
	try_open("unknown", &attr, 0, -1, -1, 16);
	try_open("unknown, high", &attr, 0, -1, -1, 1UL << 40);
	try_open("cgroup, any cpu", &attr, 0, -1, -1, PERF_FLAG_PID_CGROUP);
	try_open("cgroup, no fd", &attr, -1, 0, -1, PERF_FLAG_PID_CGROUP);
	int fd = must_open(&attr, 0, -1, -1, 0);
	T(fcntl(fd, F_GETFD));
	T(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
	close(fd);
	fd = must_open(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	T(fcntl(fd, F_GETFD));
	T(lseek(fd, 0, SEEK_SET));
	T(write(fd, "x", 1));
	char path[64], name[64] = {0};
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	MUST(readlink(path, name, sizeof name - 1));
	SAY("%s", name);
	close(fd);
}

static void groups(void)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
	SAY("-- groups");
	int leader = must_open(&attr, 0, -1, -1, 0);
	int member = must_open(&attr, 0, -1, leader, 0);
	try_open("member", &attr, 0, -1, leader, 0);
	try_open("member of a member", &attr, 0, -1, member, 0);
	try_open("member, another cpu", &attr, 0, 0, leader, 0);
	try_open("member, a cpu", &attr, -1, 0, leader, 0);
	try_open("no descriptor", &attr, 0, -1, 999, 0);
	try_open("another descriptor", &attr, 0, -1, 1, 0);
	try_open("not in its group", &attr, 0, 0, leader, PERF_FLAG_FD_NO_GROUP);
	try_open("output, not mapped", &attr, 0, -1, leader, PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP);
	attr.pinned = 1;
	try_open("pinned member", &attr, 0, -1, leader, 0);
	attr.pinned = 0;
	attr.exclusive = 1;
	try_open("exclusive member", &attr, 0, -1, leader, 0);
	attr.exclusive = 0;
	attr.inherit = 1;
	try_open("member that is inherited", &attr, 0, -1, leader, 0);
	attr.inherit = 0;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	try_open("member with another clock", &attr, 0, -1, leader, 0);
	attr = software(PERF_COUNT_SW_DUMMY);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		try_open("child, in a group of the parent", &attr, 0, -1, leader, 0);
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	close(leader);
	try_open("member whose leader is closed", &attr, 0, -1, member, 0);
	close(member);
}

static void paranoid(const char *value)
{
	int fd = (int)MUST(open("/proc/sys/kernel/perf_event_paranoid", O_WRONLY));
	MUST(write(fd, value, strlen(value)));
	close(fd);
}

static void may(const char *level)
{
	pid_t root = getpid();
	paranoid(level);
	SAY("-- an ordinary user, paranoid %s", level);
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		MUST(setgid(1000));
		MUST(setuid(1000));
		struct perf_event_attr attr = software(PERF_COUNT_SW_DUMMY);
		try_open("kernel", &attr, 0, -1, -1, 0);
		attr.exclude_kernel = 1;
		try_open("user", &attr, 0, -1, -1, 0);
		try_open("one cpu", &attr, 0, 0, -1, 0);
		try_open("a whole cpu", &attr, -1, 0, -1, 0);
		try_open("root's", &attr, root, -1, -1, 0);
		attr.namespaces = 1;
		try_open("namespaces", &attr, 0, -1, -1, 0);
		attr.namespaces = 0;
		attr.sample_type = PERF_SAMPLE_PHYS_ADDR;
		try_open("physical addresses", &attr, 0, -1, -1, 0);
		attr.size = 1;
		try_open("bad size", &attr, 0, -1, -1, 0);
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void settings(void)
{
	static const char *const names[] = {"perf_event_paranoid", "perf_event_max_sample_rate", "perf_event_mlock_kb",
					    "perf_event_max_stack", "perf_event_max_contexts_per_stack",
					    "perf_cpu_time_max_percent"};
	SAY("-- settings");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[128], text[64] = {0};
		snprintf(path, sizeof path, "/proc/sys/kernel/%s", names[i]);
		int fd = open(path, O_RDONLY);
		struct stat st = {0};
		fstat(fd, &st);
		ssize_t got = read(fd, text, sizeof text - 1);
		/* The rate depends on how fast the machine is. */
		if (strstr(names[i], "rate"))
			strcpy(text, atoi(text) > 0 ? "some\n" : "none\n");
		printf("%s: %o %s", names[i], st.st_mode & 07777, got > 0 ? text : "?\n");
		close(fd);
	}
}

int main(void)
{
	settings();
	sizes();
	bits();
	kinds();
	whom();
	groups();
	fflush(stdout);
	may("3");
	may("2");
	may("1");
	may("0");
	may("-1");
	paranoid("3");
	return 0;
}
