/*
 * fs.protected_symlinks, _hardlinks, _fifos and _regular: what they forbid in sticky folders, to whom, and at which level.
 * kernel.pid_max: numbers of processes stay below it.
 */
#include "check.h"
#include <grp.h>

/* The text that was there, to be put back. */
static char *saved(const char *path)
{
	char name[128];
	snprintf(name, sizeof name, "/proc/sys/%s", path);
	return strdup(read_file(name));
}

static void be(uid_t uid)
{
	MUST(setegid(uid ? 1000 : 0));
	MUST(seteuid(uid));
}

static void as_root(void)
{
	MUST(seteuid(0));
	MUST(setegid(0));
}

static void make(const char *name, uid_t uid, mode_t mode)
{
	int fd = (int)MUST(open(name, O_CREAT | O_EXCL | O_WRONLY, 0600));
	MUST(fchown(fd, uid, uid));
	MUST(fchmod(fd, mode));
	close(fd);
}

static void attempt(const char *what, int result)
{
	printf("  %s: %s\n", what, result < 0 ? strerrorname_np(errno) : "yes");
	if (result > 2)
		close(result);
}

static void follow(const char *link)
{
	struct stat st;
	static const uid_t users[] = { 0, 1000, 1001 };
	for (int i = 0; i < 3; i++) {
		char what[64];
		be(users[i]);
		snprintf(what, sizeof what, "%s opened by %u", link, users[i]);
		attempt(what, open(link, O_RDONLY));
		attempt("stat", stat(link, &st));
		attempt("lstat", lstat(link, &st));
		as_root();
	}
}

static void symlinks(void)
{
	make("target", 0, 0666);
	MUST(mkdir("folder", 0777));
	make("folder/inside", 0, 0666);
	MUST(symlink("target", "of_1000"));
	MUST(lchown("of_1000", 1000, 1000));
	MUST(symlink("target", "of_root"));
	MUST(symlink("of_1000", "chain"));
	MUST(symlink("folder", "to_folder"));
	MUST(lchown("to_folder", 1000, 1000));
	for (int level = 1; level >= 0; level--) {
		printf("protected_symlinks %d\n", level);
		put_setting("fs/protected_symlinks", level ? "1" : "0");
		follow("of_1000");
		follow("of_root");
		be(1001);
		attempt("through a chain", open("chain", O_RDONLY));
		attempt("in the middle", open("to_folder/inside", O_RDONLY));
		attempt("with a slash behind", open("to_folder/", O_RDONLY));
		attempt("not followed", open("of_1000", O_PATH | O_NOFOLLOW));
		attempt("as what may create", open("of_1000", O_RDWR | O_CREAT, 0600));
		attempt("truncated", truncate("of_1000", 0));
		as_root();
		MUST(chmod(".", 0777));
		be(1001);
		attempt("not sticky", open("of_1000", O_RDONLY));
		as_root();
		MUST(chmod(".", 01775));
		be(1001);
		attempt("not for everybody", open("of_1000", O_RDONLY));
		as_root();
		MUST(chmod(".", 01777));
	}
	put_setting("fs/protected_symlinks", "1");
}

static void try_link(const char *name)
{
	char what[64];
	snprintf(what, sizeof what, "link of %s", name);
	attempt(what, link(name, "linked"));
	unlink("linked");
}

static void hardlinks(void)
{
	make("own", 1000, 0600);
	make("readable", 0, 0644);
	make("writable", 0, 0666);
	make("setuid", 0, 04777);
	make("setgid", 0, 02777);
	make("setgid_not_run", 0, 02766);
	MUST(mkfifo("pipe", 0666));
	MUST(chmod("pipe", 0666));
	MUST(symlink("own", "a_link"));
	for (int level = 1; level >= 0; level--) {
		printf("protected_hardlinks %d\n", level);
		put_setting("fs/protected_hardlinks", level ? "1" : "0");
		static const char *const names[] = { "own", "readable", "writable", "setuid", "setgid", "setgid_not_run", "pipe", "a_link" };
		be(1000);
		for (int i = 0; i < 8; i++)
			try_link(names[i]);
		attempt("over what is there", link("readable", "own"));
		attempt("to another file system", link("readable", "/dev/shm/linked"));
		as_root();
		try_link("setuid");
	}
	put_setting("fs/protected_hardlinks", "1");
}

static void create(void)
{
	static const mode_t modes[] = { 01777, 01775, 0777, 01755 };
	static const char *const names[] = { "regular", "fifo" };
	MUST(mkdir("shared", 0777));
	MUST(chown("shared", 1001, 1000));
	make("shared/regular", 1000, 0666);
	MUST(mkfifo("shared/fifo", 0666));
	MUST(chmod("shared/fifo", 0666));
	MUST(chown("shared/fifo", 1000, 1000));
	for (int kind = 0; kind < 2; kind++)
		for (int level = 0; level < 3; level++) {
			char setting[32], value[2] = { (char)('0' + level), 0 }, name[32];
			snprintf(setting, sizeof setting, "fs/protected_%s", kind ? "fifos" : "regular");
			snprintf(name, sizeof name, "shared/%s", names[kind]);
			put_setting(setting, value);
			for (int i = 0; i < 4; i++) {
				MUST(chmod("shared", modes[i]));
				printf("%s %d, folder %o\n", setting, level, modes[i]);
				attempt("root", open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600));
				attempt("root, exclusively", open(name, O_RDWR | O_CREAT | O_EXCL, 0600));
				attempt("root, not creating", open(name, O_RDWR | O_NONBLOCK));
				be(1000);
				attempt("owner", open(name, O_RDWR | O_CREAT | O_NONBLOCK, 0600));
				as_root();
			}
			put_setting(setting, "0");
		}
	MUST(chown("shared/regular", 1001, 1000));
	put_setting("fs/protected_regular", "2");
	MUST(chmod("shared", 01777));
	attempt("the folder's owner made it", open("shared/regular", O_RDWR | O_CREAT, 0600));
	attempt("new", open("shared/new", O_RDWR | O_CREAT, 0600));
	put_setting("fs/protected_regular", "0");
}

static void numbers(void)
{
	static const char *const values[] = { "300", "301", "4194304", "4194305", "-1", "x", "32768" };
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		ssize_t got = put_setting("kernel/pid_max", values[i]);
		printf("pid_max %s: %s, is %s", values[i], got < 0 ? strerrorname_np(errno) : "yes", read_file("/proc/sys/kernel/pid_max"));
	}
	int high = 0, rounds = 0;
	put_setting("kernel/pid_max", "400");
	for (; rounds < 300; rounds++) {
		pid_t pid = (pid_t)MUST(fork());
		if (!pid)
			_exit(0);
		MUST(waitpid(pid, NULL, 0));
		/* Where numbers go on from is not known: the first may be any. */
		if (pid >= 400)
			high++;
	}
	IS(high == 0);
	IS(rounds == 300);
	put_setting("kernel/pid_max", "4194304");
	pid_t last = 0;
	int grows = 1;
	for (int i = 0; i < 500; i++) {
		pid_t pid = (pid_t)MUST(fork());
		if (!pid)
			_exit(0);
		MUST(waitpid(pid, NULL, 0));
		grows &= pid > last;
		last = pid;
	}
	IS(grows);
	put_setting("kernel/pid_max", "32768");
}

int main(void)
{
	static const char *const names[] = { "fs/protected_symlinks", "fs/protected_hardlinks", "fs/protected_fifos", "fs/protected_regular", "kernel/pid_max" };
	static const char *const values[] = { "-1", "0", "1", "2", "3" };
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		char path[128], *before = saved(names[i]);
		struct stat st;
		snprintf(path, sizeof path, "/proc/sys/%s", names[i]);
		MUST(stat(path, &st));
		printf("%s %o %s", names[i], st.st_mode & 07777, before);
		for (unsigned v = 0; v < 5 && i != 4; v++)
			printf(" %s: %s", values[v], put_setting(names[i], values[v]) < 0 ? strerrorname_np(errno) : "yes");
		printf("\n");
		put_setting(names[i], before);
		free(before);
	}
	MUST(setgroups(0, NULL));
	scratch();
	umask(0);
	MUST(chmod(".", 01777));
	symlinks();
	hardlinks();
	create();
	numbers();
	return 0;
}
