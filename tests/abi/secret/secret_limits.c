/* memfd_secret: what a mapping is refused for comes before the limit of locked memory, and a limit of 0 is as any other. */
#include "check.h"
#include <sys/resource.h>

#define MAP(prot, flags) ((long)mmap(NULL, 8 * PAGE, prot, flags, fd, 0) == -1 ? -1 : 0)

int main(void)
{
	setbuf(stdout, NULL);
	for (rlim_t most = 0; most <= 2; most += 2) {
		SAY("limit: %d pages", (int)most);
		CHILD("child") {
			struct rlimit limit = { most * PAGE, most * PAGE };
			int fd = (int)MUST(syscall(447, 0));
			MUST(ftruncate(fd, 8 * PAGE));
			MUST(setrlimit(RLIMIT_MEMLOCK, &limit));
			MUST(setresuid(1000, 1000, 1000));
			T(MAP(PROT_READ, MAP_PRIVATE));
			T(MAP(PROT_READ | PROT_EXEC, MAP_SHARED));
			T(MAP(PROT_READ, MAP_SHARED));
			T(MAP(PROT_READ, MAP_SHARED | MAP_LOCKED));
		} END;
	}
	return 0;
}
