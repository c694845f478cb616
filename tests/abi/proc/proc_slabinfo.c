/*
 * /proc/slabinfo: its head, its lines, that their numbers fit each other, that objects which a program makes the kernel
 * hold are counted, and who may read it.
 */
#include "check.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>

struct sums {
	long lines, wrong, active, objects;
};

static struct sums sums(void)
{
	struct sums all = { 0 };
	char *text = strdup(read_file("/proc/slabinfo")), *rest = text, *line;
	for (int at = 0; (line = strsep(&rest, "\n")) && *line; at++) {
		if (at < 2) {
			if (at == 0)
				SAY("%s", line);
			continue;
		}
		char name[64];
		unsigned long active, objects, size, per_slab, pages, limit, batch, shared, slabs_active, slabs, avail;
		int got = sscanf(line, "%63s %lu %lu %lu %lu %lu : tunables %lu %lu %lu : slabdata %lu %lu %lu", name, &active,
				 &objects, &size, &per_slab, &pages, &limit, &batch, &shared, &slabs_active, &slabs, &avail);
		int fits = got == 12 && active <= objects && slabs_active <= slabs && per_slab * size <= pages * 4096 &&
			   objects <= slabs * per_slab && limit == 0 && batch == 0 && shared == 0 && avail == 0;
		if (!fits)
			SAY("does not fit: %s", line);
		all.wrong += !fits;
		all.lines++;
		all.active += (long)active;
		all.objects += (long)objects;
	}
	free(text);
	return all;
}

int main(void)
{
	struct stat st;
	MUST(stat("/proc/slabinfo", &st));
	SAY("mode %o", st.st_mode & 07777);
	struct sums before = sums();
	IS(before.lines >= 10);
	IS(before.wrong == 0);
	for (int i = 0; i < 1000; i++)
		MUST(eventfd(0, 0));
	struct sums after = sums();
	IS(after.wrong == 0);
	IS(after.active - before.active >= 1000);
	IS(after.objects >= after.active);
	CHILD("a user") {
		MUST(setuid(1000));
		T(open("/proc/slabinfo", O_RDONLY));
	} END;
	return 0;
}
