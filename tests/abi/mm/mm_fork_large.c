/*
 * fork of much memory: what parent, children and grandchildren write stays their own, whichever of them writes
 * first, and whatever is unmapped, protected, moved or dropped in between; no write of another thread is lost.
 */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define N 3000L

static char *p;

static void fill(long first, long end, int by)
{
	for (long i = first; i < end; i++)
		*(volatile int *)(p + i * PAGE) = (int)i * 3 + by;
}

/* How many pages of first..end are not as fill left them. */
static long wrong(long first, long end, int by)
{
	long n = 0;
	for (long i = first; i < end; i++)
		n += *(volatile int *)(p + i * PAGE) != (int)i * 3 + by;
	return n;
}

static long not_zero(long first, long end)
{
	long n = 0;
	for (long i = first; i < end; i++)
		n += *(volatile int *)(p + i * PAGE) != 0;
	return n;
}

/* Children write to pages of zeros of which their parent has read the neighbours. */
static char zeros[64][4096] __attribute__((aligned(65536)));

static void zero_pages(void)
{
	volatile char *read = &zeros[0][0];
	int seen = 0, failed = 0;
	for (int i = 0; i < 64; i++)
		if (i % 9)
			seen += read[i * PAGE];
	for (int k = 1; k <= 12; k++) {
		pid_t pid = (pid_t)MUST(fork());
		if (pid == 0) {
			for (int i = 0; i < 64; i++)
				seen += read[i * PAGE] + read[i * PAGE + 4095];
			for (int i = 0; i < 64; i += 9)
				memset(zeros[i], k + i, PAGE);
			for (int i = 0; i < 64; i++)
				seen += read[i * PAGE + 77] != (i % 9 ? 0 : k + i);
			pid_t own = k % 4 ? 0 : fork();
			if (k % 4 == 0 && own == 0) {
				for (int i = 0; i < 64; i += 9)
					seen += read[i * PAGE + 99] != k + i;
				memset(zeros[9], 0, PAGE);
				_exit(seen != 0);
			}
			_exit(seen != 0 || (own > 0 && reap(own) != 0) || zeros[9][5] != k + 9);
		}
		failed += reap(pid) != 0;
	}
	for (int i = 0; i < 64; i++)
		for (int j = 0; j < PAGE; j++)
			seen += read[i * PAGE + j];
	IS(failed == 0);
	IS(seen == 0);
}

static atomic_int stop;
static volatile long written;

static void *writer(void *arg)
{
	volatile long *words = arg;
	long n = 0;
	while (!atomic_load(&stop)) {
		words[(n % 1500) * (PAGE / 8)]++;
		n++;
		if (n % 5000 == 0)
			sched_yield();
	}
	written = n;
	return NULL;
}

int main(void)
{
	scratch();
	p = pages(N);
	fill(0, N, 1);
	SAY("pages of zeros");
	zero_pages();
	SAY("children and grandchildren");
	CHILD("child") {
		IS(wrong(0, N, 1) == 0);
		fill(500, 600, 2);
		CHILD("grandchild") {
			IS(wrong(0, 500, 1) + wrong(500, 600, 2) + wrong(600, N, 1) == 0);
			fill(0, N, 3);
			IS(wrong(0, N, 3) == 0);
		} END;
		IS(wrong(0, 500, 1) + wrong(500, 600, 2) + wrong(600, N, 1) == 0);
		fill(0, 10, 4);
	} END;
	IS(wrong(0, N, 1) == 0);
	SAY("the parent writes first");
	int go[2];
	char c;
	MUST(pipe(go));
	pid_t pids[8];
	for (int k = 0; k < 8; k++) {
		pids[k] = (pid_t)MUST(fork());
		if (pids[k] == 0) {
			read(go[0], &c, 1);
			long bad = wrong(0, N, 1);
			fill(k * 300, k * 300 + 300, 10 + k);
			bad += wrong(0, k * 300, 1) + wrong(k * 300, k * 300 + 300, 10 + k);
			_exit(bad + wrong(k * 300 + 300, N, 1) ? 1 : 0);
		}
	}
	fill(0, N, 5);
	write(go[1], "xxxxxxxx", 8);
	int failed = 0;
	for (int k = 0; k < 8; k++)
		failed += reap(pids[k]) != 0;
	IS(failed == 0);
	IS(wrong(0, N, 5) == 0);
	SAY("unmapped in the child, in parts");
	CHILD("child") {
		MUST(munmap(p + 100 * PAGE, 1000 * PAGE));
		IS(wrong(0, 100, 5) + wrong(1100, N, 5) == 0);
		MUST(mmap(p + 100 * PAGE, 1000 * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
		IS(not_zero(100, 1100) == 0);
		fill(100, 200, 6);
		MUST(munmap(p, N * PAGE));
	} END;
	IS(wrong(0, N, 5) == 0);
	SAY("unmapped in the parent, in parts");
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		read(go[0], &c, 1);
		_exit(wrong(0, N, 5) != 0);
	}
	MUST(munmap(p + 1490 * PAGE, 3 * PAGE));
	MUST(mmap(p + 1490 * PAGE, 3 * PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	IS(not_zero(1490, 1493) == 0);
	fill(1490, 1493, 5);
	MUST(munmap(p, 1300 * PAGE));
	write(go[1], "x", 1);
	say_status("child", reap(pid));
	MUST(mmap(p, 1300 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	IS(not_zero(0, 1300) == 0);
	fill(0, 1300, 5);
	SAY("dropped, protected and moved");
	CHILD("child") {
		MUST(madvise(p + 7 * PAGE, 900 * PAGE, MADV_DONTNEED));
		IS(not_zero(7, 907) == 0);
		IS(wrong(0, 7, 5) + wrong(907, N, 5) == 0);
		MUST(mprotect(p + 1000 * PAGE, 700 * PAGE, PROT_READ));
		IS(wrong(1000, 1700, 5) == 0);
		int out = (int)MUST(open("/dev/zero", O_RDONLY));
		T(read(out, p + 1001 * PAGE, 1));
		T(read(out, p + 1701 * PAGE, 4));
		MUST(mprotect(p + 1000 * PAGE, 700 * PAGE, PROT_READ | PROT_WRITE));
		fill(1000, 1700, 7);
		char *old = p;
		char *q = mremap(p + 2000 * PAGE, 800 * PAGE, 900 * PAGE, MREMAP_MAYMOVE);
		IS(q != MAP_FAILED);
		p = q - 2000 * PAGE;
		IS(wrong(2000, 2800, 5) == 0);
		fill(2000, 2800, 8);
		IS(wrong(2000, 2800, 8) + not_zero(2800, 2900) == 0);
		p = old;
		IS(wrong(1000, 1700, 7) + wrong(1702, 2000, 5) + wrong(2800, N, 5) == 0);
		MUST(madvise(p + 1700 * PAGE, 50 * PAGE, MADV_DONTFORK));
		CHILD("grandchild") {
			IS(wrong(1000, 1700, 7) + wrong(1750, 2000, 5) + wrong(2800, N, 5) == 0);
			fill(1750, 2000, 9);
		} END;
		IS(wrong(1750, 2000, 5) == 0);
	} END;
	IS(wrong(0, N, 5) == 0);
	SAY("a mapping of a file among them");
	write_file("f", "text");
	int fd = (int)MUST(open("f", O_RDWR));
	MUST(munmap(p + 1234 * PAGE, PAGE));
	CHILD("child") {
		char *f = mmap(p + 1234 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
		SAY("%.4s", f);
		MUST(ftruncate(fd, 0));
		IS(wrong(0, 1234, 5) + wrong(1235, N, 5) == 0);
	} END;
	MUST(mmap(p + 1234 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	fill(1234, 1235, 5);
	IS(wrong(0, N, 5) == 0);
	SAY("a thread that writes meanwhile");
	char *words = pages(1500);
	pthread_t thread;
	if (pthread_create(&thread, NULL, writer, words) != 0)
		return 99;
	failed = 0;
	for (int k = 0; k < 30; k++) {
		pid = (pid_t)MUST(fork());
		if (pid == 0) {
			/* what the child sees does not change */
			long sums[2] = { 0, 0 };
			for (int s = 0; s < 2; s++) {
				for (int i = 0; i < 1500; i++)
					sums[s] += *(volatile long *)(words + i * PAGE);
				sched_yield();
			}
			*(volatile long *)(words + k * PAGE) += 1000000;
			_exit(sums[0] != sums[1]);
		}
		if (k % 2)
			failed += reap(pid) != 0;
		else
			while (waitpid(pid, &(int){ 0 }, 0) < 0)
				;
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	long sum = 0;
	for (int i = 0; i < 1500; i++)
		sum += *(volatile long *)(words + i * PAGE);
	IS(failed == 0);
	IS(sum == written);
	return 0;
}
