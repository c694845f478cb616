/*
 * Contract: who dies of a signal whose default is a core leaves a file "core" in its folder, whose it is, mode 0600, if
 * RLIMIT_CORE, its being dumpable, and the folder allow; the status says so. What was there under that name is not
 * written to, but replaced. kernel.core_pattern and kernel.core_uses_pid name it.
 */
#include "core.h"

static void die(const char *what, int signal)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		raise(signal);
		_exit(1);
	}
	say_end(what, pid);
}

static void look(void)
{
	struct stat st;
	struct core core;
	if (lstat("core", &st) != 0) {
		SAY("  no core");
		return;
	}
	printf("  core: type %o mode %o owner %u links %u", st.st_mode & S_IFMT, st.st_mode & 07777, st.st_uid, (unsigned)st.st_nlink);
	if (S_ISREG(st.st_mode) && core_open(&core, "core") == 0) {
		printf(" ELF %d", memcmp(core.bytes, ELFMAG, SELFMAG) == 0 && core.head->e_type == ET_CORE);
		core_close(&core);
	}
	printf("\n");
	remove("core");
}

static void limits(void)
{
	core_limit(0);
	die("limit 0", SIGSEGV);
	look();
	core_limit(4095);
	die("limit 4095", SIGSEGV);
	look();
	core_limit(16384);
	die("limit 16384", SIGSEGV);
	struct stat st;
	IS(stat("core", &st) == 0 && st.st_size > 0 && st.st_size <= 16384);
	look();
	core_limit(RLIM_INFINITY);
	CHILD("RLIMIT_FSIZE of 16384") {
		struct rlimit limit = { 16384, 16384 };
		MUST(setrlimit(RLIMIT_FSIZE, &limit));
		raise(SIGSEGV);
	} END;
	IS(stat("core", &st) == 0 && st.st_size == 16384);
	look();
}

static void signals(void)
{
	static const int list[] = { SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS, SIGTERM, SIGUSR1 };
	for (size_t n = 0; n < sizeof list / sizeof *list; n++) {
		die(sig_name(list[n]), list[n]);
		look();
	}
}

static void places(void)
{
	CHILD("not dumpable") {
		MUST(prctl(PR_SET_DUMPABLE, 0));
		raise(SIGSEGV);
	} END;
	look();
	/* What was there. */
	int fd = (int)MUST(open("core", O_CREAT | O_WRONLY, 0644));
	MUST(write(fd, "mine", 4));
	close(fd);
	MUST(link("core", "other"));
	die("a file with two names was there", SIGSEGV);
	look();
	SAY("  its other name: %s", text_of("other"));
	MUST(symlink("other", "core"));
	die("a link was there", SIGSEGV);
	look();
	SAY("  where it led: %s", text_of("other"));
	MUST(unlink("other"));
	MUST(mkdir("core", 0777));
	die("a folder was there", SIGSEGV);
	look();
	MUST(mkfifo("core", 0666));
	die("a fifo was there", SIGSEGV);
	look();
	CHILD("umask 0200") {
		umask(0200);
		raise(SIGSEGV);
	} END;
	look();
	CHILD("another user") {
		MUST(setgid(1000));
		MUST(setuid(1000));
		MUST(prctl(PR_SET_DUMPABLE, 1));
		raise(SIGSEGV);
	} END;
	look();
	MUST(chmod(".", 0755));
	CHILD("another user, who may not write here") {
		MUST(setgid(1000));
		MUST(setuid(1000));
		MUST(prctl(PR_SET_DUMPABLE, 1));
		raise(SIGSEGV);
	} END;
	look();
}

static void full(void)
{
	MUST(mkdir("small", 0777));
	MUST(mount("none", "small", "tmpfs", 0, "size=64k"));
	CHILD("a file system of 64 KiB") {
		MUST(chdir("small"));
		char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(memory, 'x', 1 << 20);
		raise(SIGSEGV);
	} END;
	struct stat st;
	IS(stat("small/core", &st) == 0 && st.st_size > 0 && st.st_size <= 1 << 18);
	MUST(umount("small"));
	MUST(mkdir("gone", 0777));
	CHILD("a folder that is gone") {
		MUST(chdir("gone"));
		MUST(rmdir("../gone"));
		raise(SIGSEGV);
	} END;
}

/* Dies with a name of its own, and tells what the pattern made of it. */
static void named(const char *pattern, const char *name)
{
	char wanted[256], path[PATH_MAX];
	put_sys("kernel/core_pattern", pattern);
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(prctl(PR_SET_NAME, name));
		raise(SIGABRT);
	}
	int status = reap(pid);
	printf("%s: %s", pattern, WCOREDUMP(status) ? "dumped" : "not dumped");
	snprintf(wanted, sizeof wanted, ".%d", pid);
	DIR *dir = opendir(".");
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		struct stat st;
		if (stat(entry->d_name, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		/* Numbers of processes and times differ from run to run. */
		snprintf(path, sizeof path, "%s", entry->d_name);
		char number[32], *at;
		snprintf(number, sizeof number, "%d", pid);
		/* The digits of no limit may have those of a process in them. */
		while (strcmp(pattern, "c%c") != 0 && (at = strstr(path, number)) != NULL) {
			memmove(at + 3, at + strlen(number), strlen(at + strlen(number)) + 1);
			memcpy(at, "PID", 3);
		}
		printf(" %s", path);
		unlink(entry->d_name);
	}
	closedir(dir);
	printf("\n");
}

static void names(void)
{
	MUST(sethostname("a/host", 6));
	named("core", "plain");
	put_sys("kernel/core_uses_pid", "1");
	named("core", "plain");
	named("with_%p", "plain");
	named("with_%P", "plain");
	named("\n", "plain");
	put_sys("kernel/core_uses_pid", "0");
	named("u%u-g%g-s%s-d%d-%%-%p-%P-%i-%I", "plain");
	named("%e", "plain");
	named("%e", "a/b/../c");
	named("%e", ".");
	named("%e", "..");
	named("%e", "...");
	named("x%ey", "..");
	named("%e", "");
	named("h%h", "plain");
	named("f%f", "plain");
	named("E%E", "plain");
	named("c%c", "plain");
	named("end%", "plain");
	named("un%qknown%!", "plain");
	named("a b", "plain");
	named("\n", "plain");
	named("no/such/folder", "plain");
	named("./dots", "plain");
	/* Only 127 bytes of a pattern are kept. */
	char lengthy[300];
	memset(lengthy, 'l', sizeof lengthy - 1);
	lengthy[sizeof lengthy - 1] = 0;
	put_sys("kernel/core_pattern", lengthy);
	SAY("a pattern of 299: %zu", strlen(text_of("/proc/sys/kernel/core_pattern")));
	put_sys("kernel/core_pattern", "two\nlines\n");
	SAY("two lines: %s", text_of("/proc/sys/kernel/core_pattern"));
	time_t before = time(NULL);
	put_sys("kernel/core_pattern", "%t");
	CHILD("%t") { raise(SIGABRT); } END;
	int found = 0;
	for (time_t at = before; at < before + 600; at++) {
		char name[32];
		snprintf(name, sizeof name, "%ld", (long)at);
		found |= unlink(name) == 0;
	}
	IS(found);
	put_sys("kernel/core_pattern", "core");
	MUST(sethostname("(none)", 6));
}

int main(void)
{
	own_folder();
	limits();
	signals();
	places();
	MUST(chmod(".", 0777));
	full();
	names();
	no_folder();
	return 0;
}
