/*
 * execve's arguments: what arrives, empty strings, no arguments at all (Linux gives an empty argv[0]),
 * one string of at most 128 KiB less one, a quarter of the stack limit in all, E2BIG beyond; EFAULT.
 */
#include "check.h"
#include <sys/resource.h>

#define STRING_MAX (128 * 1024)

static char *make(long len)
{
	char *s = malloc((size_t)len + 1);
	memset(s, 'a', (size_t)len);
	s[len] = 0;
	return s;
}

static char *child_env[] = { "ABI_CHILD=1", NULL };

static void try(const char *what, char **argv, char **envp)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		execve("/proc/self/exe", argv, envp);
		SAY("%s: %s", what, err_name(errno));
		_exit(0);
	}
	say_status(what, reap(pid));
}

static int child(int argc, char **argv, char **envp)
{
	size_t total = 0;
	int envs = 0;
	for (int i = 0; i < argc; i++)
		total += strlen(argv[i]) + 1;
	while (envp[envs])
		envs++;
	SAY("argc %d, argv[0] \"%.20s\", argv[argc] %s, %zu bytes, %d environment strings", argc,
	    argv[0] ? argv[0] : "(null)", argv[argc] ? "set" : "null", total, envs);
	return 0;
}

int main(int argc, char **argv, char **envp)
{
	if (getenv("ABI_CHILD") || argc == 0 || !*argv[0])
		return child(argc, argv, envp);
	try("plain", (char *[]){ "a", "b", "c", NULL }, child_env);
	try("empty strings", (char *[]){ "a", "", "", NULL }, child_env);
	try("no argv", (char *[]){ NULL }, child_env);
	try("null argv", NULL, child_env);
	try("null envp", (char *[]){ "", NULL }, NULL);
	try("bad argv", KERNEL_ADDRESS, child_env);
	try("bad string", (char *[]){ "a", KERNEL_ADDRESS, NULL }, child_env);
	try("bad env string", (char *[]){ "a", NULL }, (char *[]){ (char *)8, NULL });
	try("longest string", (char *[]){ "a", make(STRING_MAX - 1), NULL }, child_env);
	try("too long a string", (char *[]){ "a", make(STRING_MAX), NULL }, child_env);
	struct rlimit stack;
	getrlimit(RLIMIT_STACK, &stack);
	SAY("stack limit %ld MiB", (long)(stack.rlim_cur >> 20));
	/* 2 MiB in all under 8 MiB of stack, pointers counted */
	char *many[64];
	char *piece = make(STRING_MAX - 64);
	for (int n = 15; n <= 17; n++) {
		char what[32];
		many[0] = "a";
		for (int i = 1; i <= n; i++)
			many[i] = piece;
		many[n + 1] = NULL;
		snprintf(what, sizeof what, "%d long strings", n);
		try(what, many, child_env);
	}
	/* pointers count too: 200,000 empty strings are 1.8 MB, 300,000 are 2.7 MB */
	char **lots = malloc(300002 * sizeof *lots);
	for (int i = 0; i < 300001; i++)
		lots[i] = "";
	lots[0] = "a";
	lots[200000] = NULL;
	try("200000 empty strings", lots, child_env);
	lots[200000] = "";
	lots[300000] = NULL;
	try("300000 empty strings", lots, child_env);
	struct rlimit small = { 256 << 10, stack.rlim_max };
	setrlimit(RLIMIT_STACK, &small);
	/* never less than 128 KiB */
	try("120 KiB under a 256 KiB stack", (char *[]){ "a", make(120 << 10), NULL }, child_env);
	try("two of 100 KiB under a 256 KiB stack", (char *[]){ "a", make(100 << 10), make(100 << 10), NULL },
	    child_env);
	return 0;
}
