/*
 * perf_chain: call chains, registers and the stack of a program in samples: which frames there are, how many at most, what is
 * left out, and frame pointers that lead nowhere.
 *
 * cflags: -fno-omit-frame-pointer -fno-optimize-sibling-calls
 */
#include "perf.h"

#define MARK_KERNEL ((uint64_t)-128)
#define MARK_USER ((uint64_t)-512)

static uint64_t record[9000];

static int set(const char *name, const char *value)
{
	char path[128];
	snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
	int fd = (int)MUST(open(path, O_WRONLY));
	errno = 0;
	int failed = write(fd, value, strlen(value)) < 0 ? errno : 0;
	close(fd);
	errno = failed;
	return failed ? -1 : 0;
}

static struct perf_event_attr chains(void)
{
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
	attr.disabled = 1;
	return attr;
}

static void limits(void)
{
	SAY("-- limits");
	T(set("perf_event_max_stack", "-1"));
	T(set("perf_event_max_stack", "655361"));
	T(set("perf_event_max_stack", "655360"));
	T(set("perf_event_max_stack", "100"));
	T(set("perf_event_max_contexts_per_stack", "-1"));
	T(set("perf_event_max_contexts_per_stack", "1001"));
	T(set("perf_event_max_contexts_per_stack", "1000"));
	struct perf_event_attr attr = chains();
	attr.sample_max_stack = 100;
	try_open("as long as may be", &attr, 0, -1, -1, 0);
	attr.sample_max_stack = 101;
	try_open("longer", &attr, 0, -1, -1, 0);
	attr.sample_period = 0;
	try_open("longer, not sampled", &attr, 0, -1, -1, 0);
	attr.sample_type = PERF_SAMPLE_IP;
	try_open("longer, no chain", &attr, 0, -1, -1, 0);
	attr = chains();
	int fd = must_open(&attr, 0, -1, -1, 0);
	T(set("perf_event_max_stack", "127"));
	T(set("perf_event_max_stack", "-1"));
	T(set("perf_event_max_contexts_per_stack", "8"));
	close(fd);
	T(set("perf_event_max_stack", "127"));
	T(set("perf_event_max_contexts_per_stack", "8"));
}

static void *fresh(void)
{
	char *at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(at, 3 * PAGE, MADV_NOHUGEPAGE);
	return at + PAGE;
}

__attribute__((noinline)) static void touch(volatile char *at)
{
	*at = 1;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static int deep(int depth, volatile char *at)
{
	if (depth == 0)
		touch(at);
	else
		deep(depth - 1, at);
	__asm__ volatile("" ::: "memory");
	return depth;
}

/* Of the first sample: its chain, number first. */
static uint64_t *first(struct ring *ring, uint64_t *ip)
{
	static uint64_t none[1];
	if (next(ring, record, sizeof record) != PERF_RECORD_SAMPLE) {
		SAY("no sample");
		return none;
	}
	*ip = record[1];
	return record + 2;
}

static int in_deep(uint64_t address)
{
	uint64_t start = (uint64_t)deep;
	return address >= start && address < start + 128;
}

static void show(uint64_t *chain, uint64_t ip)
{
	uint64_t number = chain[0];
	int users = 0, kernels = 0, of_deep = 0, in_kernel = 0, first_is_ip = 0;
	for (uint64_t i = 1; i <= number; i++) {
		if (chain[i] == MARK_KERNEL || chain[i] == MARK_USER) {
			in_kernel = chain[i] == MARK_KERNEL;
			printf(" %s", in_kernel ? "kernel:" : "user:");
			first_is_ip |= i == 1 && number > 1 && chain[2] == ip;
		} else {
			kernels += in_kernel;
			users += !in_kernel;
			of_deep += in_deep(chain[i]);
		}
	}
	printf(" kernel frames %d, user frames %d, of deep %d, begins where the sample is %d\n", kernels > 0, users > of_deep, of_deep,
	       first_is_ip);
}

static void walk(const char *what, struct perf_event_attr *attr, int depth)
{
	int fd = must_open(attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 8);
	/* the stack has its pages already: the fault that is sampled is the one below all these calls */
	deep(depth, fresh());
	char *at = fresh();
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	deep(depth, at);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	uint64_t ip = 0;
	uint64_t *chain = first(&ring, &ip);
	printf("%s:", what);
	show(chain, ip);
	munmap(ring.page, 9 * PAGE);
	close(fd);
}

static void users(void)
{
	SAY("-- frames of the program");
	struct perf_event_attr attr = chains();
	walk("one", &attr, 1);
	walk("ten", &attr, 10);
	walk("more than may be", &attr, 300);
	IS(record[2] == 128);
	attr.sample_max_stack = 3;
	walk("three", &attr, 10);
	IS(record[2] == 4);
	attr.sample_max_stack = 0;
	attr.exclude_callchain_user = 1;
	walk("no user frames", &attr, 10);
	attr.exclude_callchain_kernel = 1;
	walk("none", &attr, 10);
	IS(record[2] == 0);
	attr.exclude_callchain_user = 0;
	walk("no kernel frames", &attr, 10);
	attr = chains();
	attr.exclude_kernel = 1;
	walk("not in the kernel", &attr, 10);
	MUST(set("perf_event_max_contexts_per_stack", "0"));
	walk("no mark may be", &attr, 10);
	IS(record[2] == 0);
	MUST(set("perf_event_max_contexts_per_stack", "8"));
	MUST(set("perf_event_max_stack", "0"));
	walk("no frame may be", &attr, 10);
	IS(record[2] == 1);
	MUST(set("perf_event_max_stack", "127"));
}

__attribute__((noinline)) static void deep_read(int depth, void *at)
{
	if (depth == 0) {
		int fd = (int)MUST(open("/dev/zero", O_RDONLY));
		MUST(read(fd, at, 100));
		close(fd);
	} else {
		deep_read(depth - 1, at);
	}
	__asm__ volatile("" ::: "memory");
}

static void kernels(void)
{
	static const char *const names[] = {"both", "no kernel frames", "no user frames", "one context"};
	SAY("-- frames of the kernel");
	for (int i = 0; i < 4; i++) {
		struct perf_event_attr attr = chains();
		attr.exclude_callchain_kernel = i == 1;
		attr.exclude_callchain_user = i == 2;
		if (i == 3)
			MUST(set("perf_event_max_contexts_per_stack", "1"));
		int fd = must_open(&attr, 0, -1, -1, 0);
		struct ring ring = map(fd, 8);
		char *at = fresh();
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		deep_read(5, at);
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		printf("%s:", names[i]);
		int seen = 0;
		while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE)
			if (((struct perf_event_header *)record)->misc == PERF_RECORD_MISC_KERNEL && !seen++)
				show(record + 2, record[1]);
		if (!seen)
			printf(" no sample\n");
		munmap(ring.page, 9 * PAGE);
		close(fd);
		MUST(set("perf_event_max_contexts_per_stack", "8"));
	}
}

/* Touches a page while the frame pointer and the stack pointer are others. */
static void touch_with(uint64_t frame, uint64_t stack, volatile char *at)
{
	__asm__ volatile("mov %%rbp, %%r14\n\tmov %%rsp, %%r15\n\tmov %0, %%rbp\n\tmov %1, %%rsp\n\t"
			 "mov $0x1234567, %%rbx\n\tmov $0x89abcde, %%r13\n\t"
			 "movb $1, (%2)\n\t"
			 "mov %%r15, %%rsp\n\tmov %%r14, %%rbp"
			 :
			 : "r"(frame), "r"(stack), "r"(at)
			 : "rbx", "r13", "r14", "r15", "memory");
}

static void nowhere(void)
{
	SAY("-- frame pointers that lead nowhere");
	uint64_t *room = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(room + PAGE / 8, PAGE);
	uint64_t *far = room + 2 * PAGE / 8;
	room[0] = (uint64_t)room;
	room[1] = 42;
	room[10] = 1;
	room[11] = 43;
	room[20] = (uint64_t)far;
	room[21] = 44;
	munmap(room + 3 * PAGE / 8, PAGE);
	const struct {
		const char *name;
		uint64_t frame;
	} all[] = {
		{"null", 0},
		{"odd", 1},
		{"not mapped", (uint64_t)room + PAGE},
		{"half mapped", (uint64_t)room + PAGE - 8},
		{"kernel", (uint64_t)KERNEL_ADDRESS},
		{"not canonical", (uint64_t)NON_CANONICAL},
		{"the last", UINT64_MAX},
		{"the last word", UINT64_MAX - 7},
		{"the last of the program", (uint64_t)NON_CANONICAL - PAGE - 16},
		{"a ring", (uint64_t)room},
		{"one good", (uint64_t)(room + 10)},
		{"not present yet", (uint64_t)(room + 20)},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct perf_event_attr attr = chains();
		int fd = must_open(&attr, 0, -1, -1, 0);
		struct ring ring = map(fd, 8);
		char *at = fresh();
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		touch_with(all[i].frame, all[i].frame, at);
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		uint64_t ip = 0, *chain = first(&ring, &ip);
		printf("%s: %lu,", all[i].name, chain[0]);
		show(chain, ip);
		munmap(ring.page, 9 * PAGE);
		close(fd);
	}
}

static void registers(void)
{
	SAY("-- registers and stack");
	struct perf_event_attr attr = software(PERF_COUNT_SW_PAGE_FAULTS);
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	/* bx, bp, sp, ip, cs, r13 */
	attr.sample_regs_user = 1 << 1 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 21;
	attr.sample_stack_user = 64;
	attr.disabled = 1;
	uint64_t *room = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2 * PAGE / 8; i++)
		room[i] = i;
	munmap(room + 2 * PAGE / 8, PAGE);
	static const int from[] = {100, 2 * PAGE / 8 - 3, 2 * PAGE / 8, 0};
	static const unsigned sizes[] = {64, 64, 64, 65528, 0};
	for (int i = 0; i < 5; i++) {
		attr.sample_stack_user = sizes[i];
		int fd = must_open(&attr, 0, -1, -1, 0);
		struct ring ring = map(fd, 32);
		char *at = fresh();
		uint64_t stack = (uint64_t)(room + from[i % 4]);
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		touch_with(7, stack, at);
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		T(next(&ring, record, sizeof record));
		uint64_t *r = record + 2;
		T(r[0]);
		IS(r[1] == 0x1234567 && r[2] == 7 && r[3] == stack && r[4] == record[1] && r[5] == 0x33 && r[6] == 0x89abcde);
		uint64_t size = r[7];
		printf("size %lu", size);
		if (size != 0)
			printf(", first %lu, of which are there %lu", r[8], r[8 + size / 8]);
		printf(", record %u\n", ((struct perf_event_header *)record)->size);
		munmap(ring.page, 33 * PAGE);
		close(fd);
	}
}

static void last(void)
{
	static const unsigned types[] = {PERF_SAMPLE_WEIGHT, PERF_SAMPLE_WEIGHT_STRUCT, PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_TRANSACTION,
					 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_STACK_USER};
	SAY("-- what only hardware knows");
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct perf_event_attr attr = chains();
		attr.sample_type = types[i];
		attr.sample_stack_user = 65528;
		int fd = must_open(&attr, 0, -1, -1, 0);
		struct ring ring = map(fd, 32);
		char *at = fresh();
		MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		touch(at);
		MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		T(next(&ring, record, sizeof record));
		unsigned words = ((struct perf_event_header *)record)->size / 8;
		printf("%x: %u words, %lx %lx\n", types[i], words, record[1], record[words - 1]);
		munmap(ring.page, 33 * PAGE);
		close(fd);
	}
}

static void of_time(void)
{
	SAY("-- of time");
	struct perf_event_attr attr = chains();
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sample_period = 1000000;
	attr.disabled = 0;
	int fd = must_open(&attr, 0, -1, -1, 0);
	struct ring ring = map(fd, 64);
	spin_ms(100);
	int good = 0, bad = 0;
	while (next(&ring, record, sizeof record) == PERF_RECORD_SAMPLE) {
		int user = ((struct perf_event_header *)record)->misc == PERF_RECORD_MISC_USER;
		int right = record[3] == (user ? MARK_USER : MARK_KERNEL) && record[4] == record[1];
		good += right;
		bad += !right;
	}
	printf("some %d, wrong %d\n", good > 0, bad);
	munmap(ring.page, 65 * PAGE);
	close(fd);
}

int main(void)
{
	limits();
	users();
	kernels();
	nowhere();
	registers();
	last();
	of_time();
	return 0;
}
