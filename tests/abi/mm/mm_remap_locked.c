/*
 * mremap with MREMAP_DONTUNMAP of memory that is locked, and of memory that grows down: what is mapped at the old place is locked
 * no more, and all else of the mapping's flags is kept at both places.
 */
#include "check.h"

/* Prints which of three flags the mapping that begins at `at` has. */
static void flags_at(const char *name, const void *at)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long start;
	int there = 0;
	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "%lx-%*x", &start) == 1 && strchr(line, '-') && !strchr(line, ':'))
			there = start == (unsigned long)at;
		else if (sscanf(line, "%lx-", &start) == 1 && strchr(line, '-') == line + strspn(line, "0123456789abcdef"))
			there = start == (unsigned long)at;
		if (there && !strncmp(line, "VmFlags:", 8))
			SAY("%s: locked %d, grows down %d, private %d", name, strstr(line, " lo") != NULL, strstr(line, " gd") != NULL,
			    strstr(line, " sh") == NULL);
	}
	if (file)
		fclose(file);
}

static void locked(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib;
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "VmLck: %ld", &kib) == 1)
			SAY("locked: %ld KiB", kib);
	if (file)
		fclose(file);
}

int main(void)
{
	char *at = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(at == MAP_FAILED ? -1 : 0);
	at += 2 * PAGE;
	MUST(munmap(at - 2 * PAGE, 2 * PAGE));
	MUST(munmap(at + 4 * PAGE, 2 * PAGE));
	MUST(mlock(at, 4 * PAGE));
	locked();
	memset(at, 7, 4 * PAGE);
	char *twin = mremap(at, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	MUST(twin == MAP_FAILED ? -1 : 0);
	IS(twin[3 * PAGE] == 7 && at[3 * PAGE] == 0);
	flags_at("old", at);
	flags_at("new", twin);
	locked();
	T(munlock(twin, 4 * PAGE));
	locked();
	T(munmap(at, 4 * PAGE));
	T(munmap(twin, 4 * PAGE));
	locked();
	at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	MUST(at == MAP_FAILED ? -1 : 0);
	twin = mremap(at, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	MUST(twin == MAP_FAILED ? -1 : 0);
	flags_at("old", at);
	flags_at("new", twin);
	return 0;
}
