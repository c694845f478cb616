/* rights.h: a message that carries descriptors over an AF_UNIX socket, built in one place. */
#ifndef ALEA_ABI_RIGHTS_H
#define ALEA_ABI_RIGHTS_H

#include "check.h"
#include <sys/socket.h>

/* More than Linux lets through in one message, which is 253. */
#define RIGHTS_MOST 300

/* Room for what comes with a message, aligned as its header is. */
#define RIGHTS_ROOM(name, count) _Alignas(struct cmsghdr) char name[CMSG_SPACE((count) * sizeof(int))] = { 0 }

/* Makes a message carry descriptors, in a buffer that has room for them; gives where the first of them stands. */
static UNUSED int *carry(struct msghdr *msg, char *control, const int *fds, size_t count)
{
	msg->msg_control = control;
	msg->msg_controllen = CMSG_SPACE(count * sizeof(int));
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	return memcpy(CMSG_DATA(c), fds, count * sizeof(int));
}

/* Sends bytes with descriptors; without any, the bytes alone. */
static UNUSED ssize_t send_fds(int over, const void *bytes, size_t len, const int *fds, size_t count, int flags)
{
	RIGHTS_ROOM(control, RIGHTS_MOST);
	struct iovec iov = { (void *)bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (count)
		carry(&msg, control, fds, count);
	return sendmsg(over, &msg, flags);
}

#endif
