/*
 * What exec keeps from others and from whoever runs a program: a program that one may execute but not read
 * (0711) is not dumpable, so nobody but root looks into its memory, not even its own user, and nor is one that
 * is run by somebody with two identities; a file of /proc/PID/mem stays with the memory that it was opened
 * for; a set-user-id program forgets the personality that would make its addresses known; every program
 * forgets READ_IMPLIES_EXEC, which until then gives all that may be read the right to execute. Nobody maps the
 * first pages without CAP_SYS_RAWIO, by mremap neither.
 */
#include "check.h"
#include <sys/personality.h>
#include <sys/prctl.h>

#define RW (PROT_READ | PROT_WRITE)

static void copy_self(const char *to, mode_t mode)
{
	static char block[65536];
	int in = (int)MUST(open("/proc/self/exe", O_RDONLY)), out = (int)MUST(open(to, O_WRONLY | O_CREAT, 0700));
	for (ssize_t n; (n = read(in, block, sizeof block)) > 0;)
		MUST(write(out, block, (size_t)n));
	MUST(fchmod(out, mode));
	close(in);
	close(out);
}

static void become(int real, int effective)
{
	MUST(setresgid(1000, 1000, 1000));
	MUST(setresuid((uid_t)real, (uid_t)effective, (uid_t)effective));
}

static void try_open(const char *what, pid_t pid, int flags)
{
	char path[64], byte;
	snprintf(path, sizeof path, "/proc/%d/%s", pid, what);
	int fd = open(path, flags);
	if (fd < 0)
		SAY("%s: %s", what, err_name(errno));
	else if (strcmp(what, "mem") == 0)
		SAY("mem: read %s", pread(fd, &byte, 1, (off_t)&try_open) == 1 ? "one byte" : "nothing");
	else
		SAY("%s: open", what);
	close(fd);
}

static void look(pid_t pid)
{
	try_open("mem", pid, O_RDONLY);
	try_open("maps", pid, O_RDONLY);
	try_open("environ", pid, O_RDONLY);
	try_open("auxv", pid, O_RDONLY);
	try_open("fd/0", pid, O_RDONLY);
	try_open("stat", pid, O_RDONLY);
	struct stat st;
	char path[64];
	snprintf(path, sizeof path, "/proc/%d", pid);
	if (stat(path, &st) == 0)
		SAY("owner %d", st.st_uid);
}

/* The program that was executed: itself, then as another of its user sees it. */
static void guarded(void)
{
	T(prctl(PR_GET_DUMPABLE));
	try_open("mem", getpid(), O_RDONLY);
	try_open("maps", getpid(), O_RDONLY);
	pid_t self = getpid();
	CHILD("its child") {
		T(prctl(PR_GET_DUMPABLE));
		try_open("mem", self, O_RDONLY);
	} END;
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0)
		execl("./readable", "readable", "look", NULL);
	say_status("looker", reap(pid));
}

static void run(const char *what, const char *program, int real, int effective)
{
	SAY("-- %s", what);
	CHILD(what) {
		become(real, effective);
		execl(program, program, "guarded", NULL);
		SAY("%s", err_name(errno));
	} END;
}

static void say_personality(void)
{
	SAY("personality %#lx", (long)personality(0xffffffff));
}

static void run_with(const char *program, unsigned long with, int uid)
{
	CHILD(program) {
		MUST(personality(with));
		if (uid)
			become(uid, uid);
		execl(program, program, "personality", NULL);
		SAY("%s", err_name(errno));
	} END;
}

/* Where the stack of a program lies that a user runs. */
static unsigned long stack_of(const char *program, unsigned long with)
{
	char at[32] = "";
	int p[2];
	MUST(pipe(p));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(personality(with));
		become(1000, 1000);
		dup2(p[1], 9);
		execl(program, program, "address", NULL);
		_exit(1);
	}
	reap(pid);
	MUST(read(p[0], at, 31));
	close(p[0]);
	close(p[1]);
	return strtoul(at, NULL, 16);
}

/* Whether it lies at the same place each time, and whether the bits below those of pages are the same. */
static void addresses(const char *program, unsigned long with)
{
	unsigned long first = stack_of(program, with), all = 0;
	for (int i = 0; i < 20; i++)
		all |= stack_of(program, with) ^ first;
	SAY("%s with %#lx: %s pages, %s bits below", program, with, all >> 12 ? "other" : "the same",
	    (all & 0xff0) == 0xff0 ? "all" : all & 0xfff ? "some" : "no");
}

static int executable(const void *at)
{
	unsigned long low, high;
	char line[512], rights[8];
	FILE *maps = fopen("/proc/self/maps", "r");
	int yes = -1;
	while (fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx %7s", &low, &high, rights) == 3 && low <= (unsigned long)at && (unsigned long)at < high)
			yes = rights[2] == 'x';
	fclose(maps);
	return yes;
}

static void implied(void)
{
	SAY("-- READ_IMPLIES_EXEC");
	CHILD("implied") {
		int fd = (int)MUST(open("f", O_RDWR | O_CREAT, 0700));
		MUST(ftruncate(fd, PAGE));
		MUST(personality(READ_IMPLIES_EXEC));
		char *a = (char *)MUST(mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		T(executable(a));
		char *w = (char *)MUST(mmap(NULL, PAGE, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		T(executable(w));
		char *f = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
		T(executable(f));
		T(mprotect(w, PAGE, RW));
		T(executable(w));
		T(mprotect(w, PAGE, PROT_NONE));
		T(executable(w));
		char *old = (char *)sbrk(0);
		MUST(brk(old + 4 * PAGE));
		T(executable(old + 3 * PAGE));
		MUST(personality(0));
		T(mprotect(a, PAGE, PROT_READ));
		T(executable(a));
	} END;
}

static void low_pages(void)
{
	SAY("-- low pages");
	CHILD("user") {
		become(1000, 1000);
		char *p = pages(4);
		OK(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 0));
		OK(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 4096));
		OK(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 0xf000));
		OK(mremap(p + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 0x10000));
		p[0] = 'x';
		OK(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 4096));
		OK(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0));
		OK(mremap((void *)0x40000000, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 4096));
	} END;
	CHILD("root") {
		char *p = pages(4);
		OK(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, 4096));
		IS(mremap(p + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 8192) == (void *)8192);
	} END;
}

/* A file of a program's own memory, handed to what it becomes, tells nothing of that. */
static void own_memory(const char *file)
{
	CHILD(file) {
		char path[64];
		become(1000, 1000);
		snprintf(path, sizeof path, "/proc/self/%s", file);
		MUST(prctl(PR_SET_DUMPABLE, 1));
		int fd = (int)MUST(open(path, O_RDONLY));
		dup2(fd, 8);
		execl("./setuid", "setuid", "inherited", file, NULL);
	} END;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		char text[64];
		if (strcmp(argv[1], "guarded") == 0)
			guarded();
		else if (strcmp(argv[1], "look") == 0)
			look(getppid());
		else if (strcmp(argv[1], "personality") == 0)
			say_personality();
		else if (strcmp(argv[1], "inherited") == 0)
			T(pread(8, text, 1, strcmp(argv[2], "mem") == 0 ? (off_t)&own_memory : 0));
		else
			dprintf(9, "%p", (void *)&argc);
		return 0;
	}
	scratch();
	copy_self("readable", 0755);
	copy_self("secret", 0711);
	copy_self("setuid", 04755);
	copy_self("setgid", 02755);
	copy_self("mandatory", 02745);
	copy_self("own", 04755);
	MUST(chown("own", 1000, 1000));
	MUST(chmod("own", 04755));
	run("readable", "./readable", 1000, 1000);
	run("execute only", "./secret", 1000, 1000);
	run("two identities", "./readable", 1000, 1001);
	run("set-user-id", "./setuid", 1000, 1000);
	run("one's own set-user-id", "./own", 1000, 1000);
	SAY("-- root");
	CHILD("root") {
		execl("./secret", "./secret", "guarded", NULL);
	} END;
	SAY("-- personality");
	unsigned long all = ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC | ADDR_COMPAT_LAYOUT | STICKY_TIMEOUTS | WHOLE_SECONDS;
	run_with("./readable", all, 1000);
	run_with("./secret", all, 1000);
	run_with("./setuid", all, 1000);
	run_with("./setgid", all, 1000);
	run_with("./mandatory", all, 1000);
	run_with("./own", all, 1000);
	run_with("./readable", all, 0);
	run_with("./setuid", all, 0);
	addresses("./readable", 0);
	addresses("./readable", ADDR_NO_RANDOMIZE);
	addresses("./readable", READ_IMPLIES_EXEC);
	addresses("./setuid", ADDR_NO_RANDOMIZE);
	implied();
	low_pages();
	own_memory("mem");
	own_memory("maps");
	own_memory("environ");
	return 0;
}
