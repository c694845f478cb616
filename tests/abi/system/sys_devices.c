/*
 * sysfs as mdev reads it: each character device has a folder with its number (dev) and what an event would say of it
 * (uevent), found by class and by number; a node made from the number is the device.
 */
#include "check.h"
#include <sys/mount.h>
#include <sys/sysmacros.h>

static void device(const char *class, const char *name)
{
	char path[128], text[256], number[32];
	struct stat st, by_number;
	unsigned major, minor;
	SAY("-- %s/%s", class, name);
	snprintf(path, sizeof path, "/sys/class/%s/%s", class, name);
	SAY("a link: %d", lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
	ssize_t n = readlink(path, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	SAY("into the devices: %d", strncmp(text, "../../devices/", 14) == 0);
	stat(path, &st);
	snprintf(path, sizeof path, "/sys/class/%s/%s/dev", class, name);
	snprintf(number, sizeof number, "%s", read_file(path));
	printf("dev %s", number);
	snprintf(path, sizeof path, "/sys/class/%s/%s/uevent", class, name);
	printf("%s", read_file(path));
	if (sscanf(number, "%u:%u", &major, &minor) != 2)
		return;
	snprintf(path, sizeof path, "/sys/dev/char/%u:%u", major, minor);
	SAY("by number: %d", stat(path, &by_number) == 0 && by_number.st_ino == st.st_ino);
	snprintf(path, sizeof path, "/sys/dev/char/%u:%u/subsystem", major, minor);
	n = readlink(path, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	char *last = strrchr(text, '/');
	SAY("class %s", last ? last + 1 : "none");
	snprintf(path, sizeof path, "/sys/dev/char/%u:%u/subsystem/%s/dev", major, minor, name);
	SAY("through the class: %d", strcmp(read_file(path), number) == 0);
	/* a ptmx opens only beside a mount of devpts */
	if (strcmp(name, "ptmx") == 0)
		return;
	unlink("node");
	MUST(mknod("node", S_IFCHR | 0600, makedev(major, minor)));
	int fd = open("node", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	SAY("opens: %d", fd >= 0);
	close(fd);
}

int main(void)
{
	scratch();
	if (access("/sys/class", F_OK) != 0)
		MUST(mount("sysfs", "/sys", "sysfs", 0, NULL));
	static const char *const mem[] = { "null", "zero", "full", "random", "urandom", "kmsg" };
	for (unsigned i = 0; i < sizeof mem / sizeof mem[0]; i++)
		device("mem", mem[i]);
	device("tty", "console");
	device("tty", "ptmx");
	device("tty", "ttyS0");
	SAY("tty %s", read_file("/sys/class/tty/tty/dev"));
	printf("active %s", read_file("/sys/class/tty/console/active"));
	printf("%s", read_file("/proc/consoles"));
	T(open("/sys/class/mem/null/dev", O_WRONLY) == -1 ? -1 : 0);
	T(mkdir("/sys/class/new", 0755));
	T(open("/sys/class/new", O_CREAT | O_RDWR, 0644));
	T(symlink("x", "/sys/class/new"));
	T(mknod("/sys/class/new", S_IFIFO | 0644, 0));
	T(link("/sys/class/mem/null/dev", "/sys/class/new"));
	T(unlink("/sys/class/mem/null/dev"));
	T(unlink("/sys/class/mem/null"));
	T(rmdir("/sys/class/mem"));
	T(rename("/sys/class/mem", "/sys/class/new"));
	T(truncate("/sys/class/mem/null/dev", 0));
	struct stat st;
	stat("/sys/class/mem/null/dev", &st);
	SAY("dev %o size %ld links %ld", st.st_mode, (long)st.st_size, (long)st.st_nlink);
	stat("/sys/class/mem", &st);
	SAY("folder %o size %ld", st.st_mode, (long)st.st_size);
	T(access("/sys/class/mem/nothing", F_OK));
	return 0;
}
