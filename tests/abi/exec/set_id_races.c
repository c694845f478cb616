/*
 * A user makes his file set-user-id at the moment at which root takes the file: either it is root's without the bit, which a change of
 * the owner takes away, or the user may not change it any more. On one CPU little can happen.
 */
#include "check.h"
#include "meet.h"
#include <pthread.h>

#define ROUNDS 6000
#define USER 1000

static void delay(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

static void *of_user(void *unused)
{
	(void)unused;
	/* This thread alone: its capabilities over files go, too. */
	syscall(SYS_setfsuid, USER);
	for (int i = 1; i <= ROUNDS; i++) {
		meet(1, 2 * i);
		delay(i % 64 * 2);
		chmod("f", 04755);
		meet(1, 2 * i + 1);
	}
	return NULL;
}

int main(void)
{
	pthread_t user;
	struct stat st;
	long taken = 0, with_bit = 0;
	alone = sysconf(_SC_NPROCESSORS_ONLN) == 1;
	scratch();
	close((int)MUST(open("f", O_WRONLY | O_CREAT, 0755)));
	MUST(pthread_create(&user, NULL, of_user, NULL) ? -1 : 0);
	for (int i = 1; i <= ROUNDS; i++) {
		MUST(chmod("f", 0755));
		MUST(chown("f", USER, USER));
		meet(0, 2 * i);
		delay(i / 64 % 64 * 2);
		MUST(chown("f", 0, 0));
		meet(0, 2 * i + 1);
		MUST(stat("f", &st));
		taken += st.st_uid == 0;
		with_bit += (st.st_mode & S_ISUID) != 0;
	}
	pthread_join(user, NULL);
	IS(taken == ROUNDS);
	SAY("root's with the user's bit: %s", with_bit == 0 ? "never" : "now and then");
	return 0;
}
