/*
 * fuzz: throws random and boundary-valued system calls, and sequences made to hurt, at the kernel.
 *
 * Runs as init (`rdinit=/usr/lib/alea/fuzz`), so that a child's kill(-1) cannot end it. A round is a few children in a
 * jail of their own (a tmpfs with a few devices, /proc, /dev/pts), some root, some not; then everything is killed, unmounted and
 * counted. All is drawn from the seed: the same seed and round throw the same calls (how they interleave is the kernel's affair).
 *
 * fuzz.seed=S fuzz.seconds=N fuzz.rounds=N fuzz.round=R (only this one) fuzz.kind=K (only this one) fuzz.say (tell each call)
 * fuzz.leak=BYTES (kept at the end, as if they were lost), on the kernel command line. Prints `fuzz: round R KINDS` before each round, `fuzz: free KIB` after some, what is left
 * by kind of object, and `fuzz: end` last.
 */
#include "fuzz_calls.h"
#include "fuzz_files.h"
#include "fuzz_meets.h"
#include "fuzz_more.h"
#include "fuzz_perf.h"
#include "fuzz_poll.h"
#include "fuzz_rings.h"
#include "fuzz_seals.h"
#include "fuzz_signals.h"
#include "fuzz_sysv.h"
#include "fuzz_tasks.h"
#include "fuzz_traces.h"
#include "objects.h"
#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <sys/xattr.h>

/* A round may take this long before all is killed. */
#define ROUND_MS 1500
#define MAX_JOBS 8

static const struct kind { const char *name; void (*run)(void); } KINDS[] = {
	{ "calls", calls }, { "threads", threads }, { "mappings", mappings }, { "clones", clones }, { "signals", signals }, { "execs", execs },
	{ "epolls", epolls }, { "sockets", sockets }, { "terminals", terminals }, { "trees", trees }, { "bombs", bombs }, { "calls", calls }, { "calls", calls },
	{ "internet", internet }, { "watches", watches }, { "handles", handles }, { "lenders", lenders }, { "sequences", sequences },
	{ "polls", polls }, { "seals", seals }, { "frames", frames }, { "urgent", urgent },
	{ "movers", movers }, { "families", families }, { "sysv", sysv }, { "traces", traces }, { "rings", rings }, { "perfs", perfs },
	{ "filters", filters },
};

/* ---- rounds ---- */

static void copy_file(const char *from, const char *to, mode_t mode)
{
	static char block[65536];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, mode);
	ssize_t n;
	while ((n = read(in, block, sizeof block)) > 0)
		write(out, block, (size_t)n);
	fchmod(out, mode);
	close(in);
	close(out);
}

static void jail(void)
{
	static const struct { const char *name; int major, minor; } devices[] = {
		{ "null", 1, 3 }, { "zero", 1, 5 }, { "full", 1, 7 }, { "random", 1, 8 }, { "urandom", 1, 9 }, { "kmsg", 1, 11 }, { "tty", 5, 0 }, { "ptmx", 5, 2 },
	};
	umask(0);
	/* A root that left an earlier jail may have put something else there. */
	if (mount("jail", "/jail", "tmpfs", 0, "size=16m") != 0) {
		remove("/jail");
		mkdir("/jail", 0755);
		if (mount("jail", "/jail", "tmpfs", 0, "size=16m") != 0)
			say("fuzz: FAILED: no jail: %s\n", strerror(errno));
	}
	chdir("/jail");
	mkdir("proc", 0755);
	mkdir("dev", 0755);
	mount("proc", "proc", "proc", 0, NULL);
	for (unsigned i = 0; i < COUNT(devices); i++) {
		char name[32];
		snprintf(name, sizeof name, "dev/%s", devices[i].name);
		mknod(name, S_IFCHR | (i == 5 ? 0600 : 0666), makedev((unsigned)devices[i].major, (unsigned)devices[i].minor));
	}
	mkdir("dev/pts", 0755);
	mount("devpts", "dev/pts", "devpts", 0, NULL);
	mkdir("d", 0777);
	mkdir("d/e", 0777);
	mkdir("m", 0777);
	mkdir("sticky", 01777);
	symlink("a", "link");
	symlink("loop", "loop");
	mkfifo("fifo", 0666);
	int fd = open("exe", O_WRONLY | O_CREAT, 0755);
	write(fd, TINY, sizeof TINY);
	close(fd);
	copy_file("exe", "setuid", 04755);
}

static void child(u64 seed, const struct kind *kind, int root)
{
	state = seed;
	is_root = root;
	/* the jail that init stands in: another child may have unmounted it from /jail by now */
	chroot(".");
	if (!root) {
		setgid(1000);
		setuid(1000 + (uid_t)below(2));
	}
	int null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	close(null);
	setsid();
	limits();
	memory();
	tick();
	kind->run();
	syscall(SYS_exit_group, 0);
}

/* How many there are beside init and the kernel's threads, which have no parent. */
static int orphans(void)
{
	int count = 0;
	DIR *dir = opendir("/proc");
	for (struct dirent *d; dir && (d = readdir(dir));) {
		char path[300], text[512];
		int pid = atoi(d->d_name), parent = 0;
		snprintf(path, sizeof path, "/proc/%d/stat", pid);
		int fd = pid > 1 ? open(path, O_RDONLY) : -1;
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
		close(fd);
		text[n > 0 ? n : 0] = 0;
		char *paren = strrchr(text, ')');
		count += paren && sscanf(paren, ") %*c %d", &parent) == 1 && parent > 0;
	}
	if (dir)
		closedir(dir);
	return count;
}

/* Says of each thread that is left beside the kernel's: its name, state, parent and tracer. */
static void tell_left(void)
{
	DIR *dir = opendir("/proc");
	for (struct dirent *d; dir && (d = readdir(dir));) {
		char path[300], line[200];
		if (atoi(d->d_name) <= 1)
			continue;
		snprintf(path, sizeof path, "/proc/%s/task", d->d_name);
		DIR *threads = opendir(path);
		for (struct dirent *t; threads && (t = readdir(threads));) {
			static const char *const wanted[] = { "Name:", "State:", "Tgid:", "PPid:", "TracerPid:", "SigPnd:", "ShdPnd:", "Seccomp:" };
			snprintf(path, sizeof path, "/proc/%s/task/%s/status", d->d_name, t->d_name);
			FILE *status = t->d_name[0] == '.' ? NULL : fopen(path, "r");
			if (!status)
				continue;
			say("fuzz: left: thread %s", t->d_name);
			while (fgets(line, sizeof line, status))
				for (unsigned i = 0; i < COUNT(wanted); i++)
					if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
						say(" %.*s", (int)strcspn(line, "\n"), line);
			say("\n");
			fclose(status);
		}
		if (threads)
			closedir(threads);
	}
	if (dir)
		closedir(dir);
}

/* Kills everything else and waits until it is gone. Init alone is left. */
static void sweep(void)
{
	u64 start = now_ms();
	for (;;) {
		pid_t pid;
		kill(-1, SIGKILL);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD) {
			/* One whose parent did not want to know may be on its way out on another CPU. */
			for (int i = 0; i < 2000 && orphans() > 0; i++)
				usleep(500);
			if (orphans() > 0)
				say("fuzz: FAILED: %d are left whom nobody can wait for\n", orphans());
			return;
		}
		if (pid == 0) {
			usleep(500);
			if (now_ms() - start > 300000) {
				say("fuzz: FAILED: a process does not die\n");
				tell_left();
				reboot(RB_POWER_OFF);
			}
		}
	}
}

static void unmount_all(void)
{
	chdir("/");
	for (int i = 0; i < 3000 && umount2("/jail", MNT_DETACH) == 0; i++)
		;
}

static long free_kib(void)
{
	/* kernel stacks are kept for the next tasks: they count as free */
	char text[4096];
	long free = 0;
	int fd = open("/proc/meminfo", O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	close(fd);
	static const char *const counted[] = { "MemFree:", "KernelStack:" };
	for (unsigned i = 0; i < COUNT(counted); i++) {
		char *at = strstr(text, counted[i]);
		free += at ? atol(at + strlen(counted[i])) : 0;
	}
	return free;
}

static void run_round(u64 seed, u64 round, unsigned jobs, const char *only)
{
	pid_t pids[MAX_JOBS];
	char line[200];
	int at;
	state = seed;
	state = draw() + round;
	state = draw();
	at = snprintf(line, sizeof line, "fuzz: round %lu", round);
	jail();
	for (unsigned i = 0; i < jobs; i++) {
		const struct kind *kind = &PICK(KINDS);
		int root = one_in(3);
		u64 own = draw();
		for (unsigned k = 0; only && k < COUNT(KINDS); k++)
			if (strcmp(KINDS[k].name, only) == 0)
				kind = &KINDS[k];
		at += snprintf(line + at, sizeof line - (size_t)at, " %s%s", kind->name, root ? "(root)" : "");
		if (i + 1 == jobs)
			say("%s\n", line);
		/* all start together, when the line is out */
		pids[i] = fork();
		if (pids[i] == 0) {
			usleep(2000);
			child(own, kind, root);
		}
	}
	u64 start = now_ms();
	for (unsigned left = jobs; left > 0 && now_ms() - start < ROUND_MS;) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid <= 0)
			usleep(1000);
		for (unsigned i = 0; i < jobs && pid > 0; i++)
			left -= pids[i] == pid;
	}
	sweep();
	sysv_remove_all();
	unmount_all();
}

/* ---- what is left ---- */

/*
 * The files of the root file system and of devtmpfs by device and number: a root that left its jail, or mounted devtmpfs there,
 * which is one for the whole machine, may have made more.
 */
static struct { dev_t dev; ino_t ino; } files[4096];
static unsigned file_count;
static int new_files;

static int keep_file(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)path, (void)type, (void)walk;
	if (file_count < COUNT(files)) {
		files[file_count].dev = st->st_dev;
		files[file_count++].ino = st->st_ino;
	}
	return 0;
}

static int tell_new_file(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)type, (void)walk;
	for (unsigned i = 0; i < file_count; i++)
		if (files[i].dev == st->st_dev && files[i].ino == st->st_ino)
			return 0;
	say("fuzz: a new file: %s\n", path);
	new_files++;
	return 0;
}

/* Shows each file of both to `visit`. */
static void each_file(int (*visit)(const char *, const struct stat *, int, struct FTW *))
{
	nftw("/", visit, 16, FTW_PHYS | FTW_MOUNT);
	if (mount("dev", "/jail", "devtmpfs", 0, NULL) != 0)
		say("fuzz: FAILED: no devtmpfs: %s\n", strerror(errno));
	nftw("/jail", visit, 16, FTW_PHYS | FTW_MOUNT);
	umount2("/jail", MNT_DETACH);
}

/* The fuzzer's own private memory, in bytes. */
static long own_bytes(void)
{
	char text[4096];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	close(fd);
	char *own = strstr(text, "RssAnon:");
	if (!own)
		say("fuzz: FAILED: no RssAnon in /proc/self/status\n");
	return own ? atol(own + 8) * 1024 : 0;
}

/* How many bytes the kernel holds besides the fuzzer's own memory: the least, when what is on its way to its end has come there. */
static long settle(struct objects *objects)
{
	struct objects now;
	long least = LONG_MAX;
	for (int i = 0; i < 40; i++) {
		/* first: a page that the fuzzer gets meanwhile counts too much, not too little */
		long own = own_bytes();
		objects_read(&now);
		if (objects_bytes(&now) - own < least) {
			least = objects_bytes(&now) - own;
			*objects = now;
		}
		usleep(5000);
	}
	return least;
}

/* Keeps what there is; the bytes that are held. */
static long keep_state(struct objects *objects)
{
	each_file(keep_file);
	return settle(objects);
}

/* Tells by kind what there is more of than after the first rounds, `left` for objects, `grown` for memory; the bytes that are held. */
static long tell_objects(const struct objects *before)
{
	struct objects after;
	each_file(tell_new_file);
	objects_wait(before, &after, OBJECTS_PATIENCE_MS);
	long held = settle(&after);
	for (int i = 0; i < before->kinds && i < after.kinds; i++) {
		long more = after.of[i].number - before->of[i].number;
		if (!strcmp(before->of[i].name, "dentries") || !strcmp(before->of[i].name, "tmpfs_inodes"))
			more -= new_files;
		if (more > 0)
			say("fuzz: %s: %s %+ld\n", objects_exact(after.of[i].name) ? "left" : "grown", after.of[i].name, more);
	}
	return held;
}

/* Has the kernel keep so many bytes, at most 64 KiB, that belong to no object: whether the end sees it is a test. */
static void lose(u64 bytes)
{
	static char value[65536];
	if (bytes > sizeof value || (bytes && setxattr("/jail", "trusted.lost", value, bytes, 0) != 0))
		say("fuzz: FAILED: nothing can be lost: %s\n", strerror(errno));
}

static char *option(const char *name)
{
	static char line[4096];
	int fd = open("/proc/cmdline", O_RDONLY);
	ssize_t n = read(fd, line, sizeof line - 1);
	line[n > 0 ? n : 0] = 0;
	close(fd);
	for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
		if (strncmp(word, name, strlen(name)) == 0)
			return strdup(word + strlen(name));
	return NULL;
}

static u64 number(const char *name, u64 otherwise)
{
	char *text = option(name);
	return text ? strtoull(text, NULL, 0) : otherwise;
}

int main(void)
{
	/* A child of a round has executed this program: only init plays rounds, and says what it finds. */
	if (getpid() != 1)
		return 0;
	if (fcntl(2, F_GETFD) < 0) {
		mkdir("/dev", 0755);
		mount("dev", "/dev", "devtmpfs", 0, NULL);
		for (int i = 0; i < 3; i++)
			open("/dev/console", O_RDWR);
	}
	struct rlimit many = { 1024, 4096 };
	setrlimit(RLIMIT_NOFILE, &many);
	dup2(1, LOG_FD);
	fcntl(LOG_FD, F_SETFD, FD_CLOEXEC);
	mkdir("/proc", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mkdir("/jail", 0755);
	u64 seed = number("fuzz.seed=", 1), seconds = number("fuzz.seconds=", 30), rounds = number("fuzz.rounds=", ~0UL), only = number("fuzz.round=", ~0UL);
	unsigned jobs = (unsigned)number("fuzz.jobs=", 3);
	verbose = (int)number("fuzz.say=", 0);
	char *kind = option("fuzz.kind=");
	say("fuzz: seed %lu\n", seed);
	u64 start = now_ms(), first = only != ~0UL ? only : 0;
	long before = 0, held = 0;
	struct objects objects = { 0 };
	for (u64 round = first; round - first < rounds && now_ms() - start < seconds * 1000; round++) {
		run_round(seed, round, jobs < MAX_JOBS ? jobs : MAX_JOBS, kind);
		if (round % 10 == 9) {
			say("fuzz: free %ld\n%s", free_kib(), fail_alloc_told());
			if (!before) {
				before = free_kib();
				held = keep_state(&objects);
			}
		}
		if (only != ~0UL && rounds == ~0UL)
			break;
	}
	lose(number("fuzz.leak=", 0));
	/* too few rounds to compare with */
	if (before)
		held = tell_objects(&objects) - held;
	say("%s", fail_alloc_told());
	say("fuzz: end, %ld bytes more held, %ld KiB fewer free\n", before ? held : 0, before ? before - free_kib() : 0);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
