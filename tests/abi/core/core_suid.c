/*
 * Contract: fs.suid_dumpable says how dumpable a process is that has changed its identity: 0 not at all, 1 as any other, 2 by root
 * only: the core is root's, and is made only where the pattern gives a full path or a program, and where nothing is.
 */
#include "core.h"

static void changed(const char *what)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(setresgid(1000, 1000, 1000));
		MUST(setresuid(1000, 1000, 1000));
		printf("%s: dumpable %d\n", what, prctl(PR_GET_DUMPABLE));
		fflush(stdout);
		raise(SIGABRT);
	}
	say_end(what, pid);
	struct stat st;
	if (stat("core", &st) == 0)
		SAY("  core of %u, mode %o, not empty %d", st.st_uid, st.st_mode & 07777, st.st_size > 0);
	else
		SAY("  no core");
}

static void executed(const char *what)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(setresgid(1000, 1000, 1000));
		MUST(setresuid(1000, 1000, 1000));
		execl("./setuid", "setuid", "x", NULL);
		_exit(9);
	}
	say_end(what, pid);
	unlink("core");
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
		fflush(stdout);
		raise(SIGABRT);
	}
	char path[64];
	own_folder();
	core_limit(RLIM_INFINITY);
	SAY("at first: %s", text_of("/proc/sys/fs/suid_dumpable"));
	changed("0");
	put_sys("fs/suid_dumpable", "1");
	changed("1");
	unlink("core");
	put_sys("fs/suid_dumpable", "2");
	changed("2, a relative name");
	snprintf(path, sizeof path, "/tmp/core_%d/core", getpid());
	put_sys("kernel/core_pattern", path);
	changed("2, a full path");
	/* What is there stays. */
	int fd = (int)MUST(open("core", O_WRONLY | O_TRUNC));
	close(fd);
	changed("2, something is there");
	unlink("core");
	MUST(symlink("elsewhere", "core"));
	changed("2, a link is there");
	IS(access("elsewhere", F_OK) == 0);
	unlink("core");
	CHILD("2, in another root directory") {
		MUST(mkdir("root", 0755));
		MUST(chroot("root"));
		MUST(setresuid(1000, 1000, 1000));
		raise(SIGABRT);
	} END;
	IS(access("core", F_OK) == 0);
	unlink("core");

	int from = (int)MUST(open("/proc/self/exe", O_RDONLY)), to = (int)MUST(open("setuid", O_CREAT | O_WRONLY, 0755));
	char bytes[65536];
	ssize_t n;
	while ((n = read(from, bytes, sizeof bytes)) > 0)
		MUST(write(to, bytes, (size_t)n));
	close(from);
	close(to);
	MUST(chmod("setuid", 04755));
	static const char *const values[] = { "0", "1", "2" };
	for (int v = 0; v < 3; v++) {
		put_sys("fs/suid_dumpable", values[v]);
		executed(values[v]);
	}
	fd = (int)MUST(open("/proc/sys/fs/suid_dumpable", O_WRONLY));
	T(write(fd, "3", 1));
	T(write(fd, "-1", 2));
	put_sys("fs/suid_dumpable", "0");
	put_sys("kernel/core_pattern", "core");
	no_folder();
	return 0;
}
