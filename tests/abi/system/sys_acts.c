/*
 * vm.mmap_min_addr is where a program without CAP_SYS_RAWIO may map at least, as mmap, mremap and shmat see it; a hint is never moved
 * below 64 KiB. kernel.tainted takes bits and gives none back. vm.nr_hugepages takes any number.
 */
#include "check.h"
#include <linux/capability.h>
#include <sys/shm.h>

#define LOW (MAP_PRIVATE | MAP_ANONYMOUS)

/* The page that a hint gives; nothing if it is not near. */
static void hint(unsigned long at)
{
	unsigned long got = (unsigned long)MUST(mmap((void *)at, PAGE, PROT_READ, LOW, -1, 0));
	if (got < 2 << 20)
		SAY("  hint %#lx: %#lx", at, got);
	else
		SAY("  hint %#lx: elsewhere", at);
	munmap((void *)got, PAGE);
}

static void map_low(void)
{
	static const unsigned long places[] = { 0x1000, 0x8000, 0x10000, 0x20000, 0xff000, 0x100000 };
	int segment = (int)MUST(shmget(IPC_PRIVATE, PAGE, 0600));
	char *page = (char *)MUST(mmap(NULL, PAGE, PROT_READ, LOW, -1, 0));
	for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
		void *at = (void *)places[i];
		void *fixed = mmap(at, PAGE, PROT_READ, LOW | MAP_FIXED, -1, 0);
		SAY("  at %#lx: %s", places[i], fixed == at ? "mapped" : err_name(errno));
		if (fixed == at)
			munmap(at, PAGE);
		void *attached = shmat(segment, at, SHM_RDONLY);
		SAY("  attached: %s", attached == at ? "yes" : err_name(errno));
		if (attached == at)
			shmdt(at);
		void *moved = mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at);
		SAY("  moved: %s", moved == at ? "yes" : err_name(errno));
		if (moved == at)
			page = (char *)MUST(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)0x40000000));
	}
	hint(0x1000);
	hint(0x20000);
	hint(0x180000);
	shmctl(segment, IPC_RMID, NULL);
}

static void without(int capability)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];
	MUST(syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1U << capability);
	MUST(syscall(SYS_capset, &header, data));
}

static void min_addr(void)
{
	static const char *const values[] = { "65536", "1048576", "0", "0x20000" };
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		ssize_t put = put_setting("vm/mmap_min_addr", values[i]);
		printf("mmap_min_addr %s %s: %s", values[i], put < 0 ? err_name(errno) : "ok", get_setting("vm/mmap_min_addr"));
		CHILD("a user") {
			MUST(setresuid(1000, 1000, 1000));
			map_low();
		} END;
	}
	CHILD("root") { map_low(); } END;
	T(put_setting("vm/mmap_min_addr", "x"));
	T(put_setting("vm/mmap_min_addr", ""));
	CHILD("root without CAP_SYS_RAWIO") {
		without(CAP_SYS_RAWIO);
		T(put_setting("vm/mmap_min_addr", "4096"));
		printf("%s", get_setting("vm/mmap_min_addr"));
	} END;
	T(put_setting("vm/mmap_min_addr", "65536"));
}

static unsigned long tainted(void)
{
	return strtoul(get_setting("kernel/tainted"), NULL, 10);
}

static void taint(void)
{
	T(put_setting("kernel/tainted", "64"));
	IS((tainted() & 64) != 0);
	T(put_setting("kernel/tainted", "0x200"));
	IS((tainted() & 0x240) == 0x240);
	T(put_setting("kernel/tainted", "0"));
	IS((tainted() & 0x240) == 0x240);
	T(put_setting("kernel/tainted", "4294967296"));
	IS(tainted() < 1UL << 32);
	T(put_setting("kernel/tainted", "x"));
	CHILD("root without CAP_SYS_ADMIN") {
		without(CAP_SYS_ADMIN);
		T(put_setting("kernel/tainted", "64"));
		IS(tainted() != 0);
	} END;
}

int main(void)
{
	min_addr();
	taint();
	T(put_setting("vm/nr_hugepages", "2"));
	T(put_setting("vm/nr_hugepages", "x"));
	T(put_setting("vm/nr_hugepages", "0"));
	printf("%s", get_setting("vm/nr_hugepages"));
	return 0;
}
