# What Debian's tools say of processes: name spaces, bytes moved, threads, memory.
# packages: procps util-linux
set -eu
# Linux has a kernel thread with mounts of its own.
lsns -n -p $$ -o TYPE,NS 2>&1 | sort
lsns -n -t net -o NPROCS | awk '{ print ($1 > 0) }'
readlink /proc/1/ns/net /proc/self/ns/user
sh -c 'echo written; cat /etc/os-release > /dev/null; awk "/char|sysc/ { print \$1, (\$2 > 0) }" /proc/$$/io'
cat /proc/self/uid_map /proc/self/setgroups
cut -d: -f1 /proc/self/net/dev | tail -n 1
# The settings of Debian itself, a file of one's own, and all that there are.
sysctl --system
printf 'vm.swappiness = 60\nkernel.printk = 3 4 1 3\nvm.overcommit_memory = 1\n' > /tmp/own.conf
sysctl -p /tmp/own.conf
sysctl -a 2>&1 >/dev/null
sysctl -n kernel.printk vm.overcommit_memory fs.nr_open
