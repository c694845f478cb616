/*
 * Where a program's mappings go: from the top down, or with personality ADDR_COMPAT_LAYOUT or vm.legacy_va_layout from a third of
 * user space up, and then not below.
 */
#include "check.h"
#include <sys/personality.h>
#include <sys/resource.h>

#define MIB (1L << 20)
#define TIB (1L << 40)
#define USER_END ((1L << 47) - PAGE)

static void *any(long len)
{
	return mmap(NULL, (size_t)len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static const char *where(const void *at)
{
	long place = (long)at, third = USER_END / 3;
	if (place >= third && place < third + 2 * TIB)
		return "at a third";
	return place > USER_END - 40 * TIB ? "at the top" : "elsewhere";
}

static void say_places(void)
{
	char *a = (char *)MUST(any(16 * PAGE)), *b = (char *)MUST(any(16 * PAGE)), *c = (char *)MUST(any(16 * PAGE));
	SAY("  %s, then %s", where(a), b > a && c > b ? "up" : b < a && c < b ? "down" : "anywhere");
	MUST(munmap(b, 16 * PAGE));
	IS(any(16 * PAGE) == b);
	MUST(munmap(a, 16 * PAGE));
	char *grown = (char *)MUST(mremap(c, 16 * PAGE, 64 * PAGE, MREMAP_MAYMOVE));
	SAY("  grown %s", where(grown));
	void *wide = any(90 * TIB);
	SAY("  90 TiB: %s", wide == MAP_FAILED ? err_name(errno) : "mapped");
	if (wide != MAP_FAILED)
		munmap(wide, 90 * TIB);
	char *hinted = (char *)mmap((void *)(4 * TIB), PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	IS(hinted == (char *)(4 * TIB));
	char *low = (char *)mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	IS(low < (char *)(1L << 31));
	int local;
	IS((long)&local > USER_END - TIB);
}

static void run(const char *name, int persona)
{
	CHILD(name) {
		MUST(personality((unsigned long)persona));
		execl("/proc/self/exe", "exec_layout", "report", NULL);
	} END;
}

static void both(void)
{
	run("as it is", 0);
	run("ADDR_COMPAT_LAYOUT", ADDR_COMPAT_LAYOUT);
	run("not random", ADDR_NO_RANDOMIZE);
	run("neither", ADDR_COMPAT_LAYOUT | ADDR_NO_RANDOMIZE);
}

static void fixed(void)
{
	CHILD("the address without randomness") {
		MUST(personality(ADDR_COMPAT_LAYOUT | ADDR_NO_RANDOMIZE));
		execl("/proc/self/exe", "exec_layout", "address", NULL);
	} END;
	/* Below the 128 MiB that a small stack leaves; no room for a stack that moves is needed. */
	static const long stacks[] = { 8 * MIB, 64 * MIB, 512 * MIB, 8192 * MIB };
	for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
		CHILD("a stack") {
			struct rlimit limit;
			MUST(getrlimit(RLIMIT_STACK, &limit));
			limit.rlim_cur = (rlim_t)stacks[i];
			MUST(setrlimit(RLIMIT_STACK, &limit));
			MUST(personality(ADDR_NO_RANDOMIZE));
			execl("/proc/self/exe", "exec_layout", "top", NULL);
		} END;
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		if (strcmp(argv[1], "address") == 0)
			SAY("  within a MiB of the third: %s", (long)any(PAGE) - USER_END / 3 < MIB ? "yes" : "no");
		else if (strcmp(argv[1], "top") == 0)
			SAY("  MiB from the end of user space: %ld", (USER_END - (long)any(PAGE)) / MIB);
		else
			say_places();
		return 0;
	}
	both();
	fixed();
	T(put_setting("vm/legacy_va_layout", "1"));
	printf("%s", get_setting("vm/legacy_va_layout"));
	both();
	CHILD("only from the next program on") {
		T(put_setting("vm/legacy_va_layout", "0"));
		say_places();
	} END;
	T(put_setting("vm/legacy_va_layout", "-1"));
	T(put_setting("vm/legacy_va_layout", "2147483648"));
	T(put_setting("vm/legacy_va_layout", "0"));
	both();
	return 0;
}
