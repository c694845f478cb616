/*
 * Permissions as another user: owner, group and other bits, search permission, sticky folders, set-id bits cleared
 * by write and chown, set-gid folders, chmod and chown rules, access with real ids, umask, saved ids of a set-uid
 * program.
 */
#include "check.h"
#include <grp.h>
#include <sys/statfs.h>

static void become(uid_t uid, gid_t gid)
{
	MUST(setgroups(0, NULL));
	MUST(setresgid(gid, gid, gid));
	MUST(setresuid(uid, uid, uid));
}

static int mode(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

static void copy_self(const char *to, int bits)
{
	static char block[65536];
	int in = (int)MUST(open("/proc/self/exe", O_RDONLY)), out = (int)MUST(open(to, O_WRONLY | O_CREAT, 0755));
	ssize_t n;
	while ((n = read(in, block, sizeof block)) > 0)
		write(out, block, (size_t)n);
	close(in);
	close(out);
	MUST(chmod(to, (mode_t)bits));
}

/* What changes the contents takes set-id bits away; who does it counts, not who opened the file. */
static void set_id_goes(const char *how, int bits, int (*change)(int fd))
{
	MUST(chmod("own", 0777));
	CHILD(how) {
		int opened_by_root = (int)MUST(open("own", O_RDWR));
		MUST(chmod("own", (mode_t)bits));
		become(1000, 1000);
		IS(change(opened_by_root) == 0);
	} END;
	SAY("%s of another: %o to %o", how, bits, mode("own"));
	int opened = (int)MUST(open("own", O_RDWR));
	MUST(chmod("own", (mode_t)bits));
	IS(change(opened) == 0);
	SAY("%s of root: %o to %o", how, bits, mode("own"));
	close(opened);
}

static int by_ftruncate(int fd)
{
	return ftruncate(fd, 100);
}

static int by_same_length(int fd)
{
	struct stat st;
	return fstat(fd, &st) || ftruncate(fd, st.st_size);
}

static int by_truncate(int fd)
{
	(void)fd;
	return truncate("own", 50);
}

static int by_open(int fd)
{
	(void)fd;
	return open("own", O_WRONLY | O_TRUNC) < 0;
}

static int by_write(int fd)
{
	return write(fd, "xyz", 3) != 3;
}

static int by_fallocate(int fd)
{
	return fallocate(fd, 0, 0, 200);
}

static void set_id_bits(void)
{
	/* In the group of the file or not, with execution for the group or not. */
	static const struct { gid_t gid; int bits; } cases[] = {
		{ 1000, 06777 }, { 1000, 06767 }, { 5, 06777 }, { 5, 06767 }, { 5, 02767 }, { 1000, 04666 },
	};
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		MUST(chown("own", 1000, cases[i].gid));
		SAY("group %d", cases[i].gid);
		set_id_goes("write", cases[i].bits, by_write);
		set_id_goes("ftruncate", cases[i].bits, by_ftruncate);
		set_id_goes("ftruncate to the same length", cases[i].bits, by_same_length);
		set_id_goes("truncate", cases[i].bits, by_truncate);
		set_id_goes("O_TRUNC", cases[i].bits, by_open);
		set_id_goes("fallocate", cases[i].bits, by_fallocate);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		uid_t r, e, s;
		gid_t g, h, i;
		getresuid(&r, &e, &s);
		getresgid(&g, &h, &i);
		SAY("uids %d %d %d gids %d %d %d", r, e, s, g, h, i);
		return 0;
	}
	scratch();
	MUST(chmod(".", 0777));
	static const int modes[] = { 0400, 0200, 0100, 0040, 0020, 0010, 0004, 0002, 0001, 0777, 0077, 0707 };
	for (unsigned i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		char name[8];
		snprintf(name, sizeof name, "m%o", modes[i]);
		write_file(name, "");
		MUST(chown(name, 1000, 2000));
		MUST(chmod(name, (mode_t)modes[i]));
	}
	static const struct { uid_t uid; gid_t gid; } who[] = { { 1000, 1 }, { 1, 2000 }, { 1, 1 }, { 0, 0 } };
	for (int w = 0; w < 4; w++) {
		CHILD("matrix") {
			if (w < 3)
				become(who[w].uid, who[w].gid);
			for (unsigned i = 0; i < sizeof modes / sizeof modes[0]; i++) {
				char name[8];
				snprintf(name, sizeof name, "m%o", modes[i]);
				SAY("uid %d gid %d %s: %c%c%c", who[w].uid, who[w].gid, name, access(name, R_OK) ? '-' : 'r',
				    access(name, W_OK) ? '-' : 'w', access(name, X_OK) ? '-' : 'x');
			}
		} END;
	}
	CHILD("supplementary group") {
		gid_t groups[2] = { 7, 2000 };
		MUST(setgroups(2, groups));
		MUST(setresgid(1, 1, 1));
		MUST(setresuid(1, 1, 1));
		T(access("m40", R_OK));
		T(access("m4", R_OK));
	} END;
	/* folders */
	MUST(mkdir("noexec", 0766));
	write_file("noexec/f", "");
	MUST(mkdir("noread", 0733));
	write_file("noread/f", "");
	MUST(mkdir("nowrite", 0755));
	write_file("nowrite/f", "");
	CHILD("folders") {
		struct stat st;
		become(1000, 1000);
		T(stat("noexec/f", &st));
		T(open("noexec", O_RDONLY) >= 0);
		T(chdir("noexec"));
		T(stat("noread/f", &st));
		T(open("noread", O_RDONLY));
		T(open("noread/new", O_CREAT | O_RDWR, 0600) >= 0);
		T(open("nowrite/new", O_CREAT | O_RDWR, 0600));
		T(unlink("nowrite/f"));
		T(rename("nowrite/f", "x"));
		T(mkdir("nowrite/d", 0755));
		T(rmdir("nowrite"));
		T(stat("nowrite/f", &st));
	} END;
	/* sticky */
	MUST(mkdir("sticky", 0777));
	MUST(chmod("sticky", 01777));
	write_file("sticky/roots", "");
	MUST(chmod("sticky/roots", 0666));
	write_file("sticky/mine", "");
	MUST(chown("sticky/mine", 1000, 1000));
	CHILD("sticky") {
		become(1000, 1000);
		T(unlink("sticky/roots"));
		T(rename("sticky/roots", "sticky/x"));
		T(rename("sticky/mine", "sticky/roots"));
		T(rename("sticky/mine", "sticky/mine2"));
		T(unlink("sticky/mine2"));
	} END;
	/* chmod and chown */
	write_file("own", "");
	MUST(chown("own", 1000, 1000));
	CHILD("owner") {
		become(1000, 1000);
		T(chmod("own", 0640));
		T(chmod("m777", 0600));
		T(chown("own", 1000, 1000));
		T(chown("own", 1000, 2000));
		T(chown("own", 1001, -1));
		T(chown("own", -1, -1));
		T(chmod("own", 06755));
		SAY("mode %o", mode("own"));
		T(chmod("nowrite/f", 0777));
	} END;
	CHILD("owner, not in the file's group") {
		MUST(chown("own", 1000, 5));
		become(1000, 1000);
		T(chmod("own", 06755));
		SAY("mode %o", mode("own"));
	} END;
	MUST(chmod("own", 06755));
	T(chown("own", 1, 1));
	SAY("after chown %o", mode("own"));
	MUST(chmod("own", 06745));
	T(chown("own", 0, 0));
	SAY("after chown %o", mode("own"));
	MUST(chmod("own", 06777));
	CHILD("writes") {
		become(1000, 1000);
		int fd = (int)MUST(open("own", O_WRONLY));
		T(write(fd, "x", 1));
		SAY("after write %o", mode("own"));
	} END;
	MUST(chmod("own", 06777));
	write_file("own", "root writes");
	SAY("after root's write %o", mode("own"));
	set_id_bits();
	/* set-gid folder */
	MUST(mkdir("sg", 0777));
	MUST(chown("sg", 0, 77));
	MUST(chmod("sg", 02777));
	struct stat st;
	write_file("sg/f", "");
	stat("sg/f", &st);
	SAY("gid %d", st.st_gid);
	MUST(mkdir("sg/d", 0755));
	stat("sg/d", &st);
	SAY("gid %d mode %o", st.st_gid, st.st_mode & 07777);
	/* set-id programs */
	copy_self("suid", 0755);
	MUST(chown("suid", 1234, 4321));
	MUST(chmod("suid", 06755));
	CHILD("set-uid") {
		become(1000, 1000);
		execl("./suid", "suid", "x", NULL);
	} END;
	CHILD("set-uid, no_new_privs") {
		become(1000, 1000);
		syscall(SYS_prctl, 38, 1, 0, 0, 0);
		execl("./suid", "suid", "x", NULL);
	} END;
	/* access looks at real ids, faccessat with AT_EACCESS at effective ones */
	CHILD("real and effective") {
		MUST(setresuid(1000, 0, 0));
		T(access("m4", W_OK));
		T(open("m4", O_WRONLY) >= 0);
		T(syscall(SYS_faccessat2, AT_FDCWD, "m4", W_OK, AT_EACCESS));
		T(syscall(SYS_faccessat2, AT_FDCWD, "m4", W_OK, 0x4000));
		T(access("m4", 8));
	} END;
	T(fchmod((int)open("own", O_RDONLY), 0600));
	T(fchown((int)open("own", O_RDONLY), 3, 4));
	T(fchownat(AT_FDCWD, "", 3, 4, AT_EMPTY_PATH));
	T(fchownat(AT_FDCWD, "own", 3, 4, 0x8000));
	T(chmod("missing", 0600));
	T(chown("missing", 0, 0));
	SAY("umask %o %o", umask(07777), umask(022));
	return 0;
}
