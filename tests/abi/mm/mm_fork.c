/*
 * fork and memory: private pages are copied on write in both directions and over several generations,
 * shared ones are seen by all, protections and holes are inherited, file pages too.
 */
#include "check.h"

int main(void)
{
	scratch();
	char *p = pages(64), *s;
	s = (char *)MUST(mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	static int data = 1;
	int stack = 1;
	for (int i = 0; i < 64; i++)
		p[i * PAGE] = 1;
	CHILD("child") {
		int sum = 0;
		for (int i = 0; i < 64; i++) {
			sum += p[i * PAGE];
			p[i * PAGE] = 2;
		}
		data = stack = 2;
		s[0] = 's';
		SAY("child saw %d", sum);
		CHILD("grandchild") {
			int sum = 0;
			for (int i = 0; i < 64; i++)
				sum += p[i * PAGE];
			p[0] = 3;
			s[1] = 't';
			SAY("grandchild saw %d data %d stack %d", sum, data, stack);
		} END;
		SAY("child has %d", p[0]);
	} END;
	int sum = 0;
	for (int i = 0; i < 64; i++)
		sum += p[i * PAGE];
	SAY("parent has %d data %d stack %d shared %c%c", sum, data, stack, s[0], s[1]);
	/* the parent writes while a child still reads the old page */
	int go[2], done[2];
	char c;
	MUST(pipe(go));
	MUST(pipe(done));
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		read(go[0], &c, 1);
		SAY("child still reads %d", p[5 * PAGE]);
		_exit(p[6 * PAGE]);
	}
	p[5 * PAGE] = 50;
	memset(p + 6 * PAGE, 60, PAGE);
	write(go[1], "g", 1);
	say_status("child's page 6", reap(pid));
	SAY("parent reads %d %d", p[5 * PAGE], p[6 * PAGE]);
	/* the kernel's own writes copy as well */
	write_file("f", "kernel wrote");
	int fd = (int)MUST(open("f", O_RDWR));
	CHILD("child reads into a shared page") {
		T(read(fd, p + 7 * PAGE, 12));
		SAY("child: %.12s", p + 7 * PAGE);
	} END;
	SAY("parent: %d", p[7 * PAGE]);
	/* private and shared file pages */
	char *fp = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	char *fs = (char *)MUST(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	fp[0] = 'P';
	CHILD("child with file pages") {
		SAY("child: %.6s %.6s", fp, fs);
		fp[1] = 'Q';
		fs[2] = 'S';
	} END;
	SAY("parent: %.6s %.6s file %.6s", fp, fs, read_file("f"));
	/* a read-only page made writable after the fork is still private */
	char *r = pages(1);
	r[0] = 'r';
	mprotect(r, PAGE, PROT_READ);
	CHILD("child unprotects") {
		T(mprotect(r, PAGE, PROT_READ | PROT_WRITE));
		r[0] = 'w';
	} END;
	SAY("parent: %c", r[0]);
	/* many children at once */
	pid_t kids[20];
	for (int i = 0; i < 20; i++) {
		kids[i] = (pid_t)MUST(fork());
		if (kids[i] == 0) {
			for (int k = 0; k < 64; k++)
				p[k * PAGE] = (char)i;
			int ok = 1;
			for (int k = 0; k < 64; k++)
				ok &= p[k * PAGE] == i;
			_exit(ok ? i : 99);
		}
	}
	int right = 0;
	for (int i = 0; i < 20; i++)
		right += WEXITSTATUS(reap(kids[i])) == i;
	SAY("children right: %d", right);
	return 0;
}
