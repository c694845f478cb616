/*
 * An event about the system calls of a CPU that cannot be opened for want of memory leaves nothing behind: the next one counts.
 * Here nothing fails; `cargo xtask abi perf_cpu_call_taken --fail-alloc 0` makes each allocation of the call fail in turn.
 */
#include "../perf.h"
#include "failing.h"
#include <sched.h>
#include <sys/mount.h>

int main(void)
{
	cpu_set_t first;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	MUST(sched_setaffinity(0, sizeof first, &first));
	MUST(mkdir("/tmp/tracing", 0755));
	MUST(mount("tracefs", "/tmp/tracing", "tracefs", 0, NULL));
	struct perf_event_attr attr = tracepoint("raw_syscalls/sys_enter");
	failing_begin();
	for (int n = 1; n <= 40; n++) {
		failing_at(n);
		int fd = perf(&attr, -1, 0, -1, 0);
		failing_at_none();
		if (fd >= 0) {
			close(fd);
			break;
		}
	}
	int fd = must_open(&attr, -1, 0, -1, 0);
	MUST(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (int i = 0; i < 100; i++)
		syscall(SYS_getppid);
	MUST(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	IS(count_of(fd) >= 100);
	close(fd);
	umount("/tmp/tracing");
	rmdir("/tmp/tracing");
	return 0;
}
