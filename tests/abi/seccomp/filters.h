/* What the programs about seccomp share: filters of a few instructions, and installing them. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define LEN(a) (sizeof(a) / sizeof *(a))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
/* If A is the number, what follows; else one further. */
#define IF(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1)

static UNUSED int seccomp(unsigned op, unsigned flags, void *args)
{
	return (int)syscall(SYS_seccomp, op, flags, args);
}

static UNUSED int install(unsigned flags, const struct sock_filter *filter, size_t len)
{
	struct sock_fprog program = { (unsigned short)len, (struct sock_filter *)filter };
	return seccomp(SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* One call, by its number, gets this answer; all others are made. */
static UNUSED int answer_with(unsigned flags, long number, unsigned action)
{
	struct sock_filter filter[] = { LOAD(nr), IF(number), RETURN(action), RETURN(SECCOMP_RET_ALLOW) };
	return install(flags, filter, LEN(filter));
}

static UNUSED void no_new_privs(void)
{
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

/* A line of the caller's status. */
static UNUSED void say_line(const char *name)
{
	char line[256];
	FILE *status = fopen("/proc/thread-self/status", "r");
	while (status && fgets(line, sizeof line, status))
		if (!strncmp(line, name, strlen(name)))
			printf("%s", line);
	if (status)
		fclose(status);
}
