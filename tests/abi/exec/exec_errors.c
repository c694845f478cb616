/*
 * What execve refuses: paths (ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG, ETXTBSY), and ELF files that
 * are truncated, of another architecture, of a wrong type, with odd program headers or overlapping segments.
 * Damage found before the point of no return is an error; after it, a kill.
 */
#include "check.h"
#include <elf.h>

static unsigned char image[8192];
static size_t image_len;

/* exit(42), at file offset 0x1000 and address 0x401000 */
static const unsigned char code[] = { 0xb8, 60, 0, 0, 0, 0xbf, 42, 0, 0, 0, 0x0f, 0x05 };

static Elf64_Ehdr *eh = (Elf64_Ehdr *)image;
static Elf64_Phdr *ph = (Elf64_Phdr *)(image + sizeof(Elf64_Ehdr));

static void fresh(void)
{
	memset(image, 0, sizeof image);
	image_len = 0x1000 + sizeof code;
	memcpy(eh->e_ident, "\177ELF\2\1\1", 7);
	eh->e_type = ET_EXEC;
	eh->e_machine = EM_X86_64;
	eh->e_version = 1;
	eh->e_entry = 0x401000;
	eh->e_phoff = sizeof *eh;
	eh->e_ehsize = sizeof *eh;
	eh->e_phentsize = sizeof *ph;
	eh->e_phnum = 2;
	ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 0x1000, .p_vaddr = 0x401000,
			      .p_filesz = sizeof code, .p_memsz = sizeof code, .p_align = 0x1000 };
	ph[1] = (Elf64_Phdr){ .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W };
	memcpy(image + 0x1000, code, sizeof code);
}

static void run(const char *what)
{
	int fd = (int)MUST(open("prog", O_WRONLY | O_CREAT | O_TRUNC, 0755));
	write(fd, image, image_len);
	close(fd);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		execl("./prog", "prog", NULL);
		SAY("%s: %s", what, err_name(errno));
		_exit(0);
	}
	int status = reap(pid);
	if (status)
		say_status(what, status);
	fresh();
}

static void path(const char *p)
{
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		execl(p, "prog", NULL);
		SAY("exec %.40s: %s", p, err_name(errno));
		_exit(0);
	}
	reap(pid);
}

static void elves(void)
{
	fresh();
	run("good");
	image_len = 0;
	run("empty");
	image_len = 4;
	run("magic only");
	image_len = sizeof *eh - 1;
	run("header cut");
	image_len = sizeof *eh + 10;
	run("program headers cut");
	image_len = 0x1000;
	run("code cut off");
	eh->e_ident[0] = 0;
	run("bad magic");
	eh->e_ident[EI_CLASS] = ELFCLASS32;
	run("class 32 in the ident only");
	eh->e_ident[EI_DATA] = ELFDATA2MSB;
	run("big endian in the ident only");
	eh->e_machine = EM_AARCH64;
	run("aarch64");
	eh->e_machine = EM_386;
	run("i386 machine");
	eh->e_type = ET_REL;
	run("relocatable");
	eh->e_type = ET_CORE;
	run("core");
	eh->e_phnum = 0;
	run("no program headers");
	eh->e_phentsize = 10;
	run("bad header size");
	eh->e_phnum = 65535;
	run("65535 headers");
	eh->e_phoff = 1ul << 40;
	run("headers far away");
	eh->e_phoff = (Elf64_Off)-8;
	run("headers at -8");
	eh->e_phnum = 1;
	ph[0].p_type = PT_NOTE;
	run("nothing to load");
	eh->e_entry = 0x500000;
	run("entry outside");
	eh->e_entry = 0;
	run("entry zero");
	eh->e_entry = 0xffffffff81000000;
	run("entry in the kernel");
	ph[0].p_filesz = 0x2000;
	run("filesz above memsz");
	ph[0].p_memsz = 1ul << 50;
	run("huge memsz");
	ph[0].p_memsz = (Elf64_Xword)-1;
	run("memsz -1");
	ph[0].p_vaddr = 0xffffffff80000000;
	run("in the kernel");
	ph[0].p_vaddr = 0x7ffffffff000;
	run("at the end of user space");
	ph[0].p_vaddr = 0x401010;
	run("misaligned to its offset");
	ph[0].p_offset = 1ul << 62;
	run("offset far away");
	ph[0].p_vaddr = 0;
	eh->e_entry = 0;
	run("at address zero");
	/* overlapping: the later one wins */
	ph[1] = ph[0];
	ph[1].p_offset = 0;
	ph[1].p_filesz = ph[1].p_memsz = 0x100;
	run("overlapping");
	ph[1] = ph[0];
	run("the same twice");
	ph[0].p_flags = PF_R;
	run("not executable segment");
	ph[0].p_flags = PF_R | PF_W | PF_X;
	run("writable and executable segment");
	/* interpreters */
	ph[1] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = 0x200, .p_filesz = 12, .p_flags = PF_R };
	strcpy((char *)image + 0x200, "/no/such/ld");
	run("interpreter missing");
	ph[1] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = 0x200, .p_filesz = 5 };
	memcpy(image + 0x200, "/tmpx", 5);
	run("interpreter not terminated");
	ph[1] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = 0x200, .p_filesz = 1 };
	run("interpreter too short");
	ph[1] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = 0x200, .p_filesz = 5000 };
	run("interpreter too long");
	ph[1] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = 0x200, .p_filesz = 7 };
	strcpy((char *)image + 0x200, "./text");
	run("interpreter no ELF");
	ph[1] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = 0x200, .p_filesz = 5 };
	strcpy((char *)image + 0x200, "/tmp");
	run("interpreter a folder");
	/* bss, and a bss page of its own */
	ph[0].p_flags = PF_R | PF_W | PF_X;
	ph[0].p_memsz = 0x3000;
	run("bss");
	/* position independent */
	eh->e_type = ET_DYN;
	eh->e_entry = 0x1000;
	ph[0].p_vaddr = 0x1000;
	run("position independent");
}

int main(void)
{
	scratch();
	write_file("text", "no program\n");
	chmod("text", 0755);
	elves();
	path("/no/such/file");
	path("");
	path("/");
	path("text/x");
	path("./text");
	MUST(symlink("loop", "loop"));
	path("./loop");
	char longname[300];
	memset(longname, 'n', 299);
	longname[299] = 0;
	path(longname);
	MUST(mkfifo("fifo", 0755));
	path("./fifo");
	path("/dev/null");
	fresh();
	run("good again");
	chmod("prog", 0644);
	path("./prog");
	chmod("prog", 0755);
	int fd = (int)MUST(open("prog", O_RDWR));
	path("./prog");
	close(fd);
	/* a running program cannot be written */
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		memcpy(image + 0x1000, "\xeb\xfe", 2);	/* jmp . */
		fd = (int)MUST(open("busy", O_WRONLY | O_CREAT, 0755));
		write(fd, image, image_len);
		close(fd);
		execl("./busy", "busy", NULL);
		_exit(127);
	}
	char exe[300] = "", link[64];
	snprintf(link, sizeof link, "/proc/%d/exe", pid);
	for (int i = 0; i < LONG_MS / 5 && !strstr(exe, "busy"); i++, sleep_ms(5))
		readlink(link, exe, sizeof exe - 1);
	T(open("busy", O_WRONLY));
	T(open("busy", O_RDWR | O_TRUNC));
	T(truncate("busy", 0));
	T(close(open("busy", O_RDONLY)));
	T(unlink("busy"));
	kill(pid, SIGKILL);
	say_status("busy", reap(pid));
	CHILD("noexec for others") {
		chmod("prog", 0700);
		MUST(setuid(1000));
		path("./prog");
	} END;
	CHILD("no search permission") {
		mkdir("d", 0700);
		write_file("d/x", "");
		MUST(setuid(1000));
		path("d/x");
	} END;
	return 0;
}
