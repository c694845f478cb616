# gdb stops, steps and watches programs, their threads and children; strace shows the calls of threads.
# packages: gdb strace gcc libc6-dev libc6-dbg
set -u
cd /tmp
export HOME=/tmp
cat > program.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int counter;
static int inner(int value) { counter += value; return counter * 2; }
static int outer(int value) { int sum = 0; for (int n = 0; n < value; n++) sum += inner(n); return sum; }
static void *work(void *unused) { (void)unused; return (void *)(long)outer(3); }
int main(int argc, char **argv)
{
	pthread_t thread;
	printf("sum %d\n", outer(4));
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	fflush(stdout);
	if (argc > 1 && argv[1][0] == 'f') { if (fork() == 0) { outer(2); _exit(5); } wait(NULL); }
	if (argc > 1 && argv[1][0] == 's') raise(SIGUSR1);
	if (argc > 1 && argv[1][0] == 'c') *(volatile int *)8 = 1;
	return counter;
}
C
gcc -g -O0 -pthread -o program program.c
clean() { sed -e 's/0x[0-9a-f]\{4,\}/ADDR/g' -e 's/process [0-9]*/process PID/g' -e 's/LWP [0-9]*/LWP N/g' -e 's/Thread ADDR/Thread/g' -e 's/(process PID)//' -e 's/expected=[0-9]*/expected=N/' -e 's/Frame *$/Frame/' -e 's/  *Frame/ Frame/' -e '/debuginfod\|^warning: Error disabling\|libthread_db\|^Using host\|^\[New Thread\|^\[Switching to Thread\|^\[Thread.*exited\|^sum /d'; }
debug() { gdb -q -nx -batch -ex 'set pagination off' -ex 'set debuginfod enabled off' -ex 'set confirm off' "$@" 2>&1 < /dev/null | clean; }
echo "-- breakpoints, backtraces, variables"
debug -ex 'break inner if value == 2' -ex run -ex bt -ex 'print counter' -ex 'up' -ex 'info locals' -ex 'set var sum = 100' -ex 'delete' -ex continue ./program
echo "-- steps"
debug -ex 'break outer' -ex run -ex delete -ex 'set scheduler-locking on' -ex next -ex step -ex next -ex step -ex finish -ex 'stepi' -ex 'print $eflags & 256' -ex kill ./program
echo "-- a watchpoint in software"
debug -ex 'set can-use-hw-watchpoints 0' -ex 'break inner' -ex run -ex 'watch counter' -ex 'continue' -ex 'continue' -ex kill ./program
echo "-- a watchpoint and a breakpoint in hardware"
debug -ex 'break main' -ex run -ex 'watch counter' -ex 'rwatch argc' -ex 'thbreak inner' -ex continue -ex continue -ex 'info breakpoints' -ex kill ./program | sed 's/breakpoint already hit.*//'
echo "-- threads"
debug -ex 'break outer if value == 3' -ex run -ex 'info threads' -ex 'thread apply all -q frame 0' -ex continue ./program
echo "-- the child of a fork"
debug -ex 'set follow-fork-mode child' -ex 'break outer if value == 2' -ex 'run f' -ex bt -ex continue --args ./program f
echo "-- both sides of a fork"
debug -ex 'set detach-on-fork off' -ex 'set schedule-multiple on' -ex 'break outer if value == 2' -ex 'run f' -ex 'bt 1' -ex kill --args ./program f
echo "-- signals"
debug -ex 'handle SIGUSR1 stop print nopass' -ex 'run s' -ex 'print $_siginfo.si_signo' -ex continue --args ./program s
debug -ex 'run c' -ex 'print $_siginfo.si_signo' -ex 'print $_siginfo._sifields._sigfault.si_addr' -ex bt -ex continue --args ./program c
echo "-- a function called from outside"
debug -ex 'break main' -ex run -ex 'print inner(5)' -ex 'print inner(5)' -ex 'print $xmm0.v4_float[0] == $xmm0.v4_float[0]' -ex kill ./program
echo "-- system calls"
debug -ex 'catch syscall exit_group' -ex run -ex 'print $rdi' -ex continue ./program
debug -ex 'catch exec' -ex run -ex 'info program' -ex kill --args sh -c 'exec ./program'
echo "-- attached"
sh -c 'while :; do sleep 1; done' &
pid=$!
sleep 0.3
debug -ex 'printf "%d\n", $_exitcode == 0 || 1' -ex 'info inferiors' -ex detach -p $pid | grep -c "process PID"
kill $pid; wait $pid 2>/dev/null; echo "status $?"
cat > threads.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *work(void *number) { syscall(SYS_getpgid, (long)number); return NULL; }
int main(void)
{
	pthread_t threads[4];
	for (long n = 0; n < 4; n++) pthread_create(&threads[n], NULL, work, (void *)(7000 + n));
	for (int n = 0; n < 4; n++) pthread_join(threads[n], NULL);
	return 0;
}
C
echo "-- strace of threads"
gcc -pthread -o threads threads.c
strace -f -o trace.txt -e trace=getpgid ./threads
sed 's/^[0-9]* *//' trace.txt | grep -o "+++.*" | sort
strace -f -c -o trace.txt ./threads; grep -c getpgid trace.txt

echo "-- a core"
cat > crash.c <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
int counter = 42;
struct point { int x, y; } place = { 3, 4 };
static pthread_barrier_t both;
static int deep(int value, double half) { counter += value; *(volatile int *)16 = value; return (int)half; }
static void *stand(void *unused) { pthread_barrier_wait(&both); for (;;) pause(); return unused; }
static void *work(void *unused) { pthread_barrier_wait(&both); usleep(200000); deep(7, 2.5); return unused; }
int main(void)
{
	pthread_t one, two;
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&one, NULL, stand, NULL);
	pthread_create(&two, NULL, work, NULL);
	pthread_join(two, NULL);
	return 0;
}
C
gcc -g -O0 -pthread -o crash crash.c
rm -f core
(ulimit -c unlimited; ./crash) 2>/dev/null; echo "status $?"
post() { debug ./crash core "$@"; }
post -ex bt -ex 'info locals' -ex 'print counter' -ex 'print place' -ex 'print $_siginfo.si_signo' -ex 'print $_siginfo._sifields._sigfault.si_addr'
post -ex 'frame function deep' -ex 'print half' -ex 'print $rip != 0'
post -ex 'info threads' | sed 's/.*Thread/Thread/' | grep -c Thread
post -ex 'thread apply all -q bt 3' | grep -o '\(stand\|work\|deep\|main\) (' | sort
post -ex 'info proc mappings' | grep -o '/tmp/crash\|libc.so.6' | sort | uniq -c
post -ex 'info auxv' | grep -c 'AT_'
post -ex 'info files' | grep -c 'load[0-9]*' | sed 's/[0-9]\{2,\}/many/'
echo '|/bin/dd of=/tmp/piped bs=64k status=none' > /proc/sys/kernel/core_pattern
(ulimit -c 0; ./crash) 2>/dev/null; echo "status $?"
echo core > /proc/sys/kernel/core_pattern
sleep 2
gdb -q -nx -batch -ex 'set debuginfod enabled off' -ex 'bt 1' ./crash piped 2>&1 | clean | tail -2
