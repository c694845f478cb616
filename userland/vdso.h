/*
 * vdso.h: finding the vDSO's functions by name, for the programs that call them.
 */
#ifndef ALEA_VDSO_H
#define ALEA_VDSO_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* __vdso_getrandom; asked with a length of ~0UL and no buffer it fills in the parameters of its states. */
typedef long vgetrandom_fn(void *buffer, size_t len, unsigned flags, void *state, size_t size);
struct vgetrandom_params {
	uint32_t size, prot, flags, reserved[13];
};

/* The address of a function of the vDSO; NULL without it. */
static void *vdso_symbol(const char *name)
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

#endif
