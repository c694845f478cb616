/*
 * System V shared memory: keys and identifiers, attaching and detaching, who may do what, what fork, exec, munmap, mprotect
 * and mremap do to the count of attachments, and when a segment goes.
 */
#include "check.h"
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>

#define KEY 0x5a5a0001
#define SHM_STAT_ANY_ 15

static struct shmid_ds ds;

static long nattch(int id)
{
	struct shmid_ds now;
	return shmctl(id, IPC_STAT, &now) ? -errno : (long)now.shm_nattch;
}

static int fresh(size_t size)
{
	return (int)MUST(shmget(IPC_PRIVATE, size, IPC_CREAT | 0600));
}

/* What shmat gives: an address, which is not printed. */
static char *at(int id, const volatile void *where, int flags)
{
	void *p = shmat(id, (const void *)where, flags);
	if (p == (void *)-1)
		printf("shmat: %s\n", err_name(errno));
	return p;
}

static void creation(void)
{
	SAY("-- creation");
	T(shmget(KEY, 4096, 0600));
	T(shmget(KEY, 0, IPC_CREAT | 0600));
	T(shmget(IPC_PRIVATE, 0, 0600));
	T(shmget(KEY, (size_t)-1, IPC_CREAT | 0600));
	T(shmget(KEY, (size_t)1 << 60, IPC_CREAT | 0600));
	int id = (int)OK(shmget(KEY, 5000, IPC_CREAT | IPC_EXCL | 0640));
	T(shmget(KEY, 4096, IPC_CREAT | IPC_EXCL | 0600));
	IS(shmget(KEY, 0, 0) == id);
	IS(shmget(KEY, 5000, IPC_CREAT | 0600) == id);
	T(shmget(KEY, 5001, 0600));
	T(shmget(KEY, 8192, IPC_CREAT | 0600));
	T(shmctl(id, IPC_STAT, &ds));
	IS(ds.shm_perm.__key == KEY);
	SAY("mode %o size %zu nattch %lu", ds.shm_perm.mode, ds.shm_segsz, ds.shm_nattch);
	IS(ds.shm_perm.uid == 0 && ds.shm_perm.gid == 0 && ds.shm_perm.cuid == 0 && ds.shm_perm.cgid == 0);
	IS(ds.shm_cpid == getpid() && ds.shm_lpid == 0 && ds.shm_atime == 0 && ds.shm_dtime == 0);
	IS(labs(ds.shm_ctime - time(NULL)) < 100);
	IS(ds.shm_perm.__seq == id >> 15);
	int other = fresh(1);
	IS(other != id);
	T(shmctl(other, IPC_RMID, NULL));
	T(shmctl(other, IPC_RMID, NULL));
	T(shmctl(other, IPC_STAT, &ds));
	T(shmctl(id, IPC_RMID, NULL));
	T(shmget(KEY, 0, 0));
	/* The same index comes again, the same identifier does not. */
	int again = id;
	for (int i = 0; i < 200 && (again & 0x7fff) == (id & 0x7fff) ? again == id : 1; i++) {
		if (i == 199)
			break;
		again = fresh(1);
		MUST(shmctl(again, IPC_RMID, NULL));
	}
	IS(again != id);
	T(shmget(IPC_PRIVATE, 4096, SHM_HUGETLB | 0600));
	T(shmget(IPC_PRIVATE, 4096, SHM_HUGETLB | (13 << 26) | 0600));
}

static void contents(void)
{
	SAY("-- contents");
	int id = fresh(3 * 4096 + 1);
	char *a = at(id, NULL, 0), *b = at(id, NULL, 0), *r = at(id, NULL, SHM_RDONLY);
	IS(a != b && ((uintptr_t)a & 4095) == 0);
	a[0] = 'x';
	b[12288] = 'y';
	IS(b[0] == 'x' && a[12288] == 'y' && a[16383] == 0 && r[0] == 'x');
	SAY("nattch %ld", nattch(id));
	MUST(shmctl(id, IPC_STAT, &ds));
	IS(ds.shm_lpid == getpid() && labs(ds.shm_atime - time(NULL)) < 100 && ds.shm_dtime == 0);
	T(mprotect(r, 4096, PROT_READ | PROT_WRITE));
	T(mprotect(r, 4096, PROT_READ | PROT_EXEC));
	T(shmdt(r));
	CHILD("write to a read-only one") {
		char *q = at(id, NULL, SHM_RDONLY);
		*q = 1;
	} END;
	SAY("nattch %ld", nattch(id));
	T(shmdt(a));
	T(shmdt(a));
	T(shmdt(b + 1));
	T(shmdt(b + 4096));
	MUST(shmctl(id, IPC_STAT, &ds));
	IS(ds.shm_dtime != 0);
	T(shmctl(id, IPC_RMID, NULL));
	IS(b[0] == 'x');
	SAY("nattch %ld", nattch(id));
	MUST(shmctl(id, IPC_STAT, &ds));
	SAY("mode %o", ds.shm_perm.mode);
	IS(ds.shm_perm.__key == IPC_PRIVATE);
	/* Removed, but there by its identifier as long as it is attached. */
	char *c = at(id, NULL, 0);
	IS(c[0] == 'x');
	T(shmctl(id, IPC_RMID, NULL));
	T(shmdt(b));
	SAY("nattch %ld", nattch(id));
	T(shmdt(c));
	T(shmctl(id, IPC_STAT, &ds));
	at(id, NULL, 0);
}

static void places(void)
{
	SAY("-- places");
	int id = fresh(2 * 4096);
	/* Two places of it will be the same memory. */
	volatile char *room = pages(8);
	at(-1, NULL, 0);
	at(id, room, 0);
	at(id, NULL, SHM_REMAP);
	at(id, room + 1, 0);
	at(id, (void *)1, SHM_RND | SHM_REMAP);
	at(id, NON_CANONICAL, 0);
	at(id, NON_CANONICAL, SHM_REMAP);
	at(id, KERNEL_ADDRESS, 0);
	at(id, (void *)-4096L, 0);
	IS(at(id, room + 4096, SHM_REMAP) == room + 4096);
	IS(at(id, room + 4 * 4096 + 17, SHM_REMAP | SHM_RND) == room + 4 * 4096);
	SAY("nattch %ld", nattch(id));
	room[4096] = 'q';
	IS(room[4 * 4096] == 'q' && room[0] == 0);
	/* Replaced by itself. */
	IS(at(id, room + 4096, SHM_REMAP) == room + 4096);
	SAY("nattch %ld", nattch(id));
	MUST(munmap((void *)(room + 4096), 3 * 4096));
	SAY("nattch %ld", nattch(id));
	IS(at(id, room + 4096, 0) == room + 4096);
	at(id, room, 0);
	T(shmdt((void *)(room + 4096)));
	T(shmdt((void *)(room + 4 * 4096)));
	T(shmctl(id, IPC_RMID, NULL));
	at(id, NULL, 0);
	at(0x7fffffff, NULL, 0);
	T(shmdt(NULL));
	T(shmdt((void *)room));
	T(shmdt((void *)-1L));
	T(shmdt(NON_CANONICAL));
	MUST(munmap((void *)room, 8 * 4096));
}

static void parts(void)
{
	SAY("-- parts");
	int id = fresh(8 * 4096);
	char *p = at(id, NULL, 0);
	MUST(munmap(p + 2 * 4096, 4096));
	SAY("hole: nattch %ld", nattch(id));
	MUST(mprotect(p + 5 * 4096, 4096, PROT_READ));
	SAY("protected: nattch %ld", nattch(id));
	MUST(mprotect(p + 5 * 4096, 4096, PROT_READ | PROT_WRITE));
	SAY("unprotected: nattch %ld", nattch(id));
	p[7 * 4096] = 'z';
	T(shmdt(p));
	SAY("detached: nattch %ld", nattch(id));
	IS(madvise(p + 7 * 4096, 4096, MADV_NORMAL) == -1 && errno == ENOMEM);
	p = at(id, NULL, 0);
	IS(p[7 * 4096] == 'z');
	/* The first page gone: what is left is found by where it would begin. */
	MUST(munmap(p, 4096));
	T(shmdt(p + 4096));
	T(shmdt(p));
	SAY("nattch %ld", nattch(id));
	/* Moved: it begins elsewhere. */
	p = at(id, NULL, 0);
	char *q = mremap(p, 8 * 4096, 8 * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, p - 64 * 4096);
	IS(q == p - 64 * 4096);
	SAY("nattch %ld", nattch(id));
	T(shmdt(p));
	IS(q[7 * 4096] == 'z');
	T(shmdt(q));
	SAY("nattch %ld", nattch(id));
	/* A second mapping by mremap of no length; a growing one beyond the end. */
	p = at(id, NULL, 0);
	q = mremap(p, 0, 8 * 4096, MREMAP_MAYMOVE);
	IS(q != MAP_FAILED && q[7 * 4096] == 'z');
	SAY("nattch %ld", nattch(id));
	T(shmdt(q));
	q = mremap(p, 8 * 4096, 9 * 4096, MREMAP_MAYMOVE);
	SAY("nattch %ld", nattch(id));
	CHILD("beyond the end") { q[8 * 4096] = 1; } END;
	T(shmdt(q));
	SAY("nattch %ld", nattch(id));
	T(shmctl(id, IPC_RMID, NULL));
}

static void children(const char *self)
{
	SAY("-- fork, exec, exit");
	int id = fresh(4096);
	char *p = at(id, NULL, 0);
	int go[2], done[2];
	MUST(pipe(go));
	MUST(pipe(done));
	pid_t child = (pid_t)MUST(fork());
	if (child == 0) {
		char c;
		p[1] = 'c';
		read(go[0], &c, 1);
		execl(self, self, "exec", NULL);
		_exit(1);
	}
	SAY("forked: nattch %ld", nattch(id));
	MUST(shmctl(id, IPC_STAT, &ds));
	IS(ds.shm_lpid == getpid());
	MUST(write(go[1], "", 1));
	say_status("child", reap(child));
	SAY("execed and ended: nattch %ld", nattch(id));
	IS(p[1] == 'c');
	MUST(shmctl(id, IPC_STAT, &ds));
	IS(ds.shm_lpid == child);
	/* Not copied: not counted. */
	MUST(madvise(p, 4096, MADV_DONTFORK));
	child = (pid_t)MUST(fork());
	if (child == 0)
		_exit(nattch(id) == 1 ? 0 : 1);
	say_status("DONTFORK", reap(child));
	MUST(madvise(p, 4096, MADV_DOFORK));
	/* Shared memory of a vfork is no second attachment. */
	child = vfork();
	if (child == 0)
		_exit(nattch(id) == 1 ? 0 : 1);
	say_status("vfork", reap(child));
	/* The last one to end takes a removed segment with it. */
	child = (pid_t)MUST(fork());
	if (child == 0) {
		char c;
		read(go[0], &c, 1);
		_exit(p[1] == 'c' ? 0 : 1);
	}
	MUST(shmctl(id, IPC_RMID, NULL));
	MUST(shmdt(p));
	SAY("nattch %ld", nattch(id));
	MUST(write(go[1], "", 1));
	say_status("last", reap(child));
	T(shmctl(id, IPC_STAT, &ds));
	id = fresh(4096);
	CHILD("killed with it attached") {
		at(id, NULL, 0);
		MUST(shmctl(id, IPC_RMID, NULL));
		kill(getpid(), SIGKILL);
	} END;
	T(shmctl(id, IPC_STAT, &ds));
}

static void as_nobody(void)
{
	MUST(setgid(65534));
	MUST(setuid(65534));
}

static void rights(void)
{
	SAY("-- rights");
	int id = (int)MUST(shmget(KEY, 4096, IPC_CREAT | 0604));
	CHILD("another user") {
		as_nobody();
		T(shmget(KEY, 0, 0666));
		IS(shmget(KEY, 0, 0444) == id);
		IS(shmget(KEY, 0, 0) == id);
		at(id, NULL, 0);
		at(id, NULL, SHM_RDONLY | SHM_EXEC);
		IS(at(id, NULL, SHM_RDONLY) != (void *)-1);
		T(shmctl(id, IPC_STAT, &ds));
		T(shmctl(id, IPC_SET, &ds));
		T(shmctl(id, IPC_RMID, NULL));
		T(shmctl(id, SHM_LOCK, NULL));
		at(id, (void *)4096, 0);
		at(id, (void *)4096, SHM_RDONLY);
		at(id, (void *)17, SHM_RDONLY | SHM_RND);
	} END;
	MUST(shmctl(id, IPC_STAT, &ds));
	ds.shm_perm.mode = 07060;
	ds.shm_perm.gid = 65534;
	ds.shm_segsz = 1;
	T(shmctl(id, IPC_SET, &ds));
	MUST(shmctl(id, IPC_STAT, &ds));
	SAY("mode %o gid %d cgid %d size %zu", ds.shm_perm.mode, ds.shm_perm.gid, ds.shm_perm.cgid, ds.shm_segsz);
	CHILD("the group") {
		as_nobody();
		IS(at(id, NULL, 0) != (void *)-1);
		T(shmctl(id, IPC_RMID, NULL));
	} END;
	ds.shm_perm.uid = 65534;
	ds.shm_perm.mode = 0;
	T(shmctl(id, IPC_SET, &ds));
	CHILD("the new owner") {
		as_nobody();
		at(id, NULL, SHM_RDONLY);
		T(shmctl(id, IPC_STAT, &ds));
		T(shmctl(id, SHM_STAT, &ds));
		struct shmid_ds any;
		IS(shmctl(id & 0x7fff, SHM_STAT_ANY_, &any) == id && any.shm_perm.mode == 0);
		ds.shm_perm.uid = 65534;
		ds.shm_perm.mode = 0400;
		T(shmctl(id, IPC_SET, &ds));
		IS(at(id, NULL, SHM_RDONLY) != (void *)-1);
		T(shmctl(id, IPC_RMID, NULL));
	} END;
	T(shmctl(id, IPC_STAT, &ds));
	id = (int)MUST(shmget(KEY, 4096, IPC_CREAT | 0));
	IS(at(id, NULL, SHM_EXEC) != (void *)-1);
	memset(&ds, 0xff, sizeof ds);
	T(shmctl(id, IPC_SET, &ds));
	T(shmctl(id, IPC_SET, NULL));
	T(shmctl(id, IPC_STAT, KERNEL_ADDRESS));
	T(shmctl(-1, IPC_SET, NULL));
	T(shmctl(id, -1, &ds));
	T(shmctl(id, 99, &ds));
	T(shmctl(id, 12345, &ds));
	T(shmctl(0x7fffffff, IPC_SET, NULL));
	T(shmctl(id, IPC_RMID, NULL));
}

static void locking(void)
{
	SAY("-- locks");
	int id = fresh(64 * 4096), other = fresh(4096);
	T(shmctl(id, SHM_LOCK, NULL));
	T(shmctl(id, SHM_LOCK, NULL));
	MUST(shmctl(id, IPC_STAT, &ds));
	SAY("mode %o", ds.shm_perm.mode);
	T(shmctl(id, SHM_UNLOCK, NULL));
	T(shmctl(id, SHM_UNLOCK, NULL));
	MUST(shmctl(id, IPC_STAT, &ds));
	SAY("mode %o", ds.shm_perm.mode);
	ds.shm_perm.uid = 65534;
	MUST(shmctl(id, IPC_SET, &ds));
	MUST(shmctl(other, IPC_SET, &ds));
	CHILD("limits of a user") {
		struct rlimit none = { 0, 0 }, some = { 64 * 4096, 64 * 4096 };
		MUST(setrlimit(RLIMIT_MEMLOCK, &some));
		as_nobody();
		T(shmctl(id, SHM_LOCK, NULL));
		T(shmctl(other, SHM_LOCK, NULL));
		T(shmctl(id, SHM_UNLOCK, NULL));
		T(shmctl(other, SHM_LOCK, NULL));
		T(shmctl(id, SHM_LOCK, NULL));
		MUST(setrlimit(RLIMIT_MEMLOCK, &none));
		T(shmctl(other, SHM_UNLOCK, NULL));
		T(shmctl(other, SHM_LOCK, NULL));
	} END;
	T(shmctl(id, IPC_RMID, NULL));
	T(shmctl(other, IPC_RMID, NULL));
	T(shmctl(other, SHM_LOCK, NULL));
}

static void telling(void)
{
	SAY("-- what is told");
	struct shminfo info;
	struct shm_info sum, more;
	IS(shmctl(0, IPC_INFO, (struct shmid_ds *)&info) >= 0);
	SAY("%lu %lu %lu %lu %lu", info.shmmax, info.shmmin, info.shmmni, info.shmseg, info.shmall);
	IS(shmctl(0, SHM_INFO, (struct shmid_ds *)&sum) >= 0);
	int id = (int)MUST(shmget(KEY, 5 * 4096 - 1, IPC_CREAT | 0600));
	int highest = (int)MUST(shmctl(0, SHM_INFO, (struct shmid_ds *)&more));
	SAY("more: %d %lu %lu %lu", more.used_ids - sum.used_ids, more.shm_tot - sum.shm_tot, more.shm_rss - sum.shm_rss,
	    more.shm_swp);
	IS(highest >= (id & 0x7fff));
	IS(shmctl(id & 0x7fff, SHM_STAT, &ds) == id);
	char *p = at(id, NULL, 0);
	p[0] = p[4096] = 1;
	MUST(shmctl(0, SHM_INFO, (struct shmid_ds *)&more));
	SAY("touched: %lu", more.shm_rss - sum.shm_rss);
	char name[64], line[256];
	int found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps)) {
		unsigned long start, inode;
		char rights[8];
		if (sscanf(line, "%lx-%*x %7s %*x %*s %lu %63[^\n]", &start, rights, &inode, name) == 4 && start == (uintptr_t)p) {
			SAY("%s %s", rights, name);
			IS(inode == (unsigned long)id);
			found++;
		}
	}
	fclose(maps);
	IS(found == 1);
	FILE *all = fopen("/proc/sysvipc/shm", "r");
	printf("%s", fgets(line, sizeof line, all));
	while (fgets(line, sizeof line, all)) {
		int key, shmid, uid, gid, cuid, cgid;
		unsigned mode, cpid, lpid;
		unsigned long size, count, rss, swap;
		long long atime, dtime, ctime;
		size_t length = strlen(line);
		if (sscanf(line, "%d %d %o %lu %u %u %lu %d %d %d %d %lld %lld %lld %lu %lu", &key, &shmid, &mode, &size, &cpid, &lpid,
			   &count, &uid, &gid, &cuid, &cgid, &atime, &dtime, &ctime, &rss, &swap) != 16 || shmid != id)
			continue;
		SAY("key %#x mode %o size %lu count %lu ids %d %d %d %d dtime %lld rss %lu swap %lu length %zu", key, mode, size, count, uid,
		    gid, cuid, cgid, dtime, rss, swap, length);
		IS(cpid == (unsigned)getpid() && lpid == cpid && atime != 0 && ctime != 0);
	}
	fclose(all);
	T(shmctl(0, SHM_INFO, NULL));
	T(shmctl(0, IPC_INFO, KERNEL_ADDRESS));
	T(shmctl(-1, SHM_INFO, (struct shmid_ds *)&sum));
	T(shmctl(0x7fff, SHM_STAT, &ds));
	T(shmdt(p));
	T(shmctl(id, IPC_RMID, NULL));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	self[length > 0 ? length : 0] = 0;
	creation();
	contents();
	places();
	parts();
	children(self);
	rights();
	locking();
	telling();
	return 0;
}
