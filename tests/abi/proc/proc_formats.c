/*
 * Lines of /proc to the letter, blanks at their ends included: mounts of each memory file system with options, limits
 * without a unit, groups, partitions without a disk, the code's size, the heading of interrupts, nobody blocked; and the
 * machine that a program of 32-bit Linux is shown.
 */
#include "check.h"
#include <grp.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/utsname.h>

/* The lines of a file that hold a text, each between marks that show blanks at its end. */
static void lines(const char *file, const char *text)
{
	static char copy[65536];
	snprintf(copy, sizeof copy, "%s", read_file(file));
	for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, text))
			SAY("[%s]", line);
}

static void mounted(const char *type, unsigned long flags, const char *options)
{
	struct stat st;
	char point[128], line[300];
	SAY("-- %s with %s", type, options ? options : "nothing");
	if (mount("what", "m", type, flags, options) != 0) {
		SAY("%s", err_name(errno));
		return;
	}
	snprintf(point, sizeof point, " %s/m ", scratch_path);
	snprintf(line, sizeof line, "%s", read_file("/proc/self/mounts"));
	/* the path has a number that differs from run to run */
	char *at = strstr(read_file("/proc/self/mounts"), point);
	SAY("[%.*s]", at ? (int)strcspn(at + strlen(point), "\n") : 4, at ? at + strlen(point) : "none");
	at = strstr(read_file("/proc/self/mountinfo"), point);
	SAY("[%.*s]", at ? (int)strcspn(at + strlen(point), "\n") : 4, at ? at + strlen(point) : "none");
	stat("m", &st);
	SAY("root %o %d %d", st.st_mode, st.st_uid, st.st_gid);
	MUST(umount("m"));
}

int main(void)
{
	scratch();
	MUST(mkdir("m", 0755));
	mounted("tmpfs", 0, NULL);
	mounted("tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755");
	mounted("tmpfs", MS_NOATIME, "size=64k,nr_inodes=100,mode=0700,uid=5,gid=6");
	mounted("tmpfs", MS_RDONLY | MS_STRICTATIME, "size=1m");
	mounted("tmpfs", MS_NODIRATIME | MS_SYNCHRONOUS | MS_DIRSYNC | MS_LAZYTIME, "nr_blocks=3,inode64");
	mounted("tmpfs", 0, "nothing");
	mounted("tmpfs", 0, "size=x");
	mounted("tmpfs", 0, "mode=9");
	mounted("tmpfs", 0, "uid=-1");
	mounted("ramfs", 0, NULL);
	mounted("ramfs", 0, "mode=1777");
	mounted("proc", 0, NULL);
	mounted("sysfs", MS_NOEXEC, NULL);
	mounted("nothing", 0, NULL);
	SAY("-- remounted");
	MUST(mount("what", "m", "tmpfs", MS_DIRSYNC, NULL));
	char within[64];
	static const unsigned long flags[] = { MS_RDONLY, MS_SYNCHRONOUS | MS_NOEXEC, MS_LAZYTIME, MS_BIND | MS_RDONLY | MS_NOSUID,
		MS_BIND, 0 };
	for (unsigned i = 0; i < sizeof flags / sizeof flags[0]; i++) {
		T(mount("what", "m", NULL, MS_REMOUNT | flags[i], NULL));
		snprintf(within, sizeof within, "%s/m ", scratch_path);
		char *at = strstr(read_file("/proc/self/mountinfo"), within);
		SAY("[%.*s]", at ? (int)strcspn(at + strlen(within), "\n") : 4, at ? at + strlen(within) : "none");
		T(close(open("m/f", O_CREAT | O_RDWR, 0600)));
	}
	MUST(umount("m"));
	SAY("-- limits");
	lines("/proc/self/limits", "bytes ");
	lines("/proc/self/limits", "0                    0 ");
	lines("/proc/self/limits", "Soft");
	lines("/proc/self/limits", "timeout");
	SAY("-- status");
	gid_t groups[3] = { 7, 9, 11 };
	MUST(setgroups(0, NULL));
	lines("/proc/self/status", "Groups");
	MUST(setgroups(1, groups));
	lines("/proc/self/status", "Groups");
	MUST(setgroups(3, groups));
	lines("/proc/self/status", "Groups");
	unsigned long pages, rss, shared, text, lib, data, dirty, exe, libs;
	MUST(sscanf(read_file("/proc/self/statm"), "%lu %lu %lu %lu %lu %lu %lu", &pages, &rss, &shared, &text, &lib, &data,
		    &dirty) == 7 ? 0 : -1);
	MUST(sscanf(strstr(read_file("/proc/self/status"), "VmExe:"), "VmExe: %lu", &exe) == 1 ? 0 : -1);
	MUST(sscanf(strstr(read_file("/proc/self/status"), "VmLib:"), "VmLib: %lu", &libs) == 1 ? 0 : -1);
	unsigned long start, end;
	char *code = strstr(read_file("/proc/self/maps"), " r-xp ");
	while (*code != '\n')
		code--;
	MUST(sscanf(code, "\n%lx-%lx", &start, &end) == 2 ? 0 : -1);
	IS(exe == (end - start) / 1024);
	IS(text == exe / 4);
	/* the vDSO's */
	IS(libs > 0 && libs < 64);
	SAY("lib %lu dirty %lu", lib, dirty);
	code = strrchr(read_file("/proc/self/stat"), ')');
	unsigned long long field[24] = { 0 };
	int at = 2;
	for (char *word = strtok(code + 2, " "); word && at < 26; word = strtok(NULL, " "), at++)
		if (at > 2)
			field[at - 2] = strtoull(word, NULL, 10);
	IS(field[23] == start);
	SAY("-- the machine");
	SAY("[%s]", read_file("/proc/partitions"));
	lines("/proc/stat", "procs_blocked");
	char heading[12] = "";
	snprintf(heading, sizeof heading, "%s", read_file("/proc/interrupts"));
	SAY("[%s]", heading);
	SAY("[%.8s]", read_file("/proc/interrupts") + 11);
	char *local = strstr(read_file("/proc/interrupts"), "LOC:");
	IS(local && strstr(local, "Local timer interrupts\n"));
	struct utsname name;
	CHILD("as a program of 32-bit Linux") {
		MUST(personality(PER_LINUX32));
		uname(&name);
		SAY("%s %s", name.sysname, name.machine);
		MUST(personality(PER_LINUX));
		uname(&name);
		SAY("%s", name.machine);
	} END;
	return 0;
}
