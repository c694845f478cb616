/*
 * Contract: the core of a process has its headers, and notes with the registers of each thread (that which died first), the
 * process, the signal, the auxiliary vector and the mapped files; and of its memory what /proc/self/coredump_filter asks for.
 */
#include "core.h"
#include <sys/auxv.h>

#define AT(n) ((char *)0x10000000 + (n) * 0x100000L)
#define MARK 0x1122334455667788UL

static int report_pipe[2];
static char name_of_file[64];

static void *stand(void *unused)
{
	(void)unused;
	/* In a call that nothing ends, with a mark in a register. */
	register unsigned long mark __asm__("r12") = MARK + 1;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	MUST(write(report_pipe[1], &tid, sizeof tid));
	__asm__ volatile("syscall" : : "a"(SYS_pause), "r"(mark) : "rcx", "r11", "memory");
	return NULL;
}

static void *die(void *unused)
{
	(void)unused;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	MUST(write(report_pipe[1], &tid, sizeof tid));
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL));
	syscall(SYS_tgkill, getpid(), tid, SIGUSR2);
	sleep_ms(100);
	double value = 1234.5;
	__asm__ volatile("movq %1, %%xmm5\n\tmov %0, %%r13\n\tmov $0, %%rax\n\tmov $77, %%rbx\n\tmov %%rbx, 8(%%rax)"
			 : : "r"(MARK), "r"(value) : "rax", "rbx", "r13", "xmm5", "memory");
	return NULL;
}

static void *map(int n, size_t len, int flags, int fd)
{
	void *at = mmap(AT(n), len, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
	if (at == MAP_FAILED)
		MUST(-1);
	return at;
}

static void mappings(void)
{
	int file = (int)MUST(open(name_of_file, O_RDWR));
	memset(map(0, 4 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1), 'a', PAGE);
	map(1, 4 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	memset(map(2, 4 * PAGE, MAP_SHARED | MAP_ANONYMOUS, -1), 'c', PAGE);
	map(3, 4 * PAGE, MAP_PRIVATE, file);
	memset(map(4, 4 * PAGE, MAP_PRIVATE, file), 'e', 1);
	map(5, 4 * PAGE, MAP_SHARED, file);
	memset(map(6, 4 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1), 'g', PAGE);
	MUST(madvise(AT(6), 4 * PAGE, MADV_DONTDUMP));
	memset(map(7, 4 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1), 'h', PAGE);
	MUST(mprotect(AT(7), 4 * PAGE, PROT_NONE));
	int self = (int)MUST(open("/proc/self/exe", O_RDONLY));
	if (mmap(AT(8), PAGE * 2, PROT_READ, MAP_PRIVATE | MAP_FIXED, self, 0) == MAP_FAILED)
		MUST(-1);
	char *last = map(9, 4 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	last[3 * PAGE] = 'j';
	memset(map(10, 4 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1), 'k', PAGE);
	MUST(munmap(AT(10) + PAGE, PAGE));
}

static void segments(struct core *core)
{
	for (int n = 0; n <= 10; n++) {
		Elf64_Phdr *segment = core_segment(core, AT(n));
		if (segment == NULL) {
			SAY("  %d: none", n);
			continue;
		}
		printf("  %d: %#lx of %#lx flags %x align %#lx", n, segment->p_filesz, segment->p_memsz, segment->p_flags, segment->p_align);
		/* What stands behind the first page of a program is the compiler's affair. */
		for (size_t at = 0; at < segment->p_filesz && (n != 8 || at == 0); at += PAGE) {
			char byte = core->bytes[segment->p_offset + at];
			printf(" %c", byte == 0 ? '0' : byte == 0x7f ? 'E' : byte);
		}
		printf("\n");
	}
}

/* Dies of a fault after `filter` was set. */
static void with_filter(const char *filter)
{
	printf("filter %s\n", filter);
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		int fd = (int)MUST(open("/proc/self/coredump_filter", O_WRONLY));
		MUST(write(fd, filter, strlen(filter)));
		close(fd);
		/* A child has its parent's. */
		pid_t child = (pid_t)MUST(fork());
		if (child != 0)
			_exit(WCOREDUMP(reap(child)) ? 0 : 1);
		mappings();
		*(volatile int *)8 = 1;
	}
	say_status("  parent", reap(pid));
	struct core core;
	if (core_open(&core, "core") == 0) {
		segments(&core);
		core_close(&core);
	}
	unlink("core");
}

static void notes(struct core *core, pid_t pid, const pid_t tids[3])
{
	IS(core->head->e_phoff == sizeof(Elf64_Ehdr) && core->head->e_phentsize == sizeof(Elf64_Phdr));
	IS(core->head->e_ident[EI_CLASS] == ELFCLASS64 && core->head->e_ident[EI_DATA] == ELFDATA2LSB && core->head->e_ident[EI_OSABI] == 0);
	SAY("machine %d version %d flags %d shnum %d", core->head->e_machine, core->head->e_version, core->head->e_flags, core->head->e_shnum);
	Elf64_Phdr *first = core->segments;
	SAY("first: type %d flags %d vaddr %ld memsz %ld align %ld", first->p_type, first->p_flags, (long)first->p_vaddr, (long)first->p_memsz, (long)first->p_align);
	for (Elf64_Nhdr *note = core_note(core, NULL); note != NULL; note = core_note(core, note)) {
		printf("note %s %#x", (char *)(note + 1), note->n_type);
		if (note->n_type != NT_X86_XSTATE && note->n_type != NT_AUXV && note->n_type != NT_FILE && note->n_type != 0x205)
			printf(" %u", note->n_descsz);
		printf("\n");
	}
	prstatus_t *status = core_desc(core_find(core, NT_PRSTATUS, 0));
	struct user_regs_struct *regs = (void *)&status->pr_reg;
	SAY("signal %d %d %d cursig %d", status->pr_info.si_signo, status->pr_info.si_code, status->pr_info.si_errno, status->pr_cursig);
	IS(status->pr_pid == tids[2]);
	IS(status->pr_ppid == getpid() && status->pr_pgrp == getpgrp() && status->pr_sid == getsid(0));
	SAY("pending %#lx held %#lx fpvalid %d", status->pr_sigpend, status->pr_sighold, status->pr_fpvalid);
	IS(regs->r13 == MARK && regs->rbx == 77 && regs->rax == 0 && regs->orig_rax == -1UL);
	IS(regs->cs == 0x33 && regs->ss == 0x2b && regs->fs_base != 0);
	struct user_fpregs_struct *fp = core_desc(core_find(core, NT_FPREGSET, 0));
	double value;
	memcpy(&value, (char *)fp->xmm_space + 5 * 16, sizeof value);
	IS(value == 1234.5);
	IS(memcmp(fp, core_desc(core_find(core, NT_X86_XSTATE, 0)), 160) == 0);
	int leaders = 0, standing = 0, marked = 0;
	for (int n = 1; n < 3; n++) {
		status = core_desc(core_find(core, NT_PRSTATUS, n));
		regs = (void *)&status->pr_reg;
		leaders += status->pr_pid == pid;
		standing += status->pr_pid == tids[0] || status->pr_pid == tids[1];
		marked += regs->r12 == MARK + 1 && regs->orig_rax == SYS_pause;
		IS(status->pr_cursig == SIGSEGV);
	}
	SAY("others: leaders %d, standing %d, marked %d", leaders, standing, marked);
	prpsinfo_t *names = core_desc(core_find(core, NT_PRPSINFO, 0));
	SAY("state %d %c zombie %d nice %d name %.16s arguments %.80s", names->pr_state, names->pr_sname, names->pr_zomb, names->pr_nice, names->pr_fname, names->pr_psargs);
	IS(names->pr_pid == pid && names->pr_ppid == getpid());
	SAY("ids %u %u", names->pr_uid, names->pr_gid);
	siginfo_t *info = core_desc(core_find(core, NT_SIGINFO, 0));
	SAY("siginfo %d %d %d at %p", info->si_signo, info->si_code, info->si_errno, info->si_addr);
	Elf64_Nhdr *auxv = core_find(core, NT_AUXV, 0);
	const char *own = read_file("/proc/self/auxv");
	IS(auxv->n_descsz > 16 && memcmp(core_desc(auxv), own, auxv->n_descsz) == 0);
	IS(((unsigned long *)core_desc(auxv))[auxv->n_descsz / 8 - 2] == AT_NULL);
	Elf64_Nhdr *note = core_find(core, NT_FILE, 0);
	unsigned long *files = core_desc(note);
	SAY("page size %lu", files[1]);
	char *name = (char *)(files + 2 + 3 * files[0]);
	for (unsigned long n = 0; n < files[0]; n++, name += strlen(name) + 1)
		if (files[2 + 3 * n] >= (uintptr_t)AT(0) && files[2 + 3 * n] <= (uintptr_t)AT(11)) {
			const char *base = strrchr(name, '/');
			SAY("  %#lx %lu pages from %lu %s", files[2 + 3 * n], (files[3 + 3 * n] - files[2 + 3 * n]) / PAGE, files[4 + 3 * n], base ? base : name);
		}
	IS(name == (char *)files + note->n_descsz);
	/* The image that the vDSO is. */
	Elf64_Phdr *vdso = core_segment(core, (void *)getauxval(AT_SYSINFO_EHDR));
	IS(vdso != NULL && vdso->p_filesz == vdso->p_memsz && memcmp(core->bytes + vdso->p_offset, ELFMAG, 4) == 0);
	/* Each segment follows the one before. */
	int in_order = 1;
	for (int n = 2; n < core->head->e_phnum; n++)
		in_order &= core->segments[n].p_offset == core->segments[n - 1].p_offset + core->segments[n - 1].p_filesz;
	IS(in_order && core->segments[1].p_offset % PAGE == 0);
}

static void threads(void)
{
	pid_t tids[3] = { 0 };
	MUST(pipe(report_pipe));
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		pthread_t thread;
		mappings();
		pthread_create(&thread, NULL, stand, NULL);
		/* The leader is one of those who stand. */
		sleep_ms(50);
		pthread_create(&thread, NULL, die, NULL);
		pause();
	}
	MUST(read(report_pipe[0], &tids[0], sizeof tids[0]));
	MUST(read(report_pipe[0], &tids[2], sizeof tids[2]));
	tids[1] = -1;
	say_end("threads", pid);
	struct core core;
	if (core_open(&core, "core") == 0) {
		notes(&core, pid, tids);
		core_close(&core);
	}
	unlink("core");
}

/* Much memory that is not touched is a hole, and takes no time. */
static void sparse(void)
{
	size_t size = access("/proc/alea", F_OK) == 0 ? 8UL << 40 : 1UL << 28;
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			MUST(-1);
		at[0] = 'f';
		at[size / 2] = 'm';
		raise(SIGQUIT);
	}
	say_end("sparse", pid);
	struct stat st;
	IS(stat("core", &st) == 0 && (size_t)st.st_size > size && st.st_blocks < 8192);
	unlink("core");
}

int main(void)
{
	own_folder();
	core_limit(RLIM_INFINITY);
	snprintf(name_of_file, sizeof name_of_file, "/tmp/core_%d/file", getpid());
	int fd = (int)MUST(open(name_of_file, O_CREAT | O_RDWR, 0644));
	char page[PAGE];
	for (int n = 0; n < 4; n++) {
		memset(page, '1' + n, sizeof page);
		MUST(write(fd, page, sizeof page));
	}
	close(fd);
	threads();
	with_filter("0x33");
	with_filter("0");
	with_filter("0x1");
	with_filter("0x2");
	with_filter("0x4");
	with_filter("0x8");
	with_filter("0x10");
	with_filter("0x1ff");
	sparse();
	no_folder();
	return 0;
}
