/*
 * The vDSO's getrandom: parameters, bytes that differ, fork safety, wrong lengths and flags falling back to the system call,
 * and flags refused as the system call refuses them. Prints one line and stops when there is no vDSO function.
 */
#include "check.h"
#include <elf.h>
#include <sys/auxv.h>

typedef long vfn(void *, size_t, unsigned, void *, size_t);
struct params { uint32_t size, prot, flags, reserved[13]; };

static void *find(const char *name)
{
	uintptr_t base = getauxval(AT_SYSINFO_EHDR);
	if (!base)
		return NULL;
	const Elf64_Ehdr *eh = (void *)base;
	const Elf64_Phdr *ph = (void *)(base + eh->e_phoff);
	const Elf64_Dyn *dyn = NULL;
	uintptr_t bias = base;
	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD)
			bias = base + ph[i].p_offset - ph[i].p_vaddr;
		else if (ph[i].p_type == PT_DYNAMIC)
			dyn = (void *)(base + ph[i].p_offset);
	}
	const Elf64_Sym *sym = NULL;
	const char *str = NULL;
	for (; dyn && dyn->d_tag; dyn++) {
		if (dyn->d_tag == DT_SYMTAB)
			sym = (void *)(bias + dyn->d_un.d_ptr);
		if (dyn->d_tag == DT_STRTAB)
			str = (void *)(bias + dyn->d_un.d_ptr);
	}
	/* the string table follows the symbols in every vDSO; stop there at the latest */
	for (; sym && str && (const char *)sym < str; sym++)
		if (sym->st_shndx && strcmp(str + sym->st_name, name) == 0)
			return (void *)(bias + sym->st_value);
	return NULL;
}

static unsigned char a[4096], b[4096];

int main(void)
{
	vfn *get = (vfn *)find("__vdso_getrandom");
	struct params p = { 0 };
	SAY("present %d", get != NULL);
	if (!get)
		return 0;
	SAY("query %ld", get(NULL, 0, 0, &p, ~0ul));
	SAY("prot %#x flags %#x, size sane %d", p.prot, p.flags, p.size >= 96 && p.size <= 4096);
	char *s = mmap(NULL, PAGE, (int)p.prot, (int)p.flags, -1, 0);
	IS(s != MAP_FAILED);
	for (size_t n = 0; n <= 300; n += 37)
		SAY("%zu bytes: %ld", n, get(a, n, 0, s, p.size));
	SAY("flags 1: %ld, 4: %ld, 2: %ld, 8: %ld", get(a, 16, 1, s, p.size), get(a, 16, 4, s, p.size), get(a, 16, 2, s, p.size),
	    get(a, 16, 8, s, p.size));
	SAY("wrong size: %ld", get(a, 16, 0, s, p.size + 1));
	get(a, 4096, 0, s, p.size);
	get(b, 4096, 0, s, p.size);
	IS(memcmp(a, b, 4096) != 0);
	/* 32-byte draws never repeat */
	int same = 0;
	for (int i = 0; i < 2000; i++) {
		memcpy(b, a, 32);
		get(a, 32, 0, s, p.size);
		same += memcmp(a, b, 32) == 0;
	}
	SAY("repeats %d", same);
	/* nor in a child */
	int fds[2];
	MUST(pipe(fds));
	CHILD("child") {
		get(a, 32, 0, s, p.size);
		write(fds[1], a, 32);
	} END;
	get(a, 32, 0, s, p.size);
	read(fds[0], b, 32);
	IS(memcmp(a, b, 32) != 0);
	return 0;
}
