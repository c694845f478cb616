/* latency_files.h: attacks by calls on files, pipes and directories. Included by latency.c. */

#define FILES 4000		/* below the usual hard limit of 4096 descriptors */

static int in_fd = -1, out_fd = -1, ends[2];
static int all[FILES];

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0644);
	(void)!write(fd, text, strlen(text));
	close(fd);
}

static int send_to_null(void)
{
	in_fd = (int)NEED(sparse_file("in", 2 * GIB));
	out_fd = (int)NEED(open("/dev/null", O_WRONLY));
	return 0;
}

static void send_hole(void)
{
	off_t at = 0;
	(void)!sendfile(out_fd, in_fd, &at, 2 * GIB);
}

static int two_files(void)
{
	in_fd = (int)NEED(sparse_file("in", BIG));
	out_fd = (int)NEED(sparse_file("out", 0));
	return touched();
}

static void copy_hole(void)
{
	loff_t from = 0, to = 0;
	(void)!copy_file_range(in_fd, &from, out_fd, &to, BIG, 0);
	(void)!ftruncate(out_fd, 0);
}

static void write_big(void)
{
	(void)!pwrite(out_fd, area, BIG, 0);
	(void)!ftruncate(out_fd, 0);
}

static int untouched_source(void)
{
	int error = two_files();
	munmap(area, BIG);
	return error ? error : untouched();
}

static void write_untouched(void)
{
	madvise(area, BIG, MADV_DONTNEED);
	write_big();
}

static int full_file(void)
{
	int error = two_files();
	if (!error && pwrite(in_fd, area, BIG, 0) != BIG)
		return ENOSPC;
	return error;
}

static void read_big(void) { (void)!pread(in_fd, area, BIG, 0); }

static void allocate(void)
{
	(void)!fallocate(out_fd, 0, 0, BIG);
	(void)!fallocate(out_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BIG);
	(void)!fallocate(out_fd, FALLOC_FL_KEEP_SIZE, 0, TIB);
}

/* One page every 2 MiB, and then all of them gone at once. */
static void scatter(void)
{
	char byte = 1;
	for (long at = 0; at < 10000; at++)
		(void)!pwrite(out_fd, &byte, 1, at * 2 * MIB);
	(void)!ftruncate(out_fd, 5 * GIB);
	(void)!ftruncate(out_fd, 0);
}

static void seek_holes(void)
{
	lseek(in_fd, 0, SEEK_HOLE);
	lseek(in_fd, 0, SEEK_DATA);
}

static int own_memory(void)
{
	int error = touched();
	/* Changing the user id has shut it. */
	NEED(prctl(PR_SET_DUMPABLE, 1));
	in_fd = (int)NEED(open("/proc/self/mem", O_RDWR));
	other = (char *)NEED(map_private(BIG, PROT_READ | PROT_WRITE, 0));
	return error;
}

static void read_own_memory(void) { (void)!pread(in_fd, other, BIG, (off_t)(uintptr_t)area); }

static int pipe_and_file(void)
{
	int error = send_to_null();
	NEED(pipe(ends));
	fcntl(ends[1], F_SETPIPE_SZ, MIB);
	return error;
}

static void splice_hole(void)
{
	loff_t at = 0;
	for (int i = 0; i < 1000; i++) {
		(void)!splice(in_fd, &at, ends[1], NULL, MIB, SPLICE_F_NONBLOCK);
		(void)!splice(ends[0], NULL, out_fd, NULL, MIB, SPLICE_F_NONBLOCK);
	}
}

static void raise_files(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int many_files(void)
{
	raise_files();
	NEED(pipe(ends));
	for (int i = 0; i < FILES; i++)
		all[i] = (int)NEED(dup(ends[0]));
	return 0;
}

static void poll_many(void)
{
	static struct pollfd fds[FILES];
	for (int i = 0; i < FILES; i++)
		fds[i] = (struct pollfd) { all[i], POLLIN, 0 };
	poll(fds, FILES, 1);
}

static void select_many(void)
{
	static unsigned long bits[(FILES + 100) / 64 + 1];
	struct timeval soon = { 0, 1000 };
	for (int i = 0; i < FILES; i++)
		bits[all[i] / 64] |= 1ul << all[i] % 64;
	select(all[FILES - 1] + 1, (fd_set *)bits, NULL, NULL, &soon);
}

static void epoll_many(void)
{
	static struct epoll_event events[FILES];
	int ep = epoll_create1(0);
	for (int i = 0; i < FILES; i++)
		epoll_ctl(ep, EPOLL_CTL_ADD, all[i], &(struct epoll_event) { EPOLLIN, { 0 } });
	(void)!write(ends[1], "x", 1);
	epoll_wait(ep, events, FILES, 0);
	char byte;
	(void)!read(ends[0], &byte, 1);
	close(ep);
}

static void close_many(void)
{
	close_range((unsigned)all[0], ~0u, 0);
	for (int i = 0; i < FILES; i++)
		all[i] = dup(ends[0]);
}

static void exit_with_files(void) { fork_and_wait(); }

#define NAMES 20000

static int make_names(int count)
{
	char name[64];
	for (int i = 0; i < count; i++) {
		sprintf(name, "name-%d", i);
		if (mknod(name, S_IFREG | 0600, 0) != 0)
			return errno;
	}
	return 0;
}

static int many_names(void) { return make_names(NAMES); }

static void list(void)
{
	static char block[256 * KIB];
	int fd = open(".", O_RDONLY | O_DIRECTORY);
	while (syscall(SYS_getdents64, fd, block, sizeof block) > 0)
		;
	close(fd);
}

/* A directory of very many names: its table grows while they are made, and shrinks while they go. */
static int most_names(void) { return make_names(2 * NAMES); }

static void remove_and_make(void)
{
	char name[64];
	for (int i = 0; i < 2 * NAMES; i++) {
		sprintf(name, "name-%d", i);
		unlink(name);
	}
	(void)!most_names();
}

/* A directory as deep as memory is cheap. */
static int deep(void)
{
	for (int i = 0; i < 20000; i++)
		if (mkdir("d", 0700) != 0 || chdir("d") != 0)
			return errno;
	return 0;
}

static void ask_deep(void)
{
	static char path[8 * PAGE];
	syscall(SYS_getcwd, path, sizeof path);
	read_file_whole("/proc/self/mountinfo");
	(void)!readlink("/proc/self/cwd", path, sizeof path);
}

static int many_locks(void)
{
	in_fd = (int)NEED(sparse_file("locks", GIB));
	for (long i = 0; i < 20000; i++) {
		struct flock lock = { .l_type = i & 1 ? F_RDLCK : F_WRLCK, .l_start = i * 2, .l_len = 1 };
		if (fcntl(in_fd, F_SETLK, &lock) != 0)
			return errno;
	}
	return 0;
}

static void more_locks(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = 40001, .l_len = 1 };
	fcntl(in_fd, F_SETLK, &lock);
	lock.l_type = F_UNLCK;
	fcntl(in_fd, F_SETLK, &lock);
	lock.l_type = F_WRLCK;
	fcntl(in_fd, F_GETLK, &lock);
	read_file_whole("/proc/locks");
}

/* Each of very many files was locked once; in a directory of their own, since one of more names is another attack. */
static int locked_once(void)
{
	char name[64];
	NEED(mkdir("locked", 0700));
	for (int i = 0; i < 10000; i++) {
		sprintf(name, "locked/%d", i);
		int fd = open(name, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || flock(fd, LOCK_EX) != 0)
			return errno;
		close(fd);
	}
	return 0;
}

static void list_locks(void) { read_file_whole("/proc/locks"); }

static void nothing(int signal) { (void)signal; }

/* A chain of processes: each holds a byte of a file and waits for that of the next, so that the last has the whole chain to look through. */
static int chain_of_waits(void)
{
	enum { CHAIN = 500 };
	in_fd = (int)NEED(open("chain", O_RDWR | O_CREAT, 0600));
	int held[2];
	NEED(pipe(held));
	for (int i = 0; i < CHAIN; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return errno;
		if (pid == 0) {
			struct flock own = { .l_type = F_WRLCK, .l_start = i, .l_len = 1 };
			struct flock next = { .l_type = F_WRLCK, .l_start = i + 1, .l_len = 1 };
			fcntl(in_fd, F_SETLK, &own);
			(void)!write(held[1], "x", 1);
			usleep(200000 + (CHAIN - i) * 200);
			fcntl(in_fd, F_SETLKW, &next);
			for (;;)
				pause();
		}
	}
	char byte;
	for (int i = 0; i < CHAIN; i++)
		NEED(read(held[0], &byte, 1));
	/* The end of the chain is this process's. */
	struct flock last = { .l_type = F_WRLCK, .l_start = CHAIN, .l_len = 1 };
	NEED(fcntl(in_fd, F_SETLK, &last));
	struct sigaction wake = { .sa_handler = nothing };
	sigaction(SIGALRM, &wake, NULL);
	usleep(400000);
	return 0;
}

static void wait_behind_all(void)
{
	struct flock first = { .l_type = F_WRLCK, .l_start = 0, .l_len = 1 };
	ualarm(1000, 0);
	fcntl(in_fd, F_SETLKW, &first);
}

static int watches(void)
{
	int error = many_names();
	char name[64];
	in_fd = (int)NEED(inotify_init1(IN_NONBLOCK));
	for (int i = 0; i < 8000 && !error; i++) {
		sprintf(name, "name-%d", i);
		if (inotify_add_watch(in_fd, name, IN_ALL_EVENTS) < 0)
			break;
	}
	return error;
}

static void watch_again(void)
{
	close(in_fd);
	in_fd = inotify_init1(IN_NONBLOCK);
	char name[64];
	for (int i = 0; i < 8000; i++) {
		sprintf(name, "name-%d", i);
		inotify_add_watch(in_fd, name, IN_ALL_EVENTS);
	}
}

/* Forty links in a row, each with two thousand names before the next. */
static int linked(void)
{
	char text[PAGE], name[16];
	for (int i = 0; i < 39; i++) {
		memset(text, 0, sizeof text);
		for (int at = 0; at < 4080; at += 2)
			memcpy(text + at, "./", 2);
		sprintf(text + 4080, "link%d", i + 1);
		sprintf(name, "link%d", i);
		NEED(symlink(text, name));
	}
	write_file("link39", "");
	return 0;
}

static void follow(void)
{
	struct stat st;
	stat("link0", &st);
}

static int deep_and_flat(void)
{
	NEED(mkdir("a", 0700));
	NEED(mkdir("b", 0700));
	in_fd = (int)NEED(open("a", O_PATH));
	NEED(chdir("b"));
	return deep();
}

static void move_deep(void)
{
	mkdirat(in_fd, "x", 0700);
	renameat(in_fd, "x", AT_FDCWD, "x");
	renameat(AT_FDCWD, "x", in_fd, "x");
}

/* A file that 300 processes have mapped loses its pages. */
static int mapped_widely(void)
{
	int error = sparse_shared();
	memset(area, 1, 4 * MIB);
	out_fd = open("sparse", O_RDWR);
	for (int i = 0; i < 300 && !error; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return errno;
		if (pid == 0) {
			volatile char sum = 0;
			for (long at = 0; at < 4 * MIB; at += PAGE)
				sum += area[at];
			for (;;)
				pause();
		}
	}
	return error;
}

static void truncate_mapped(void)
{
	(void)!ftruncate(out_fd, 0);
	(void)!ftruncate(out_fd, GIB);
	memset(area, 1, MIB);
}

static int terminal(void)
{
	char name[64];
	int main_end = (int)NEED(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK)), unlocked = 0;
	NEED(ioctl(main_end, TIOCSPTLCK, &unlocked));
	int number = 0;
	NEED(ioctl(main_end, TIOCGPTN, &number));
	sprintf(name, "/dev/pts/%d", number);
	in_fd = main_end;
	out_fd = (int)NEED(open(name, O_RDWR | O_NOCTTY | O_NONBLOCK));
	area = (char *)NEED(map_private(MIB, PROT_READ | PROT_WRITE, 0));
	memset(area, '\n', MIB);
	return 0;
}

static void write_terminal(void)
{
	(void)!write(out_fd, area, MIB);
	(void)!read(in_fd, area, MIB);
	(void)!write(in_fd, area, MIB);
	tcflush(out_fd, TCIOFLUSH);
}

#define FILE_ATTACKS \
	{ "sendfile_hole", send_to_null, send_hole }, \
	{ "copy_file_range_hole", two_files, copy_hole }, \
	{ "write_tmpfs", two_files, write_big }, \
	{ "write_untouched", untouched_source, write_untouched }, \
	{ "read_tmpfs", full_file, read_big }, \
	{ "fallocate", two_files, allocate }, \
	{ "truncate_scattered", two_files, scatter }, \
	{ "seek_hole", full_file, seek_holes }, \
	{ "read_proc_mem", own_memory, read_own_memory }, \
	{ "splice_hole", pipe_and_file, splice_hole }, \
	{ "poll_4000", many_files, poll_many }, \
	{ "select_4000", many_files, select_many }, \
	{ "epoll_4000", many_files, epoll_many }, \
	{ "close_range_4000", many_files, close_many }, \
	{ "exit_4000_files", many_files, exit_with_files }, \
	{ "getdents_20000", many_names, list }, \
	{ "names_40000", most_names, remove_and_make }, \
	{ "deep_directory", deep, ask_deep }, \
	{ "record_locks_20000", many_locks, more_locks }, \
	{ "locked_files_10000", locked_once, list_locks }, \
	{ "lock_chain_500", chain_of_waits, wait_behind_all }, \
	{ "inotify_8000", watches, watch_again }, \
	{ "nested_links", linked, follow }, \
	{ "rename_deep", deep_and_flat, move_deep }, \
	{ "truncate_mapped_300", mapped_widely, truncate_mapped }, \
	{ "terminal", terminal, write_terminal },
