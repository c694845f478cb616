# Runs the tests of strace that are its arguments, or all, each between two lines that xtask finds; of one that fails, the end of
# its log is printed before its status.
cd /suite/tests || exit 1
export STRACE_ARCH=x86_64 STRACE_NATIVE_ARCH=x86_64 SIZEOF_KERNEL_LONG_T=8 SIZEOF_LONG=8 MIPS_ABI= TIMEOUT_DURATION=600
# Those left out run each of 799 programs under strace, to look at how it chooses calls by their names, or most of them for its words
# about personalities, or begin strace a thousand times, with words that it refuses or with faults at each place (`qual_fault`);
# kill_child tries for half of the limit to hit a moment.
long='test_trace_expr|test_pure_prog_set|test_prog_set|qualify_personality|Check syscall set parsing|qual_fault\.test'
long="$long|check_fault_injection|Run strace until"
[ $# -gt 0 ] || set -- $(xargs < ../names grep -LE "$long")
ip link set lo up 2> /dev/null
for name; do
	echo "=-=-= $name"
	read -r begun _ < /proc/uptime
	./run.sh "./$name" > log.txt 2>&1
	status=$?
	read -r ended _ < /proc/uptime
	echo "from $begun to $ended"
	case $status in 0 | 77) ;; *) tail -n 40 log.txt ;; esac
	rm -rf ./*.dir
	echo "=-=-> $status"
done
echo "=-=-= end"
