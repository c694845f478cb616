/*
 * load: how a kernel shares its CPUs among many. The init of a boot (rdinit=/usr/lib/alea/load), on Alea and on Linux.
 *
 * Prints for each kind one or more lines
 *     load KIND WHAT NUMBER
 * where less is better: nanoseconds of a step (`message`, `pass`, `yield`, `fork`, `piece`); nanoseconds that one in two, a hundred or a
 * thousand waits after it is woken (`p50`, `p99`, `p99.9`), and the longest wait while the others have just been started
 * (`at_first`); what shares are off by, in a hundred (`off`). Then `load-end`.
 * What fails says `load-failed WHAT`. Knobs: alea.load=GLOB,GLOB alea.load_ms=N
 */
#include "load.h"
#include "load_messages.h"
#include "load_shares.h"
#include "load_wakes.h"

static const struct kind { const char *name; void (*run)(void); } kinds[] = {
	{ "hack_pipes_40_processes", pipes_1 }, { "hack_pipes_400_processes", pipes_10 }, { "hack_sockets_40_processes", sockets_1 },
	{ "hack_sockets_400_processes", sockets_10 }, { "hack_pipes_40_threads", pipes_threads_1 },
	{ "hack_sockets_400_threads", sockets_threads_10 },
	{ "token_2_threads", token_2 }, { "token_1000_threads", token_1000 }, { "yield_50_per_cpu", yields }, { "fork_4_per_cpu", forks },
	{ "wake_1_worker_per_cpu", wakes_1 }, { "wake_5_workers_per_cpu", wakes_5 },
	{ "sleeper_beside_1_per_cpu", beside_1 }, { "sleeper_beside_4_per_cpu", beside_4 }, { "sleeper_beside_16_per_cpu", beside_16 },
	{ "sleeper_beside_4_nice_19", beside_nice }, { "sleeper_beside_4_batch", beside_batch },
	{ "request_beside_4_per_cpu", requests_computing }, { "request_beside_2_pipes_per_cpu", requests_chatting },
	{ "shares_of_equals", shares }, { "shares_of_a_woken_one", shares_when_woken },
	{ "shares_of_a_forked_one", shares_when_forked }, { "shares_by_nice", shares_of_nice }, { "share_of_1_beside_100", shares_of_users },
};

static char wanted[1024] = "*";

static void read_knobs(void)
{
	char line[4096];
	int fd = (int)MUST(open("/proc/cmdline", O_RDONLY | O_CLOEXEC));
	long n = MUST(read(fd, line, sizeof line - 1));
	close(fd);
	line[n] = 0;
	char *at = strstr(line, "alea.load=");
	if (at)
		sscanf(at, "alea.load=%1023s", wanted);
	if ((at = strstr(line, "alea.load_ms=")) != NULL)
		length = strtoull(at + strlen("alea.load_ms="), NULL, 10) * MS;
}

static int is_wanted(const char *name)
{
	char list[sizeof wanted], *next = list, *glob;
	strcpy(list, wanted);
	while ((glob = strsep(&next, ",")) != NULL)
		if (fnmatch(glob, name, 0) == 0)
			return 1;
	return 0;
}

int main(void)
{
	mkdir("/proc", 0755);
	MUST(mount("proc", "/proc", "proc", 0, NULL));
	setvbuf(stdout, NULL, _IOLBF, 0);
	read_knobs();
	cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > MOST_CPUS)
		failed("too many CPUs");
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (shared == MAP_FAILED)
		failed("mmap");
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (is_wanted(kinds[i].name))
			kinds[i].run();
	printf("load-end\n");
	fflush(NULL);
	reboot(RB_POWER_OFF);
	return 1;
}
