/*
 * #! scripts: the interpreter's argv, one optional argument with its inner spaces, blanks trimmed, scripts
 * as interpreters (up to five levels, then ELOOP), missing and bad interpreters, long lines, and scripts
 * on a close-on-exec descriptor.
 */
#include "check.h"

static char self[64];

static void script(const char *name, const char *text)
{
	char all[1024];
	int n = snprintf(all, sizeof all, text, self);
	int fd = (int)MUST(open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755));
	write(fd, all, (size_t)n);
	close(fd);
}

static void run(const char *path, const char *a)
{
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		execl(path, "argv0", a, NULL);
		SAY("%s: %s", path, err_name(errno));
		_exit(0);
	}
	int status = reap(pid);
	if (status)
		say_status(path, status);
}

int main(int argc, char **argv)
{
	if (getenv("ABI_SELF")) {	/* as the interpreter */
		for (int i = 1; i < argc; i++)
			printf("[%s]", argv[i]);
		putchar('\n');
		return 0;
	}
	scratch();
	/* a copy of this program in the scratch folder, so that paths are short and known */
	int in = (int)MUST(open("/proc/self/exe", O_RDONLY)), out = (int)MUST(open("me", O_WRONLY | O_CREAT, 0755));
	char block[65536];
	ssize_t n;
	while ((n = read(in, block, sizeof block)) > 0)
		write(out, block, (size_t)n);
	close(in);
	close(out);
	strcpy(self, "./me");
	setenv("ABI_SELF", "1", 1);
	script("plain", "#!%s\n");
	run("./plain", "x");
	script("arg", "#!%s one two\n");
	run("./arg", "x");
	script("blanks", "#! \t %s  \t one  two \t \n");
	run("./blanks", "x");
	script("nonl", "#!%s end");
	run("./nonl", "x");
	script("empty", "#!\n");
	run("./empty", "x");
	script("spaces", "#!   \n");
	run("./spaces", "x");
	script("bang", "#!");
	run("./bang", "x");
	script("none", "#!/no/such/interpreter\n");
	run("./none", "x");
	script("dirint", "#!/tmp\n");
	run("./dirint", "x");
	write_file("noexec", "x");
	script("noexecint", "#!./noexec\n");
	run("./noexecint", "x");
	script("crlf", "#!%s\r\n");
	run("./crlf", "x");
	script("text", "echo hello\n");
	run("./text", "x");
	script("zero", "");
	run("./zero", "x");
	/* nested */
	script("s1", "#!%s s1arg\n");
	for (int i = 2; i <= 7; i++) {
		char name[8], text[32];
		snprintf(name, sizeof name, "s%d", i);
		snprintf(text, sizeof text, "#!./s%d a%d\n", i - 1, i);
		script(name, text);
	}
	for (int i = 1; i <= 7; i++) {
		char name[8];
		snprintf(name, sizeof name, "./s%d", i);
		run(name, "x");
	}
	script("loop", "#!./loop\n");
	run("./loop", "x");
	/* the first 255 bytes count: a cut argument is taken, a cut interpreter is refused */
	char text[600] = "#!./me ";
	memset(text + 7, 'y', 400);
	strcpy(text + 407, "\n");
	script("longarg", text);
	run("./longarg", "x");
	memset(text, 0, sizeof text);
	memset(text, '/', 400);
	memcpy(text, "#!", 2);
	strcpy(text + 400, "bin/true\n");
	script("longint", text);
	run("./longint", "x");
	/* permissions */
	script("mode", "#!%s\n");
	chmod("mode", 0644);
	run("./mode", "x");
	chmod("mode", 0111);
	run("./mode", "x");
	CHILD("as uid 1000") {
		MUST(setuid(1000));
		run("./mode", "x");
		run("./plain", "x");
	} END;
	/* by descriptor */
	int fd = (int)MUST(open("plain", O_RDONLY));
	CHILD("fexecve") {
		char *av[] = { "argv0", "x", NULL };
		char *ev[] = { "ABI_SELF=1", NULL };
		T(syscall(SYS_execveat, fd, "", av, ev, AT_EMPTY_PATH));
	} END;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	CHILD("fexecve, close-on-exec") {
		char *av[] = { "argv0", "x", NULL };
		char *ev[] = { "ABI_SELF=1", NULL };
		T(syscall(SYS_execveat, fd, "", av, ev, AT_EMPTY_PATH));
	} END;
	return 0;
}
