/*
 * /proc/PID/mem: a process's memory is read and written at its address, whatever the protection of private mappings is; shared ones
 * keep theirs. Who may: as with ptrace. A program that was executed since the open is another process's memory.
 */
#include "check.h"

#define SELF "/proc/self/mem"

static const char constant[8] = "constant";

static long at(const void *address) { return (long)address; }

static void own(void)
{
	char *page = pages(3), got[16] = "";
	int fd = (int)MUST(open(SELF, O_RDWR));
	T(pwrite(fd, "written", 8, at(page + 10)));
	SAY("%s", page + 10);
	strcpy(page + 30, "read");
	T(pread(fd, got, 5, at(page + 30)));
	SAY("%s", got);
	IS(lseek(fd, at(page), SEEK_SET) == at(page));
	T(write(fd, "abc", 3));
	T(write(fd, "def", 4));
	SAY("%s", page);
	IS(lseek(fd, 2, SEEK_CUR) == at(page) + 9);
	T(lseek(fd, 0, SEEK_END));
	T(write(fd, "x", 0));
	puts("-- across pages, and to the end");
	char *long_text = pages(3);
	memset(long_text, 'y', 3 * PAGE);
	T(pwrite(fd, long_text, 2 * PAGE + 5, at(page) + PAGE - 5));
	IS(memcmp(page + PAGE - 5, long_text, 2 * PAGE + 5) == 0);
	MUST(munmap(page + 2 * PAGE, PAGE));
	memset(page, 0, 2 * PAGE);
	T(pwrite(fd, long_text, 3 * PAGE, at(page) + 7));
	IS(page[6] == 0 && page[7] == 'y' && page[2 * PAGE - 1] == 'y');
	T(pwrite(fd, "x", 1, at(page + 2 * PAGE)));
	T(pwrite(fd, "x", 1, 0));
	T(pread(fd, got, 1, at(page + 2 * PAGE)));
	T(pwrite(fd, NULL, 1, at(page)));
	T(pwrite(fd, page_end(), 1, at(page)));
	T(pwrite(fd, "x", 1, at(KERNEL_ADDRESS) & LONG_MAX));
	close(fd);
}

static void protection(void)
{
	int fd = (int)MUST(open(SELF, O_RDWR));
	char *page = pages(1);
	strcpy(page, "before");
	MUST(mprotect(page, PAGE, PROT_READ));
	T(pwrite(fd, "of a page that may be read", 27, at(page)));
	SAY("%s", page);
	MUST(mprotect(page, PAGE, PROT_NONE));
	T(pwrite(fd, "of none", 8, at(page)));
	MUST(mprotect(page, PAGE, PROT_READ));
	SAY("%s", page);
	T(pwrite(fd, "changed!", 8, at(constant)));
	SAY("%.8s", (const char *)(const volatile char *)constant);
	puts("-- files");
	int file = (int)MUST(memfd_create("file", 0));
	MUST(write(file, "of the file", 12));
	char *map = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 0));
	T(pwrite(fd, "a private copy", 15, at(map)));
	char got[16] = "";
	MUST(pread(file, got, 12, 0));
	SAY("%s, %s", map, got);
	map = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0));
	T(pwrite(fd, "x", 1, at(map)));
	map = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
	T(pwrite(fd, "to the file", 12, at(map)));
	MUST(pread(file, got, 12, 0));
	SAY("%s", got);
	T(pwrite(fd, "x", 1, at(map + PAGE)));
	close(fd);
}

/* A child that sleeps until the pipe says something, and prints what it then has. */
static void another(void)
{
	int go[2], fd;
	char path[64], *page = pages(1), got[16] = "";
	strcpy(page, "the child's");
	MUST(pipe(go));
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		char c;
		MUST(read(go[0], &c, 1));
		SAY("the child has: %s", page);
		_exit(0);
	}
	snprintf(path, sizeof path, "/proc/%d/mem", child);
	fd = (int)MUST(open(path, O_RDWR));
	T(pread(fd, got, 12, at(page)));
	SAY("%s", got);
	T(pwrite(fd, "from the parent", 16, at(page)));
	SAY("the parent has: %s", page);
	CHILD("another user") {
		MUST(setresgid(1000, 1000, 1000));
		MUST(setresuid(1000, 1000, 1000));
		T(open(path, O_RDWR));
		T(open(path, O_RDONLY));
		puts("-- through what root has opened");
		T(pwrite(fd, "from anybody at", 16, at(page)));
	} END;
	MUST(write(go[1], "x", 1));
	say_status("child", reap(child));
	T(pwrite(fd, "x", 1, at(page)));
	T(pread(fd, got, 1, at(page)));
	close(fd);
}

static void executed(void)
{
	int go[2], ready[2];
	char path[64], c;
	MUST(pipe(go));
	MUST(pipe2(ready, O_CLOEXEC));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		MUST(dup2(go[0], 0));
		close(go[1]);
		execl("/proc/self/exe", "proc_mem", "wait", NULL);
		_exit(1);
	}
	close(ready[1]);
	snprintf(path, sizeof path, "/proc/%d/mem", child);
	int fd = (int)MUST(open(path, O_RDWR));
	/* It ends with the exec, if that is not over. */
	MUST(read(ready[0], &c, 1));
	int later = (int)MUST(open(path, O_RDWR));
	char *text = "x";
	IS(pwrite(later, text, 1, at(constant)) <= 1);
	close(go[1]);
	say_status("child", reap(child));
	T(pwrite(fd, "x", 1, at(constant)));
	T(pwrite(later, "x", 1, at(constant)));
	T(pread(later, text = pages(1), 1, at(constant)));
}

int main(int argc, char **argv UNUSED)
{
	char c;
	if (argc > 1)
		return (int)read(0, &c, 1);
	own();
	puts("-- protection");
	protection();
	puts("-- another process");
	another();
	puts("-- a program executed since");
	executed();
	return 0;
}
