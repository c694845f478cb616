# What watching costs a program: each job alone and watched, in nanoseconds of the guest, as `cargo xtask tools` reads them.
# packages: strace gdb linux-perf
# The argument says which: strace, gdb, perf or filters.
set -eu
cd /tmp
now() { date +%s%N; }

# job NAME WATCHER... -- PROGRAM...: a line `tool NAME ALONE WATCHED`; a first run of each brings in the files.
job() {
	name=$1 watcher=
	shift
	while [ "$1" != -- ]; do
		watcher="$watcher $1"
		shift
	done
	shift
	"$@" > /dev/null 2>&1
	$watcher "$@" > /dev/null 2>&1
	begin=$(now)
	"$@" > /dev/null 2>&1
	middle=$(now)
	$watcher "$@" > /dev/null 2>&1
	end=$(now)
	echo "tool $name $((middle - begin)) $((end - middle))"
}

# The same files on every kernel: /proc and /sys have others.
of_strace() {
	job "strace -c ls -R /usr/share" strace -c -o counts.txt -- ls -R /usr/share
	job "strace -f sh -c: 20 programs" strace -f -o calls.txt -- sh -c 'i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i + 1)); done'
	grep -q getdents counts.txt
	grep -q execve calls.txt
}

# gdb alone starts and kills the program; watched, it steps it in between. Most of that is gdb's own work, so the kernel's part stands beside it:
# by the clock of times(2), whose ticks may leave nothing of what the kernel does for gdb alone.
gdb_does() { gdb -q -nx -batch -ex 'set pagination off' -ex 'set debuginfod enabled off' -ex starti "$@" -ex kill /bin/ls; }
in_kernel() { awk -F'[ ms]+' 'FNR == 2 { now = ($3 * 60 + $4) * 1e9; if (FILENAME != ARGV[1]) printf " %d", (now > last ? now - last : 1); last = now }' "$@"; }
of_gdb() {
	gdb_does > /dev/null 2>&1
	times > times1.txt
	begin=$(now)
	gdb_does > /dev/null 2>&1
	middle=$(now)
	times > times2.txt
	gdb_does -ex 'stepi 10000' > steps.txt 2>&1
	end=$(now)
	times > times3.txt
	grep -q '^0x' steps.txt
	echo "tool gdb: 10,000 steps $((middle - begin)) $((end - middle))"
	echo "tool the kernel's part of them$(in_kernel times1.txt times2.txt times3.txt)"
}

# What the job itself takes, while it is sampled and while it is not, the least of three. perf's own beginning and end are not the job's, so that
# waits until perf sleeps. And perf adds to the environment, in which the shell then takes longer to find its variables: alone it has the same.
least() { sort -n | head -n 1; }
thrice() { for _ in 1 2 3; do "$@"; done | least; }
of_perf() {
	loop='sleep 0.5; i=0; begin=$(date +%s%N); while [ $i -lt 100000 ]; do i=$((i + 1)); done; end=$(date +%s%N); echo $((end - begin))'
	perf record -q -F 1 -e cpu-clock -o data env > environment.txt
	alone=$(thrice env -i $(cat environment.txt) sh -c "$loop")
	watched=$(thrice perf record -q -F 999 -g -e cpu-clock -o data sh -c "$loop")
	samples=$(perf script -F event -i data 2> /dev/null | grep -c cpu-clock)
	test "$samples" -gt 1000
	echo "tool perf record -F 999 -g $alone $watched"
}

# For one call, in place of a job.
of_filters() {
	/bench --reps 3 --filter 'getpid,seccomp_getpid_*' | awk '
		$1 == "bench" && $5 != "ok" { print; exit }
		$1 == "bench" { of = $4 * 1000 / $3; if (!($2 in least) || of < least[$2]) least[$2] = of }
		END {
			printf "tool seccomp: 50 rules by number, 1000 getpid %d %d\n", least["getpid"], least["seccomp_getpid_50"]
			printf "tool seccomp: 50 rules by argument, 1000 getpid %d %d\n", least["getpid"], least["seccomp_getpid_args_50"]
		}'
}

"of_$1"
