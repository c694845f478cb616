/*
 * A file that gets and loses names in two directories at once: none of them is lost or counted twice.
 */
#include "check.h"

enum { ROUNDS = 3000 };

int main(void)
{
	struct stat st;
	MUST(mkdir("link_races", 0755));
	MUST(mkdir("link_races/a", 0755));
	MUST(mkdir("link_races/b", 0755));
	MUST(close((int)MUST(open("link_races/file", O_WRONLY | O_CREAT, 0644))));
	for (int who = 0; who < 2; who++)
		if (fork() == 0) {
			const char *name = who ? "link_races/a/name" : "link_races/b/name";
			for (int i = 0; i < ROUNDS; i++)
				if (link("link_races/file", name) != 0 || unlink(name) != 0)
					_exit(1);
			_exit(0);
		}
	for (int who = 0, status; who < 2; who++) {
		MUST(wait(&status));
		IS(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	MUST(stat("link_races/file", &st));
	SAY("%lu names", (unsigned long)st.st_nlink);
	T(unlink("link_races/file"));
	T(rmdir("link_races/a"));
	T(rmdir("link_races/b"));
	T(rmdir("link_races"));
	return 0;
}
