/*
 * sysv.h: removes all System V objects, which outlive those who made them. For harnesses that run as init.
 */
#ifndef ALEA_SYSV_H
#define ALEA_SYSV_H

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static void sysv_remove_all(void)
{
	union {
		struct shm_info shm_sum;
		struct seminfo sem_sum;
		struct msginfo msg_sum;
		struct shmid_ds shm;
		struct semid_ds sem;
		struct msqid_ds msg;
	} told;
	for (int i = shmctl(0, SHM_INFO, &told.shm); i >= 0; i--)
		shmctl(shmctl(i, SHM_STAT_ANY, &told.shm), IPC_RMID, NULL);
	for (int i = semctl(0, 0, SEM_INFO, &told); i >= 0; i--)
		semctl(semctl(i, 0, SEM_STAT_ANY, &told), 0, IPC_RMID);
	for (int i = msgctl(0, MSG_INFO, &told.msg); i >= 0; i--)
		msgctl(msgctl(i, MSG_STAT_ANY, &told.msg), IPC_RMID, NULL);
}

#endif
