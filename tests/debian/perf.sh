# perf counts software events of programs, their children and CPUs, and samples them; that there are some is compared, not how many.
# packages: linux-perf gcc libc6-dev
set -u
cd /tmp
counted() { awk -F, '{ print $3, ($1 ~ /^[0-9.]+$/ ? ($1 > 0 ? "some" : "none") : $1) }' "$1"; }
echo "-- one program"
perf stat -x, -o out.txt -e task-clock,cpu-clock,context-switches,page-faults,minor-faults,major-faults,cpu-migrations,alignment-faults,emulation-faults,dummy \
	sh -c 'i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; sleep 0.01' 2>/dev/null
echo "status $?"
grep -v '^#\|^$' out.txt > lines.txt
counted lines.txt | grep -v migrations
echo "-- what hardware would count"
perf stat -x, -o out.txt -e cycles,instructions,cache-misses,branches true 2>/dev/null
echo "status $?"
grep -v '^#\|^$' out.txt | cut -d, -f1,3
echo "-- with its children"
perf stat -x, -o out.txt -e page-faults sh -c 'true' 2>/dev/null
one=$(grep -v '^#\|^$' out.txt | cut -d, -f1)
perf stat -x, -o out.txt -e page-faults sh -c '/bin/true; /bin/true; /bin/true; (exit 3)' 2>/dev/null
echo "status $?"
more=$(grep -v '^#\|^$' out.txt | cut -d, -f1)
[ "$more" -gt $((one * 2)) ] && echo "children count"
echo "-- a group"
perf stat -x, -o out.txt -e '{task-clock,page-faults,context-switches}' sleep 0.01 2>/dev/null
grep -v '^#\|^$' out.txt > lines.txt
counted lines.txt
echo "-- all CPUs"
perf stat -a -x, -o out.txt -e cpu-clock,context-switches,page-faults sleep 0.2 2>/dev/null
echo "status $?"
grep -v '^#\|^$' out.txt > lines.txt
counted lines.txt
echo "-- five runs"
perf stat -r 5 -x, -o out.txt -e task-clock,page-faults true 2>/dev/null
echo "status $?"
grep -v '^#\|^$' out.txt > lines.txt
counted lines.txt
echo "-- records"
work='i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; /bin/true'
perf record -o data -F 999 -e cpu-clock sh -c "$work" > /dev/null 2>&1; echo "status $?"
perf script -i data -F comm,event 2>/dev/null | awk '$1 == "sh" { print $1, $2 }' | sort -u
perf report -i data --stdio --sort comm 2>/dev/null | awk '/of event/ { print $5, $6, $7 } $2 == "sh" { print $2, ($1 + 0 > 50 ? "most" : "little") }'
perf report -i data --stdio --sort dso 2>/dev/null | awk '$2 ~ /^(dash|libc.so.6)$/ { print $2 }' | sort
perf script -i data --show-task-events 2>/dev/null | grep -o 'PERF_RECORD_[A-Z0-9]*' | sort -u
perf script -i data --show-mmap-events 2>/dev/null | grep -o 'r-xp /[^ ]*' | sort -u
perf evlist -i data
perf record -o data -e page-faults -c 1 true > /dev/null 2>&1; echo "status $?"
perf script -i data -F comm,event,period 2>/dev/null | grep '^ *true' | sort -u
perf record -o data sh -c "$work" > /dev/null 2>&1; echo "status $?"
perf evlist -i data
perf record -o data -a -e cpu-clock sleep 0.2 > /dev/null 2>&1; echo "status $?"
perf script -i data -F event 2>/dev/null | sort -u
echo "-- counts of a group in samples"
perf record -o data -e '{page-faults,minor-faults}:S' -c 1 true > /dev/null 2>&1; echo "status $?"
perf script -i data -F comm,event 2>/dev/null | grep '^ *true' | sort -u
echo "-- call chains"
cat > chain.c <<'C'
volatile long sum;
__attribute__((noinline)) void innermost(void) { for (long i = 0; i < 30000000; i++) sum += i; }
__attribute__((noinline)) void middle(void) { innermost(); sum++; }
__attribute__((noinline)) void outer(void) { middle(); sum++; }
int main(void) { outer(); return 0; }
C
gcc -O0 -o chain chain.c
perf record -o data -F 999 -g -e cpu-clock ./chain > /dev/null 2>&1; echo "status $?"
perf script -i data -F ip,sym 2>/dev/null | awk '{ print $2 }' | grep -x 'innermost\|middle\|outer\|main' | uniq | head -4
perf report -i data --stdio --no-children -G --sort comm 2>/dev/null | grep -o 'main\|outer\|middle\|innermost' | head -4
perf record -o data -F 999 --call-graph dwarf,4096 -e cpu-clock ./chain > /dev/null 2>&1; echo "status $?"
perf script -i data -F ip,sym 2>/dev/null | awk '{ print $2 }' | grep -x 'innermost\|middle\|outer\|main' | uniq | head -4
echo "-- breakpoints"
cat > watch.c <<'C'
volatile long watched = 1;
__attribute__((noinline)) void reached(void) { watched++; }
int main(void) { for (int i = 0; i < 10; i++) reached(); return 0; }
C
gcc -O0 -no-pie -o watch watch.c
at() { nm watch | awk -v name="$1" '$3 == name { print "0x" $1 }'; }
perf stat -x, -o out.txt -e mem:$(at watched):w -e mem:$(at reached):x ./watch; echo "status $?"
grep -v '^#\|^$' out.txt | cut -d, -f1
perf record -o data -c 1 -e mem:$(at reached):x ./watch > /dev/null 2>&1; echo "status $?"
perf script -i data -F comm,sym 2> /dev/null | sort | uniq -c
echo "-- names of the kernel"
perf record -o data -F 999 -e cpu-clock dd if=/dev/zero of=/dev/null bs=64k count=5000 > /dev/null 2>&1; echo "status $?"
perf report -i data --stdio --sort sym 2>/dev/null | awk '$2 == "[k]" { print ($3 ~ /^0x/ ? "number" : "name") }' | sort | uniq -c | sort -n | awk 'END { print $2 }'
echo "-- system calls"
mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null
perf trace -s -o trace.txt true; echo "status $?"
awk 'NF == 8 && $2 ~ /^[0-9]+$/ { print $1, $2, $3 }' trace.txt | sort
perf trace -e openat -o trace.txt true; echo "status $?"
grep -c 'openat(.* = 3' trace.txt
perf stat -x, -o out.txt -e syscalls:sys_enter_openat,raw_syscalls:sys_exit true; echo "status $?"
grep -v '^#\|^$' out.txt | cut -d, -f1,3
perf trace -e openat,close,mmap,prlimit64 -o trace.txt true; echo "status $?"
sed 's/^.*true.[0-9]* //; s/0x[0-9a-f]*/N/g; s/ *= /= /; s/= N$/= address/' trace.txt
perf record -o data -e 'raw_syscalls:*' true > /dev/null 2>&1; echo "status $?"
perf script -i data 2> /dev/null | grep -o 'sys_[a-z]*: NR [0-9]*' | uniq -c
perf record -o data -e syscalls:sys_enter_openat --filter 'flags == 0x80000' true > /dev/null 2>&1; echo "status $?"
perf script -i data 2> /dev/null | grep -o 'dfd: .*' | sed 's/filename: 0x[0-9a-f]*/filename: N/'
echo "-- the scheduler"
perf record -o data -e sched:sched_process_fork,sched:sched_process_exec sh -c '/bin/true; /bin/true; :' > /dev/null 2>&1; echo "status $?"
perf script -i data 2> /dev/null | sed 's/.*sched:/sched:/; s/=[0-9][0-9]*/=N/g'
perf record -o data -e sched:sched_switch --filter 'prev_state == 1' sleep 0.01 > /dev/null 2>&1; echo "status $?"
perf script -i data 2> /dev/null | grep -o 'prev_comm=sleep\|prev_state=S' | sort | uniq
perf record -a -o data -e sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_switch,sched:sched_process_exit sh -c 'sleep 0.01; sleep 0.01; :' > /dev/null 2>&1; echo "status $?"
perf script -i data 2> /dev/null > out.txt
grep -c 'sched_process_exit: comm=sleep' out.txt
grep -c 'sched_wakeup_new: comm=sh' out.txt
grep -q 'sched_wakeup: comm=sleep' out.txt && echo "sleep is woken"
grep -q 'sched_switch: prev_comm=swapper.*next_comm=sleep' out.txt && echo "and runs"
perf trace -e sched:sched_process_exec --no-syscalls -o trace.txt sh -c '/bin/true; :'; echo "status $?"
grep -o 'filename: "[^"]*"' trace.txt
perf list tracepoint 2> /dev/null | grep -o 'sched:sched_process_[ef][xo][ier][tck]*' | sort
echo "-- at the top"
(sleep 3; echo q) | perf top --stdio -d 1 -e cpu-clock 2>&1 | grep -o 'PerfTop:\|irqs/sec' | sort | uniq
echo "-- a user"
setpriv --reuid 1000 --regid 1000 --clear-groups perf stat -e page-faults true 2>&1 | grep -o 'perf_event_paranoid setting is [-0-9]*'
echo 1 > /proc/sys/kernel/perf_event_paranoid
setpriv --reuid 1000 --regid 1000 --clear-groups perf stat -x, -o user.txt -e page-faults:u true 2>&1
setpriv --reuid 1000 --regid 1000 --clear-groups perf stat -x, -e page-faults:u true 2>&1 | cut -d, -f3
echo 3 > /proc/sys/kernel/perf_event_paranoid
