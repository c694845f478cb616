/*
 * Contract: a process that dumps core is like any other when memory runs out: it is killed if it is the largest, be it that its
 * core takes the last of the memory or that it stands in a pipe that nobody reads.
 */
#include "core.h"
#include <sys/sysinfo.h>

#define PROGRAM "/usr/lib/alea/abi/core_oom"

/* What was free at first, in bytes: these programs themselves lie in memory, more of them each week. */
static unsigned long at_first;

/* As much of that, in pages. */
static long percent(long part)
{
	return (long)(at_first / 100 * (unsigned long)part) / PAGE;
}

static void fill(long part)
{
	memset(pages(percent(part)), 1, (size_t)(percent(part) * PAGE));
}

/* Who is killed first, on Linux. */
static void be_first(void)
{
	int fd = (int)MUST(open("/proc/self/oom_score_adj", O_WRONLY));
	MUST(write(fd, "1000", 4));
	close(fd);
}

static pid_t dumps(long part)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		be_first();
		core_limit(RLIM_INFINITY);
		fill(part);
		abort();
	}
	return pid;
}

static int is_dumping(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	for (int n = 0; n < LONG_MS / 5; n++) {
		if (strstr(text_of(path), "CoreDumping:\t1"))
			return 1;
		sleep_ms(5);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		/* The program of the pattern takes nothing, until it is told to end. */
		while (access(argv[1], F_OK) == 0)
			sleep_ms(5);
		return 0;
	}
	struct sysinfo info;
	MUST(sysinfo(&info));
	at_first = info.freeram * info.mem_unit;
	own_folder();
	char before[4096], text[128], stands[64];
	snprintf(before, sizeof before, "%s", text_of("/proc/sys/kernel/core_pattern"));

	SAY("-- a core that takes the last of the memory");
	MUST(mkdir("cores", 0777));
	MUST(mount("cores", "cores", "tmpfs", 0, "size=100%"));
	MUST(chdir("cores"));
	int status = reap(dumps(55));
	IS(WIFSIGNALED(status));
	MUST(chdir(".."));
	T(umount("cores"));

	SAY("-- a core that nobody takes");
	snprintf(stands, sizeof stands, "/tmp/core_%d/stands", getpid());
	write_file(stands, "");
	snprintf(text, sizeof text, "|" PROGRAM " %s", stands);
	put_sys("kernel/core_pattern", text);
	pid_t pid = dumps(60);
	IS(is_dumping(pid));
	CHILD("who needs its memory") {
		fill(60);
	} END;
	say_status("who dumps", reap(pid));
	MUST(unlink(stands));
	put_sys("kernel/core_pattern", before);
	fill(40);
	SAY("memory is there again");
	no_folder();
	return 0;
}
