/*
 * Whoever has no descriptor left is told so before group, task and kind are looked at.
 */
#include "../perf.h"
#include <sys/resource.h>

int main(void)
{
	struct perf_event_attr attr = every_fault(), none = every_fault();
	none.config = 100;
	try_open("bad group", &attr, 0, -1, 999, 0);
	try_open("bad task", &attr, 999999, -1, -1, 0);
	try_open("bad kind", &none, 0, -1, -1, 0);
	struct rlimit limit = { 3, 3 };
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	try_open("bad group", &attr, 0, -1, 999, 0);
	try_open("bad task", &attr, 999999, -1, -1, 0);
	try_open("bad kind", &none, 0, -1, -1, 0);
	try_open("good", &attr, 0, -1, -1, 0);
	return 0;
}
