/* What the programs about SO_PEEK_OFF share. */
#ifndef ALEA_ABI_PEEK_H
#define ALEA_ABI_PEEK_H

#include "net.h"

static UNUSED int offset_of(int fd)
{
	int value = -99;
	socklen_t len = sizeof value;
	return getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &value, &len) ? -100 - errno : value;
}

static UNUSED int set_offset(int fd, int value)
{
	return setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &value, sizeof value);
}

/* Receives, and says what came, whether it was cut, and where the next look would be. */
static UNUSED void got(int fd, const char *what, int room, int flags)
{
	char bytes[64] = "";
	struct iovec part = { bytes, (size_t)room };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	errno = 0;
	ssize_t n = recvmsg(fd, &message, flags | MSG_DONTWAIT);
	SAY("%s %d%s%s: %zd %s \"%s\"%s, then %d", what, room, flags & MSG_PEEK ? " peek" : "", flags & MSG_TRUNC ? " trunc" : "", n,
	    n < 0 ? err_name(errno) : "", n < 0 ? "" : bytes, n >= 0 && message.msg_flags & MSG_TRUNC ? " cut" : "", offset_of(fd));
}

static UNUSED void put(int fd, const char *text)
{
	MUST(send(fd, text, strlen(text), 0));
}

static UNUSED void peeks(int fd, int room)
{
	got(fd, "look", room, MSG_PEEK);
}

static UNUSED void reads(int fd, int room)
{
	got(fd, "read", room, 0);
}

/* What it may be, and that a descriptor has one of its own. */
static UNUSED void values(int fd)
{
	char byte = 1;
	int room = 3;
	SAY("at first %d", offset_of(fd));
	T(set_offset(fd, -1));
	T(set_offset(fd, -7));
	SAY("now %d", offset_of(fd));
	T(set_offset(fd, INT_MAX));
	SAY("now %d", offset_of(fd));
	T(set_offset(fd, 0));
	T(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &byte, 1));
	T(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, NULL, 4));
	T(getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &byte, (socklen_t *)&room));
	SAY("now %d", offset_of(fd));
}

/* Looks and reads of datagrams, or of a stream, from `to` on which `from` writes. */
static UNUSED void looks(int from, int to)
{
	put(from, "abcdef");
	put(from, "ghij");
	peeks(to, 3);
	peeks(to, 3);
	peeks(to, 3);
	peeks(to, 8);
	peeks(to, 8);
	peeks(to, 8);
	reads(to, 2);
	peeks(to, 3);
	reads(to, 20);
	reads(to, 20);
	peeks(to, 3);
	put(from, "klmno");
	put(from, "pqrst");
	T(set_offset(to, 2));
	peeks(to, 3);
	T(set_offset(to, 2));
	peeks(to, 2);
	T(set_offset(to, 7));
	got(to, "look", 1, MSG_PEEK | MSG_TRUNC);
	T(set_offset(to, 7));
	got(to, "look", 20, MSG_PEEK | MSG_TRUNC);
	T(set_offset(to, 10));
	peeks(to, 3);
	T(set_offset(to, 1000));
	peeks(to, 3);
	got(to, "read", 1, MSG_TRUNC);
	peeks(to, 0);
	T(set_offset(to, 1));
	peeks(to, 0);
	T(recv(to, NON_CANONICAL, 3, MSG_PEEK | MSG_DONTWAIT));
	SAY("then %d", offset_of(to));
	T(set_offset(to, -1));
	peeks(to, 3);
	peeks(to, 3);
	reads(to, 20);
	reads(to, 20);
}

/* Empty datagrams are seen once. */
static UNUSED void empty(int from, int to)
{
	T(set_offset(to, 0));
	put(from, "");
	put(from, "");
	put(from, "xy");
	peeks(to, 8);
	peeks(to, 8);
	peeks(to, 8);
	peeks(to, 8);
	T(set_offset(to, 0));
	peeks(to, 8);
	T(set_offset(to, -1));
	peeks(to, 8);
	reads(to, 8);
	reads(to, 8);
	reads(to, 8);
}

#endif
