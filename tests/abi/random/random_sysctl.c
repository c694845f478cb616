/*
 * /proc/sys/kernel/random: modes and shapes of the six files; boot_id is stable and never the uuid,
 * which is fresh for each read; both are version 4 UUIDs; the read-only ones refuse to be written.
 */
#include "check.h"
#include <ctype.h>

#define DIR "/proc/sys/kernel/random/"

/* 8-4-4-4-12 hex digits, version 4, variant 10, and a newline. */
static int is_uuid4(const char *s)
{
	if (strlen(s) != 37 || s[36] != '\n')
		return 0;
	for (int i = 0; i < 36; i++) {
		int dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? s[i] != '-' : !(isdigit(s[i]) || (s[i] >= 'a' && s[i] <= 'f')))
			return 0;
	}
	return s[14] == '4' && strchr("89ab", s[19]);
}

int main(void)
{
	static const char *const names[] = { "boot_id", "uuid", "entropy_avail", "poolsize",
					     "urandom_min_reseed_secs", "write_wakeup_threshold" };
	char path[80], first[64], second[64];
	for (int i = 0; i < 6; i++) {
		struct stat st;
		snprintf(path, sizeof path, DIR "%s", names[i]);
		MUST(stat(path, &st));
		SAY("%s: mode %o size %ld", names[i], st.st_mode & 0777, (long)st.st_size);
		if (i > 1)
			printf("  %s", read_file(path));
	}
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, DIR "%s", names[i]);
		snprintf(first, sizeof first, "%s", read_file(path));
		snprintf(second, sizeof second, "%s", read_file(path));
		SAY("%s: uuid4 %d %d, same %d", names[i], is_uuid4(first), is_uuid4(second),
		    strcmp(first, second) == 0);
		T(open(path, O_WRONLY));
	}
	snprintf(first, sizeof first, "%s", read_file(DIR "boot_id"));
	snprintf(second, sizeof second, "%s", read_file(DIR "uuid"));
	IS(strcmp(first, second) != 0);
	int fd = (int)MUST(open(DIR "boot_id", O_RDONLY));
	char piece[10];
	T(read(fd, piece, 10));
	T(read(fd, piece, 10));
	T(lseek(fd, 0, SEEK_SET));
	T(read(fd, first, 64));
	T(read(fd, first, 64));
	close(fd);
	fd = (int)MUST(open(DIR "write_wakeup_threshold", O_RDWR));
	T(write(fd, "128\n", 4));
	close(fd);
	fd = (int)MUST(open(DIR "urandom_min_reseed_secs", O_RDWR));
	T(write(fd, "60\n", 3));
	close(fd);
	CHILD("as uid 1000") {
		MUST(setuid(1000));
		T(close(open(DIR "uuid", O_RDONLY)));
		T(open(DIR "urandom_min_reseed_secs", O_WRONLY));
	} END;
	return 0;
}
