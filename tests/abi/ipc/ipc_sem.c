/*
 * System V semaphores: sets and their commands, operations all or none, who waits and who goes on, what the end of a process
 * takes back, and who shares that.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#define KEY 0x5a5a0002
#define SEM_STAT_ANY_ 20
#define OPS(...) (struct sembuf[]){ __VA_ARGS__ }, sizeof((struct sembuf[]){ __VA_ARGS__ }) / sizeof(struct sembuf)

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};

static struct semid_ds ds;

static int fresh(int count)
{
	return (int)MUST(semget(IPC_PRIVATE, count, IPC_CREAT | 0600));
}

static void show(const char *what, int id, int count)
{
	unsigned short values[8] = { 0 };
	if (semctl(id, 0, GETALL, values) < 0) {
		SAY("%s: %s", what, err_name(errno));
		return;
	}
	printf("%s:", what);
	for (int i = 0; i < count; i++)
		printf(" %u", values[i]);
	printf("\n");
}

/* Waits until so many wait at the semaphore for an increase, or for zero. */
static void await(int id, int number, int cmd, int count)
{
	for (int i = 0; i < LONG_MS && semctl(id, number, cmd) != count; i++)
		sleep_ms(1);
}

static void creation(void)
{
	SAY("-- creation");
	T(semget(KEY, 1, 0600));
	T(semget(KEY, 0, IPC_CREAT | 0600));
	T(semget(KEY, -1, IPC_CREAT | 0600));
	T(semget(KEY, 32001, IPC_CREAT | 0600));
	int id = (int)OK(semget(KEY, 3, IPC_CREAT | IPC_EXCL | 0640));
	T(semget(KEY, 3, IPC_CREAT | IPC_EXCL | 0600));
	IS(semget(KEY, 0, 0) == id && semget(KEY, 3, IPC_CREAT | 0600) == id);
	T(semget(KEY, 4, 0600));
	T(semctl(id, 0, IPC_STAT, &ds));
	SAY("mode %o nsems %lu", ds.sem_perm.mode, ds.sem_nsems);
	IS(ds.sem_otime == 0 && labs(ds.sem_ctime - time(NULL)) < 100 && ds.sem_perm.__key == KEY);
	show("new", id, 3);
	T(semctl(id, 1, SETVAL, 5));
	T(semctl(id, 1, SETVAL, 32767));
	T(semctl(id, 1, SETVAL, 32768));
	T(semctl(id, 1, SETVAL, -1));
	T(semctl(id, 3, SETVAL, 1));
	T(semctl(id, -1, SETVAL, 1));
	T(semctl(id, 3, GETVAL));
	T(semctl(id, -1, GETVAL));
	T(semctl(id, 1, GETVAL));
	IS(semctl(id, 1, GETPID) == getpid() && semctl(id, 0, GETPID) == 0);
	unsigned short values[3] = { 1, 2, 3 };
	T(semctl(id, 0, SETALL, values));
	show("set", id, 3);
	values[2] = 32768;
	values[0] = 9;
	T(semctl(id, 0, SETALL, values));
	show("unchanged", id, 3);
	T(semctl(id, 0, SETALL, KERNEL_ADDRESS));
	T(semctl(id, 0, GETALL, KERNEL_ADDRESS));
	T(semctl(id, 0, IPC_STAT, KERNEL_ADDRESS));
	T(semctl(id, 0, IPC_SET, KERNEL_ADDRESS));
	T(semctl(id, 0, 99));
	T(semctl(id, 0, -1));
	T(semctl(-1, 0, GETVAL));
	T(semctl(0x7fffffff, 0, GETVAL));
	T(semctl(0x7fffffff, 0, SETVAL, 99999));
	T(semctl(id, 0, IPC_RMID));
	T(semctl(id, 0, IPC_RMID));
	T(semctl(id, 0, GETVAL));
	T(semget(KEY, 0, 0));
}

static void operations(void)
{
	SAY("-- operations");
	int id = fresh(3);
	T(semop(id, OPS({ 0, 2, 0 }, { 1, 1, 0 })));
	show("two", id, 3);
	MUST(semctl(id, 0, IPC_STAT, &ds));
	IS(labs(ds.sem_otime - time(NULL)) < 100);
	T(semop(id, OPS({ 0, -1, 0 }, { 1, 0, IPC_NOWAIT })));
	show("none", id, 3);
	T(semop(id, OPS({ 0, -1, 0 }, { 1, -1, 0 }, { 1, 0, 0 }, { 2, 7, 0 })));
	show("all", id, 3);
	T(semop(id, OPS({ 0, -2, IPC_NOWAIT })));
	T(semop(id, OPS({ 0, 32767, 0 })));
	T(semop(id, OPS({ 2, 1, 0 }, { 0, 32767, 0 })));
	show("range", id, 3);
	T(semop(id, OPS({ 3, 1, 0 })));
	T(semop(id, OPS({ 0, 1, 0 }, { 65535, 1, 0 })));
	T(semop(id, NULL, 1));
	T(semop(id, KERNEL_ADDRESS, 1));
	T(semop(id, NULL, 0));
	T(semop(-1, NULL, 1));
	T(semop(-1, OPS({ 0, 1, 0 })));
	T(semop(0x7fffffff, OPS({ 0, 1, 0 })));
	struct sembuf *many = calloc(501, sizeof *many);
	for (int i = 0; i < 500; i++)
		many[i].sem_op = i % 2 ? -1 : 1;
	T(semop(id, many, 500));
	T(semop(id, many, 501));
	T(semop(-1, many, 501));
	free(many);
	struct timespec none = { 0, 0 }, little = { 0, 20000000 }, bad = { 0, 1000000000 }, negative = { -1, 0 };
	T(semtimedop(id, OPS({ 0, -9, 0 }), &none));
	T(semtimedop(id, OPS({ 0, -9, 0 }), &little));
	T(semtimedop(id, OPS({ 0, -9, 0 }), &bad));
	T(semtimedop(id, OPS({ 0, 1, 0 }), &negative));
	T(semtimedop(id, OPS({ 0, 1, 0 }), (void *)KERNEL_ADDRESS));
	T(semtimedop(id, OPS({ 0, 1, 0 }), &none));
	show("end", id, 3);
	T(semctl(id, 0, IPC_RMID));
}

static void on_alarm(int sig)
{
}

static void waiting(void)
{
	SAY("-- waiting");
	int id = fresh(3);
	/* First come, first served; who wants more is passed over. */
	pid_t child[4];
	for (int i = 0; i < 4; i++) {
		child[i] = (pid_t)MUST(fork());
		if (child[i] == 0)
			_exit(semop(id, OPS({ 0, (short)(i == 1 ? -3 : -1), 0 })) ? errno : 0);
		await(id, 0, GETNCNT, i + 1);
	}
	SAY("wait %d %d", semctl(id, 0, GETNCNT), semctl(id, 0, GETZCNT));
	MUST(semop(id, OPS({ 0, 2, 0 })));
	say_status("first", reap(child[0]));
	say_status("third", reap(child[2]));
	SAY("wait %d", semctl(id, 0, GETNCNT));
	IS(semctl(id, 0, GETPID) == child[2]);
	MUST(semop(id, OPS({ 0, 4, 0 })));
	say_status("second", reap(child[1]));
	say_status("fourth", reap(child[3]));
	show("left", id, 3);
	/* For zero, in two places, and what SETVAL lets go on. */
	MUST(semop(id, OPS({ 0, 1, 0 }, { 1, 1, 0 })));
	child[0] = (pid_t)MUST(fork());
	if (child[0] == 0)
		_exit(semop(id, OPS({ 0, 0, 0 }, { 1, 0, 0 }, { 2, 1, 0 })) ? errno : 0);
	await(id, 0, GETZCNT, 1);
	SAY("wait %d %d", semctl(id, 0, GETZCNT), semctl(id, 1, GETZCNT));
	MUST(semop(id, OPS({ 0, -1, 0 })));
	SAY("wait %d %d", semctl(id, 0, GETZCNT), semctl(id, 1, GETZCNT));
	MUST(semctl(id, 1, SETVAL, 0));
	say_status("zeros", reap(child[0]));
	show("after", id, 3);
	/* The time, a signal (also with SA_RESTART), SIGKILL. */
	struct timespec soon = { 0, 30000000 }, never = { 1000, 0 };
	T(semtimedop(id, OPS({ 0, -1, 0 }), &soon));
	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		CHILD("signalled") {
			struct sigaction act = { .sa_handler = on_alarm, .sa_flags = flags };
			MUST(sigaction(SIGUSR1, &act, NULL));
			pid_t self = getpid();
			if (fork() == 0) {
				await(id, 0, GETNCNT, 1);
				kill(self, SIGUSR1);
				_exit(0);
			}
			T(flags ? semtimedop(id, OPS({ 0, -1, 0 }), &never) : semop(id, OPS({ 0, -1, 0 })));
		} END;
		SAY("wait %d", semctl(id, 0, GETNCNT));
	}
	child[0] = (pid_t)MUST(fork());
	if (child[0] == 0)
		_exit(semop(id, OPS({ 0, -1, 0 })));
	await(id, 0, GETNCNT, 1);
	MUST(kill(child[0], SIGKILL));
	say_status("killed", reap(child[0]));
	SAY("wait %d", semctl(id, 0, GETNCNT));
	/* Who does not want to wait where it would have to wait later. */
	child[0] = (pid_t)MUST(fork());
	if (child[0] == 0)
		_exit(semop(id, OPS({ 0, -1, 0 }, { 1, -1, IPC_NOWAIT })) ? errno : 0);
	await(id, 0, GETNCNT, 1);
	MUST(semop(id, OPS({ 0, 1, 0 })));
	IS(reap(child[0]) == EAGAIN << 8);
	show("unchanged", id, 3);
	/* Removed while somebody waits. */
	child[0] = (pid_t)MUST(fork());
	if (child[0] == 0)
		_exit(semop(id, OPS({ 1, -1, SEM_UNDO })) ? errno : 0);
	await(id, 1, GETNCNT, 1);
	T(semctl(id, 0, IPC_RMID));
	IS(reap(child[0]) == EIDRM << 8);
}

static void taken_back(void)
{
	SAY("-- undo");
	int id = fresh(3);
	CHILD("adds and takes") {
		T(semop(id, OPS({ 0, 5, SEM_UNDO }, { 1, 3, 0 })));
		T(semop(id, OPS({ 0, -2, SEM_UNDO })));
		show("inside", id, 3);
	} END;
	show("after", id, 3);
	CHILD("takes more than there is") {
		MUST(semop(id, OPS({ 0, 2, SEM_UNDO })));
		MUST(semop(id, OPS({ 0, -2, 0 })));
	} END;
	show("not below zero", id, 3);
	CHILD("SETVAL forgets") {
		MUST(semop(id, OPS({ 0, 2, SEM_UNDO }, { 1, 1, SEM_UNDO })));
		MUST(semctl(id, 0, SETVAL, 7));
	} END;
	show("forgotten", id, 3);
	CHILD("SETALL forgets") {
		unsigned short values[3] = { 1, 1, 1 };
		MUST(semop(id, OPS({ 0, 2, SEM_UNDO }, { 1, 1, SEM_UNDO })));
		MUST(semctl(id, 0, SETALL, values));
	} END;
	show("forgotten", id, 3);
	CHILD("too much to take back") {
		unsigned short values[3] = { 0, 0, 0 };
		MUST(semctl(id, 0, SETALL, values));
		T(semop(id, OPS({ 0, 32767, SEM_UNDO })));
		T(semop(id, OPS({ 0, -1, 0 })));
		T(semop(id, OPS({ 0, 1, SEM_UNDO })));
		T(semop(id, OPS({ 0, -1, 0 }, { 0, 1, SEM_UNDO })));
		T(semop(id, OPS({ 0, 1, SEM_UNDO })));
		show("inside", id, 3);
	} END;
	show("after", id, 3);
	/* Its end lets another go on. */
	MUST(semctl(id, 0, SETVAL, 1));
	CHILD("holds it") {
		MUST(semop(id, OPS({ 0, -1, SEM_UNDO })));
		pid_t other = (pid_t)MUST(fork());
		if (other == 0) {
			/* Not copied by fork: its own end takes nothing back. */
			_exit(0);
		}
		reap(other);
		show("held", id, 3);
		if (fork() == 0) {
			int result = semop(id, OPS({ 0, -1, 0 }, { 2, 1, 0 }));
			_exit(result);
		}
		await(id, 0, GETNCNT, 1);
		kill(getpid(), SIGKILL);
	} END;
	for (int i = 0; i < LONG_MS && semctl(id, 2, GETVAL) == 0; i++)
		sleep_ms(1);
	show("handed on", id, 3);
	/* exec keeps it. */
	MUST(semctl(id, 0, SETVAL, 0));
	CHILD("exec") {
		char text[16];
		snprintf(text, sizeof text, "%d", id);
		MUST(semop(id, OPS({ 0, 4, SEM_UNDO })));
		execl("/proc/self/exe", "ipc_sem", text, NULL);
	} END;
	show("after", id, 3);
	CHILD("unshare") {
		MUST(semop(id, OPS({ 0, 4, SEM_UNDO })));
		T(unshare(CLONE_SYSVSEM));
		show("unshared", id, 3);
		MUST(semop(id, OPS({ 0, 1, SEM_UNDO })));
	} END;
	show("after", id, 3);
	/* One removed before the end. */
	CHILD("removed") {
		int mine = fresh(2);
		MUST(semop(mine, OPS({ 0, 1, SEM_UNDO })));
		MUST(semctl(mine, 0, IPC_RMID));
		T(semop(mine, OPS({ 0, 1, SEM_UNDO })));
	} END;
	T(semctl(id, 0, IPC_RMID));
}

static int shared_id;

static void *adds(void *arg)
{
	MUST(semop(shared_id, OPS({ 0, 2, SEM_UNDO })));
	return NULL;
}

static int clone_adds(void *arg)
{
	MUST(semop(shared_id, OPS({ 0, 3, SEM_UNDO })));
	return 0;
}

static void sharing(void)
{
	SAY("-- shared undo");
	shared_id = fresh(1);
	static char stack[65536];
	CHILD("a thread ends before the process") {
		pthread_t thread;
		pthread_create(&thread, NULL, adds, NULL);
		pthread_join(thread, NULL);
		show("the thread has ended", shared_id, 1);
	} END;
	show("the process has ended", shared_id, 1);
	for (int flags = 0; flags <= CLONE_SYSVSEM; flags += CLONE_SYSVSEM) {
		CHILD(flags ? "shared by two processes" : "not shared") {
			int child = (int)MUST(clone(clone_adds, stack + sizeof stack, flags | SIGCHLD, NULL));
			reap(child);
			show("one has ended", shared_id, 1);
		} END;
		show("both have ended", shared_id, 1);
	}
	T(unshare(CLONE_SYSVSEM));
	T(unshare(0));
	T(unshare(CLONE_FILES | CLONE_FS | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM));
	T(unshare(1));
	T(semctl(shared_id, 0, IPC_RMID));
}

static void as_nobody(void)
{
	MUST(setgid(65534));
	MUST(setuid(65534));
}

static void rights(void)
{
	SAY("-- rights");
	int id = (int)MUST(semget(KEY, 2, IPC_CREAT | 0604));
	CHILD("another user") {
		as_nobody();
		T(semget(KEY, 0, 0666));
		IS(semget(KEY, 0, 0444) == id);
		T(semop(id, OPS({ 0, 1, 0 })));
		T(semop(id, OPS({ 0, 0, 0 })));
		T(semop(id, OPS({ 9, 1, 0 })));
		T(semctl(id, 0, GETVAL));
		T(semctl(id, 0, SETVAL, 1));
		T(semctl(id, 0, SETALL, NULL));
		T(semctl(id, 0, IPC_STAT, &ds));
		T(semctl(id, 0, IPC_SET, &ds));
		T(semctl(id, 0, IPC_RMID));
	} END;
	MUST(semctl(id, 0, IPC_STAT, &ds));
	ds.sem_perm.uid = 65534;
	ds.sem_perm.mode = 0;
	T(semctl(id, 0, IPC_SET, &ds));
	CHILD("the new owner") {
		as_nobody();
		T(semctl(id, 0, GETVAL));
		T(semctl(id, 0, GETALL, NULL));
		T(semctl(id, 0, IPC_STAT, &ds));
		T(semctl(id & 0x7fff, 0, SEM_STAT, &ds));
		IS(semctl(id & 0x7fff, 0, SEM_STAT_ANY_, &ds) == id);
		T(semctl(id, 0, IPC_RMID));
	} END;
	T(semctl(id, 0, IPC_STAT, &ds));
}

static void telling(void)
{
	SAY("-- what is told");
	struct seminfo info, before, after;
	IS(semctl(0, 0, IPC_INFO, &info) >= 0);
	SAY("%d %d %d %d %d %d %d %d %d %d", info.semmap, info.semmni, info.semmns, info.semmnu, info.semmsl, info.semopm, info.semume,
	    info.semusz, info.semvmx, info.semaem);
	MUST(semctl(0, 0, SEM_INFO, &before));
	int id = (int)MUST(semget(KEY, 7, IPC_CREAT | 0600));
	IS(semctl(0, 0, SEM_INFO, &after) >= (id & 0x7fff));
	SAY("more: %d %d", after.semusz - before.semusz, after.semaem - before.semaem);
	IS(semctl(id & 0x7fff, 0, SEM_STAT, &ds) == id);
	char line[256];
	FILE *all = fopen("/proc/sysvipc/sem", "r");
	printf("%s", fgets(line, sizeof line, all));
	while (fgets(line, sizeof line, all)) {
		int key, semid, uid, gid, cuid, cgid;
		unsigned mode, count;
		long long otime, ctime;
		if (sscanf(line, "%d %d %o %u %d %d %d %d %lld %lld", &key, &semid, &mode, &count, &uid, &gid, &cuid, &cgid, &otime,
			   &ctime) == 10 && semid == id)
			SAY("key %#x mode %o count %u ids %d %d %d %d otime %lld length %zu", key, mode, count, uid, gid, cuid, cgid, otime,
			    strlen(line));
	}
	fclose(all);
	T(semctl(id, 0, IPC_RMID));
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		show("execed", atoi(argv[1]), 3);
		return 0;
	}
	creation();
	operations();
	waiting();
	taken_back();
	sharing();
	rights();
	telling();
	return 0;
}
