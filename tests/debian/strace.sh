# strace shows the calls of programs and of their children, counts them, injects errors, and attaches.
# packages: strace
set -u
cd /tmp
echo "-- one program"
strace -o trace.txt -e trace=execve,openat,write,exit_group -e signal=none sh -c 'echo hello > out'
sed -e 's/0x[0-9a-f]*/ADDR/g' -e 's|/\* [0-9]* vars \*/|ENV|' trace.txt
echo "-- with its children"
strace -f -o trace.txt -e trace=execve,exit_group sh -c 'true; /bin/true; (exit 3); /bin/false | cat'
echo "status $?"
grep -o 'execve("[^"]*"\|exit_group([0-9]*\|+++ .* +++' trace.txt | sort
echo "-- signals"
strace -o trace.txt -e trace=none sh -c 'trap "echo caught" USR1; kill -USR1 $$; kill -TERM $$'
echo "status $?"
sed 's/_pid=[0-9]*/_pid=PID/g' trace.txt
echo "-- counted"
strace -c -o trace.txt -e trace=getuid,getpid,openat,getppid sh -c ':'
awk '$NF ~ /^[a-z]/ && $1 ~ /^[0-9]/ { print $NF, ($5 ~ /^[0-9]+$/ ? $5 : 0) > "/dev/null" } /total/ { print "a table" }' trace.txt
echo "-- an error in place of a call"
strace -o trace.txt -e trace=mkdir -e inject=mkdir:error=ENOSPC mkdir new
echo "status $?"; cat trace.txt
strace -o trace.txt -e trace=getuid -e inject=getuid,geteuid:retval=12 id -u
echo "-- attached"
sh -c 'while [ ! -e stop ]; do sleep 0.05; done; exit 4' &
pid=$!
strace -f -p $pid -o trace.txt -e trace=exit_group 2>/dev/null &
tracer=$!
until grep -q 'TracerPid:.[1-9]' /proc/$pid/status; do sleep 0.1; done
touch stop; wait $tracer; grep "exit_group(4)\|exited with 4" trace.txt | sed 's/^[0-9]* *//'
echo "-- the paths of descriptors, the time of calls"
strace -y -T -o trace.txt -e trace=read cat /etc/debian_version
grep -o "read(3<[^>]*>, \"[^\"]*\"" trace.txt; grep -c "<[0-9.]*>$" trace.txt
echo "-- strings, structures and what a pipe carries"
strace -o trace.txt -e trace=%file,write -s 20 ls -ld /etc/debian_version > /dev/null
grep -o "^[a-z0-9_]*(.*debian_version[^,]*" trace.txt
