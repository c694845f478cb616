/*
 * tax: what an exec and the work of a shell cost, and how much of an exec its 16 random bytes are.
 *
 * The article "The 50 us RDRAND Tax" measured these workloads with a kernel that ran RDRAND for AT_RANDOM, and again with SplitMix64. Which
 * generator serves is the kernel's command line's choice; the phases are Alea's, from /proc/alea/exec_phases.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "experiments/experiment.h"

enum { LINES = 200, SEVENS = 38 };

#define LINES_FILE "/tmp/lines"
#define PHASES "/proc/alea/exec_phases"

static char *const nothing[] = { NULL };

static pid_t spawn(char *const argv[], int output)
{
	pid_t pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		if (output >= 0)
			dup2(output, 1);
		execve(argv[0], argv, nothing);
		_exit(127);
	}
	return pid;
}

static void ends_well(pid_t pid)
{
	int status;
	must(waitpid(pid, &status, 0) == pid && status == 0, "a child");
}

static void exec_true(void)
{
	static char *const argv[] = { "/bin/true", NULL };
	ends_well(spawn(argv, -1));
}

static void shell_noop(void)
{
	static char *const argv[] = { "/bin/sh", "-c", ":", NULL };
	ends_well(spawn(argv, -1));
}

static void shell_prints(char *script, int lines)
{
	char *const argv[] = { "/bin/sh", "-c", script, NULL };
	char text[4096];
	int ends[2];
	must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
	pid_t pid = spawn(argv, ends[1]);
	close(ends[1]);
	for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;)
		for (ssize_t at = 0; at < n; at++)
			lines -= text[at] == '\n';
	close(ends[0]);
	ends_well(pid);
	must(lines == 0, script);
}

static void pipe_grep(void)
{
	shell_prints("grep 7 " LINES_FILE, SEVENS);
}

static void sed_pipeline(void)
{
	shell_prints("cat " LINES_FILE " | sed s/line/row/", LINES);
}

static void fork_exit(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	ends_well(pid);
}

static void measure(const char *name, void (*work)(void))
{
	long count = calls(1000);
	work();
	int64_t start = now_ns();
	for (long i = 0; i < count; i++)
		work();
	rung(name, count, now_ns() - start);
}

static void reset_phases(void)
{
	int fd = open(PHASES, O_WRONLY);
	must(fd < 0 || write(fd, "0", 1) == 1, PHASES);
	close(fd);
}

/* The shares of an exec; Linux has no such table. */
static void show_phases(void)
{
	char line[256], name[64];
	double share;
	FILE *file = fopen(PHASES, "r");
	if (!file)
		return;
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "%63s %*s %*s %*s %*s %*s %lf", name, &share) == 2 && strcmp(name, "fork") != 0
		    && strcmp(name, "exit") != 0 && strcmp(name, "wait") != 0)
			printf("share %s %.2f\n", name, share);
	fclose(file);
}

static void write_lines(void)
{
	FILE *file = fopen(LINES_FILE, "w");
	must(file != NULL, LINES_FILE);
	for (int i = 0; i < LINES; i++)
		fprintf(file, "line %d of %d\n", i, LINES);
	fclose(file);
}

int main(int argc, char **argv)
{
	experiment_begin(argc, argv);
	write_lines();
	exec_true();
	reset_phases();
	measure("exec_true", exec_true);
	show_phases();
	measure("shell_noop", shell_noop);
	measure("pipe_grep", pipe_grep);
	measure("sed_pipeline", sed_pipeline);
	measure("fork_exit", fork_exit);
	experiment_end();
	return 0;
}
