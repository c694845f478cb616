# Runs in the guest as `sh /suite/run setup`, then `sh /suite/run tests`, started by userland/suite.c.
# SUITE_form is light, full or ash. SUITE_applets names applets, separated by commas, instead of all;
# SUITE_each runs the applets one by one and says which, for whoever writes the baseline.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin
umask 022

if [ "$1" = setup ]; then
	/bin/busybox mount -t sysfs sysfs /sys
	/bin/busybox --install -s
	hostname alea
	exit
fi

# What the tests write goes when these are unmounted. While allocations fail (`prepared`) suite.c has made all this.
if [ "$1" = tests ]; then
	mount -t tmpfs -o mode=755 tmpfs /bb
	mount -t tmpfs -o mode=1777 tmpfs /tmp
	cp -a /suite/bb/. /bb/
	cp /bin/busybox /bb/busybox
fi
applets=$(echo "$SUITE_applets" | tr , ' ')

if [ "$SUITE_form" = ash ]; then
	cd /bb/shell/ash_test
	export HOME=/root
	sh ./run-all $applets
	status=$?
	for fail in *.fail; do
		[ -f "$fail" ] || continue
		echo "=== $fail"
		cat "$fail"
	done
	exit $status
fi

[ "$SUITE_form" = full ] || [ "$1" = prepared ] || cp /suite/light/bc.tests /bb/testsuite/bc.tests
cd /bb/testsuite
export LANG=C.UTF-8 LC_ALL=C.UTF-8 SHELL=/bin/sh SKIP_INTERNET_TESTS=y
if [ -n "$SUITE_each" ]; then
	for applet in busybox $(/bin/busybox --list); do
		[ -d "$applet" ] || [ -f "$applet.tests" ] || continue
		echo "suite-applet $applet"
		./runtest -v "$applet"
	done
	exit
fi
./runtest -v $applets
exit $?
