/*
 * Credentials: the set*id family's rules for root and for others, saved and file-system ids, groups, capabilities
 * lost with uid 0, what /proc/self/status says, getpriority and setpriority, PR_SET_KEEPCAPS.
 */
#include "check.h"
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void show(const char *what)
{
	uid_t r, e, s;
	gid_t g, h, i;
	getresuid(&r, &e, &s);
	getresgid(&g, &h, &i);
	SAY("%s: %d %d %d fs %d, %d %d %d fs %d", what, r, e, s, setfsuid(-1), g, h, i, setfsgid(-1));
}

static void status(const char *key)
{
	const char *at = strstr(read_file("/proc/self/status"), key);
	SAY("%.*s", at ? (int)strcspn(at, "\n") : 7, at ? at : "missing");
}

static void caps(const char *what)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { 0 } };
	long r = syscall(SYS_capget, &h, d);
	SAY("%s: capget %ld, effective %s permitted %s inheritable %x", what, r, d[0].effective ? "some" : "none",
	    d[0].permitted ? "some" : "none", d[0].inheritable);
}

int main(void)
{
	show("root");
	caps("root");
	CHILD("setuid as root sets all") {
		T(setuid(1000));
		show("now");
		caps("now");
		T(setuid(0));
		T(setuid(1000));
		T(setreuid(-1, 0));
		T(setresuid(-1, -1, -1));
		T(setgid(5));
		T(setgroups(0, NULL));
		status("Uid:");
		status("CapEff:");
	} END;
	CHILD("seteuid and back") {
		T(seteuid(1000));
		show("now");
		caps("now");
		T(seteuid(0));
		caps("again");
		show("again");
	} END;
	CHILD("saved id") {
		T(setresuid(1, 2, 3));
		show("now");
		T(setuid(3));
		show("now");
		T(setuid(4));
		T(seteuid(1));
		show("now");
		T(setresuid(2, 2, 2));
		T(setresuid(3, 3, 3));
		show("now");
	} END;
	CHILD("setreuid") {
		T(setreuid(1, 2));
		show("now");
		T(setreuid(2, 1));
		show("now");
		T(setreuid(5, -1));
	} END;
	CHILD("gids") {
		T(setresgid(10, 20, 30));
		show("now");
		T(setuid(1000));
		T(setgid(30));
		T(setegid(10));
		T(setregid(20, 20));
		T(setgid(40));
		show("now");
	} END;
	CHILD("fsuid") {
		T(setfsuid(1000));
		show("now");
		T(setuid(5));
		T(setfsuid(6));
		T(setfsuid(-1));
	} END;
	CHILD("groups") {
		gid_t list[4] = { 30, 10, 20, 10 }, got[8];
		T(setgroups(4, list));
		T(getgroups(0, NULL));
		T(getgroups(2, got));
		T(getgroups(8, got));
		SAY("%d %d %d %d", got[0], got[1], got[2], got[3]);
		T(syscall(SYS_getgroups, -1, got));
		T(syscall(SYS_setgroups, 65537, list));
		status("Groups:");
		T(setgroups(0, NULL));
		status("Groups:");
	} END;
	CHILD("keep capabilities") {
		T(prctl(PR_SET_KEEPCAPS, 1));
		T(setresuid(1000, 1000, 1000));
		caps("now");
		T(prctl(PR_SET_KEEPCAPS, 2));
	} END;
	CHILD("drop capabilities") {
		struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
		struct __user_cap_data_struct d[2] = { { 0 } };
		T(syscall(SYS_capset, &h, d));
		caps("now");
		T(setuid(5));
		T(chroot("/tmp"));
		d[0].effective = d[0].permitted = 1;
		T(syscall(SYS_capset, &h, d));
		h.version = 77;
		T(syscall(SYS_capget, &h, d));
		SAY("version %#x", h.version);
	} END;
	CHILD("bounding set") {
		T(prctl(PR_CAPBSET_READ, 0));
		T(prctl(PR_CAPBSET_READ, 63));
		T(prctl(PR_CAPBSET_DROP, 5));
		T(prctl(PR_CAPBSET_READ, 5));
	} END;
	CHILD("priority") {
		T(getpriority(PRIO_PROCESS, 0));
		T(setpriority(PRIO_PROCESS, 0, 5));
		T(syscall(SYS_getpriority, PRIO_PROCESS, 0));
		T(setpriority(PRIO_PROCESS, 0, 100));
		T(getpriority(PRIO_PROCESS, 0));
		T(setpriority(PRIO_PROCESS, 0, -20));
		T(setuid(1000));
		T(setpriority(PRIO_PROCESS, 0, -19));
		T(setpriority(PRIO_PROCESS, 0, -20));
		T(setpriority(PRIO_PROCESS, 1, 3));
		T(setpriority(PRIO_PROCESS, 999999999, 3));
		T(setpriority(9, 0, 3));
	} END;
	T(setuid(-1));
	T(setresuid(-1, -1, -1));
	return 0;
}
