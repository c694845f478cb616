/*
 * Capabilities of files: which values security.capability takes and how they are read, who may set them, what exec makes of them
 * (bounding set, inheritable and ambient ones, root, set-uid, no_new_privs, nosuid, tracers), and which changes of a file take them away.
 */
#include "check.h"
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/xattr.h>

#define NAME "security.capability"
#define RAW (1u << CAP_NET_RAW)
#define BIND (1u << CAP_NET_BIND_SERVICE)

struct value {
	uint32_t magic, permitted, inheritable, more[2], rootid;
};

static int set(const char *file, uint32_t magic, uint32_t permitted, uint32_t inheritable, uint32_t rootid, size_t size)
{
	struct value value = { magic, permitted, inheritable, { 0, 0 }, rootid };
	return setxattr(file, NAME, &value, size, 0);
}

/* Revision 2, as setcap writes it. */
static int set2(const char *file, uint32_t permitted, uint32_t inheritable, int effective)
{
	return set(file, VFS_CAP_REVISION_2 | (effective ? VFS_CAP_FLAGS_EFFECTIVE : 0), permitted, inheritable, 0, 20);
}

static void shown(const char *file)
{
	uint32_t words[8];
	ssize_t n = getxattr(file, NAME, words, sizeof words);
	printf("  %zd, %zd:", getxattr(file, NAME, NULL, 0), n);
	if (n < 0)
		printf(" %s", err_name(errno));
	for (ssize_t i = 0; i < n / 4; i++)
		printf(" %x", words[i]);
	putchar('\n');
}

static void values(void)
{
	static const struct { uint32_t magic, rootid; size_t size; } all[] = {
		{ VFS_CAP_REVISION_2, 0, 20 }, { VFS_CAP_REVISION_2 | 1, 0, 20 }, { VFS_CAP_REVISION_2 | 2, 0, 20 },
		{ VFS_CAP_REVISION_2, 0, 24 }, { VFS_CAP_REVISION_2, 0, 12 }, { VFS_CAP_REVISION_1, 0, 12 }, { VFS_CAP_REVISION_1, 0, 20 },
		{ VFS_CAP_REVISION_3, 0, 24 }, { VFS_CAP_REVISION_3 | 1, 0, 24 }, { VFS_CAP_REVISION_3 | 1, 1000, 24 },
		{ VFS_CAP_REVISION_3, -1u, 24 }, { VFS_CAP_REVISION_3, 0, 20 }, { 0x04000000, 0, 24 }, { 0, 0, 4 }, { 0, 0, 1 }, { 0, 0, 0 },
	};
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		removexattr("f", NAME);
		int result = set("f", all[i].magic, RAW, BIND, all[i].rootid, all[i].size);
		printf("%x for %d, %zu bytes: %s\n", all[i].magic, (int)all[i].rootid, all[i].size, result ? err_name(errno) : "ok");
		shown("f");
	}
	T(set2("f", -1u, -1u, 1)), shown("f");
	char small[20];
	T(getxattr("f", NAME, small, 19));
	T(set("f", VFS_CAP_REVISION_3, RAW, 0, 0, 24));
	T(getxattr("f", NAME, small, 20));
	T(setxattr("f", NAME, small, 20, XATTR_CREATE));
	T(listxattr("f", NULL, 0));
	T(removexattr("f", NAME));
	T(removexattr("f", NAME));
	T(setxattr("f", NAME, small, 20, XATTR_REPLACE));
	MUST(mkdir("d", 0755));
	T(set2("d", RAW, 0, 0)), shown("d");
	MUST(symlink("f", "l"));
	T(lsetxattr("l", NAME, small, 20, 0));
}

/* The capability goes out of all sets but the bounding one. */
static void without(int capability)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];
	MUST(syscall(SYS_capget, &header, data));
	data[capability / 32].effective &= ~(1u << capability % 32);
	MUST(syscall(SYS_capset, &header, data));
}

static void inherits(uint32_t low)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];
	MUST(syscall(SYS_capget, &header, data));
	data[0].inheritable = low;
	MUST(syscall(SYS_capset, &header, data));
}

static void who(void)
{
	removexattr("f", NAME);
	CHILD("root without SETFCAP") {
		without(CAP_SETFCAP);
		T(set2("f", RAW, 0, 0));
		T(set("f", 0, RAW, 0, 0, 20));
		T(removexattr("f", NAME));
	} END;
	CHILD("root without SYS_ADMIN") {
		without(CAP_SYS_ADMIN);
		T(set2("f", RAW, 0, 0));
	} END;
	CHILD("a user") {
		MUST(setuid(1000));
		T(set2("own", RAW, 0, 0));
		T(set("own", 0, RAW, 0, 0, 20));
		T(set2("f", RAW, 0, 0));
		T(removexattr("f", NAME));
		shown("f");
		T(setxattr("f", NAME, "", 0, 0));
	} END;
}

static void show(void)
{
	char *status = (char *)read_file("/proc/self/status"), *at = strstr(status, "CapInh:");
	printf("    %d %d, secure %lu", (int)getuid(), (int)geteuid(), getauxval(AT_SECURE));
	for (char *line = strtok(at, "\n"); line && !strncmp(line, "Cap", 3); line = strtok(NULL, "\n"))
		if (strncmp(line, "CapBnd", 6))
			printf(", %.3s %s", line + 3, line + 17);
	printf(", dumpable %d\n", prctl(PR_GET_DUMPABLE));
}

static void run(const char *file)
{
	execl(file, file, "show", NULL);
	SAY("    %s", err_name(errno));
	fflush(stdout);
}

#define USER_RUNS(what, file, ...) do { \
		printf("  %s\n", what); \
		CHILD("  it") { __VA_ARGS__; MUST(setuid(1000)); run(file); } END; } while (0)

/* As a user who has kept this capability to inherit, and in the ambient set, too. */
static void becomes_user_with(int capability, int ambient)
{
	MUST(prctl(PR_SET_KEEPCAPS, 1));
	MUST(setuid(1000));
	inherits(1u << capability);
	if (ambient)
		MUST(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0));
}

static void executed(const char *file)
{
	USER_RUNS("a user", file, );
	USER_RUNS("no new privileges", file, MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
	USER_RUNS("a smaller bounding set", file, MUST(prctl(PR_CAPBSET_DROP, CAP_NET_RAW)));
	USER_RUNS("inherits one", file, becomes_user_with(CAP_NET_BIND_SERVICE, 0));
	USER_RUNS("inherits another", file, becomes_user_with(CAP_CHOWN, 0));
	USER_RUNS("ambient", file, becomes_user_with(CAP_CHOWN, 1));
	USER_RUNS("ambient, no new privileges", file, becomes_user_with(CAP_CHOWN, 1); MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
	USER_RUNS("two identities", file, MUST(setresuid(1000, 1001, 1001)); run(file));
	CHILD("root") { run(file); } END;
	CHILD("root without root's privileges") { MUST(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT)); run(file); } END;
	CHILD("traced by a user") {
		MUST(setuid(1000));
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			ptrace(PTRACE_TRACEME, 0, 0, 0);
			run(file);
			_exit(0);
		}
		int status;
		for (;;) {
			if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
				break;
			ptrace(PTRACE_CONT, pid, 0, 0);
		}
		say_status("  it", status);
	} END;
}

static void runs(void)
{
	static const struct { const char *what; uint32_t permitted, inheritable; int effective; } all[] = {
		{ "permitted", RAW, 0, 0 }, { "effective", RAW, 0, 1 }, { "inheritable", 0, BIND, 0 }, { "inheritable, effective", 0, BIND, 1 },
		{ "both", RAW, BIND, 1 }, { "none", 0, 0, 0 }, { "none, effective", 0, 0, 1 },
	};
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		SAY("-- %s", all[i].what);
		MUST(set2("prog", all[i].permitted, all[i].inheritable, all[i].effective));
		executed("./prog");
	}
	SAY("-- of another's namespace");
	MUST(set("prog", VFS_CAP_REVISION_3 | 1, RAW, 0, 1000, 24));
	executed("./prog");
	SAY("-- without a value");
	MUST(setxattr("prog", NAME, "", 0, 0));
	executed("./prog");
	SAY("-- set-uid, too");
	MUST(set2("prog", RAW, 0, 1));
	MUST(chmod("prog", 04755));
	executed("./prog");
	SAY("-- set-uid alone");
	MUST(removexattr("prog", NAME));
	executed("./prog");
	MUST(chmod("prog", 0755));
	SAY("-- a script");
	MUST(set2("prog", RAW, 0, 1));
	USER_RUNS("that the program runs", "./script", );
	MUST(removexattr("prog", NAME));
	MUST(set2("script", RAW, 0, 1));
	USER_RUNS("that has them itself", "./script", );
}

static void copy(const char *from, const char *to)
{
	static char bytes[65536];
	int in = (int)MUST(open(from, O_RDONLY)), out = (int)MUST(open(to, O_CREAT | O_WRONLY | O_TRUNC, 0755));
	for (ssize_t n; (n = MUST(read(in, bytes, sizeof bytes))) > 0;)
		MUST(write(out, bytes, (size_t)n));
	close(in), close(out);
}

static void on_mounts(void)
{
	SAY("-- nosuid");
	MUST(mkdir("m", 0755));
	MUST(mount("none", "m", "tmpfs", MS_NOSUID, "mode=755"));
	copy("/proc/self/exe", "m/prog");
	T(set2("m/prog", RAW, 0, 1));
	USER_RUNS("a user", "m/prog", );
	MUST(mount("none", "m", NULL, MS_REMOUNT, NULL));
	USER_RUNS("remounted", "m/prog", );
	MUST(umount2("m", MNT_DETACH));
}

/* A change of the file, after which it is said whether they are still there. */
#define CHANGE(call) do { MUST(set2("f", RAW, 0, 1)); T(call); shown("f"); } while (0)

static void changed(void)
{
	SAY("-- changes");
	int fd = (int)MUST(open("f", O_RDWR)), other;
	CHANGE(write(fd, "", 0));
	CHANGE(write(fd, "x", 1));
	CHANGE(pwrite(fd, "x", 1, 5));
	CHANGE(ftruncate(fd, 3));
	CHANGE(ftruncate(fd, 3));
	CHANGE(truncate("f", 8192));
	CHANGE(fallocate(fd, 0, 0, 100));
	CHANGE((other = open("f", O_WRONLY | O_TRUNC)) >= 0);
	close(other);
	CHANGE((other = open("f", O_WRONLY)) >= 0);
	close(other);
	CHANGE(chmod("f", 0755));
	CHANGE(chown("f", -1, -1));
	CHANGE(chown("f", 0, -1));
	CHANGE(fchown(fd, 0, 0));
	CHANGE(utimensat(AT_FDCWD, "f", NULL, 0));
	CHANGE(rename("f", "g") || rename("g", "f"));
	CHANGE(link("f", "h"));
	CHANGE(setxattr("f", "user.x", "y", 1, 0));
	MUST(ftruncate(fd, 4096));
	char *map = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	CHANGE(*map = 5);
	MUST(chown("d", 5, 5)), shown("d");
	MUST(setxattr("f", NAME, "", 0, 0));
	T(write(fd, "x", 1)), shown("f");
	close(fd);
	CHILD("a user's write") {
		MUST(chmod("f", 0666));
		MUST(set2("f", RAW, 0, 1));
		MUST(setuid(1000));
		int own = (int)MUST(open("f", O_WRONLY));
		T(write(own, "x", 1)), shown("f");
	} END;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		show();
		return 0;
	}
	scratch();
	close((int)MUST(open("f", O_CREAT | O_RDWR, 0644)));
	close((int)MUST(open("own", O_CREAT | O_RDWR, 0644)));
	MUST(chown("own", 1000, 1000));
	copy("/proc/self/exe", "prog");
	int script = (int)MUST(open("script", O_CREAT | O_WRONLY, 0755));
	dprintf(script, "#!./prog show\n");
	close(script);
	values();
	who();
	runs();
	on_mounts();
	changed();
	return argv[0] == NULL;
}
