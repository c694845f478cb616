/* What the programs about the times of messages share. A program that wants more forms defines MORE_FORMS before. */
#ifndef ALEA_ABI_STAMPS_H
#define ALEA_ABI_STAMPS_H

#include "check.h"
#include <sys/socket.h>

#ifndef SO_TIMESTAMP_NEW
#define SO_TIMESTAMP_NEW 63
#define SO_TIMESTAMPNS_NEW 64
#endif
#ifndef MORE_FORMS
#define MORE_FORMS
#endif
#define OLD_US 29
#define OLD_NS 35

static const struct { const char *name; int option; } forms[] = {
	{ "SO_TIMESTAMP", OLD_US }, { "SO_TIMESTAMPNS", OLD_NS }, { "SO_TIMESTAMP_NEW", SO_TIMESTAMP_NEW },
	{ "SO_TIMESTAMPNS_NEW", SO_TIMESTAMPNS_NEW }, MORE_FORMS
};

static void set(int s, int option, int on)
{
	MUST(setsockopt(s, SOL_SOCKET, option, &on, sizeof on));
}

static void settings(int s)
{
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
		int on = 7;
		socklen_t len = sizeof on;
		MUST(getsockopt(s, SOL_SOCKET, forms[i].option, &on, &len));
		printf("%s %d ", forms[i].name, on);
	}
	printf("\n");
}

#endif
