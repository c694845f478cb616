/*
 * What a process has done to a semaphore with SEM_UNDO is taken back when it leaves the list of it, although another process compares
 * at that moment whose the list is (kcmp). On one CPU little can happen.
 */
#include "check.h"
#include <linux/kcmp.h>
#include <sched.h>
#include <sys/sem.h>

#define ROUNDS 30000

int main(void)
{
	long lost = 0;
	struct sembuf up = { .sem_num = 0, .sem_op = 1, .sem_flg = SEM_UNDO };
	struct timespec start;
	int id = (int)MUST(semget(IPC_PRIVATE, 1, 0600));
	pid_t whom = getpid();
	fflush(stdout);
	pid_t other = (pid_t)MUST(fork());
	if (other == 0)
		for (;;)
			syscall(SYS_kcmp, whom, getpid(), KCMP_SYSVSEM, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < ROUNDS && elapsed_ms(&start) < 3000; i++) {
		MUST(semop(id, &up, 1));
		MUST(unshare(CLONE_SYSVSEM));
		if (MUST(semctl(id, 0, GETVAL)) == 0)
			continue;
		lost++;
		MUST(semctl(id, 0, SETVAL, 0));
	}
	kill(other, SIGKILL);
	reap(other);
	MUST(semctl(id, 0, IPC_RMID));
	SAY("not taken back: %s", lost == 0 ? "never" : "now and then");
	return 0;
}
