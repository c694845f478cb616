# Paths to this machine: ping, traceroute and tracepath, by IPv4 and IPv6; what nstat, netstat and ss count of them.
# packages: iproute2 net-tools iputils-ping iputils-tracepath traceroute
set -eu
ip link set lo up
# Times differ.
still() { sed -E 's/[0-9.]+ ?ms/TIME/g; s/ +/ /g; s/(= )[0-9./]+TIME/\1TIME/'; }
ping -n -c 2 -i 0.2 localhost | still
ping -n -c 1 -t 1 127.0.0.1 | still
ping -6 -n -c 1 ::1 | still
! ping -n -c 1 -M do -s 65508 127.0.0.1 2>&1
# Without -w a probe counts as lost that takes three times as long as another, which on a busy host it may.
for how in '' -I -U -6 '-6 -I' '-q 1 --mtu'; do
	echo "traceroute $how"
	traceroute -n -w 5 $how localhost 2>&1 | still
done
tracepath -n localhost 2>&1 | still
tracepath -6 -n ::1 2>&1 | still
# Counters and sockets. What crossed depends on the tools above, so only what must be there is asked.
nstat -asz | awk '{ print $1 }' | sort | grep -cE '^(Ip|Icmp|Tcp|Udp|TcpExt|IpExt)' | awk '{ print ($1 > 200) }'
nstat -az UdpNoPorts IcmpOutDestUnreachs | awk 'NR > 1 { print $1, ($2 > 0) }'
netstat -s 2>&1 | sed -E 's/[0-9]+/N/g' | grep -E 'total packets received|incoming packets delivered|ICMP messages received|packets to unknown port|segments sent out'
ss -s | sed -E 's/[0-9]+/N/g; s/ +/ /g'
