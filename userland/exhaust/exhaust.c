/*
 * exhaust: a user takes all he can get of one kind of object, then of all kinds at once; is the machine whole afterwards?
 *
 * Runs as init (`rdinit=/usr/lib/alea/exhaust`). A round: a canary of root's that holds little, and workers of user 1000, each of
 * which makes objects of its kind until it may have no more, and goes on in a child. After so long all are killed, and what they
 * left in the file system is removed. Beside a worker init tries to fork.
 *
 * exhaust.only=KIND[,KIND...] exhaust.rounds=N exhaust.ms=N exhaust.workers=N on the kernel command line. Prints for each round
 *     exhaust KIND ROUND canary=alive|killed refused=FORKS/TRIED forks=GOOD/TRIED kib=LOST
 * with the forks of init that failed during the storm, those that worked after it, and how much less memory is free; then
 * `--- left: OBJECT +MORE`, and `exhaust-end` last.
 */
#include "exhaust_files.h"
#include "exhaust_net.h"
#include "exhaust_tasks.h"
#include "objects.h"
#include "sysv.h"
#include <grp.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/wait.h>

#pragma GCC diagnostic ignored "-Wunused-result"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
/* A process may hold this many descriptors, however many there may be. */
#define DESCRIPTORS 4096
/* So often in a row a kind may fail before another process goes on. */
#define FAILURES 8
#define FORKS 20
#define USER 1000

static const struct kind { const char *name; long (*one)(void); } KINDS[] = {
	{ "files", files }, { "file_data", file_data }, { "sparse_files", sparse_files }, { "directories", directories },
	{ "deep_directories", deep_directories }, { "symlinks", symlinks }, { "hard_links", hard_links }, { "xattrs", xattrs },
	{ "missing_names", missing_names }, { "fifos", fifos }, { "posix_locks", posix_locks }, { "flocks", flocks },
	{ "pipes", pipes }, { "tee_pipes", tee_pipes }, { "eventfds", eventfds }, { "open_files", open_files },
	{ "proc_files", proc_files }, { "signalfds", signalfds }, { "epolls", epolls }, { "inotifies", inotifies },
	{ "timerfds", timerfds }, { "memfds", memfds }, { "terminals", terminals },
	{ "tcp_connects", tcp_connects }, { "tcp_data", tcp_data }, { "udp_data", udp_data }, { "unix_streams", unix_streams },
	{ "unix_datagrams", unix_datagrams }, { "unix_names", unix_names }, { "sent_in_circles", sent_in_circles },
	{ "sent_files", sent_files }, { "netlinks", netlinks },
	{ "anonymous_memory", anonymous_memory }, { "shared_memory", shared_memory }, { "page_tables", page_tables },
	{ "mappings", mappings }, { "locked_memory", locked_memory }, { "processes", processes }, { "zombies", zombies },
	{ "threads", threads }, { "arguments", arguments }, { "posix_timers", posix_timers }, { "queued_signals", queued_signals },
	{ "filters", filters }, { "sysv_memory", sysv_memory }, { "sysv_semaphores", sysv_semaphores }, { "sysv_messages", sysv_messages },
};

static char words[4096];

/* The value of `name=` on the kernel's command line. */
static const char *option(const char *name, const char *otherwise)
{
	static char value[256];
	size_t length = strlen(name);
	for (const char *word = words; *word; word += strcspn(word, " \n"), word += strspn(word, " \n"))
		if (strncmp(word, name, length) == 0) {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(word + length, " \n"), word + length);
			return value;
		}
	return otherwise;
}

static void nap(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&time, NULL);
}

static long now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- who takes ---- */

static void become_user(void)
{
	struct rlimit many = { DESCRIPTORS, DESCRIPTORS };
	setrlimit(RLIMIT_NOFILE, &many);
	setgroups(0, NULL);
	setgid(USER);
	setuid(USER);
	/* For /proc/self and core files: as a program of that user's own. */
	prctl(PR_SET_DUMPABLE, 1);
	chdir("/exhaust");
	signal(SIGPIPE, SIG_IGN);
}

/* Makes objects until there can be no more in this process, keeps them, and goes on in a child. */
static void take(const struct kind *kind)
{
	for (;;) {
		memset(&held, 0, sizeof held);
		for (int failures = 0; failures < FAILURES;)
			failures = kind->one() < 0 ? failures + 1 : 0;
		pid_t pid;
		while ((pid = fork()) < 0)
			nap(20);
		if (pid != 0)
			for (;;)
				pause();
		close_range(3, ~0U, 0);
	}
}

/* ---- who looks on ---- */

static pid_t start_canary(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		static char own[400 << 10];
		memset(own, 1, sizeof own);
		for (;;)
			pause();
	}
	return pid;
}

static int fork_works(void)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Kills everything but init, and waits until it is gone. */
static void sweep(void)
{
	long start = now_ms();
	for (;;) {
		pid_t pid;
		kill(-1, SIGKILL);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		if (now_ms() - start > 120000) {
			puts("exhaust: FAILED: a process does not die");
			reboot(RB_POWER_OFF);
		}
		nap(1);
	}
}

static long free_kib(void)
{
	static char text[4096];
	long free = 0;
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	write(fd, "3", 1);
	close(fd);
	fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	/* Stacks of the kernel are kept for the next tasks. */
	static const char *const counted[] = { "MemFree:", "KernelStack:" };
	for (unsigned i = 0; i < COUNT(counted); i++) {
		char *at = strstr(text, counted[i]);
		free += at ? atol(at + strlen(counted[i])) : 0;
	}
	return free;
}

static void round_of(const struct kind *kinds, int count, int workers, long ms, int number, const char *name)
{
	struct objects before, after;
	int refused = 0, tried = 0, good = 0, status;
	objects_read(&before);
	long had = free_kib();
	mount("exhaust", "/exhaust", "tmpfs", 0, "mode=1777");
	pid_t canary = start_canary();
	for (int i = 0; i < workers; i++)
		if (fork() == 0) {
			become_user();
			take(&kinds[i % count]);
		}
	for (long start = now_ms(); now_ms() - start < ms; nap(100), tried++)
		refused += !fork_works();
	int alive = waitpid(canary, &status, WNOHANG) == 0;
	sweep();
	sysv_remove_all();
	umount2("/exhaust", MNT_DETACH);
	for (int i = 0; i < FORKS; i++)
		good += fork_works();
	objects_wait(&before, &after, 0);
	printf("exhaust %s %d canary=%s refused=%d/%d forks=%d/%d kib=%ld\n", name, number, alive ? "alive" : "killed", refused, tried,
	       good, FORKS, had - free_kib());
	for (int i = 0; i < before.kinds && i < after.kinds; i++)
		if (after.of[i].number > before.of[i].number && !objects_may_stay(before.of[i].name))
			printf("--- left: %s %+ld\n", before.of[i].name, after.of[i].number - before.of[i].number);
}

/* Whether `name` stands in the list, or the list is empty. */
static int chosen(const char *list, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
			return 1;
	return *list == 0;
}

int main(void)
{
	if (fcntl(2, F_GETFD) < 0) {
		mkdir("/dev", 0755);
		mount("dev", "/dev", "devtmpfs", 0, NULL);
		for (int i = 0; i < 3; i++)
			open("/dev/console", O_RDWR);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/proc", 0755);
	mkdir("/exhaust", 0755);
	mkdir("/dev/pts", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666");
	int fd = open("/proc/cmdline", O_RDONLY);
	read(fd, words, sizeof words - 1);
	close(fd);
	int rounds = atoi(option("exhaust.rounds=", "1")), workers = atoi(option("exhaust.workers=", "4"));
	long ms = atol(option("exhaust.ms=", "3000"));
	char only[256];
	snprintf(only, sizeof only, "%s", option("exhaust.only=", ""));
	fork_works();
	for (int round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < COUNT(KINDS); i++)
			if (chosen(only, KINDS[i].name))
				round_of(&KINDS[i], 1, workers, ms, round, KINDS[i].name);
		if (chosen(only, "all"))
			round_of(KINDS, COUNT(KINDS), (int)COUNT(KINDS), 3 * ms, round, "all");
	}
	puts("exhaust-end");
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
