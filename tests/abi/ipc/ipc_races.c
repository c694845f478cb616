/*
 * System V IPC under attack: removal against use, forks with adjustments, sleepers that are killed, sizes beyond all bounds.
 * Nothing is printed but what holds whoever is faster.
 */
#include "check.h"
#include <sched.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>

#define OPS(...) (struct sembuf[]){ __VA_ARGS__ }, sizeof((struct sembuf[]){ __VA_ARGS__ }) / sizeof(struct sembuf)

static unsigned seed = 1;

static unsigned draw(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % below;
}

static int used_segments(void)
{
	struct shm_info info;
	MUST(shmctl(0, SHM_INFO, (struct shmid_ds *)&info));
	return info.used_ids;
}

static int used_sets(void)
{
	struct seminfo info;
	MUST(semctl(0, 0, SEM_INFO, &info));
	return info.semusz;
}

/* One key: one makes and removes, the others attach, write, fork and go. */
static void attach_against_remove(void)
{
	int before = used_segments(), wrong = 0;
	key_t key = 0x5a5a0010;
	pid_t child[3];
	for (int i = 0; i < 3; i++) {
		child[i] = (pid_t)MUST(fork());
		if (child[i])
			continue;
		seed = (unsigned)i + 7;
		for (int n = 0; n < 300; n++) {
			int id = shmget(key, 8192, IPC_CREAT | 0600);
			if (id < 0)
				_exit(1);
			char *p = shmat(id, NULL, 0);
			if (p == (void *)-1) {
				if (errno != EINVAL && errno != EIDRM)
					_exit(2);
				continue;
			}
			p[draw(8192)] = 1;
			struct shmid_ds ds;
			if (shmctl(id, IPC_STAT, &ds) || ds.shm_nattch == 0 || ds.shm_nattch > 12)
				_exit(3);
			if (draw(8) == 0) {
				pid_t pid = fork();
				if (pid == 0) {
					if (draw(2))
						mprotect(p, 4096, PROT_READ);
					_exit(0);
				}
				reap(pid);
			}
			if (draw(3) == 0 && shmctl(id, IPC_RMID, NULL) && errno != EINVAL && errno != EIDRM)
				_exit(4);
			if (draw(2) == 0)
				munmap(p, 4096);
			if (shmdt(p) && errno != EINVAL)
				_exit(5);
		}
		_exit(0);
	}
	for (int i = 0; i < 3; i++)
		wrong |= reap(child[i]);
	IS(wrong == 0);
	int id = shmget(key, 0, 0);
	if (id >= 0)
		MUST(shmctl(id, IPC_RMID, NULL));
	IS(used_segments() == before);
}

/* A count that several processes change under a semaphore with SEM_UNDO, and are killed at any time. */
static void killed_holders(void)
{
	int set = (int)MUST(semget(IPC_PRIVATE, 2, 0600));
	MUST(semctl(set, 0, SETVAL, 1));
	int segment = (int)MUST(shmget(IPC_PRIVATE, 4096, 0600));
	volatile long *p = shmat(segment, NULL, 0);
	for (int round = 0; round < 6; round++) {
		pid_t child[4];
		for (int i = 0; i < 4; i++) {
			child[i] = (pid_t)MUST(fork());
			if (child[i] == 0)
				for (;;) {
					if (semop(set, OPS({ 0, -1, SEM_UNDO })))
						_exit(1);
					if (p[0]++ != 0)
						p[1]++;
					p[2]++;
					p[0] = 0;
					if (semop(set, OPS({ 0, 1, SEM_UNDO })))
						_exit(2);
				}
		}
		long seen = p[2];
		while (p[2] < seen + 50)
			sched_yield();
		for (int i = 0; i < 4; i++) {
			kill(child[i], SIGKILL);
			/* The word is left as it was by who is killed inside; nobody else may be inside then. */
			reap(child[i]);
			if (i < 3) {
				MUST(semop(set, OPS({ 0, -1, SEM_UNDO })));
				p[0] = 0;
				MUST(semop(set, OPS({ 0, 1, SEM_UNDO })));
			}
		}
		p[0] = 0;
	}
	/* Killed between count and reset: at most one a victim found it so. */
	IS(p[1] <= 24);
	IS(semctl(set, 0, GETVAL) == 1 && semctl(set, 0, GETNCNT) == 0);
	MUST(shmdt((void *)p));
	MUST(shmctl(segment, IPC_RMID, NULL));
	MUST(semctl(set, 0, IPC_RMID));
}

/* Forks that each adjust several sets, while the sets come and go. */
static void undo_storm(void)
{
	int before = used_sets(), wrong = 0;
	int kept = (int)MUST(semget(IPC_PRIVATE, 64, 0600));
	for (int round = 0; round < 25; round++) {
		pid_t child[8];
		int doomed = (int)MUST(semget(IPC_PRIVATE, 16, 0600));
		for (int i = 0; i < 8; i++) {
			child[i] = (pid_t)MUST(fork());
			if (child[i])
				continue;
			seed = (unsigned)(round * 8 + i);
			for (int n = 0; n < 6; n++) {
				short number = (short)draw(16), by = (short)(1 + draw(3));
				if (semop(kept, OPS({ (unsigned short)(number * 4), by, SEM_UNDO }, { (unsigned short)(number * 4 + 1), 1, SEM_UNDO })))
					_exit(1);
				if (semop(doomed, OPS({ (unsigned short)number, by, SEM_UNDO })) && errno != EINVAL && errno != EIDRM)
					_exit(2);
			}
			if (draw(4) == 0)
				kill(getpid(), SIGKILL);
			/* Waits for what never comes, and is told of the end. */
			if (semop(doomed, OPS({ 0, -32000, SEM_UNDO })) == 0 || (errno != EINVAL && errno != EIDRM))
				_exit(3);
			_exit(0);
		}
		MUST(semctl(doomed, 0, IPC_RMID));
		for (int i = 0; i < 8; i++) {
			int status = reap(child[i]);
			wrong |= status != 0 && status != SIGKILL;
		}
	}
	unsigned short values[64];
	MUST(semctl(kept, 0, GETALL, values));
	for (int i = 0; i < 64; i++)
		wrong |= values[i] != 0;
	IS(wrong == 0);
	MUST(semctl(kept, 0, IPC_RMID));
	IS(used_sets() == before);
}

/* Two sets of two, each waiting for the other in one call: nothing is ever half done. */
static void pairs(void)
{
	int set = (int)MUST(semget(IPC_PRIVATE, 3, 0600));
	pid_t child[2];
	for (int i = 0; i < 2; i++) {
		child[i] = (pid_t)MUST(fork());
		if (child[i])
			continue;
		unsigned short mine = (unsigned short)i, other = (unsigned short)(1 - i);
		for (int n = 0; n < 500; n++) {
			if (semop(set, OPS({ mine, 1, 0 }, { 2, 1, 0 })) || semop(set, OPS({ other, -1, 0 }, { 2, -1, 0 })))
				_exit(1);
		}
		_exit(0);
	}
	IS(reap(child[0]) == 0);
	IS(reap(child[1]) == 0);
	IS(semctl(set, 0, GETVAL) == 0 && semctl(set, 1, GETVAL) == 0 && semctl(set, 2, GETVAL) == 0);
	MUST(semctl(set, 0, IPC_RMID));
}

/* Numbered messages through a narrow queue, senders and receivers killed and removed: none comes twice, none out of order. */
static void messages(void)
{
	int queue = (int)MUST(msgget(IPC_PRIVATE, 0600)), wrong = 0;
	int segment = (int)MUST(shmget(IPC_PRIVATE, 2 * sizeof(long), 0600));
	volatile long *got = shmat(segment, NULL, 0);
	struct msqid_ds ds;
	MUST(msgctl(queue, IPC_STAT, &ds));
	ds.msg_qbytes = 64;
	MUST(msgctl(queue, IPC_SET, &ds));
	pid_t child[4];
	for (int i = 0; i < 2; i++) {
		child[i] = (pid_t)MUST(fork());
		if (child[i])
			continue;
		struct {
			long type, number;
		} message = { i + 1, 0 };
		for (message.number = 1; message.number <= 400; message.number++)
			if (msgsnd(queue, &message, sizeof(long), 0))
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < 2; i++) {
		child[2 + i] = (pid_t)MUST(fork());
		if (child[2 + i])
			continue;
		struct {
			long type, number;
		} message;
		for (long n = 1; n <= 400; n++) {
			if (msgrcv(queue, &message, sizeof(long), i + 1, 0) != sizeof(long) || message.number != n)
				_exit(1);
			got[i]++;
		}
		_exit(0);
	}
	for (int i = 0; i < 4; i++)
		wrong |= reap(child[i]);
	MUST(msgctl(queue, IPC_RMID, NULL));
	IS(wrong == 0 && got[0] == 400 && got[1] == 400);
	MUST(shmdt((void *)got));
	MUST(shmctl(segment, IPC_RMID, NULL));
	/* Killed and removed at any time. */
	struct msginfo before, after;
	MUST(msgctl(0, MSG_INFO, (struct msqid_ds *)&before));
	for (int round = 0; round < 20; round++) {
		queue = (int)MUST(msgget(IPC_PRIVATE, 0600));
		for (int i = 0; i < 4; i++) {
			child[i] = (pid_t)MUST(fork());
			if (child[i])
				continue;
			struct {
				long type;
				char text[4000];
			} message = { 1 + i % 2, "" };
			for (;;)
				if (i < 2 ? msgsnd(queue, &message, 1 + draw(4000), 0)
					  : msgrcv(queue, &message, 4000, i - 2, MSG_NOERROR) < 0)
					_exit(errno == EIDRM || errno == EINVAL ? 0 : 1);
		}
		sleep_ms(3);
		kill(child[round % 4], SIGKILL);
		if (round % 2)
			sleep_ms(2);
		MUST(msgctl(queue, IPC_RMID, NULL));
		for (int i = 0; i < 4; i++) {
			int status = reap(child[i]);
			wrong |= status != 0 && status != SIGKILL;
		}
	}
	MUST(msgctl(0, MSG_INFO, (struct msqid_ds *)&after));
	IS(wrong == 0 && after.msgpool == before.msgpool && after.msgmap == before.msgmap && after.msgtql == before.msgtql);
}

static void sizes(void)
{
	int before = used_segments();
	T(shmget(IPC_PRIVATE, 1UL << 46, 0600));
	int id = (int)OK(shmget(IPC_PRIVATE, 1UL << 40, SHM_NORESERVE | 0600));
	char *p = shmat(id, NULL, 0);
	IS(p != (void *)-1);
	p[0] = p[(1UL << 40) - 1] = p[1UL << 39] = 1;
	struct shmid_ds ds;
	MUST(shmctl(id, IPC_STAT, &ds));
	IS(ds.shm_segsz == 1UL << 40);
	CHILD("a limit of address space") {
		struct rlimit limit = { 1UL << 40, 1UL << 40 };
		MUST(setrlimit(RLIMIT_AS, &limit));
		IS(shmat(id, NULL, 0) == (void *)-1 && errno == ENOMEM);
	} END;
	/* Pages that nobody can see any more are free again. */
	for (int i = 0; i < 4; i++) {
		int big = (int)MUST(shmget(IPC_PRIVATE, 100 << 20, 0600));
		char *q = shmat(big, NULL, 0);
		MUST((long)q);
		MUST(shmctl(big, IPC_RMID, NULL));
		memset(q, i, 100 << 20);
		MUST(shmdt(q));
	}
	MUST(shmctl(id, IPC_RMID, NULL));
	MUST(shmdt(p));
	int huge = (int)OK(shmget(IPC_PRIVATE, 1UL << 62, SHM_NORESERVE | 0600));
	IS(shmat(huge, NULL, 0) == (void *)-1 && errno == ENOMEM);
	T(shmctl(huge, IPC_RMID, NULL));
	IS(used_segments() == before);
}

/* As many segments as there may be, attached and not. */
static void many(void)
{
	int before = used_segments(), made = 0;
	static int ids[8192];
	while (made < 8192 && (ids[made] = shmget(IPC_PRIVATE, 4096, 0600)) >= 0)
		made++;
	IS(made == 4096 - before);
	T(shmget(IPC_PRIVATE, 4096, 0600));
	for (int i = 0; i < made; i += 3) {
		void *p = shmat(ids[i], NULL, 0);
		*(char *)p = 1;
		MUST(shmctl(ids[i], IPC_RMID, NULL));
		if (i % 2)
			MUST(shmdt(p));
	}
	for (int i = 0; i < made; i++)
		if (i % 3)
			MUST(shmctl(ids[i], IPC_RMID, NULL));
	int left = used_segments() - before;
	IS(left > 600 && left < 800);
	struct shmid_ds ds;
	for (int i = 0; i < made; i += 6)
		MUST(shmctl(ids[i], IPC_STAT, &ds));
}

int main(void)
{
	attach_against_remove();
	killed_holders();
	undo_storm();
	pairs();
	messages();
	sizes();
	int before = used_segments();
	CHILD("many") { many(); } END;
	/* The end of who had them attached took the last ones. */
	IS(used_segments() == before);
	return 0;
}
