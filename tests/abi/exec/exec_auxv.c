/*
 * What a new program finds: the auxiliary vector (which entries, and the values that are not addresses),
 * AT_RANDOM fresh for every exec, AT_EXECFN, AT_SECURE, stack alignment, argv before envp before auxv,
 * general registers zero, and /proc/self/{exe,cmdline,comm,auxv}.
 */
#include "check.h"
#include <elf.h>
#include <sys/auxv.h>

static void child(int argc, char **argv)
{
	char **p = argv + argc + 1;
	while (*p++)
		;
	Elf64_auxv_t *aux = (Elf64_auxv_t *)p;
	static const struct { unsigned long type; const char *name; } wanted[] = {
		{ AT_SYSINFO_EHDR, "SYSINFO_EHDR" }, { AT_HWCAP, "HWCAP" }, { AT_PAGESZ, "PAGESZ" },
		{ AT_CLKTCK, "CLKTCK" }, { AT_PHDR, "PHDR" }, { AT_PHENT, "PHENT" }, { AT_PHNUM, "PHNUM" },
		{ AT_BASE, "BASE" }, { AT_FLAGS, "FLAGS" }, { AT_ENTRY, "ENTRY" }, { AT_UID, "UID" },
		{ AT_EUID, "EUID" }, { AT_GID, "GID" }, { AT_EGID, "EGID" }, { AT_SECURE, "SECURE" },
		{ AT_RANDOM, "RANDOM" }, { AT_HWCAP2, "HWCAP2" }, { AT_EXECFN, "EXECFN" },
		{ AT_PLATFORM, "PLATFORM" }, { AT_MINSIGSTKSZ, "MINSIGSTKSZ" }, { 27, "RSEQ_FEATURE_SIZE" },
		{ 28, "RSEQ_ALIGN" },
	};
	for (unsigned i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		int found = 0;
		for (Elf64_auxv_t *a = aux; a->a_type != AT_NULL; a++)
			found += a->a_type == wanted[i].type;
		if (wanted[i].type != AT_SYSINFO_EHDR)
			SAY("%s: %d", wanted[i].name, found);
	}
	SAY("page %lu, tick %lu, phent %lu, flags %lu, secure %lu, base %lu", getauxval(AT_PAGESZ),
	    getauxval(AT_CLKTCK), getauxval(AT_PHENT), getauxval(AT_FLAGS), getauxval(AT_SECURE), getauxval(AT_BASE));
	SAY("ids %lu %lu %lu %lu", getauxval(AT_UID), getauxval(AT_EUID), getauxval(AT_GID), getauxval(AT_EGID));
	SAY("execfn %s, platform %s", (char *)getauxval(AT_EXECFN), (char *)getauxval(AT_PLATFORM));
	const Elf64_Phdr *ph = (void *)getauxval(AT_PHDR);
	int loads = 0;
	for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
		loads += ph[i].p_type == PT_LOAD;
	IS(loads > 1);
	extern void _start(void);
	IS(getauxval(AT_ENTRY) == (unsigned long)_start);
	IS(((unsigned long)(argv - 1) & 15) == 0);
	IS(argv + argc + 1 == environ);
	IS((char *)getauxval(AT_EXECFN) > argv[0]);
	char text[256];
	int fd = open("/proc/self/auxv", O_RDONLY);
	ssize_t n = read(fd, text, sizeof text);
	IS(n > 16 && memcmp(text, aux, (size_t)n) == 0);
	close(fd);
	fd = open("/proc/self/cmdline", O_RDONLY);
	n = read(fd, text, sizeof text);
	for (ssize_t i = 0; i < n; i++)
		putchar(text[i] ? text[i] : '|');
	SAY(" is %zd bytes", n);
	printf("comm %s", read_file("/proc/self/comm"));
	n = readlink("/proc/self/exe", text, sizeof text - 1);
	text[n] = 0;
	SAY("exe ends in %s", strrchr(text, '/'));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "child")) {
		child(argc, argv);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "random"))
		return write(30, (void *)getauxval(AT_RANDOM), 16) != 16;
	CHILD("exec") {
		execl("/proc/self/exe", "zero", "child", "a b", "", NULL);
	} END;
	CHILD("as uid 1000") {
		MUST(setgid(1000));
		MUST(setuid(1000));
		execl("/proc/self/exe", "zero", "child", NULL);
	} END;
	int fds[2];
	MUST(pipe(fds));
	unsigned char r[8][16], none[16] = { 0 };
	for (int i = 0; i < 8; i++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			dup2(fds[1], 30);
			execl("/proc/self/exe", "zero", "random", NULL);
			_exit(127);
		}
		if (reap(pid) != 0 || read(fds[0], r[i], 16) != 16)
			SAY("child %d failed", i);
	}
	int same = 0;
	for (int i = 0; i < 8; i++) {
		same += memcmp(r[i], none, 16) == 0;
		for (int k = 0; k < i; k++)
			same += memcmp(r[i], r[k], 16) == 0 || memcmp(r[i], r[k] + 8, 8) == 0;
	}
	IS(same == 0);
	return 0;
}
