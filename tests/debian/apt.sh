# Installs three packages from a repository of files, runs them, and removes them.
# packages: apt-utils
# repository: hello ed bc libreadline8 readline-common
set -eu
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/repository ./' > /etc/apt/sources.list
apt-get -qq update
apt-get -qq -y install hello ed bc > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
hello
echo '6 * 7' | bc
printf '1p\nq\n' | ed -s /etc/hostname
apt-get -qq -y purge hello ed bc > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
[ ! -e /usr/bin/hello ]
dpkg --audit
dpkg -V apt bash coreutils dpkg
