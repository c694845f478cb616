/*
 * System V message queues: what is sent and received in which order, who waits for a message or for room and who goes on,
 * what is refused, and what is told.
 */
#include "check.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>

#define KEY 0x5a5a0003
#define MSG_STAT_ANY_ 13
#define MSG_COPY_ 040000

struct message {
	long type;
	char text[8193];
};

static struct message in, out;
static struct msqid_ds ds;

static int fresh(void)
{
	return (int)MUST(msgget(IPC_PRIVATE, IPC_CREAT | 0600));
}

static int put(int id, long type, const char *text)
{
	out.type = type;
	strcpy(out.text, text);
	return msgsnd(id, &out, strlen(text), IPC_NOWAIT);
}

/* Receives without waiting, and prints what. */
static void take(int id, size_t size, long type, int flags)
{
	memset(&in, 0, sizeof in);
	ssize_t got = msgrcv(id, &in, size, type, flags | IPC_NOWAIT);
	if (got < 0)
		SAY("type %ld flags %#x: %s", type, flags, err_name(errno));
	else
		SAY("type %ld flags %#x: %zd bytes, type %ld, \"%s\"", type, flags, got, in.type, in.text);
}

static void figures(const char *what, int id)
{
	MUST(msgctl(id, IPC_STAT, &ds));
	SAY("%s: %lu messages, %lu bytes of %lu", what, ds.msg_qnum, ds.__msg_cbytes, ds.msg_qbytes);
}

static void creation(void)
{
	SAY("-- creation");
	T(msgget(KEY, 0600));
	int id = (int)OK(msgget(KEY, IPC_CREAT | IPC_EXCL | 0640));
	T(msgget(KEY, IPC_CREAT | IPC_EXCL | 0600));
	IS(msgget(KEY, 0) == id && msgget(KEY, IPC_CREAT | 0600) == id);
	figures("new", id);
	SAY("mode %o", ds.msg_perm.mode);
	IS(ds.msg_stime == 0 && ds.msg_rtime == 0 && ds.msg_lspid == 0 && ds.msg_lrpid == 0 && labs(ds.msg_ctime - time(NULL)) < 100);
	T(msgctl(id, 99, &ds));
	T(msgctl(id, -1, &ds));
	T(msgctl(-1, IPC_STAT, &ds));
	T(msgctl(0x7fffffff, IPC_STAT, &ds));
	T(msgctl(id, IPC_STAT, KERNEL_ADDRESS));
	T(msgctl(0x7fffffff, IPC_SET, KERNEL_ADDRESS));
	T(msgctl(id, IPC_RMID, NULL));
	T(msgctl(id, IPC_RMID, NULL));
	T(msgget(KEY, 0));
}

static void order(void)
{
	SAY("-- order");
	int id = fresh();
	take(id, 10, 0, 0);
	MUST(put(id, 5, "five"));
	MUST(put(id, 3, "three"));
	MUST(put(id, 9, "nine"));
	MUST(put(id, 3, "three again"));
	MUST(put(id, 2, ""));
	MUST(put(id, LONG_MAX, "last"));
	figures("sent", id);
	IS(ds.msg_lspid == getpid() && ds.msg_lrpid == 0 && ds.msg_stime != 0 && ds.msg_rtime == 0);
	take(id, 20, 2, MSG_COPY_);
	take(id, 20, 0, MSG_COPY_);
	take(id, 20, 6, MSG_COPY_);
	take(id, 20, -1, MSG_COPY_);
	take(id, 3, 0, MSG_COPY_);
	take(id, 3, 0, MSG_COPY_ | MSG_NOERROR);
	take(id, 20, 0, MSG_COPY_ | MSG_EXCEPT);
	T(msgrcv(id, &in, 20, 0, MSG_COPY_));
	T(msgrcv(id, NULL, 20, 0, MSG_COPY_ | IPC_NOWAIT));
	figures("copied", id);
	take(id, 20, 4, 0);
	take(id, 3, 5, 0);
	take(id, 3, 5, MSG_NOERROR);
	take(id, 20, 3, MSG_EXCEPT);
	take(id, 20, -1, 0);
	take(id, 20, -4, MSG_EXCEPT);
	take(id, 20, -4, 0);
	take(id, 20, LONG_MIN, 0);
	take(id, 20, 0, 0);
	take(id, 20, 0, 0);
	figures("received", id);
	IS(ds.msg_lrpid == getpid() && ds.msg_rtime != 0);
	T(msgctl(id, IPC_RMID, NULL));
}

static void errors(void)
{
	SAY("-- errors");
	int id = fresh();
	out.type = 1;
	T(msgsnd(id, &out, 8192, IPC_NOWAIT));
	T(msgsnd(id, &out, 8193, IPC_NOWAIT));
	T(msgsnd(id, &out, (size_t)-1, IPC_NOWAIT));
	T(msgsnd(-1, &out, 1, IPC_NOWAIT));
	T(msgsnd(0x7fffffff, &out, 1, IPC_NOWAIT));
	T(msgsnd(0x7fffffff, NULL, 1, IPC_NOWAIT));
	T(msgsnd(-1, KERNEL_ADDRESS, 99999, IPC_NOWAIT));
	T(msgsnd(id, page_end() - 8, 1, IPC_NOWAIT));
	out.type = 0;
	T(msgsnd(id, &out, 1, IPC_NOWAIT));
	out.type = -1;
	T(msgsnd(id, &out, 1, IPC_NOWAIT));
	out.type = 1;
	T(msgsnd(id, &out, 8192, IPC_NOWAIT));
	T(msgsnd(id, &out, 1, IPC_NOWAIT));
	T(msgsnd(id, &out, 0, IPC_NOWAIT));
	figures("full", id);
	T(msgrcv(id, &in, (size_t)-1, 0, IPC_NOWAIT));
	T(msgrcv(-1, &in, 1, 0, IPC_NOWAIT));
	T(msgrcv(0x7fffffff, &in, 1, 0, IPC_NOWAIT));
	T(msgrcv(id, &in, 8191, 0, IPC_NOWAIT));
	/* As on Linux, what cannot be stored is gone. */
	T(msgrcv(id, KERNEL_ADDRESS, 8192, 0, IPC_NOWAIT));
	T(msgrcv(id, page_end() - 8, 8192, 0, IPC_NOWAIT));
	figures("gone", id);
	MUST(msgctl(id, IPC_STAT, &ds));
	ds.msg_qbytes = 4;
	T(msgctl(id, IPC_SET, &ds));
	for (int i = 0; i < 3; i++)
		MUST(msgsnd(id, &out, 0, IPC_NOWAIT));
	T(msgsnd(id, &out, 0, IPC_NOWAIT));
	ds.msg_qbytes = 100000;
	T(msgctl(id, IPC_SET, &ds));
	figures("more room", id);
	T(msgctl(id, IPC_RMID, NULL));
}

static void on_signal(int sig)
{
}

static void waiting(void)
{
	SAY("-- waiting");
	int id = fresh();
	/* Each gets the message that it waits for. */
	static const long wanted[] = { 7, -3, 0, 7 };
	pid_t child[4];
	for (int i = 0; i < 4; i++) {
		child[i] = (pid_t)MUST(fork());
		if (child[i] == 0) {
			ssize_t got = msgrcv(id, &in, 10, wanted[i], 0);
			_exit(got < 0 ? errno : (int)(in.type * 10 + got));
		}
		MUST(wait_state(child[i], "S"));
	}
	MUST(put(id, 7, "1"));
	SAY("%d", reap(child[0]) >> 8);
	MUST(put(id, 7, "22"));
	SAY("%d", reap(child[2]) >> 8);
	MUST(put(id, 2, "333"));
	SAY("%d", reap(child[1]) >> 8);
	MUST(put(id, 8, "kept"));
	figures("one is kept", id);
	MUST(put(id, 7, "4444"));
	SAY("%d", reap(child[3]) >> 8);
	IS(msgctl(id, IPC_STAT, &ds) == 0 && ds.msg_lrpid == child[3]);
	take(id, 10, 0, 0);
	/* Too long for one who waits: it is told, the next one gets it. */
	for (int i = 0; i < 2; i++) {
		child[i] = (pid_t)MUST(fork());
		if (child[i] == 0) {
			ssize_t got = msgrcv(id, &in, 3, 0, i ? MSG_NOERROR : 0);
			_exit(got < 0 ? errno : (int)got);
		}
		MUST(wait_state(child[i], "S"));
	}
	MUST(put(id, 1, "long text"));
	IS(reap(child[0]) >> 8 == E2BIG);
	SAY("%d", reap(child[1]) >> 8);
	/* Room: senders go on as soon as theirs fits. */
	MUST(msgctl(id, IPC_STAT, &ds));
	ds.msg_qbytes = 10;
	MUST(msgctl(id, IPC_SET, &ds));
	MUST(put(id, 1, "eight888"));
	child[0] = (pid_t)MUST(fork());
	if (child[0] == 0)
		_exit((out.type = 2, msgsnd(id, &out, 9, 0)) ? errno : 0);
	MUST(wait_state(child[0], "S"));
	child[1] = (pid_t)MUST(fork());
	if (child[1] == 0)
		_exit((out.type = 3, msgsnd(id, &out, 4, 0)) ? errno : 0);
	MUST(wait_state(child[1], "S"));
	ds.msg_qbytes = 12;
	MUST(msgctl(id, IPC_SET, &ds));
	say_status("the smaller", reap(child[1]));
	MUST(msgrcv(id, &in, 100, 1, 0));
	MUST(msgrcv(id, &in, 100, 3, 0));
	say_status("the larger", reap(child[0]));
	figures("left", id);
	/* A signal: again without a handler's return, never with SA_RESTART. */
	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		CHILD("signalled") {
			struct sigaction act = { .sa_handler = on_signal, .sa_flags = flags };
			MUST(sigaction(SIGUSR1, &act, NULL));
			pid_t self = getpid();
			if (fork() == 0) {
				wait_state(self, "S");
				kill(self, SIGUSR1);
				_exit(0);
			}
			T(msgrcv(id, &in, 10, 77, 0));
			wait(NULL);
			if (fork() == 0) {
				wait_state(self, "S");
				kill(self, SIGUSR1);
				_exit(0);
			}
			out.type = 1;
			T(msgsnd(id, &out, 9, 0));
			wait(NULL);
		} END;
	}
	/* Stopped and continued: it waits on. */
	child[0] = (pid_t)MUST(fork());
	if (child[0] == 0)
		_exit(msgrcv(id, &in, 10, 77, 0) == 0 ? 0 : 1);
	MUST(wait_state(child[0], "S"));
	MUST(kill(child[0], SIGSTOP));
	MUST(wait_state(child[0], "T"));
	MUST(kill(child[0], SIGCONT));
	MUST(wait_state(child[0], "S"));
	MUST(put(id, 77, ""));
	say_status("continued", reap(child[0]));
	/* Killed while it waits: the message goes to another. */
	child[0] = (pid_t)MUST(fork());
	if (child[0] == 0)
		_exit(msgrcv(id, &in, 10, 77, 0) >= 0);
	MUST(wait_state(child[0], "S"));
	MUST(kill(child[0], SIGKILL));
	say_status("killed", reap(child[0]));
	MUST(put(id, 77, "x"));
	take(id, 10, 77, 0);
	/* Removed while both kinds wait. */
	child[0] = (pid_t)MUST(fork());
	if (child[0] == 0)
		_exit(msgrcv(id, &in, 10, 77, 0) < 0 ? errno : 0);
	child[1] = (pid_t)MUST(fork());
	if (child[1] == 0)
		_exit((out.type = 1, msgsnd(id, &out, 12, 0)) ? errno : 0);
	MUST(wait_state(child[0], "S"));
	MUST(wait_state(child[1], "S"));
	T(msgctl(id, IPC_RMID, NULL));
	IS(reap(child[0]) >> 8 == EIDRM);
	IS(reap(child[1]) >> 8 == EIDRM);
}

static void as_nobody(void)
{
	MUST(setgid(65534));
	MUST(setuid(65534));
}

static void rights(void)
{
	SAY("-- rights");
	int id = (int)MUST(msgget(KEY, IPC_CREAT | 0604));
	MUST(put(id, 1, "text"));
	CHILD("another user") {
		as_nobody();
		T(msgget(KEY, 0666));
		IS(msgget(KEY, 0444) == id);
		T(put(id, 1, "x"));
		take(id, 10, 0, MSG_COPY_);
		take(id, 10, 0, 0);
		T(msgctl(id, IPC_STAT, &ds));
		T(msgctl(id, IPC_SET, &ds));
		T(msgctl(id, IPC_RMID, NULL));
	} END;
	MUST(msgctl(id, IPC_STAT, &ds));
	ds.msg_perm.uid = 65534;
	ds.msg_perm.mode = 0222;
	T(msgctl(id, IPC_SET, &ds));
	CHILD("the new owner") {
		as_nobody();
		T(put(id, 1, "x"));
		take(id, 10, 0, 0);
		T(msgctl(id, IPC_STAT, &ds));
		T(msgctl(id & 0x7fff, MSG_STAT, &ds));
		struct msqid_ds any;
		IS(msgctl(id & 0x7fff, MSG_STAT_ANY_, &any) == id && any.msg_qnum == 1);
		any.msg_qbytes = 16385;
		T(msgctl(id, IPC_SET, &any));
		any.msg_qbytes = 16384;
		any.msg_perm.uid = (uid_t)-1;
		T(msgctl(id, IPC_SET, &any));
	} END;
	/* Who waits and may not any longer is told. */
	MUST(msgctl(id, IPC_STAT, &ds));
	ds.msg_perm.mode = 0666;
	MUST(msgctl(id, IPC_SET, &ds));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		MUST(setgid(1));
		MUST(setuid(1));
		_exit(msgrcv(id, &in, 10, 77, 0) < 0 ? errno : 0);
	}
	MUST(wait_state(child, "S"));
	ds.msg_perm.mode = 0600;
	MUST(msgctl(id, IPC_SET, &ds));
	IS(reap(child) >> 8 == EACCES);
	T(msgctl(id, IPC_RMID, NULL));
}

static void telling(void)
{
	SAY("-- what is told");
	struct msginfo info, before, after;
	IS(msgctl(0, IPC_INFO, (struct msqid_ds *)&info) >= 0);
	SAY("%d %d %d %d %d %d %d %d", info.msgpool, info.msgmap, info.msgmax, info.msgmnb, info.msgmni, info.msgssz, info.msgtql,
	    info.msgseg);
	MUST(msgctl(0, MSG_INFO, (struct msqid_ds *)&before));
	int id = (int)MUST(msgget(KEY, IPC_CREAT | 0600));
	MUST(put(id, 1, "some"));
	MUST(put(id, 1, "text"));
	IS(msgctl(0, MSG_INFO, (struct msqid_ds *)&after) >= (id & 0x7fff));
	SAY("more: %d %d %d", after.msgpool - before.msgpool, after.msgmap - before.msgmap, after.msgtql - before.msgtql);
	IS(msgctl(id & 0x7fff, MSG_STAT, &ds) == id);
	char line[256];
	FILE *all = fopen("/proc/sysvipc/msg", "r");
	printf("%s", fgets(line, sizeof line, all));
	while (fgets(line, sizeof line, all)) {
		int key, msqid, uid, gid, cuid, cgid;
		unsigned mode, lspid, lrpid;
		unsigned long bytes, count;
		long long stime, rtime, ctime;
		if (sscanf(line, "%d %d %o %lu %lu %u %u %d %d %d %d %lld %lld %lld", &key, &msqid, &mode, &bytes, &count, &lspid, &lrpid,
			   &uid, &gid, &cuid, &cgid, &stime, &rtime, &ctime) == 14 && msqid == id)
			SAY("key %#x mode %o bytes %lu count %lu receiver %u ids %d %d %d %d rtime %lld length %zu", key, mode, bytes, count,
			    lrpid, uid, gid, cuid, cgid, rtime, strlen(line));
	}
	fclose(all);
	T(msgctl(id, IPC_RMID, NULL));
	MUST(msgctl(0, MSG_INFO, (struct msqid_ds *)&after));
	SAY("more: %d %d %d", after.msgpool - before.msgpool, after.msgmap - before.msgmap, after.msgtql - before.msgtql);
}

int main(void)
{
	creation();
	order();
	errors();
	waiting();
	rights();
	telling();
	return 0;
}
