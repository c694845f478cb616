# Builds strace and its tests from Debian's source package, in a root of Debian that has a compiler, into /suite, and takes the
# compiler away. /suite/names is the list of its tests, in its own order.
set -e
export DEBIAN_FRONTEND=noninteractive
sed 's/^deb /deb-src /' /etc/apt/sources.list /etc/apt/sources.list.d/*.list > /etc/apt/sources.list.d/suite-source.list 2> /dev/null || :
apt-get -qq update
cd /
apt-get -qq source strace > /dev/null
mv strace-[0-9]* suite
cd suite
./configure --quiet --enable-mpers=no --disable-gcc-Werror CFLAGS='-O1 -w'
make -s -j2
make -s -j2 -C tests check TESTS=
make -s -C tests --eval 'names: ; @printf "%s\n" $(TESTS)' names > names
find . -name '*.o' -delete
find . -name '*.a' -delete
find tests -type f -perm -100 ! -name '*.test' ! -name '*.sh' -exec strip {} + 2> /dev/null || :
apt-get -qq purge --auto-remove gcc make dpkg-dev libc6-dev > /dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /strace_* /usr/share/doc /usr/share/locale
