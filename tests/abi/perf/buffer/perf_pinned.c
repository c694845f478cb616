/*
 * What a buffer takes beyond kernel.perf_event_mlock_kb is held against RLIMIT_MEMLOCK together with what else is pinned (VmPin), not
 * with what mlock has locked (VmLck).
 */
#include "../perf.h"
#include <sys/resource.h>

static void set(const char *path, const char *text)
{
	int fd = (int)MUST(open(path, O_WRONLY));
	MUST(write(fd, text, strlen(text)));
	close(fd);
}

int main(void)
{
	set("/proc/sys/kernel/perf_event_paranoid", "1");
	struct rlimit limit = { 8 << 20, 8 << 20 };
	MUST(setrlimit(RLIMIT_MEMLOCK, &limit));
	MUST(setuid(1234));
	char *at = mmap(NULL, 7 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T(mlock(at, 7 << 20));
	struct perf_event_attr attr = every_fault();
	int fd = must_open(&attr, 0, -1, -1, 0);
	OK(mmap(NULL, 1025 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	return 0;
}
