# Puts the tests of Debian's source package of gdb, in a root of Debian that has gdb and compilers, into /suite, and runs those of
# /names on the kernel at hand, so that what they compile is kept: compilers take long in a guest.
set -e
export DEBIAN_FRONTEND=noninteractive
sed 's/^deb /deb-src /' /etc/apt/sources.list /etc/apt/sources.list.d/*.list > /etc/apt/sources.list.d/suite-source.list 2> /dev/null || :
apt-get -qq update
cd /
apt-get -qq source gdb > /dev/null
mkdir -p suite/gdb suite/kept
cd gdb-[0-9]*
mv config* install-sh include ../suite
mv gdb/testsuite gdb/features gdb/contrib gdb/*.mk ../suite/gdb
cd /suite
rm -r /gdb[-_][0-9]*
cat > cc << 'END'
#!/bin/sh
# gcc, or g++ by another name, that keeps what it made and said, by its words and its files.
compiler=gcc
[ "${0##*/}" = cc ] || compiler=g++
out='' previous='' files=''
for word; do
	if [ "$previous" = -o ]; then out=$word; elif [ -f "$word" ]; then files="$files $word"; fi
	previous=$word
done
[ -n "$out" ] && [ -n "$files" ] || exec $compiler "$@"
key=$({
	echo "$compiler $PWD $*" | sed -E 's,/temp/[0-9]+/([^ ]*[^0-9 ])[0-9]*\.,/\1.,g'
	cat $files
} | md5sum)
kept=/suite/kept/${key%% *}
if ! [ -f "$kept.status" ]; then
	$compiler "$@" > "$kept.said" 2>&1
	status=$?
	[ $status != 0 ] || cp "$out" "$kept.out"
	echo "$compiler $*" >> /suite/missed
	echo $status > "$kept.status"
fi
[ ! -f "$kept.out" ] || cp --remove-destination "$kept.out" "$out"
cat "$kept.said" >&2
read -r status < "$kept.status"
exit "$status"
END
cat > one << 'END'
#!/bin/sh
# Runs the file of tests $2 for as long as $1; its log is in /tmp/$2.
export HOME=/tmp LC_ALL=C
cd /suite/gdb/testsuite
mkdir -p "/tmp/$2"
timeout -k 5 "$1" runtest --tool gdb --outdir "/tmp/$2" GDB=/usr/bin/gdb GDBSERVER=/usr/bin/gdbserver \
	CC_FOR_TARGET=/suite/cc CXX_FOR_TARGET=/suite/c++ "$2.exp" > "/tmp/$2/said" 2>&1 < /dev/null
# Not as timeout itself ends, which may be by a signal: xargs would run no further file.
exit $?
END
chmod +x cc one
ln -s cc c++
cd gdb/testsuite
./configure --quiet
make -s site.exp > /dev/null
# A namespace of processes ends with all that the tests leave behind.
unshare --pid --fork --kill-child --mount --propagation unchanged --mount-proc \
	xargs -n 1 -P "$(nproc)" /suite/one 100 < /names || :
rm -rf outputs temp /suite/missed /tmp/gdb.* /tmp/*.log
apt-get -qq purge --auto-remove dpkg-dev > /dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /usr/share/doc /usr/share/locale
