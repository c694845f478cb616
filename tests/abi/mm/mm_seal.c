/*
 * Seals of memfds: what is sealed against writing can be mapped for reading only, and never made writable
 * again by mprotect; F_SEAL_FUTURE_WRITE leaves the mappings that are there; MADV_REMOVE is a write like any
 * other; F_SEAL_EXEC keeps the execute bits as they are. Rights that the open mode and the mount give a
 * mapping: a shared one of a file opened for reading stays read-only, one on a noexec mount not executable.
 */
#include "check.h"
#include <sys/mount.h>

#ifndef MFD_EXEC
#define MFD_NOEXEC_SEAL 8U
#define MFD_EXEC 16U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif
#define RW (PROT_READ | PROT_WRITE)

static int sealed(int seals)
{
	int fd = (int)MUST(memfd_create("sealed", MFD_ALLOW_SEALING));
	MUST(ftruncate(fd, 2 * PAGE));
	MUST(pwrite(fd, "orig", 4, 0));
	MUST(pwrite(fd, "second", 6, PAGE));
	if (seals)
		MUST(fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static void *map(int fd, int prot, int flags)
{
	return mmap(NULL, 2 * PAGE, prot, flags, fd, 0);
}

static int reopen(int fd, int flags)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, flags);
}

static void write_sealed(int seal)
{
	int fd = sealed(seal);
	SAY("-- seal %#x", fcntl(fd, F_GET_SEALS));
	OK(map(fd, RW, MAP_SHARED));
	OK(map(fd, PROT_WRITE, MAP_SHARED));
	OK(map(fd, RW | PROT_EXEC, MAP_SHARED));
	OK(map(fd, RW, MAP_SHARED_VALIDATE));
	char *s = (char *)OK(map(fd, PROT_READ, MAP_SHARED));
	OK(mprotect(s, PAGE, PROT_READ | PROT_EXEC));
	OK(mprotect(s, PAGE, RW));
	OK(mprotect(s, 2 * PAGE, PROT_WRITE));
	OK(mprotect(s, PAGE, PROT_NONE));
	OK(mprotect(s, PAGE, RW));
	OK(mprotect(s, PAGE, PROT_READ));
	OK(madvise(s, PAGE, MADV_REMOVE));
	OK(madvise(s, PAGE, MADV_POPULATE_READ));
	OK(madvise(s, PAGE, MADV_POPULATE_WRITE));
	char *none = (char *)OK(map(fd, PROT_NONE, MAP_SHARED));
	OK(mprotect(none, PAGE, PROT_WRITE));
	char *p = (char *)OK(map(fd, RW, MAP_PRIVATE));
	memcpy(p, "priv", 4);
	SAY("private %.4s, file %.4s", p, s);
	T(pwrite(fd, "EVIL", 4, 0));
	T(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	T(fallocate(fd, 0, 0, PAGE));
	T(fallocate(fd, 0, 0, 4 * PAGE));
	T(ftruncate(fd, PAGE));
	T(ftruncate(fd, 3 * PAGE));
	int ro = (int)MUST(reopen(fd, O_RDONLY)), wo = (int)MUST(reopen(fd, O_RDWR));
	OK(map(ro, RW, MAP_SHARED));
	OK(map(wo, RW, MAP_SHARED));
	char *r = (char *)OK(map(ro, PROT_READ, MAP_SHARED));
	OK(mprotect(r, PAGE, RW));
	OK(madvise(r, PAGE, MADV_REMOVE));
	SAY("file %.4s", s);
	OK(munmap(s, 2 * PAGE));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
	T(fcntl(fd, F_GET_SEALS));
	CHILD("child") {
		OK(map(fd, RW, MAP_SHARED));
		OK(mprotect(none, PAGE, RW));
	} END;
	close(ro);
	close(wo);
	close(fd);
}

/* What is mapped decides whether it can be sealed. */
static void seal_mapped(void)
{
	int fd = sealed(0), ro = (int)MUST(reopen(fd, O_RDONLY));
	SAY("-- mapped first");
	char *w = (char *)OK(map(fd, RW, MAP_SHARED));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	T(fcntl(fd, F_GET_SEALS));
	OK(mprotect(w, 2 * PAGE, PROT_READ));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	OK(munmap(w, PAGE));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	OK(munmap(w + PAGE, PAGE));
	char *r = (char *)OK(map(ro, PROT_READ, MAP_SHARED));
	char *p = (char *)OK(map(fd, RW, MAP_PRIVATE));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	OK(mprotect(r, PAGE, RW));
	p[0] = 'P';
	SAY("%.4s %.4s", r, p);
	T(fcntl(ro, F_ADD_SEALS, F_SEAL_GROW));
	T(fcntl(ro, F_ADD_SEALS, 0x1000));
	T(fcntl(fd, F_ADD_SEALS, 0x1000));
	T(syscall(SYS_fcntl, fd, F_ADD_SEALS, 0x100000000 | F_SEAL_GROW));
	T(fcntl(fd, F_ADD_SEALS, 0));
	T(fcntl(fd, F_GET_SEALS));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	T(fcntl(fd, F_ADD_SEALS, 0));

	/* future writes only: what is mapped stays as it is */
	int f = sealed(0);
	w = (char *)OK(map(f, RW, MAP_SHARED));
	r = (char *)OK(map(f, PROT_READ, MAP_SHARED));
	T(fcntl(f, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	w[0] = 'W';
	OK(mprotect(r, PAGE, RW));
	OK(map(f, RW, MAP_SHARED));
	OK(madvise(w, PAGE, MADV_REMOVE));
	T(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE));
	char *copy = (char *)OK(mremap(w, 0, 2 * PAGE, MREMAP_MAYMOVE));
	copy[1] = 'C';
	SAY("%.4s", w);
	CHILD("child") {
		w[2] = 'F';
		OK(map(f, RW, MAP_SHARED));
	} END;
	SAY("%.4s", r);
}

static void sizes(void)
{
	SAY("-- size");
	char block[3 * PAGE];
	memset(block, 'b', sizeof block);
	int fd = sealed(F_SEAL_GROW);
	T(pwrite(fd, block, 100, 2 * PAGE - 50));
	T(pwrite(fd, block, sizeof block, 0));
	T(pwrite(fd, block, 2 * PAGE, 0));
	T(pwrite(fd, block, 1, 2 * PAGE));
	T(ftruncate(fd, 3 * PAGE));
	T(fallocate(fd, 0, 0, 3 * PAGE));
	T(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 3 * PAGE));
	T(ftruncate(fd, PAGE));
	T(ftruncate(fd, 2 * PAGE));
	close(fd);
	fd = sealed(F_SEAL_SHRINK);
	T(ftruncate(fd, PAGE));
	OK(reopen(fd, O_RDWR | O_TRUNC));
	T(ftruncate(fd, 3 * PAGE));
	T(ftruncate(fd, 3 * PAGE));
	close(fd);
}

static unsigned mode_of(int fd)
{
	struct stat st;
	MUST(fstat(fd, &st));
	return st.st_mode & 07777;
}

static void exec_seal(void)
{
	SAY("-- exec");
	int fd = (int)MUST(memfd_create("n", MFD_NOEXEC_SEAL));
	SAY("%o", mode_of(fd));
	T(fcntl(fd, F_GET_SEALS));
	T(fchmod(fd, 0777));
	T(fchmod(fd, 0644));
	T(fchmod(fd, 0100));
	T(fchmod(fd, 01600));
	SAY("%o", mode_of(fd));
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	T(chmod(path, 0700));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC | F_SEAL_GROW));
	T(fcntl(fd, F_GET_SEALS));
	T(pwrite(fd, "x", 1, 0));
	close(fd);
	fd = (int)MUST(memfd_create("e", MFD_EXEC));
	SAY("%o", mode_of(fd));
	T(fcntl(fd, F_GET_SEALS));
	T(fchmod(fd, 0600));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC));
	close(fd);
	/* sealing the bits of an executable one makes its contents final too, mapped or not */
	fd = sealed(0);
	char *w = (char *)OK(map(fd, RW, MAP_SHARED));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC));
	T(fcntl(fd, F_GET_SEALS));
	w[0] = 'W';
	T(fchmod(fd, 0666));
	T(fchmod(fd, 0711));
	T(fchmod(fd, 05777));
	T(pwrite(fd, "x", 1, 0));
	T(ftruncate(fd, 0));
	OK(map(fd, RW, MAP_SHARED));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	OK(munmap(w, 2 * PAGE));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	close(fd);
	fd = sealed(0);
	MUST(fchmod(fd, 0600));
	T(fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC));
	T(fcntl(fd, F_GET_SEALS));
	T(pwrite(fd, "x", 1, 0));
	close(fd);
	T(memfd_create("b", MFD_EXEC | MFD_NOEXEC_SEAL));
}

/* MADV_REMOVE is fallocate: it asks the file, and it counts as a change. */
static void removes(void)
{
	SAY("-- remove");
	write_file("f", "content of f");
	int fd = (int)MUST(open("f", O_RDWR)), ro = (int)MUST(open("f", O_RDONLY));
	struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	struct stat st;
	MUST(futimens(fd, old));
	char *w = (char *)MUST(mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0));
	char *r = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
	char *o = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ro, 0));
	char *p = (char *)MUST(mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0));
	OK(madvise(o, PAGE, MADV_REMOVE));
	OK(madvise(p, PAGE, MADV_REMOVE));
	fstat(fd, &st);
	SAY("%s, mtime %ld", w, (long)st.st_mtime);
	OK(madvise(r, PAGE, MADV_REMOVE));
	fstat(fd, &st);
	SAY("[%s] size %ld, blocks %ld", w, (long)st.st_size, (long)st.st_blocks);
	IS(st.st_mtime > 1000);
	MUST(futimens(fd, old));
	OK(madvise(w, PAGE, MADV_REMOVE));
	fstat(fd, &st);
	IS(st.st_mtime > 1000);
	char *a = (char *)MUST(mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	a[0] = 'a';
	OK(madvise(a, PAGE, MADV_REMOVE));
	SAY("%d", a[0]);
	char *q = (char *)MUST(mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	OK(madvise(q, PAGE, MADV_REMOVE));
	MUST(mlock(w, PAGE));
	OK(madvise(w, PAGE, MADV_REMOVE));
	close(fd);
	close(ro);
}

static void modes(void)
{
	SAY("-- mode and mount");
	int zr = (int)MUST(open("/dev/zero", O_RDONLY)), zw = (int)MUST(open("/dev/zero", O_WRONLY));
	OK(mmap(NULL, PAGE, RW, MAP_SHARED, zr, 0));
	char *z = (char *)OK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, zr, 0));
	OK(mprotect(z, PAGE, RW));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, zw, 0));
	OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, zw, 0));
	z = (char *)OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, zr, 0));
	OK(mprotect(z, PAGE, RW));
	OK(mkdir("m", 0700));
	OK(mount("t", "m", "tmpfs", MS_NOEXEC, ""));
	int fd = (int)MUST(open("m/f", O_RDWR | O_CREAT, 0700));
	MUST(ftruncate(fd, PAGE));
	OK(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
	OK(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
	char *m = (char *)OK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
	OK(mprotect(m, PAGE, PROT_READ | PROT_EXEC));
	m = (char *)OK(mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0));
	OK(mprotect(m, PAGE, PROT_EXEC));
	OK(mprotect(m, PAGE, PROT_READ));
	munmap(m, PAGE);
	close(fd);
}

int main(void)
{
	scratch();
	write_sealed(F_SEAL_WRITE);
	write_sealed(F_SEAL_FUTURE_WRITE);
	seal_mapped();
	sizes();
	exec_seal();
	removes();
	modes();
	return 0;
}
