/*
 * core.h: how the programs about core files make and read one. Each works in a folder of its own, /tmp/core_PID, where files
 * called "core" are the cores of its children.
 */
#ifndef ALEA_ABI_CORE_H
#define ALEA_ABI_CORE_H

#include "../check.h"

#include <elf.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/procfs.h>
#include <sys/resource.h>
#include <sys/user.h>

static UNUSED void core_limit(rlim_t soft)
{
	struct rlimit limit = { soft, RLIM_INFINITY };
	MUST(setrlimit(RLIMIT_CORE, &limit));
}

static UNUSED void put_sys(const char *name, const char *value)
{
	char path[128];
	snprintf(path, sizeof path, "/proc/sys/%s", name);
	int fd = (int)MUST(open(path, O_WRONLY));
	MUST(write(fd, value, strlen(value)));
	close(fd);
}

/* The text of a file, without its last newline. */
static UNUSED const char *text_of(const char *path)
{
	static char text[4096];
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = 0;
	return text;
}

static UNUSED void own_folder(void)
{
	char path[64];
	snprintf(path, sizeof path, "/tmp/core_%d", getpid());
	MUST(mkdir(path, 0777));
	MUST(chmod(path, 0777));
	MUST(chdir(path));
}

static UNUSED void no_folder(void)
{
	char path[64];
	snprintf(path, sizeof path, "/tmp/core_%d", getpid());
	MUST(chdir("/"));
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* What a child's end says, as wait and as SIGCHLD tell it. */
static UNUSED void say_end(const char *what, pid_t pid)
{
	siginfo_t info;
	MUST(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	int status = reap(pid);
	say_status(what, status);
	const char *code = info.si_code == CLD_DUMPED ? "CLD_DUMPED" : info.si_code == CLD_KILLED ? "CLD_KILLED" : "CLD_EXITED";
	printf("  %s %d\n", code, info.si_status);
}

/* A core in memory. */
struct core {
	char *bytes;
	size_t size;
	Elf64_Ehdr *head;
	Elf64_Phdr *segments;
};

static UNUSED int core_open(struct core *core, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return close(fd), -1;
	core->size = (size_t)st.st_size;
	core->bytes = mmap(NULL, core->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	core->head = (void *)core->bytes;
	core->segments = (void *)(core->bytes + core->head->e_phoff);
	return core->bytes == MAP_FAILED ? -1 : 0;
}

static UNUSED void core_close(struct core *core)
{
	munmap(core->bytes, core->size);
}

/* The segment that begins at an address. */
static UNUSED Elf64_Phdr *core_segment(struct core *core, const void *at)
{
	for (int n = 0; n < core->head->e_phnum; n++)
		if (core->segments[n].p_type == PT_LOAD && core->segments[n].p_vaddr == (uintptr_t)at)
			return &core->segments[n];
	return NULL;
}

/* The next note after one, or the first; NULL after the last. */
static UNUSED Elf64_Nhdr *core_note(struct core *core, Elf64_Nhdr *before)
{
	char *at = core->bytes + core->segments[0].p_offset, *end = at + core->segments[0].p_filesz;
	if (before != NULL)
		at = (char *)(before + 1) + (before->n_namesz + 3) / 4 * 4 + (before->n_descsz + 3) / 4 * 4;
	return at < end ? (void *)at : NULL;
}

static UNUSED void *core_desc(Elf64_Nhdr *note)
{
	return (char *)(note + 1) + (note->n_namesz + 3) / 4 * 4;
}

/* The number-th note of a kind, from 0. */
static UNUSED Elf64_Nhdr *core_find(struct core *core, unsigned kind, int number)
{
	Elf64_Nhdr *note = NULL;
	while ((note = core_note(core, note)) != NULL)
		if (note->n_type == kind && number-- == 0)
			return note;
	return NULL;
}

#endif
