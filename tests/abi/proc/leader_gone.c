/*
 * leader_gone.c: a process whose first thread has ended while another goes on: what /proc, signals, waits and tracers see of the first.
 */
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static int said[2], go[2];

static void *goes_on(void *unused)
{
	(void)unused;
	char path[64], c;
	snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
	for (int i = 0; i < 5000; i++) {
		char state = state_in(path);
		if (state != 'R' && state != 'S' && state != 'D')
			break;
		sleep_ms(1);
	}
	MUST(write(said[1], "x", 1));
	MUST(read(go[0], &c, 1));
	_exit(7);
}

static void state_line(const char *path)
{
	char line[256];
	FILE *f = fopen(path, "r");
	if (!f) {
		printf("%s\n", err_name(errno));
		return;
	}
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "State:", 6) || !strncmp(line, "Threads:", 8) || !strncmp(line, "VmPeak:", 7))
			printf("  %.*s\n", line[0] == 'V' ? 7 : (int)strcspn(line, "\n"), line);
	fclose(f);
}

static void size_of(pid_t pid, const char *name)
{
	char path[64], bytes[4096];
	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	int fd = open(path, O_RDONLY);
	if (fd < 0) {
		printf("%s: open %s\n", name, err_name(errno));
		return;
	}
	ssize_t n = read(fd, bytes, sizeof bytes);
	printf("%s: %s\n", name, n < 0 ? err_name(errno) : n ? "something" : "nothing");
	close(fd);
}

static void look(pid_t child)
{
	char path[64], link[256];
	snprintf(path, sizeof path, "/proc/%d/status", child);
	state_line(path);
	snprintf(path, sizeof path, "/proc/%d/task/%d/status", child, child);
	state_line(path);
	snprintf(path, sizeof path, "/proc/%d/task", child);
	DIR *d = opendir(path);
	int count = 0, leader = 0;
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.') {
			count++;
			leader |= atoi(e->d_name) == child;
		}
	closedir(d);
	SAY("%d tasks, the first %s", count, leader ? "is among them" : "is not");
	static const char *names[] = { "comm", "cmdline", "environ", "maps", "stat", "statm", "auxv", "limits", "wchan", "syscall", "io", "mountinfo" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		size_of(child, names[i]);
	static const char *links[] = { "exe", "cwd", "root", "ns/mnt", "ns/pid", "ns/user", "ns/pid_for_children", "ns/uts" };
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		snprintf(path, sizeof path, "/proc/%d/%s", child, links[i]);
		printf("%s: %s\n", links[i], readlink(path, link, sizeof link) < 0 ? err_name(errno) : "a link");
	}
	snprintf(path, sizeof path, "/proc/%d/fd", child);
	d = opendir(path);
	if (!d)
		printf("fd: %s\n", err_name(errno));
	else {
		count = 0;
		while (readdir(d))
			count++;
		SAY("fd: %s", count > 2 ? "some" : "none");
		closedir(d);
	}
}

static void *executes(void *unused)
{
	(void)unused;
	sleep_ms(20);
	execl("/proc/thread-self/exe", "leader_gone", "again", NULL);
	_exit(9);
}

/* The leader has ended when another thread executes a program: that is the leader then, and the only thread. */
static void execs(void)
{
	fflush(stdout);
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		pthread_t t;
		IS(pthread_create(&t, NULL, executes, NULL) == 0);
		fflush(stdout);
		syscall(SYS_exit, 3);
	}
	say_status("child", reap(child));
}

static void *leaves(void *unused)
{
	(void)unused;
	sleep_ms(20);
	syscall(SYS_exit, 4);
	return NULL;
}

/* The last thread's code is the process's. */
static void exits(void)
{
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		pthread_t t;
		if (pthread_create(&t, NULL, leaves, NULL))
			_exit(9);
		syscall(SYS_exit, 3);
	}
	say_status("child", reap(child));
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		state_line("/proc/self/status");
		return 5;
	}

	MUST(pipe(said));
	MUST(pipe(go));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		pthread_t t;
		IS(pthread_create(&t, NULL, goes_on, NULL) == 0);
		syscall(SYS_exit, 3);
	}
	char c;
	int status;
	siginfo_t info = { 0 };
	MUST(read(said[0], &c, 1));
	look(child);
	T(kill(child, 0));
	T(syscall(SYS_tgkill, child, child, 0));
	T(syscall(SYS_tgkill, child, child, SIGWINCH));
	T(waitpid(child, &status, WNOHANG));
	T(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT));
	IS(info.si_pid == 0);
	T(ptrace(PTRACE_SEIZE, child, 0, 0));
	T(ptrace(PTRACE_ATTACH, child, 0, 0));
	T(getpgid(child) == getpgid(0));
	T(sched_getscheduler(child));
	T(syscall(SYS_pidfd_open, child, 0) < 0 ? -1 : 0);
	T(syscall(SYS_tgkill, child, child, SIGKILL));
	sleep_ms(20);
	T(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT));
	IS(info.si_pid == 0);
	MUST(write(go[1], "x", 1));
	MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
	puts("all have ended:");
	look(child);
	say_status("child", reap(child));
	puts("a kernel thread:");
	size_of(2, "environ");
	size_of(2, "auxv");
	size_of(2, "maps");
	size_of(2, "mem");
	puts("the other thread executes a program:");
	execs();
	puts("each thread passes its own code to exit:");
	exits();
	return 0;
}
