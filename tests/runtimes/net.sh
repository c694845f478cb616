#!/bin/sh
# BusyBox's own network programs on the loopback: httpd and wget, nc both ways, ping, ifconfig, ip, route, nslookup.
cd /tmp || exit
mkdir -p www/cgi-bin www/sub
seq 1 20000 >www/numbers
echo "<b>index</b>" >www/index.html
echo "in a folder" >www/sub/file.txt
printf '#!/bin/sh\necho "Content-type: text/plain"\necho\necho "asked $REQUEST_METHOD $QUERY_STRING"\ncat\n' >www/cgi-bin/echo
chmod 755 www/cgi-bin/echo
# Waits until something listens at a port.
listens() {
	for _ in $(seq 600); do
		grep -qi ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 && return
		sleep 0.1
	done
	echo "nothing listens at $1"
}
httpd -p 127.0.0.1:8080 -h www
listens 8080
wget -q -O - http://127.0.0.1:8080/
wget -q -O - http://localhost:8080/sub/file.txt
wget -q -O - http://127.0.0.1:8080/numbers | md5sum
wget -q -O - "http://127.0.0.1:8080/cgi-bin/echo?a=1&b=2"
wget -q -O - --post-data "posted words" http://127.0.0.1:8080/cgi-bin/echo
echo
wget -q -O none http://127.0.0.1:8080/missing || echo "missing: $?"
wget -q -O /dev/null http://127.0.0.1:9/ 2>/dev/null || echo "refused: $?"
for n in 1 2 3 4 5 6 7 8; do wget -q -O "got$n" http://127.0.0.1:8080/numbers & done
wait
cat got? | md5sum
killall httpd
# nc: an echoing server, then nobody.
nc -ll -p 7002 -e cat &
server=$!
listens 7002
for n in 1 2 3; do echo "echo $n" | nc 127.0.0.1 7002; done
seq 1 50000 | nc 127.0.0.1 7002 | md5sum
kill $server
nc -z 127.0.0.1 9 2>/dev/null || echo "nobody: $?"
# One line each, without times.
ping -c 3 -i 0.1 127.0.0.1 | sed 's/time=.*//; s/ms.*//; /round-trip/d'
ping -6 -c 2 -i 0.1 ::1 | sed 's/time=.*//; /round-trip/d'
ifconfig lo | sed '/bytes\|packets/d'
ip addr show lo | sed 's/valid_lft.*//'
route -n
nslookup localhost 127.0.0.1 2>&1 | grep -c refused
hostname
