/*
 * A write to an empty pipe that faults leaves it empty: nothing is there to be read, and who reads waits, until a signal. (Linux says
 * all the same that it can be read.)
 */
#include "check.h"
#include <sys/ioctl.h>

static void on_alarm(int number) { (void)number; }

int main(void)
{
	int ends[2], bytes = -1;
	char byte = 'a';
	MUST(pipe(ends));
	T(write(ends[1], &byte, 1));
	T(read(ends[0], &byte, 1));
	T(write(ends[1], (void *)8, 1));
	T(ioctl(ends[0], FIONREAD, &bytes));
	SAY("%d bytes", bytes);
	MUST(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL));
	alarm(1);
	T(read(ends[0], &byte, 1));
	T(write(ends[1], "b", 1));
	T(read(ends[0], &byte, 1));
	SAY("%c", byte);
	return 0;
}
