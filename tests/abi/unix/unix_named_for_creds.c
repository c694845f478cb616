/*
 * A socket that wants credentials (SO_PASSCRED) has a name once it has tried to connect: any free one, if it had none.
 */
#include "check.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct sockaddr_un there = { AF_UNIX, "there" }, nowhere = { AF_UNIX, "nowhere" };

/* How the name of a socket looks. */
static void name_of(const char *what, int s)
{
	struct sockaddr_un name = { 0 };
	socklen_t len = sizeof name;
	MUST(getsockname(s, (struct sockaddr *)&name, &len));
	SAY("%s: %d bytes, %s", what, (int)len, len == 2 ? "none" : name.sun_path[0] ? name.sun_path : "abstract");
}

static int wanting(int kind, int on)
{
	int s = (int)MUST(socket(AF_UNIX, kind, 0));
	MUST(setsockopt(s, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	return s;
}

static void each(int kind)
{
	struct sockaddr_un own = { AF_UNIX, "own" };
	int listener = (int)MUST(socket(AF_UNIX, kind, 0));
	MUST(bind(listener, (struct sockaddr *)&there, sizeof there));
	if (kind != SOCK_DGRAM)
		MUST(listen(listener, 4));
	for (int on = 0; on < 2; on++) {
		int s = wanting(kind, on);
		SAY("kind %d, wanted: %d", kind, on);
		name_of("at first", s);
		T(connect(s, (struct sockaddr *)&there, 2));
		name_of("to no name", s);
		T(connect(s, (struct sockaddr *)&nowhere, sizeof nowhere));
		name_of("to nowhere", s);
		T(connect(s, (struct sockaddr *)&there, sizeof there));
		name_of("connected", s);
		T(connect(s, (struct sockaddr *)&there, sizeof there));
		close(s);
	}
	int s = wanting(kind, 1);
	MUST(bind(s, (struct sockaddr *)&own, sizeof own));
	T(connect(s, (struct sockaddr *)&there, sizeof there));
	name_of("with a name of its own", s);
	close(s);
	close(listener);
	unlink("there");
	unlink("own");
}

int main(void)
{
	scratch();
	each(SOCK_STREAM);
	each(SOCK_SEQPACKET);
	each(SOCK_DGRAM);
	return 0;
}
