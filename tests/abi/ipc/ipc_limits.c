/*
 * The limits of System V IPC below /proc/sys/kernel: what they are, what may be written, and that they act.
 */
#include "check.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static ssize_t put(const char *name, const char *text)
{
	char path[64];
	snprintf(path, sizeof path, "kernel/%s", name);
	return put_setting(path, text);
}

static const char *get(const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
	return read_file(path);
}

static void show(const char *name)
{
	char path[128];
	struct stat st;
	snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
	MUST(stat(path, &st));
	printf("%s %o %s", name, st.st_mode & 07777, read_file(path));
}

static void try_all(const char *name, const char *const *texts, const char *back)
{
	for (; *texts; texts++) {
		ssize_t got = put(name, *texts);
		int error = errno;
		printf("%s \"%s\" ", name, *texts);
		if (got < 0)
			printf("%s ", err_name(error));
		else
			printf("%zd ", got);
		printf("%s", get(name));
	}
	T(put(name, back));
}

static void segments(void)
{
	show("shmmax");
	show("shmall");
	show("shmmni");
	show("shm_rmid_forced");
	try_all("shmmax", (const char *const[]){ "4096", "8192\n", " 0x3000 ", "x", "-1", "", "18446744073709551615", "18446744073709551616",
						 "12x", NULL }, "8192");
	T(shmget(IPC_PRIVATE, 8193, 0600));
	int id = (int)OK(shmget(IPC_PRIVATE, 8192, 0600));
	T(shmctl(id, IPC_RMID, NULL));
	T(put("shmmax", "18446744073692774399"));
	struct shm_info sum;
	MUST(shmctl(0, SHM_INFO, (struct shmid_ds *)&sum));
	char text[32];
	snprintf(text, sizeof text, "%lu", sum.shm_tot + 2);
	MUST(put("shmall", text));
	T(shmget(IPC_PRIVATE, 3 * 4096, 0600));
	id = (int)OK(shmget(IPC_PRIVATE, 2 * 4096, 0600));
	T(shmget(IPC_PRIVATE, 1, 0600));
	T(shmctl(id, IPC_RMID, NULL));
	id = (int)OK(shmget(IPC_PRIVATE, 1, 0600));
	T(shmctl(id, IPC_RMID, NULL));
	T(put("shmall", "18446744073692774399"));
	try_all("shmmni", (const char *const[]){ "-1", "32769", "32768", "0", NULL }, "0");
	T(shmget(IPC_PRIVATE, 1, 0600));
	snprintf(text, sizeof text, "%d", sum.used_ids + 1);
	MUST(put("shmmni", text));
	id = (int)OK(shmget(IPC_PRIVATE, 1, 0600));
	T(shmget(IPC_PRIVATE, 1, 0600));
	T(shmctl(id, IPC_RMID, NULL));
	T(put("shmmni", "4096"));
}

static void forced(void)
{
	struct shmid_ds ds;
	int id;
	try_all("shm_rmid_forced", (const char *const[]){ "2", "-1", "x", "1", NULL }, "0");
	int tell[2];
	MUST(pipe(tell));
	CHILD("leaves one") {
		id = (int)MUST(shmget(IPC_PRIVATE, 4096, 0600));
		MUST(write(tell[1], &id, sizeof id));
	} END;
	MUST(read(tell[0], &id, sizeof id));
	T(shmctl(id, IPC_STAT, &ds));
	T(put("shm_rmid_forced", "1"));
	T(shmctl(id, IPC_STAT, &ds));
	CHILD("leaves one") {
		id = (int)MUST(shmget(IPC_PRIVATE, 4096, 0600));
		T(shmctl(id, IPC_STAT, &ds));
		MUST(write(tell[1], &id, sizeof id));
	} END;
	MUST(read(tell[0], &id, sizeof id));
	T(shmctl(id, IPC_STAT, &ds));
	id = (int)MUST(shmget(IPC_PRIVATE, 4096, 0600));
	CHILD("uses one that is not its own") {
		MUST((long)shmat(id, NULL, 0));
	} END;
	T(shmctl(id, IPC_STAT, &ds));
	T(put("shm_rmid_forced", "0"));
	id = (int)MUST(shmget(IPC_PRIVATE, 4096, 0600));
	T(shmctl(id, IPC_STAT, &ds));
	T(shmctl(id, IPC_RMID, NULL));
}

static void semaphores(void)
{
	show("sem");
	try_all("sem", (const char *const[]){ "250", "250 1000", "\t251\t1001 100 200\n", "1 2 3 32769", "1 2 x 4", "x", "-5", "0x10", "9 9 9 9 9",
					      NULL }, "8 20 3 32000");
	T(semget(IPC_PRIVATE, 9, 0600));
	struct seminfo sum;
	MUST(semctl(0, 0, SEM_INFO, &sum));
	char text[64];
	snprintf(text, sizeof text, "8 %d 3 %d", sum.semaem + 10, sum.semusz + 2);
	MUST(put("sem", text));
	int one = (int)OK(semget(IPC_PRIVATE, 8, 0600));
	T(semget(IPC_PRIVATE, 3, 0600));
	int two = (int)OK(semget(IPC_PRIVATE, 1, 0600));
	T(semget(IPC_PRIVATE, 1, 0600));
	struct sembuf ops[4] = { { 0, 1, 0 }, { 0, 1, 0 }, { 0, 1, 0 }, { 0, 1, 0 } };
	T(semop(one, ops, 3));
	T(semop(one, ops, 4));
	T(semctl(one, 0, IPC_RMID));
	T(semctl(two, 0, IPC_RMID));
	T(put("sem", "32000 1024000000 500 32000"));
}

static void messages(void)
{
	struct {
		long type;
		char text[20000];
	} message = { 1, "" };
	show("msgmax");
	show("msgmnb");
	show("msgmni");
	try_all("msgmax", (const char *const[]){ "-1", "x", "2147483648", "20000", NULL }, "10000");
	T(put("msgmnb", "15000"));
	struct msqid_ds ds;
	int id = (int)OK(msgget(IPC_PRIVATE, 0600));
	MUST(msgctl(id, IPC_STAT, &ds));
	SAY("%lu", ds.msg_qbytes);
	T(msgsnd(id, &message, 10001, IPC_NOWAIT));
	T(msgsnd(id, &message, 10000, IPC_NOWAIT));
	T(msgsnd(id, &message, 5001, IPC_NOWAIT));
	T(msgsnd(id, &message, 5000, IPC_NOWAIT));
	T(msgsnd(id, &message, 0, IPC_NOWAIT));
	T(put("msgmax", "100"));
	T(msgrcv(id, &message, 10000, 0, IPC_NOWAIT | 040000));
	T(msgrcv(id, &message, 20000, 0, IPC_NOWAIT));
	struct msginfo sum;
	MUST(msgctl(0, MSG_INFO, (struct msqid_ds *)&sum));
	char text[32];
	snprintf(text, sizeof text, "%d", sum.msgpool + 1);
	MUST(put("msgmni", text));
	int two = (int)OK(msgget(IPC_PRIVATE, 0600));
	T(msgget(IPC_PRIVATE, 0600));
	T(msgctl(two, IPC_RMID, NULL));
	T(msgctl(id, IPC_RMID, NULL));
	T(put("msgmax", "8192"));
	T(put("msgmnb", "16384"));
	T(put("msgmni", "32000"));
}

static void wishes(void)
{
	/* The identifier that the next one is to have; once. */
	MUST(put("msg_next_id", "1234567"));
	int id = (int)MUST(msgget(IPC_PRIVATE, 0600));
	IS(id == 1234567);
	IS(atoi(get("msg_next_id")) == -1);
	MUST(put("msg_next_id", "1234567"));
	int two = (int)MUST(msgget(IPC_PRIVATE, 0600));
	IS((two & 0x7fff) > (id & 0x7fff) && two >> 15 == id >> 15);
	T(msgctl(two, IPC_RMID, NULL));
	T(msgctl(id, IPC_RMID, NULL));
	MUST(put("shm_next_id", "98765"));
	id = (int)MUST(shmget(IPC_PRIVATE, 1, 0600));
	IS(id == 98765);
	T(shmctl(id, IPC_RMID, NULL));
	MUST(put("sem_next_id", "0"));
	id = (int)MUST(semget(IPC_PRIVATE, 1, 0600));
	IS(id >> 15 == 0);
	T(semctl(id, 0, IPC_RMID));
}

static void others(void)
{
	CHILD("another user") {
		MUST(setgid(65534));
		MUST(setuid(65534));
		T(put("shmmax", "1"));
		T(put("shm_rmid_forced", "1"));
	} END;
}

int main(void)
{
	segments();
	forced();
	semaphores();
	messages();
	wishes();
	others();
	return 0;
}
