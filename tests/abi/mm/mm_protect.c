/*
 * mprotect and faults: what each protection allows, and the signal, si_code and si_addr of each fault
 * (SEGV_MAPERR, SEGV_ACCERR, BUS_ADRERR, and the general-protection cases with address 0).
 */
#include "check.h"
#include <setjmp.h>

static sigjmp_buf out;
static siginfo_t seen;
static volatile int sig;

static void on_fault(int s, siginfo_t *info, void *context)
{
	sig = s;
	seen = *info;
	siglongjmp(out, 1);
}

static const char *code_name(int s, int code)
{
	static char text[16];
	if (code == SI_KERNEL)
		return "SI_KERNEL";
	if (s == SIGSEGV && code == SEGV_MAPERR)
		return "MAPERR";
	if (s == SIGSEGV && code == SEGV_ACCERR)
		return "ACCERR";
	if (s == SIGBUS && code == BUS_ADRERR)
		return "ADRERR";
	snprintf(text, sizeof text, "%d", code);
	return text;
}

/* Runs an access and prints the fault; the address is printed relative to `base`. */
#define FAULT(base, access) do { \
	sig = 0; \
	if (sigsetjmp(out, 1) == 0) { access; } \
	if (!sig) SAY("%s: no fault", #access); \
	else SAY("%s: %s %s at %+ld", #access, sig_name(sig), code_name(sig, seen.si_code), \
		 (long)((char *)seen.si_addr - (char *)(base))); \
} while (0)

#define READ(p) ((void)*(volatile char *)(p))
#define WRITE(p) (*(volatile char *)(p) = 1)
#define CALL(p) (((void (*)(void))(p))())

static void protections(void)
{
	static const struct { int prot; const char *name; } all[] = {
		{ PROT_NONE, "none" }, { PROT_READ, "r" }, { PROT_WRITE, "w" }, { PROT_EXEC, "x" },
		{ PROT_READ | PROT_WRITE, "rw" }, { PROT_READ | PROT_EXEC, "rx" },
		{ PROT_READ | PROT_WRITE | PROT_EXEC, "rwx" },
	};
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
		char *p = pages(1);
		p[16] = (char)0xc3;	/* ret */
		SAY("-- %s", all[i].name);
		T(mprotect(p, PAGE, all[i].prot));
		if (all[i].prot != PROT_EXEC) {	/* where Linux uses protection keys, if there are any */
			FAULT(p, READ(p + 3));
			FAULT(p, WRITE(p + 4095));
		}
		FAULT(p, CALL(p + 16));
		munmap(p, PAGE);
	}
}

static void places(void)
{
	char *p = pages(4);
	SAY("-- places");
	MUST(munmap(p + PAGE, PAGE));
	FAULT(p, READ(p + PAGE + 7));
	FAULT(p, WRITE(p + PAGE));
	FAULT(p, CALL(p + PAGE + 1));
	FAULT(p, READ(p + 2 * PAGE));
	FAULT(NULL, READ(NULL));
	FAULT(NULL, WRITE((char *)8));
	FAULT(NULL, CALL(NULL));
	FAULT(KERNEL_ADDRESS, READ(KERNEL_ADDRESS));
	FAULT(KERNEL_ADDRESS, WRITE(KERNEL_ADDRESS));
	FAULT(KERNEL_ADDRESS, CALL(KERNEL_ADDRESS));
	FAULT(0, READ(NON_CANONICAL));
	FAULT(0, WRITE(NON_CANONICAL));
	FAULT(0x7ffffffff000, READ(0x7ffffffff000));
	FAULT(0xffff888000000000, READ(0xffff888000000000));
	FAULT(0xffffffffffffffff, READ(0xffffffffffffffff));
	/* an access over a page border reports the page that faults */
	FAULT(p, (void)*(volatile long *)(p + PAGE - 4));
}

static void files(void)
{
	SAY("-- files");
	int fd = (int)MUST(open("f", O_RDWR | O_CREAT, 0644));
	MUST(ftruncate(fd, PAGE + 100));
	char *p = (char *)MUST(mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	char *q = (char *)MUST(mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	FAULT(p, READ(p + PAGE + 4000));
	FAULT(p, READ(p + 2 * PAGE));
	FAULT(p, WRITE(p + 3 * PAGE + 5));
	FAULT(q, READ(q + 2 * PAGE));
	FAULT(q, WRITE(q + 2 * PAGE));
	q[0] = 'p';
	MUST(ftruncate(fd, 0));
	FAULT(p, READ(p));
	FAULT(q, READ(q));
	MUST(ftruncate(fd, 3 * PAGE));
	FAULT(p, READ(p + 2 * PAGE));
	char *ro = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, open("f", O_RDONLY), 0));
	FAULT(ro, WRITE(ro + 1));
	T(mprotect(ro, PAGE, PROT_READ | PROT_WRITE));
	char *priv = (char *)MUST(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, open("f", O_RDONLY), 0));
	T(mprotect(priv, PAGE, PROT_READ | PROT_WRITE));
	FAULT(priv, WRITE(priv + 1));
	close(fd);
}

static void rules(void)
{
	SAY("-- mprotect");
	char *p = pages(4);
	T(mprotect(p + 1, PAGE, PROT_READ));
	T(mprotect(p, 0, PROT_READ));
	T(mprotect(p, 1, PROT_READ));
	FAULT(p, WRITE(p + 4095));
	T(mprotect(p, PAGE, 0x80));
	T(mprotect(p, PAGE, PROT_READ | PROT_GROWSDOWN));
	T(mprotect(p, PAGE, PROT_READ | PROT_GROWSDOWN | PROT_GROWSUP));
	T(mprotect(p, (size_t)-4096, PROT_READ));
	MUST(munmap(p + 2 * PAGE, PAGE));
	T(mprotect(p, 4 * PAGE, PROT_READ));
	/* what came before the hole has changed all the same */
	FAULT(p, WRITE(p + PAGE));
	FAULT(p, WRITE(p + 3 * PAGE));
	T(mprotect((void *)0x10000, PAGE, PROT_READ));
	T(mprotect(KERNEL_ADDRESS, PAGE, PROT_READ));
	/* data survives protection changes */
	char *q = pages(1);
	strcpy(q, "kept");
	mprotect(q, PAGE, PROT_NONE);
	mprotect(q, PAGE, PROT_READ | PROT_WRITE);
	SAY("%s", q);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	scratch();
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	protections();
	places();
	files();
	rules();
	return 0;
}
