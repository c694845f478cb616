/*
 * exhaust_tasks.h: kinds of objects of memory, tasks and System V, each as a function that makes one more, as exhaust_files.h has
 * them.
 */
#ifndef ALEA_EXHAUST_TASKS_H
#define ALEA_EXHAUST_TASKS_H

#include "exhaust_held.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>

static char *map(size_t length, int flags)
{
	char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static long touched(char *memory, size_t length)
{
	if (memory)
		memset(memory, 1, length);
	return memory ? 0 : -1;
}

static long anonymous_memory(void) { return touched(map(1 << 20, MAP_PRIVATE), 1 << 20); }
static long shared_memory(void) { return touched(map(1 << 20, MAP_SHARED), 1 << 20); }

/* Reads of a page in each 2 MiB: nothing resident, but a page table for each. */
static long page_tables(void)
{
	if (held.count % 512 == 0)
		held.memory = map(1UL << 30, MAP_PRIVATE);
	if (!held.memory)
		return -1;
	return ((volatile char *)held.memory)[(held.count++ % 512) << 21];
}

static long mappings(void)
{
	char *memory = mmap(NULL, 4096, held.count++ % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? -1 : 0;
}

static long locked_memory(void)
{
	char *memory = map(4096, MAP_PRIVATE);
	return memory ? mlock(memory, 4096) : -1;
}

static long processes(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static long zombies(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid;
}

static void *sleeps(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

static long threads(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	return -pthread_create(&thread, &attributes, sleeps, NULL);
}

/* One process after the other, each with as many arguments as may be. */
static long arguments(void)
{
	static char text[100000];
	static char *words[14];
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	memset(text, 'a', sizeof text - 1);
	for (int i = 0; i < 12; i++)
		words[i] = text;
	words[12] = "sleep";
	execve("/bin/sleep", (char *[]){ "sleep", "100000", NULL }, words);
	_exit(127);
}

static long posix_timers(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec soon = { { 0, 1000000 }, { 0, 1000000 } };
	timer_t timer;
	signal(SIGRTMIN, SIG_IGN);
	return timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ? -1 : timer_settime(timer, 0, &soon, NULL);
}

static long queued_signals(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	return sigqueue(getpid(), SIGRTMIN + (int)(held.count++ % 16), (union sigval){ 0 });
}

static long filters(void)
{
	static struct sock_filter program[4096];
	struct sock_fprog given = { 4096, program };
	for (int i = 0; i < 4095; i++)
		program[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0);
	program[4095] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &given);
}

static long sysv_memory(void)
{
	int id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
	char *memory = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
	return memory == (void *)-1 ? -1 : touched(memory, 1 << 20);
}

static long sysv_semaphores(void)
{
	struct sembuf up = { 0, 1, SEM_UNDO };
	int id = semget(IPC_PRIVATE, 250, IPC_CREAT | 0600);
	return id < 0 ? -1 : semop(id, &up, 1);
}

static long sysv_messages(void)
{
	int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	if (id < 0)
		return -1;
	*(long *)filler = 1;
	while (msgsnd(id, filler, 0, IPC_NOWAIT) == 0)
		;
	return 0;
}

#endif
