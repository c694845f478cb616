/*
 * The shape of what /proc and /sys say of a process and of the system: digits become 9 and hexadecimal numbers x, runs of blanks one,
 * repeated lines are left out. Only what does not depend on the machine or on how the kernel was configured.
 */
#include "check.h"
#include <ctype.h>
#include <sys/mount.h>
#include <sys/sysinfo.h>

static char last[4096];

static int is_hex(const char *s, size_t n)
{
	int digits = 0;
	for (size_t i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)s[i]) || isupper((unsigned char)s[i]))
			return 0;
		digits |= isdigit((unsigned char)s[i]) != 0;
	}
	return digits && n >= 8;
}

/* One line without its numbers. */
static void shape(const char *line, char *out)
{
	const char *s = line;
	while (*s) {
		size_t n = strspn(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
		if (n == 0) {
			if (isspace((unsigned char)*s)) {
				while (isspace((unsigned char)s[1]))
					s++;
				*out++ = ' ';
			} else {
				*out++ = *s;
			}
			s++;
			continue;
		}
		if (strspn(s, "0123456789") == n || is_hex(s, n))
			*out++ = is_hex(s, n) ? 'x' : '9';
		else
			memcpy(out, s, n), out += n;
		s += n;
	}
	*out = 0;
}

static void show(const char *file)
{
	const char *text = read_file(file);
	SAY("== %s", file);
	last[0] = 0;
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, "\n");
		char line[4096], out[4096];
		snprintf(line, sizeof line, "%.*s", (int)n, at);
		shape(line, out);
		if (strcmp(out, last) != 0)
			SAY("%s", out);
		strcpy(last, out);
		at += n + (at[n] == '\n');
	}
}

/* What depends on the processor. */
static const char *const machine[] = { "Speculation", "x86_Thread", "HardwareCorrupted", "Unaccepted", "DirectMap", "ProtectionKey" };

static int is_machine(const char *line)
{
	for (unsigned i = 0; i < sizeof machine / sizeof machine[0]; i++)
		if (strncmp(line, machine[i], strlen(machine[i])) == 0)
			return 1;
	return 0;
}

/* The names before a colon, in order. */
static void keys(const char *file)
{
	char text[65536];
	strcpy(text, read_file(file));
	printf("== %s:", file);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (!is_machine(line) && strchr(line, ':') && !strchr(line, '['))
			printf(" %.*s", (int)strcspn(line, ":"), line);
	putchar('\n');
}

static void value(const char *file)
{
	char text[256];
	snprintf(text, sizeof text, "%s", read_file(file));
	text[strcspn(text, "\n")] = 0;
	SAY("%s: %s", file, text);
}

/* Whether there is such a value, and of which shape. */
static void kind(const char *file)
{
	char out[4096], text[256];
	snprintf(text, sizeof text, "%s", read_file(file));
	text[strcspn(text, "\n")] = 0;
	shape(text, out);
	SAY("%s: %s", file, out);
}

/* A list of processors, of which there may be any number. */
static void first(const char *file)
{
	SAY("%s: %.1s", file, read_file(file));
}

/* The fields of stat: 0 or not, negative or not, where that is always so. */
static void stat_shape(void)
{
	char text[4096];
	strcpy(text, strrchr(read_file("/proc/self/stat"), ')'));
	printf("== stat:");
	int number = 2;
	for (char *field = strtok(text, " "); field; field = strtok(NULL, " \n"), number++)
		if (number == 3)
			printf(" %s", field);
		else if (number == 8 || (number >= 16 && number <= 21) || number == 36 || number == 37 || number == 40 || number == 41)
			printf(" %d:%s", number, field);
	SAY(", %d fields", number - 1);
}

static void maps(void)
{
	static const char *const kinds[] = { "proc_shapes", "[heap]", "[stack]", "[vdso]" };
	char *line, text[65536], out[4096];
	for (int i = 0; i < 4; i++) {
		strcpy(text, read_file("/proc/self/maps"));
		for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			if (strstr(line, kinds[i]) && (i > 0 || strstr(line, "r-xp"))) {
				shape(line, out);
				SAY("%s", out);
			}
	}
	SAY("== smaps of the stack");
	char *smaps = strstr(read_file("/proc/self/smaps"), "[stack]");
	for (line = smaps ? strtok(smaps, "\n") : NULL; line; line = strtok(NULL, "\n")) {
		if (strchr(line, '-') && !strchr(line, ':'))
			break;
		if (!strncmp(line, "VmFlags:", 8))
			SAY("VmFlags");
		else if (!is_machine(line))
			SAY("%.*s %s", (int)strcspn(line, ":"), line, strstr(line, " kB") ? "kB" : "");
		if (!strncmp(line, "VmFlags:", 8))
			break;
	}
}

int main(void)
{
	/* The guest may have none. */
	mkdir("/sys", 0555);
	int mounted = mount("sysfs", "/sys", "sysfs", 0, NULL) == 0;
	keys("/proc/self/status");
	stat_shape();
	show("/proc/self/statm");
	show("/proc/self/limits");
	show("/proc/self/oom_score_adj");
	show("/proc/self/oom_adj");
	kind("/proc/self/oom_score");
	kind("/proc/self/loginuid");
	kind("/proc/self/sessionid");
	kind("/proc/self/coredump_filter");
	kind("/proc/self/personality");
	keys("/proc/self/smaps_rollup");
	keys("/proc/thread-self/status");
	maps();
	keys("/proc/meminfo");
	show("/proc/loadavg");
	show("/proc/uptime");
	show("/proc/swaps");
	value("/proc/sys/kernel/ostype");
	kind("/proc/sys/kernel/pid_max");
	value("/proc/sys/kernel/ngroups_max");
	value("/proc/sys/kernel/cap_last_cap");
	value("/proc/sys/kernel/randomize_va_space");
	value("/proc/sys/kernel/core_pattern");
	value("/proc/sys/kernel/core_uses_pid");
	value("/proc/sys/kernel/domainname");
	value("/proc/sys/kernel/overflowuid");
	value("/proc/sys/kernel/printk");
	value("/proc/sys/vm/overcommit_memory");
	value("/proc/sys/vm/overcommit_ratio");
	value("/proc/sys/vm/max_map_count");
	kind("/proc/sys/vm/mmap_min_addr");
	value("/proc/sys/vm/swappiness");
	value("/proc/sys/vm/nr_hugepages");
	value("/proc/sys/vm/dirty_ratio");
	value("/proc/sys/vm/vfs_cache_pressure");
	value("/proc/sys/vm/legacy_va_layout");
	value("/proc/sys/vm/memfd_noexec");
	value("/proc/sys/fs/pipe-max-size");
	value("/proc/sys/fs/nr_open");
	value("/proc/sys/fs/suid_dumpable");
	value("/proc/sys/net/core/somaxconn");
	value("/proc/sys/net/core/rmem_max");
	value("/proc/sys/net/core/wmem_default");
	value("/proc/sys/net/ipv4/ip_local_port_range");
	value("/proc/sys/net/ipv4/ip_unprivileged_port_start");
	value("/proc/sys/net/ipv4/tcp_fin_timeout");
	kind("/proc/sys/net/ipv4/tcp_rmem");
	kind("/proc/sys/net/ipv4/tcp_wmem");
	value("/proc/sys/net/ipv4/ip_forward");
	value("/proc/sys/net/ipv6/bindv6only");
	value("/proc/sys/net/ipv6/conf/all/disable_ipv6");
	value("/proc/sys/net/unix/max_dgram_qlen");
	first("/sys/devices/system/cpu/online");
	first("/sys/devices/system/cpu/possible");
	first("/sys/devices/system/cpu/present");
	kind("/sys/devices/system/cpu/kernel_max");
	kind("/sys/devices/system/cpu/cpu0/topology/core_id");
	kind("/sys/devices/system/cpu/cpu0/topology/physical_package_id");
	kind("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
	kind("/sys/devices/system/node/online");
	value("/sys/class/net/lo/mtu");
	value("/sys/class/net/lo/ifindex");
	value("/sys/class/net/lo/address");
	value("/sys/class/net/lo/type");
	if (mounted)
		umount("/sys");
	struct sysinfo info;
	T(sysinfo(&info));
	IS(info.mem_unit == 1 && info.totalram > info.freeram && info.freeram > 0 && info.procs > 0 && info.uptime >= 0);
	IS(info.totalhigh == 0 && info.freehigh == 0 && info.totalswap == 0 && info.freeswap == 0);
	T(sysinfo(KERNEL_ADDRESS));
	return 0;
}
