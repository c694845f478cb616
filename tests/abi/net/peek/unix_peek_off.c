/*
 * SO_PEEK_OFF of AF_UNIX: MSG_PEEK looks where it says, and moves it; a read moves it back. Descriptors that were passed end a look, and
 * an end of file is seen behind all bytes.
 */
#include "peek.h"
#include <sys/un.h>

static void pass(int fd, const char *text)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { (char *)(uintptr_t)text, strlen(text) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof fd);
	MUST(sendmsg(fd, &message, 0));
}

static void of_kind(int kind, const char *name)
{
	int s[2], status;
	SAY("%s", name);
	MUST(socketpair(AF_UNIX, kind, 0, s));
	values(s[1]);
	looks(s[0], s[1]);
	if (kind != SOCK_STREAM)
		empty(s[0], s[1]);
	T(set_offset(s[1], 0));
	pass(s[0], "with");
	put(s[0], "without");
	peeks(s[1], 30);
	peeks(s[1], 30);
	peeks(s[1], 30);
	reads(s[1], 30);
	reads(s[1], 30);
	put(s[0], "last");
	T(set_offset(s[1], 2));
	MUST(shutdown(s[0], SHUT_WR));
	peeks(s[1], 30);
	peeks(s[1], 30);
	reads(s[1], 30);
	peeks(s[1], 30);
	close(s[0]);
	close(s[1]);
	/* Who waits for a byte beyond those that are there. */
	MUST(socketpair(AF_UNIX, kind, 0, s));
	T(set_offset(s[1], 3));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		char bytes[8] = "";
		ssize_t n = recv(s[1], bytes, 8, MSG_PEEK);
		SAY("waited: %zd \"%s\"", n, bytes);
		_exit(0);
	}
	put(s[0], "abcde");
	MUST(waitpid(child, &status, 0));
	SAY("then %d", offset_of(s[1]));
	close(s[0]);
	close(s[1]);
}

int main(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0peek" };
	setbuf(stdout, NULL);
	of_kind(SOCK_STREAM, "stream");
	of_kind(SOCK_DGRAM, "datagrams");
	of_kind(SOCK_SEQPACKET, "packets");
	int fd = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(bind(fd, (struct sockaddr *)&name, sizeof name));
	MUST(listen(fd, 4));
	T(set_offset(fd, 5));
	int client = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(connect(client, (struct sockaddr *)&name, sizeof name));
	int server = (int)MUST(accept(fd, NULL, NULL));
	SAY("of a connection %d", offset_of(server));
	return 0;
}
