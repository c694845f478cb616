#!/bin/sh
# The init of `cargo xtask runtimes`: runs the units that the command line names (runtimes=go:net,python:test_os)
# and says where each begins and how it ended.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root TMPDIR=/tmp LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
ip link set lo up
hostname guest
list=$(sed 's/.*runtimes=\([^ ]*\).*/\1/' /proc/cmdline | tr , ' ')
tests=$(cat /etc/runtimes 2>/dev/null)
for unit in $list; do
	name=${unit#*:}
	echo "=== unit $unit"
	case $unit in
	go:*)
		cd "/go/src/$name" || exit
		GOROOT=/go timeout -s KILL 1500 "/go/bin/$(echo "$name" | tr / _).test" -test.short -test.v \
			-test.timeout 1400s ${tests:+-test.run "$tests"} </dev/null 2>&1
		;;
	python:*)
		cd /tmp || exit
		timeout -s KILL 1500 python3 -m test -v "$name" ${tests:+-m "$tests"} </dev/null 2>&1
		;;
	musl:* | rust:* | golang:* | busybox:*)
		cd /tmp || exit
		timeout -s KILL 300 "/usr/lib/alea/programs/$unit" </dev/null 2>&1
		;;
	linux:*)
		cd /tmp || exit
		timeout -s KILL 600 "/usr/lib/alea/programs/$unit" </dev/null 2>&1
		;;
	script:*)
		cd /tmp || exit
		timeout -s KILL 300 "/usr/lib/alea/scripts/$name" </dev/null 2>&1
		;;
	esac
	echo "--- exit $?"
done
echo "=== end"
poweroff -f
