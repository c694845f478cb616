/* How arguments and results of system calls are shown. Everything is appended to one line. */
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* A line that is put together; what does not fit is left out. */
struct line {
	char text[4096];
	size_t used;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t room = sizeof line->text - line->used;
	int n = vsnprintf(line->text + line->used, room, format, args);
	va_end(args);
	if (n > 0)
		line->used += (size_t)n < room ? (size_t)n : room - 1;
}

/* What an argument pointed to, as the kernel copied it. */
struct bytes {
	const unsigned char *at;
	size_t len;
	int cut;
};

struct flag {
	uint64_t bits;
	const char *name;
};

#define FLAG(name) { name, #name }

static void add_flags(struct line *line, uint64_t value, const struct flag *flags, const char *sep)
{
	for (; flags->name; flags++)
		if (flags->bits && (value & flags->bits) == flags->bits) {
			add(line, "%s%s", sep, flags->name);
			sep = "|";
			value &= ~flags->bits;
		}
	if (value || !*sep)
		add(line, "%s%#llx", sep, (unsigned long long)value);
}

static void add_one(struct line *line, uint64_t value, const struct flag *names)
{
	for (; names->name; names++)
		if (names->bits == value) {
			add(line, "%s", names->name);
			return;
		}
	add(line, "%lld", (long long)value);
}

static const struct flag open_flags[] = { FLAG(O_CREAT), FLAG(O_EXCL), FLAG(O_NOCTTY), FLAG(O_TRUNC), FLAG(O_APPEND),
	FLAG(O_NONBLOCK), { 020200000, "O_TMPFILE" }, FLAG(O_DIRECTORY), FLAG(O_NOFOLLOW), FLAG(O_CLOEXEC), { 0100000, "O_LARGEFILE" },
	{ 010000000, "O_PATH" }, { 04010000, "O_SYNC" }, { 010000, "O_DSYNC" }, { 0 } };
static const struct flag prots[] = { FLAG(PROT_READ), FLAG(PROT_WRITE), FLAG(PROT_EXEC), { 0 } };
static const struct flag maps[] = { { 3, "MAP_SHARED_VALIDATE" }, FLAG(MAP_SHARED), FLAG(MAP_PRIVATE), { 0x100000, "MAP_FIXED_NOREPLACE" },
	FLAG(MAP_FIXED), FLAG(MAP_ANONYMOUS), { 0x100, "MAP_GROWSDOWN" }, { 0x4000, "MAP_NORESERVE" }, { 0x8000, "MAP_POPULATE" },
	{ 0x20000, "MAP_STACK" }, { 0x40000, "MAP_HUGETLB" }, { 8, "MAP_DROPPABLE" }, { 0 } };
static const struct flag clones[] = { FLAG(CLONE_VM), FLAG(CLONE_FS), FLAG(CLONE_FILES), FLAG(CLONE_SIGHAND), FLAG(CLONE_PIDFD),
	FLAG(CLONE_PTRACE), FLAG(CLONE_VFORK), FLAG(CLONE_PARENT), FLAG(CLONE_THREAD), FLAG(CLONE_NEWNS), FLAG(CLONE_SYSVSEM),
	FLAG(CLONE_SETTLS), FLAG(CLONE_PARENT_SETTID), FLAG(CLONE_CHILD_CLEARTID), FLAG(CLONE_CHILD_SETTID), FLAG(CLONE_UNTRACED),
	FLAG(CLONE_NEWUTS), FLAG(CLONE_NEWIPC), FLAG(CLONE_NEWUSER), FLAG(CLONE_NEWPID), FLAG(CLONE_NEWNET), { 0 } };
static const struct flag ats[] = { FLAG(AT_SYMLINK_NOFOLLOW), { 0x200, "AT_REMOVEDIR" }, { 0x400, "AT_SYMLINK_FOLLOW" },
	{ 0x800, "AT_NO_AUTOMOUNT" }, { 0x1000, "AT_EMPTY_PATH" }, { 0 } };
static const struct flag accesses[] = { { 4, "R_OK" }, { 2, "W_OK" }, { 1, "X_OK" }, { 0 } };
static const struct flag whences[] = { { 0, "SEEK_SET" }, { 1, "SEEK_CUR" }, { 2, "SEEK_END" }, { 3, "SEEK_DATA" },
	{ 4, "SEEK_HOLE" }, { 0 } };
static const struct flag hows[] = { { 0, "SIG_BLOCK" }, { 1, "SIG_UNBLOCK" }, { 2, "SIG_SETMASK" }, { 0 } };
static const struct flag fcntls[] = { { 0, "F_DUPFD" }, { 1, "F_GETFD" }, { 2, "F_SETFD" }, { 3, "F_GETFL" }, { 4, "F_SETFL" },
	{ 5, "F_GETLK" }, { 6, "F_SETLK" }, { 7, "F_SETLKW" }, { 1030, "F_DUPFD_CLOEXEC" }, { 1031, "F_SETPIPE_SZ" },
	{ 1032, "F_GETPIPE_SZ" }, { 1033, "F_ADD_SEALS" }, { 1034, "F_GET_SEALS" }, { 0 } };
static const struct flag clocks[] = { { 0, "CLOCK_REALTIME" }, { 1, "CLOCK_MONOTONIC" }, { 2, "CLOCK_PROCESS_CPUTIME_ID" },
	{ 3, "CLOCK_THREAD_CPUTIME_ID" }, { 4, "CLOCK_MONOTONIC_RAW" }, { 5, "CLOCK_REALTIME_COARSE" }, { 6, "CLOCK_MONOTONIC_COARSE" },
	{ 7, "CLOCK_BOOTTIME" }, { 11, "CLOCK_TAI" }, { 0 } };
static const struct flag families[] = { { 0, "AF_UNSPEC" }, { 1, "AF_UNIX" }, { 2, "AF_INET" }, { 10, "AF_INET6" }, { 16, "AF_NETLINK" },
	{ 17, "AF_PACKET" }, { 0 } };
static const struct flag types[] = { { 1, "SOCK_STREAM" }, { 2, "SOCK_DGRAM" }, { 3, "SOCK_RAW" }, { 5, "SOCK_SEQPACKET" }, { 0 } };
static const struct flag type_flags[] = { { 02000000, "SOCK_CLOEXEC" }, { 04000, "SOCK_NONBLOCK" }, { 0 } };
static const struct flag limits[] = { { 0, "RLIMIT_CPU" }, { 1, "RLIMIT_FSIZE" }, { 2, "RLIMIT_DATA" }, { 3, "RLIMIT_STACK" },
	{ 4, "RLIMIT_CORE" }, { 5, "RLIMIT_RSS" }, { 6, "RLIMIT_NPROC" }, { 7, "RLIMIT_NOFILE" }, { 8, "RLIMIT_MEMLOCK" },
	{ 9, "RLIMIT_AS" }, { 10, "RLIMIT_LOCKS" }, { 11, "RLIMIT_SIGPENDING" }, { 12, "RLIMIT_MSGQUEUE" }, { 13, "RLIMIT_NICE" },
	{ 14, "RLIMIT_RTPRIO" }, { 15, "RLIMIT_RTTIME" }, { 0 } };
static const struct flag kinds[] = { { S_IFREG, "S_IFREG" }, { S_IFDIR, "S_IFDIR" }, { S_IFLNK, "S_IFLNK" }, { S_IFCHR, "S_IFCHR" },
	{ S_IFBLK, "S_IFBLK" }, { S_IFIFO, "S_IFIFO" }, { S_IFSOCK, "S_IFSOCK" }, { 0 } };
static const struct flag events[] = { FLAG(POLLIN), FLAG(POLLPRI), FLAG(POLLOUT), FLAG(POLLERR), FLAG(POLLHUP), FLAG(POLLNVAL),
	{ 0x2000, "POLLRDHUP" }, { 0 } };

static void add_signal(struct line *line, uint64_t number)
{
	const char *name = number && number < 32 ? sigabbrev_np((int)number) : NULL;
	if (name)
		add(line, "SIG%s", name);
	else if (number >= 32 && number <= 64)
		add(line, "SIGRT_%d", (int)number - 32);
	else
		add(line, "%lld", (long long)number);
}

static void add_text(struct line *line, const struct bytes *bytes)
{
	add(line, "\"");
	for (size_t i = 0; i < bytes->len; i++) {
		unsigned char c = bytes->at[i];
		const char *short_ones = "\a\b\t\n\v\f\r", *at = c ? strchr(short_ones, c) : NULL;
		int next_digit = i + 1 < bytes->len && bytes->at[i + 1] >= '0' && bytes->at[i + 1] <= '9';
		if (at)
			add(line, "\\%c", "abtnvfr"[at - short_ones]);
		else if (c == '"' || c == '\\')
			add(line, "\\%c", c);
		else if (c >= ' ' && c < 127)
			add(line, "%c", c);
		else
			add(line, next_digit ? "\\%03o" : "\\%o", c);
	}
	add(line, bytes->cut ? "\"..." : "\"");
}

static uint64_t word(const struct bytes *bytes, size_t at)
{
	uint64_t value = 0;
	if (at + sizeof value <= bytes->len)
		memcpy(&value, bytes->at + at, sizeof value);
	return value;
}

static uint32_t half(const struct bytes *bytes, size_t at)
{
	uint32_t value = 0;
	if (at + sizeof value <= bytes->len)
		memcpy(&value, bytes->at + at, sizeof value);
	return value;
}

static void add_mask(struct line *line, uint64_t mask)
{
	const char *sep = "";
	int inverse = __builtin_popcountll(mask) > 32;
	add(line, inverse ? "~[" : "[");
	for (uint64_t signal = 1; signal <= 64; signal++)
		if ((mask >> (signal - 1) & 1) != (uint64_t)inverse) {
			add(line, "%s", sep);
			const char *name = signal < 32 ? sigabbrev_np((int)signal) : NULL;
			if (name)
				add(line, "%s", name);
			else
				add(line, "RT_%d", (int)signal - 32);
			sep = " ";
		}
	add(line, "]");
}

static void add_address(struct line *line, const struct bytes *bytes)
{
	union {
		sa_family_t family;
		struct sockaddr_un local;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} any = { 0 };
	memcpy(&any, bytes->at, bytes->len < sizeof any ? bytes->len : sizeof any);
	add(line, "{sa_family=");
	add_one(line, any.family, families);
	const unsigned char *ip = (const unsigned char *)&any.in.sin_addr;
	if (any.family == AF_UNIX && bytes->len > sizeof(sa_family_t)) {
		struct bytes path = { bytes->at + 2, bytes->len - 2, bytes->cut };
		if (path.at[0]) {
			path.len = strnlen((const char *)path.at, path.len);
		} else {
			add(line, ", sun_path=@");
			path.at++, path.len--;
		}
		if (bytes->at[2])
			add(line, ", sun_path=");
		add_text(line, &path);
	} else if (any.family == AF_INET) {
		add(line, ", sin_port=htons(%d), sin_addr=%d.%d.%d.%d", ntohs(any.in.sin_port), ip[0], ip[1], ip[2], ip[3]);
	} else if (any.family == AF_INET6) {
		add(line, ", sin6_port=htons(%d), sin6_addr=", ntohs(any.in6.sin6_port));
		for (int i = 0; i < 16; i += 2)
			add(line, "%s%x", i ? ":" : "", any.in6.sin6_addr.s6_addr[i] << 8 | any.in6.sin6_addr.s6_addr[i + 1]);
	}
	add(line, "}");
}

static void add_status(struct line *line, int status)
{
	if (WIFEXITED(status))
		add(line, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", WEXITSTATUS(status));
	else if (WIFSTOPPED(status) || WIFSIGNALED(status)) {
		add(line, WIFSTOPPED(status) ? "[{WIFSTOPPED(s) && WSTOPSIG(s) == " : "[{WIFSIGNALED(s) && WTERMSIG(s) == ");
		add_signal(line, (uint64_t)(WIFSTOPPED(status) ? WSTOPSIG(status) : WTERMSIG(status)));
		add(line, "}]");
	} else
		add(line, "[%#x]", (unsigned)status);
}

static void add_stat(struct line *line, const struct bytes *bytes)
{
	struct stat st = { 0 };
	memcpy(&st, bytes->at, bytes->len < sizeof st ? bytes->len : sizeof st);
	add(line, "{st_mode=");
	add_one(line, st.st_mode & S_IFMT, kinds);
	add(line, "|%#o, st_size=%lld, ...}", st.st_mode & 07777, (long long)st.st_size);
}

static void add_limit(struct line *line, uint64_t limit)
{
	if (limit == UINT64_MAX)
		add(line, "RLIM64_INFINITY");
	else
		add(line, "%llu", (unsigned long long)limit);
}

static void add_polled(struct line *line, const struct bytes *bytes, int ended)
{
	add(line, "[");
	for (size_t at = 0; at + sizeof(struct pollfd) <= bytes->len; at += sizeof(struct pollfd)) {
		struct pollfd one;
		memcpy(&one, bytes->at + at, sizeof one);
		if (ended && !one.revents)
			continue;
		add(line, "%s{fd=%d, %s=", line->text[line->used - 1] == '[' ? "" : ", ", one.fd, ended ? "revents" : "events");
		add_flags(line, (uint16_t)(ended ? one.revents : one.events), events, "");
		add(line, "}");
	}
	add(line, bytes->cut ? ", ...]" : "]");
}

/* Whether an argument is only known when the call has ended. */
static int is_output(char kind)
{
	return kind && strchr("rSTiWQLN", kind) != NULL;
}

/* What a structure has, if the kernel has copied it; false if it says nothing to us. */
static int add_copied(struct line *line, char kind, const struct bytes *bytes)
{
	switch (kind) {
	case 's':
	case 'b':
	case 'r':
		add_text(line, bytes);
		return 1;
	case 'N': {
		struct bytes text = *bytes;
		text.len = strnlen((const char *)text.at, text.len);
		add_text(line, &text);
		return 1;
	}
	case 'S':
		add_stat(line, bytes);
		return 1;
	case 't':
	case 'T':
		add(line, "{%lld, %lld}", (long long)word(bytes, 0), (long long)word(bytes, 8));
		return 1;
	case 'i':
		add(line, "[%d, %d]", (int)half(bytes, 0), (int)half(bytes, 4));
		return 1;
	case 'W':
		add_status(line, (int)half(bytes, 0));
		return 1;
	case 'q':
	case 'Q':
		add_mask(line, word(bytes, 0));
		return 1;
	case 'e': {
		uint64_t handler = word(bytes, 0);
		add(line, "{sa_handler=");
		if (handler < 2)
			add(line, handler ? "SIG_IGN" : "SIG_DFL");
		else
			add(line, "%#llx", (unsigned long long)handler);
		add(line, ", sa_mask=");
		add_mask(line, word(bytes, 24));
		add(line, ", sa_flags=%#llx}", (unsigned long long)word(bytes, 8));
		return 1;
	}
	case 'L':
		add(line, "{rlim_cur=");
		add_limit(line, word(bytes, 0));
		add(line, ", rlim_max=");
		add_limit(line, word(bytes, 8));
		add(line, "}");
		return 1;
	case 'a':
		add_address(line, bytes);
		return 1;
	case 'l':
		add_polled(line, bytes, 0);
		return 1;
	}
	return 0;
}

static void add_arg(struct line *line, char kind, uint64_t value, const struct bytes *bytes)
{
	if (bytes->at && add_copied(line, kind, bytes))
		return;
	switch (kind) {
	case 'd':
	case 'f':
		add(line, "%d", (int)value);
		return;
	case 'j':
		add(line, "%lld", (long long)value);
		return;
	case 'F':
		if ((int)value == AT_FDCWD)
			add(line, "AT_FDCWD");
		else
			add(line, "%d", (int)value);
		return;
	case 'u':
		add(line, "%llu", (unsigned long long)value);
		return;
	case 'm':
		add(line, "%#llo", (unsigned long long)value);
		return;
	case 'o':
		add(line, (const char *[]){ "O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE" }[value & 3]);
		if (value & 0xfffffffc)
			add_flags(line, value & 0xfffffffc, open_flags, "|");
		return;
	case 'P':
		value ? add_flags(line, value, prots, "") : add(line, "PROT_NONE");
		return;
	case 'M':
		add_flags(line, value, maps, "");
		return;
	case 'k':
		add_flags(line, value & ~0xffull, clones, "");
		if (value & 0xff) {
			add(line, "|");
			add_signal(line, value & 0xff);
		}
		return;
	case 'A':
		value ? add_flags(line, value, ats, "") : add(line, "0");
		return;
	case 'O':
		value ? add_flags(line, value, accesses, "") : add(line, "F_OK");
		return;
	case 'g':
		add_signal(line, value);
		return;
	case 'w':
		add_one(line, value, whences);
		return;
	case 'h':
		add_one(line, value, hows);
		return;
	case 'c':
		add_one(line, value, fcntls);
		return;
	case 'C':
		add_one(line, value, clocks);
		return;
	case 'D':
		add_one(line, value, families);
		return;
	case 'Y':
		add_one(line, value & 0xf, types);
		if (value & ~0xfull)
			add_flags(line, value & ~0xfull, type_flags, "|");
		return;
	case 'R':
		add_one(line, value, limits);
		return;
	default:
		if (value)
			add(line, "%#llx", (unsigned long long)value);
		else
			add(line, kind == 'x' ? "0" : "NULL");
	}
}
