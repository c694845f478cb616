/*
 * MSG_PEEK | MSG_WAITALL of TCP waits until as much is there as was asked for, and shows all of it.
 */
#include "net.h"

int main(void)
{
	int a, b, status;
	char bytes[16] = "";
	setbuf(stdout, NULL);
	net_up();
	connection(&a, &b);
	MUST(send(a, "abcde", 5, 0));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		for (int at = 0; at < 3; at++) {
			sleep_ms(200);
			MUST(send(a, "fghij", 5, 0));
		}
		_exit(0);
	}
	memset(bytes, 0, sizeof bytes);
	ssize_t n = recv(b, bytes, 12, MSG_PEEK | MSG_WAITALL);
	SAY("looked: %zd \"%s\"", n, bytes);
	waitpid(child, &status, 0);
	int least = 25;
	T(setsockopt(b, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
	child = (pid_t)MUST(fork());
	if (child == 0) {
		sleep_ms(200);
		MUST(send(a, "12345", 5, 0));
		_exit(0);
	}
	char more[64] = "";
	n = recv(b, more, 40, MSG_PEEK);
	SAY("with a low-water mark: %zd \"%s\"", n, more);
	waitpid(child, &status, 0);
	return 0;
}
