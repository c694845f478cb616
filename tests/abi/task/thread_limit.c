/* kernel.threads-max: no more tasks than that, for nobody. */
#include "check.h"
#include <pthread.h>

static void *nothing(void *unused)
{
	return NULL;
}

static void try_both(void)
{
	pid_t child = fork();
	SAY("fork: %s", child < 0 ? err_name(errno) : "ok");
	if (child == 0)
		_exit(0);
	if (child > 0)
		reap(child);
	pthread_t thread;
	int error = pthread_create(&thread, NULL, nothing, NULL);
	SAY("pthread_create: %s", error ? err_name(error) : "ok");
	if (!error)
		pthread_join(thread, NULL);
}

static void set(const char *text)
{
	ssize_t got = put_setting("kernel/threads-max", text);
	SAY("threads-max = %s: %s", text, got < 0 ? err_name(errno) : "taken");
}

int main(void)
{
	char before[32];
	snprintf(before, sizeof before, "%s", read_file("/proc/sys/kernel/threads-max"));
	IS(atoi(before) > 100);
	set("0");
	set("-1");
	set("1073741824");
	set("1");
	printf("now %s", read_file("/proc/sys/kernel/threads-max"));
	try_both();
	MUST(put_setting("kernel/threads-max", before));
	try_both();
	CHILD("a user") {
		MUST(setuid(1000));
		set("100000");
	} END;
	return 0;
}
