/*
 * kallsyms: /proc/kallsyms and kernel.kptr_restrict: its form, who sees addresses, and that it is decided when the file is opened.
 */
#include "../check.h"
#include <linux/capability.h>
#include <sys/prctl.h>

static int set(const char *name, const char *value)
{
	char path[128];
	snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
	int fd = open(path, O_WRONLY);
	if (fd < 0)
		return -1;
	ssize_t put = write(fd, value, strlen(value));
	int failed = errno;
	close(fd);
	errno = failed;
	return put < 0 ? -1 : 0;
}

static char text[1 << 17];

static const char *sees(int fd)
{
	ssize_t got = pread(fd, text, sizeof text - 1, 0);
	if (got <= 0)
		return "nothing";
	text[got] = 0;
	int shown = 0, hidden = 0, odd = 0;
	char *line = text;
	for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		char digits[17], kind, name[512];
		*end = 0;
		if (sscanf(line, "%16[0-9a-f] %c %511s", digits, &kind, name) != 3 || strlen(digits) != 16)
			odd++;
		else if (strcmp(digits, "0000000000000000"))
			shown++;
		else
			hidden++;
	}
	if (odd)
		return "odd lines";
	return shown > hidden ? "addresses" : "zeros";
}

static void look(const char *who)
{
	int fd = (int)MUST(open("/proc/kallsyms", O_RDONLY));
	printf("%s sees %s\n", who, sees(fd));
	close(fd);
}

static void form(void)
{
	struct stat st;
	MUST(stat("/proc/kallsyms", &st));
	printf("mode %o, size %ld\n", st.st_mode & 07777, (long)st.st_size);
	int fd = (int)MUST(open("/proc/kallsyms", O_RDONLY));
	int found = 0, is_text = 0;
	FILE *file = fdopen(fd, "r");
	for (char line[1024]; fgets(line, sizeof line, file);) {
		size_t len = strlen(line);
		found |= len > 9 && !strcmp(line + len - 8, " _stext\n");
		is_text |= strstr(line, " T ") != NULL;
	}
	IS(found);
	IS(is_text);
	T(lseek(fd, 0, SEEK_END));
	T(lseek(fd, 0, SEEK_SET));
	/* In any pieces it is the same. */
	static char pieces[3000];
	MUST(read(fd, text, 1));
	lseek(fd, 0, SEEK_SET);
	size_t have = 0;
	for (size_t size = 1; have < sizeof pieces; size = size * 7 % 61 + 1) {
		ssize_t got = read(fd, pieces + have, have + size > sizeof pieces ? sizeof pieces - have : size);
		if (got <= 0)
			break;
		have += got;
	}
	ssize_t whole = 0;
	while (whole < (ssize_t)sizeof pieces) {
		ssize_t got = pread(fd, text + whole, sizeof pieces - whole, whole);
		if (got <= 0)
			break;
		whole += got;
	}
	IS(whole == (ssize_t)sizeof pieces && have == sizeof pieces && memcmp(pieces, text, sizeof pieces) == 0);
	T(write(fd, "x", 1));
	fclose(file);
}

static void as_user(void)
{
	MUST(setgid(1000));
	MUST(setuid(1000));
}

static void right_of_each(const char *restrict_to, const char *paranoid)
{
	printf("-- kptr_restrict %s, perf_event_paranoid %s\n", restrict_to, paranoid);
	MUST(set("kptr_restrict", restrict_to));
	MUST(set("perf_event_paranoid", paranoid));
	look("root");
	fflush(stdout);
	if (fork() == 0) {
		struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
		struct __user_cap_data_struct data[2];
		MUST(syscall(SYS_capget, &head, data));
		data[CAP_SYSLOG / 32].effective &= ~(1u << CAP_SYSLOG % 32);
		MUST(syscall(SYS_capset, &head, data));
		look("root without CAP_SYSLOG");
		int by_root = (int)MUST(open("/proc/kallsyms", O_RDONLY));
		(void)by_root;
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	int by_root = (int)MUST(open("/proc/kallsyms", O_RDONLY));
	int ends[2];
	MUST(pipe(ends));
	fflush(stdout);
	if (fork() == 0) {
		as_user();
		look("a user");
		printf("a user, of root's descriptor, sees %s\n", sees(by_root));
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	MUST(seteuid(1000));
	int by_user = (int)MUST(open("/proc/kallsyms", O_RDONLY));
	MUST(seteuid(0));
	printf("root, of a user's descriptor, sees %s\n", sees(by_user));
	close(by_user);
	close(by_root);
	close(ends[0]);
	close(ends[1]);
}

static void values(void)
{
	static const char *const all[] = {"0", "1\n", "2", "3", "-1", "x", "", " 1 "};
	SAY("-- values");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		T(set("kptr_restrict", all[i]));
	fflush(stdout);
	if (fork() == 0) {
		struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
		struct __user_cap_data_struct data[2];
		MUST(syscall(SYS_capget, &head, data));
		data[CAP_SYS_ADMIN / 32].effective &= ~(1u << CAP_SYS_ADMIN % 32);
		MUST(syscall(SYS_capset, &head, data));
		T(set("kptr_restrict", "0"));
		T(set("kptr_restrict", "9"));
		as_user();
		T(set("kptr_restrict", "0"));
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
}

int main(void)
{
	static const char *const levels[] = {"0", "1", "2"};
	form();
	for (int i = 0; i < 3; i++) {
		right_of_each(levels[i], "3");
		right_of_each(levels[i], "1");
	}
	values();
	MUST(set("kptr_restrict", "0"));
	MUST(set("perf_event_paranoid", "3"));
	return 0;
}
