# Builds a package of Debian's form as an ordinary user: fakeroot, debhelper, dpkg-buildpackage.
# packages: fakeroot dpkg-dev debhelper gcc libc6-dev adduser
set -eu
adduser --quiet --disabled-password --gecos '' ann
cat > /tmp/make <<'E2'
set -eu
mkdir -p /tmp/greet-1.0/debian/source && cd /tmp/greet-1.0
printf '#include <stdio.h>\nint main(void) { return puts("greetings") < 0; }\n' > greet.c
printf 'all: greet\ninstall: greet\n\tinstall -D greet $(DESTDIR)/usr/bin/greet\n' > Makefile
printf '3.0 (native)\n' > debian/source/format
printf '#!/usr/bin/make -f\n%%:\n\tdh $@\n' > debian/rules && chmod +x debian/rules
cat > debian/control <<'C'
Source: greet
Maintainer: Ann <ann@example.org>
Build-Depends: debhelper-compat (= 13)
Rules-Requires-Root: binary-targets

Package: greet
Architecture: any
Depends: ${shlibs:Depends}, ${misc:Depends}
Description: greets
C
printf 'greet (1.0) unstable; urgency=low\n\n  * First.\n\n -- Ann <ann@example.org>  Sat, 01 Nov 2025 12:00:00 +0000\n' > debian/changelog
fakeroot dpkg-buildpackage -d -us -uc > /tmp/build.log 2>&1 || { tail -30 /tmp/build.log; exit 1; }
dpkg-deb -c ../greet_1.0_amd64.deb | awk '{ print $1, $2, $6 }' | grep greet$
E2
su ann -s /bin/sh /tmp/make
dpkg -i /tmp/greet_1.0_amd64.deb > /dev/null
greet
