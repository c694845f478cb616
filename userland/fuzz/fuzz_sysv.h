/*
 * fuzz_sysv.h: System V objects that come and go under a few keys, while processes that share them fork, share or part with what
 * their end takes back, map and unmap parts of segments, wait, and are killed.
 */
#ifndef ALEA_FUZZ_SYSV_H
#define ALEA_FUZZ_SYSV_H

#include "sysv.h"

#define SYSV_SEMAPHORES 5

static char *sysv_maps[6];

static key_t sysv_key(void) { return one_in(12) ? (key_t)wild() : (key_t)below(4); }

/* Of what is there under a key, made if it is not; now and then of nothing. */
static int sysv_segment(void)
{
	static const size_t sizes[] = { 1, PAGE, 3 * PAGE, 64 * PAGE, 1UL << 32, 1UL << 46 };
	int flags = (one_in(3) ? 0 : IPC_CREAT) | (one_in(6) ? SHM_NORESERVE : 0) | (one_in(5) ? (int)below(01000) : 0666);
	return one_in(16) ? (int)wild() : shmget(sysv_key(), one_in(3) ? 0 : PICK(sizes), flags);
}

static int sysv_set(void)
{
	int flags = (one_in(3) ? 0 : IPC_CREAT) | (one_in(5) ? (int)below(01000) : 0666);
	return one_in(16) ? (int)wild() : semget(sysv_key(), one_in(40) ? 30000 : SYSV_SEMAPHORES, flags);
}

static int sysv_queue(void)
{
	int flags = (one_in(3) ? 0 : IPC_CREAT) | (one_in(5) ? (int)below(01000) : 0666);
	return one_in(16) ? (int)wild() : msgget(sysv_key(), flags);
}

static void sysv_memory(void)
{
	char **slot = &PICK(sysv_maps), *map = *slot;
	switch (below(10)) {
	case 0: case 1: case 2: {
		static const int flags[] = { 0, 0, 0, SHM_RDONLY, SHM_REMAP, SHM_REMAP | SHM_RND, SHM_EXEC, 0xffff };
		map = shmat(sysv_segment(), map && one_in(3) ? map + below(3) * 2048 : NULL, PICK(flags));
		if (map != (void *)-1)
			*slot = map;
		break;
	}
	case 3: shmdt(map ? map + below(2) * PAGE : (void *)pointer()); break;
	case 4: case 5:
		if (map == NULL)
			break;
		switch (below(5)) {
		case 0: munmap(map + below(3) * PAGE, (1 + below(2)) * PAGE); break;
		case 1: mprotect(map + below(3) * PAGE, PAGE, (int)below(8)); break;
		case 2: mremap(map, below(3) * PAGE, (1 + below(5)) * PAGE, MREMAP_MAYMOVE); break;
		case 3: madvise(map, (1 + below(3)) * PAGE, (int)below(26)); break;
		case 4: syscall(SYS_getrandom, map + below(3) * PAGE, 16, 0); break;
		}
		break;
	case 6: shmctl(sysv_segment(), IPC_RMID, NULL); break;
	case 7: shmctl(sysv_segment(), one_in(2) ? SHM_LOCK : SHM_UNLOCK, NULL); break;
	default: shmctl(one_in(2) ? sysv_segment() : (int)below(9), (int)below(17), (void *)pointer()); break;
	}
}

static void sysv_semaphores(void)
{
	struct sembuf ops[6];
	unsigned count = 1 + (unsigned)below(3);
	struct timespec soon = { 0, (long)below(3000000) };
	for (unsigned i = 0; i < COUNT(ops); i++) {
		ops[i].sem_num = (unsigned short)below(SYSV_SEMAPHORES + (u64)one_in(30));
		ops[i].sem_op = (short)(one_in(40) ? wild() : (long)below(7) - 3);
		ops[i].sem_flg = (short)((one_in(2) ? SEM_UNDO : 0) | (one_in(3) ? IPC_NOWAIT : 0));
	}
	switch (below(12)) {
	case 0: semctl(sysv_set(), 0, IPC_RMID); break;
	case 1: semctl(sysv_set(), (int)below(SYSV_SEMAPHORES + 1), SETVAL, (int)below(5)); break;
	case 2: semctl(one_in(2) ? sysv_set() : (int)below(9), (int)below(7), (int)below(22), (void *)pointer()); break;
	case 3: syscall(SYS_semtimedop, sysv_set(), pointer(), below(600), pointer()); break;
	case 4: syscall(SYS_unshare, CLONE_SYSVSEM); break;
	case 5: semop(sysv_set(), ops, count); break;
	default: semtimedop(sysv_set(), ops, count, &soon); break;
	}
}

static void sysv_messages(void)
{
	static __thread struct {
		long type;
		char text[9000];
	} message;
	int wait = one_in(8) ? 0 : IPC_NOWAIT;
	message.type = 1 + (long)below(4);
	switch (below(10)) {
	case 0: msgctl(sysv_queue(), IPC_RMID, NULL); break;
	case 1: msgctl(one_in(2) ? sysv_queue() : (int)below(9), (int)below(15), (void *)pointer()); break;
	case 2: syscall(SYS_msgsnd, sysv_queue(), pointer(), wild(), IPC_NOWAIT); break;
	case 3: syscall(SYS_msgrcv, sysv_queue(), pointer(), wild(), wild(), IPC_NOWAIT | (int)below(0100000)); break;
	case 4: case 5: case 6: msgsnd(sysv_queue(), &message, one_in(3) ? 0 : below(9000), wait); break;
	default:
		msgrcv(sysv_queue(), &message, below(9000), (long)below(9) - 4, wait | (one_in(2) ? MSG_NOERROR : 0) | (one_in(4) ? MSG_EXCEPT : 0));
		break;
	}
}

static void sysv_steps(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		TELL("[%d] sysv step\n", getpid());
		switch (below(3)) {
		case 0: sysv_memory(); break;
		case 1: sysv_semaphores(); break;
		default: sysv_messages(); break;
		}
	}
}

static void *sysv_thread(void *seed)
{
	state = (u64)seed;
	sysv_steps(200);
	return NULL;
}

static void sysv(void)
{
	pthread_t t;
	for (int round = 0; round < 6; round++) {
		pid_t child = one_in(2) ? fork() : (pid_t)syscall(SYS_clone, CLONE_SYSVSEM | SIGCHLD, 0, 0, 0, 0);
		if (child == 0) {
			state = draw() + (u64)getpid();
			sysv_steps(150);
			if (one_in(2))
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		if (one_in(2) && pthread_create(&t, NULL, sysv_thread, (void *)draw()) == 0)
			pthread_detach(t);
		sysv_steps(100);
		if (one_in(2) && child > 0)
			kill(child, SIGKILL);
		while (waitpid(-1, NULL, one_in(3) ? 0 : WNOHANG) > 0)
			;
	}
}

#endif
