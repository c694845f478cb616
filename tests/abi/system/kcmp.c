/*
 * kcmp: whether two tasks share files, memory, tables of files, folders, handlers and undo lists; an order that fits together; who may ask.
 */
#include "../check.h"
#include <linux/kcmp.h>
#include <pthread.h>
#include <sys/sem.h>

static long compare(pid_t a, pid_t b, int what, unsigned long x, unsigned long y)
{
	return syscall(SYS_kcmp, a, b, what, x, y);
}

static volatile pid_t other;
static volatile int stop;

static void *thread(void *unused)
{
	other = gettid();
	while (!stop)
		usleep(1000);
	return unused;
}

static void sharing(const char *who, pid_t pid)
{
	static const char *const names[] = {"", "VM", "FILES", "FS", "SIGHAND", "IO", "SYSVSEM"};
	printf("%s:", who);
	for (int what = KCMP_VM; what <= KCMP_SYSVSEM; what++)
		printf(" %s %s", names[what], compare(getpid(), pid, what, 0, 0) == 0 ? "same" : "differ");
	printf("\n");
}

int main(void)
{
	pid_t self = getpid();
	SAY("-- files");
	int a = (int)MUST(open("/dev/null", O_RDONLY)), b = (int)MUST(open("/dev/null", O_RDONLY)), copy = dup(a);
	T(compare(self, self, KCMP_FILE, a, a));
	T(compare(self, self, KCMP_FILE, a, copy));
	IS(compare(self, self, KCMP_FILE, a, b) > 0);
	/* It is an order. */
	IS(compare(self, self, KCMP_FILE, a, b) + compare(self, self, KCMP_FILE, b, a) == 3);
	T(compare(self, self, KCMP_FILE, a, 999));
	T(compare(self, self, KCMP_FILE, -1, a));
	T(compare(self, self, KCMP_FILE, a, 1ul << 32 | (unsigned)a));
	int path = (int)MUST(open("/", O_PATH));
	T(compare(self, self, KCMP_FILE, path, path));
	T(compare(self, self, 99, 0, 0));
	T(compare(self, self, -1, 0, 0));

	SAY("-- who shares what");
	sharing("itself", self);
	pthread_t id;
	pthread_create(&id, NULL, thread, NULL);
	while (!other)
		usleep(100);
	sharing("a thread", other);
	stop = 1;
	pthread_join(id, NULL);
	pid_t child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	sharing("a child", child);
	T(compare(self, child, KCMP_FILE, a, a));
	int set = (int)MUST(semget(IPC_PRIVATE, 1, 0600));
	struct sembuf up = {0, 1, SEM_UNDO};
	MUST(semop(set, &up, 1));
	sharing("a child, with something to undo here", child);
	semctl(set, 0, IPC_RMID);

	SAY("-- who may");
	T(compare(self, 0, KCMP_VM, 0, 0));
	T(compare(self, 999999, KCMP_VM, 0, 0));
	T(compare(999999, self, 99, 0, 0));
	pid_t user = fork();
	if (user == 0) {
		MUST(setgid(1000));
		MUST(setuid(1000));
		T(compare(getpid(), self, KCMP_VM, 0, 0));
		T(compare(getpid(), self, 99, 0, 0));
		fflush(stdout);
		_exit(0);
	}
	waitpid(user, NULL, 0);
	kill(child, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	SAY("-- of one that has ended");
	IS(compare(self, child, KCMP_VM, 0, 0) > 0);
	T(compare(self, child, KCMP_FILE, a, a));
	T(compare(child, child, KCMP_FILES, 0, 0));
	waitpid(child, NULL, 0);
	T(compare(self, child, KCMP_VM, 0, 0));
	return 0;
}
