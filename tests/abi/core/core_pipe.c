/*
 * Contract: a kernel.core_pattern that begins with a bar names a program: it is started as root with the core as its input, with
 * the words that the pattern makes and nothing else; the status says core if it took it. kernel.core_pipe_limit limits how many
 * run, and has them waited for. RLIMIT_CORE does not matter, but for 1, which the program has itself. A process that is killed
 * while it dumps was killed.
 */
#include "core.h"
#include <sys/prctl.h>

#define PROGRAM "/usr/lib/alea/abi/core_pipe"

static char state_of(const char *pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%s/stat", pid);
	return state_in(path);
}

/* What the program of the pattern does: it tells what it is, and leaves the core. */
static int take(int argc, char **argv, char **envp)
{
	char folder[64], cwd[64] = "";
	struct rlimit limit;
	snprintf(folder, sizeof folder, "/tmp/core_%s", argv[2]);
	getrlimit(RLIMIT_CORE, &limit);
	getcwd(cwd, sizeof cwd);
	int others = access("/proc/self/fd/1", F_OK) == 0 || access("/proc/self/fd/2", F_OK) == 0;
	struct stat input;
	fstat(0, &input);
	mkdir(folder, 0755);
	int waited = 0;
	if (strcmp(argv[1], "look") == 0) {
		/* The process is still there. */
		char path[64];
		snprintf(path, sizeof path, "/proc/%s/status", argv[3]);
		waited = strstr(text_of(path), "CoreDumping:\t1") != NULL;
	}
	if (strcmp(argv[1], "fail") == 0)
		abort();
	if (strcmp(argv[1], "stand") == 0) {
		/* It takes nothing, until the process is gone. */
		while (kill(atoi(argv[3]), 0) == 0 && state_of(argv[3]) != 'Z')
			sleep_ms(5);
		return 0;
	}
	chdir(folder);
	int fd = open("core", O_CREAT | O_WRONLY | O_TRUNC, 0644);
	char bytes[65536];
	ssize_t n;
	while ((n = read(0, bytes, sizeof bytes)) > 0)
		write(fd, bytes, (size_t)n);
	close(fd);
	FILE *told = fopen("told.new", "w");
	fprintf(told, "  %d words", argc);
	for (int word = 4; word < argc; word++)
		fprintf(told, " [%s]", argv[word]);
	fprintf(told, " ids %d %d limit %ld cwd %s others %d pipe %d dumping %d environment %d\n", getuid(), getegid(), (long)limit.rlim_cur, cwd,
		others, S_ISFIFO(input.st_mode), waited, envp[0] != NULL);
	fclose(told);
	rename("told.new", "told");
	return 0;
}

static void pattern(const char *kind, const char *words)
{
	char text[128];
	snprintf(text, sizeof text, "|" PROGRAM " %s %d %%p %s", kind, getpid(), words);
	put_sys("kernel/core_pattern", text);
}

static void told(void)
{
	for (int n = 0; n < LONG_MS / 5 && access("told", F_OK) != 0; n++)
		sleep_ms(5);
	SAY("%s", text_of("told"));
	struct core core;
	if (core_open(&core, "core") == 0) {
		Elf64_Phdr *last = &core.segments[core.head->e_phnum - 1];
		IS(core.head->e_type == ET_CORE && last->p_offset + last->p_filesz == core.size);
		core_close(&core);
	}
	unlink("core");
	unlink("told");
}

static void die(const char *what, rlim_t limit)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		core_limit(limit);
		MUST(prctl(PR_SET_NAME, "a name"));
		raise(SIGABRT);
	}
	say_end(what, pid);
}

int main(int argc, char **argv, char **envp)
{
	if (argc > 3)
		return take(argc, argv, envp);
	own_folder();
	pattern("take", "%s");
	die("unlimited", RLIM_INFINITY);
	told();
	pattern("take", "  x%sx   %e 100%%  ");
	die("limit 0, words", 0);
	told();
	die("limit 1", 1);
	IS(access("told", F_OK) != 0);
	put_sys("kernel/core_pattern", "|/no/such/program %p");
	die("no such program", RLIM_INFINITY);
	put_sys("kernel/core_pattern", "|/etc");
	die("a folder", RLIM_INFINITY);
	put_sys("kernel/core_pattern", "|");
	die("nothing after the bar", RLIM_INFINITY);
	put_sys("kernel/core_pattern", "| ");
	die("a space after the bar", RLIM_INFINITY);
	put_sys("kernel/core_pipe_limit", "4");
	pattern("look", "");
	die("waited for", RLIM_INFINITY);
	/* It has been waited for. */
	IS(access("told", F_OK) == 0);
	told();
	put_sys("kernel/core_pipe_limit", "0");
	pattern("fail", "");
	die("a program that dies itself", RLIM_INFINITY);

	pattern("stand", "");
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		core_limit(RLIM_INFINITY);
		char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(memory, 'x', 1 << 20);
		raise(SIGABRT);
	}
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	while (strstr(text_of(path), "CoreDumping:\t1") == NULL)
		sleep_ms(5);
	T(kill(pid, SIGTERM));
	sleep_ms(50);
	T(waitpid(pid, NULL, WNOHANG));
	T(kill(pid, SIGKILL));
	say_end("killed while it dumps", pid);
	put_sys("kernel/core_pattern", "core");
	no_folder();
	return 0;
}
