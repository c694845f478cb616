# Runs the files of tests of gdb that are its arguments, each between two lines that xtask finds, with its verdicts between them, and
# behind them what gdb said before each that is no good.
ip link set lo up 2> /dev/null
echo 'set gdb_test_timeout 30' >> /suite/gdb/testsuite/site.exp
for name; do
	echo "=-=-= $name"
	read -r begun _ < /proc/uptime
	/suite/one 400 "$name"
	status=$?
	read -r ended _ < /proc/uptime
	echo "from $begun to $ended"
	grep -a -E '^(PASS|FAIL|KFAIL|KPASS|XFAIL|XPASS|UNRESOLVED|UNSUPPORTED|UNTESTED): ' "/tmp/$name/gdb.sum"
	grep -a -E -B 20 '(FAIL|UNRESOLVED|ERROR): ' "/tmp/$name/gdb.log" | sed 's/^/| /'
	[ ! -f /suite/missed ] || sed 's/^/| compiled: /' /suite/missed
	pkill -KILL -f 'testsuite/output[s]/'
	for left in gdb gdbserver expect; do pkill -KILL -x $left; done
	rm -rf "/tmp/$name" /suite/missed /suite/gdb/testsuite/outputs /suite/gdb/testsuite/temp
	echo "=-=-> $status"
done
echo "=-=-= end"
