/*
 * memfd_secret: memory that who maps it reads and writes, and system calls on his behalf, and nobody else: no debugger, no other
 * process's call, no /proc/PID/mem, no core file. It is locked, and has the length that it is given first.
 */
#include "check.h"
#include <setjmp.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#define RW (PROT_READ | PROT_WRITE)

static int secret(unsigned flags) { return (int)syscall(SYS_memfd_secret, flags); }

static long status(const char *name)
{
	const char *line = strstr(read_file("/proc/self/status"), name);
	return line ? atol(line + strlen(name)) : -1;
}

/* Whether the line of flags in smaps has a word, for the mapping that holds an address. */
static int has_flag(const char *at, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long low, high;
	int is_it = 0, has = 0;
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
			is_it = low <= (unsigned long)at && (unsigned long)at < high;
		else if (is_it && strncmp(line, "VmFlags:", 8) == 0)
			has = strstr(line, flag) != NULL;
	}
	if (f)
		fclose(f);
	return has;
}

static void file_itself(void)
{
	char buf[64] = "", path[64];
	T(secret(1));
	T(secret(O_NONBLOCK));
	int fd = secret(O_CLOEXEC);
	IS(fd >= 0);
	IS(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	printf("flags %#x\n", fcntl(fd, F_GETFL));
	struct stat st;
	MUST(fstat(fd, &st));
	printf("mode %o, %ld links, %ld bytes, %ld blocks\n", st.st_mode, (long)st.st_nlink, (long)st.st_size, (long)st.st_blocks);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, buf, sizeof buf - 1);
	printf("%.*s\n", (int)n, buf);
	T(read(fd, buf, 1));
	T(write(fd, "x", 1));
	T(pread(fd, buf, 1, 0));
	T(lseek(fd, 0, SEEK_SET));
	T(fallocate(fd, 0, 0, PAGE));
	T(fsync(fd));
	T(ftruncate(fd, 0));
	T(ftruncate(fd, 3 * PAGE));
	T(ftruncate(fd, 3 * PAGE));
	T(ftruncate(fd, PAGE));
	T(ftruncate(fd, 0));
	T(fchmod(fd, 0400));
	MUST(fstat(fd, &st));
	printf("mode %o, %ld bytes\n", st.st_mode, (long)st.st_size);
	T(close(fd));
}

static sigjmp_buf out;
static void on_fault(int sig) { siglongjmp(out, sig); }

static int touch(volatile char *at)
{
	int sig = sigsetjmp(out, 1);
	if (sig == 0)
		*at = 1;
	return sig;
}

static void mapped(void)
{
	int fd = secret(0);
	T((long)mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0) == -1 ? -1 : 0);
	T((long)mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == -1 ? -1 : 0);
	char *early = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
	IS(early != MAP_FAILED);
	signal(SIGBUS, on_fault);
	signal(SIGSEGV, on_fault);
	printf("before it has a length: signal %d\n", touch(early));
	T(munmap(early, PAGE));
	T(ftruncate(fd, 2 * PAGE + 100));
	long locked = status("VmLck:");
	char *at = mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
	IS(at != MAP_FAILED);
	printf("locked: %ld kB more\n", status("VmLck:") - locked);
	IS(at[0] == 0 && at[PAGE] == 0);
	strcpy(at + PAGE, "what nobody may know");
	printf("the last page: signal %d, beyond: signal %d\n", touch(at + 2 * PAGE + 200), touch(at + 3 * PAGE));
	char *other = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
	IS(strcmp(other, at + PAGE) == 0);
	IS(has_flag(at, " lo") && has_flag(at, " dd"));
	T(munlock(at, 4 * PAGE));
	IS(has_flag(at, " lo"));
	T(mlock(at, PAGE));
	T(madvise(at, PAGE, MADV_DONTNEED));
	T(madvise(at, PAGE, MADV_REMOVE));
	T(msync(at, PAGE, MS_SYNC));
	T(msync(at, PAGE, MS_ASYNC));
	T(mprotect(other, PAGE, RW));
	other[0] = 'W';
	IS(at[PAGE] == 'W');
	T(mprotect(at, PAGE, PROT_READ | PROT_EXEC));
	T(mprotect(at, PAGE, RW));

	int ends[2];
	char buf[32] = "";
	MUST(pipe(ends));
	T(write(ends[1], at + PAGE, 20));
	T(read(ends[0], at, 20));
	IS(memcmp(at, at + PAGE, 20) == 0);

	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		at[PAGE + 1] = 'H';
		_exit(memcmp(at + 2, "at nobody", 9) != 0 || has_flag(at, " lo"));
	}
	int how;
	MUST(waitpid(pid, &how, 0));
	printf("the child: %d\n", how);
	IS(at[PAGE + 1] == 'H');

	struct iovec local = { buf, 16 }, remote = { at + PAGE, 16 };
	T(process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	T(process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	int mem = (int)MUST(open("/proc/self/mem", O_RDWR));
	T(pread(mem, buf, 16, (off_t)(uintptr_t)(at + PAGE)));
	T(pwrite(mem, "x", 1, (off_t)(uintptr_t)(at + PAGE)));
	close(mem);
	pid = (pid_t)MUST(fork());
	if (pid == 0) {
		MUST(ptrace(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		_exit(0);
	}
	MUST(waitpid(pid, &how, 0));
	T(ptrace(PTRACE_PEEKDATA, pid, at + PAGE, 0));
	T(ptrace(PTRACE_POKEDATA, pid, at + PAGE, 0));
	MUST(ptrace(PTRACE_CONT, pid, 0, 0));
	MUST(waitpid(pid, &how, 0));
	IS(strcmp(at + PAGE, "WHat nobody may know") == 0);

	char *moved = mremap(at, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
	IS(moved != MAP_FAILED && strcmp(moved + PAGE, "WHat nobody may know") == 0);
	T(close(fd));
	IS(strcmp(other, "WHat nobody may know") == 0);
	T(munmap(moved, 8 * PAGE));
	T(munmap(other, PAGE));
}

static void limited(void)
{
	int fd = secret(0);
	MUST(ftruncate(fd, 8 * PAGE));
	struct rlimit limit = { 2 * PAGE, 2 * PAGE };
	MUST(setrlimit(RLIMIT_MEMLOCK, &limit));
	MUST(setresuid(1000, 1000, 1000));
	char *at = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);
	IS(at != MAP_FAILED);
	T((long)mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0) == -1 ? -1 : 0);
	T(munmap(at, PAGE));
	at = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
	IS(at != MAP_FAILED);
	int own = secret(0);
	IS(own >= 0);
}

int main(void)
{
	file_itself();
	mapped();
	limited();
	return 0;
}
