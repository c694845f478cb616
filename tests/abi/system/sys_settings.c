/*
 * Numbers below /proc/sys that root may set: how they are written, what is refused and to whom, and that those act which
 * have something to act on: max_map_count, somaxconn and randomize_va_space.
 */
#include "check.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

static void show(const char *path)
{
	char name[128];
	struct stat st;
	snprintf(name, sizeof name, "/proc/sys/%s", path);
	MUST(stat(name, &st));
	printf("%s %o %s", path, st.st_mode & 07777, read_file(name));
}

static void writing(void)
{
	static const char *const texts[] = {
		"7", "8\n", " 9", "\t10 \n", "0x10", "010", "-1", "", " ", "\n", "x", "5x", "5.", "--5", "+5", "0x", "0xg",
		"32768", "32769", "2147483647", "2147483648", "99999999999999999999",
	};
	show("kernel/shmmni");
	for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
		ssize_t got = put_setting("kernel/shmmni", texts[i]);
		printf("\"%s\" ", texts[i]);
		if (got < 0)
			printf("%s ", strerrorname_np(errno));
		else
			printf("%zd ", got);
		printf("%s", read_file("/proc/sys/kernel/shmmni"));
	}
	T(put_setting("kernel/shmmni", "4096"));
}

static int mappings(void)
{
	int count = 0;
	/* Two that differ never become one. */
	while (count < 2000 && mmap(NULL, PAGE, count % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		count++;
	return count;
}

static int waiting(void)
{
	struct sockaddr_un name = { AF_UNIX, "" };
	int count = 0, s = (int)MUST(socket(AF_UNIX, SOCK_STREAM, 0));
	MUST(bind(s, (struct sockaddr *)&name, sizeof name.sun_family));
	socklen_t len = sizeof name;
	MUST(getsockname(s, (struct sockaddr *)&name, &len));
	MUST(listen(s, 100));
	while (count < 200) {
		int other = (int)MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
		if (connect(other, (struct sockaddr *)&name, len))
			break;
		count++;
	}
	return count;
}

/* Where a program's parts lie: the same twice, or not. */
static void places(const char *what)
{
	char seen[2][128];
	for (int i = 0; i < 2; i++) {
		int fds[2];
		MUST(pipe(fds));
		if (!MUST(fork())) {
			dup2(fds[1], 1);
			execl("/proc/self/exe", "sys_settings", "places", NULL);
			_exit(1);
		}
		close(fds[1]);
		ssize_t got = read(fds[0], seen[i], sizeof seen[i] - 1);
		seen[i][got < 0 ? 0 : got] = 0;
		close(fds[0]);
		wait(NULL);
	}
	unsigned long a[3] = { 0 }, b[3] = { 0 };
	sscanf(seen[0], "%lx %lx %lx", a, a + 1, a + 2);
	sscanf(seen[1], "%lx %lx %lx", b, b + 1, b + 2);
	SAY("%s: stack %s, mappings %s, heap %s", what, a[0] == b[0] ? "same" : "moves", a[1] == b[1] ? "same" : "moves",
	    a[2] == b[2] ? "same" : "moves");
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		int here;
		printf("%lx %lx %lx\n", (unsigned long)&here,
		       (unsigned long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), (unsigned long)sbrk(0));
		return strcmp(argv[1], "places");
	}
	writing();
	show("vm/max_map_count");
	T(put_setting("vm/max_map_count", "-1"));
	T(put_setting("vm/max_map_count", "100"));
	CHILD("few mappings") {
		int count = mappings();
		SAY("%s", strerror(errno));
		IS(count > 50 && count < 100);
	} END;
	T(put_setting("vm/max_map_count", "65530"));
	CHILD("many mappings") { IS(mappings() == 2000); } END;

	show("net/core/somaxconn");
	T(put_setting("net/core/somaxconn", "3"));
	CHILD("a short queue") { SAY("%d", waiting()); } END;
	T(put_setting("net/core/somaxconn", "-3"));
	T(put_setting("net/core/somaxconn", "4096"));
	CHILD("a queue as asked for") { SAY("%d", waiting()); } END;

	show("kernel/randomize_va_space");
	places("2");
	T(put_setting("kernel/randomize_va_space", "1"));
	places("1");
	T(put_setting("kernel/randomize_va_space", "0"));
	places("0");
	T(put_setting("kernel/randomize_va_space", "2"));

	show("kernel/shmmni");
	T(put_setting("kernel/shmmni", "32769"));
	T(put_setting("kernel/shmmni", "30"));
	show("kernel/shmmni");
	T(put_setting("kernel/shmmni", "4096"));
	CHILD("a user") {
		MUST(setresuid(1000, 1000, 1000));
		T(put_setting("kernel/shmmni", "30"));
		T(put_setting("kernel/randomize_va_space", "0"));
		show("kernel/shmmni");
	} END;
	return 0;
}
