/*
 * BusyBox's network programs over the loopback: httpd and wget (pages, CGI, errors, several at once), nc as client and as server,
 * ping by IPv4 and IPv6, ip and ifconfig. The longer form of this is the unit busybox:net of `cargo xtask runtimes`.
 */
#include "net.h"

static const char script[] =
	"mkdir -p www/cgi-bin\n"
	"seq 1 20000 >www/numbers\n"
	"echo '<b>index</b>' >www/index.html\n"
	"printf '#!/bin/sh\\necho Content-type: text/plain\\necho\\necho \"$REQUEST_METHOD $QUERY_STRING\"\\ncat\\n' >www/cgi-bin/echo\n"
	"chmod 755 www/cgi-bin/echo\n"
	"listens() { for _ in $(seq 600); do grep -qi \":$(printf %04X $1) 0*:0000 0A\" /proc/net/tcp /proc/net/tcp6 && return; sleep 0.1; done;\n"
	"  echo nothing listens at $1; }\n"
	"httpd -f -p 127.0.0.1:8080 -h www &\n"
	"server=$!\n"
	"listens 8080\n"
	"wget -q -O - http://127.0.0.1:8080/\n"
	"wget -q -O - http://localhost:8080/numbers | md5sum\n"
	"wget -q -O - 'http://127.0.0.1:8080/cgi-bin/echo?a=1'\n"
	"wget -q -O - --post-data 'posted words' http://127.0.0.1:8080/cgi-bin/echo; echo\n"
	"wget -q -O none http://127.0.0.1:8080/missing 2>&1; echo missing: $?\n"
	"for n in 1 2 3 4; do wget -q -O got$n http://127.0.0.1:8080/numbers & pids=\"$pids $!\"; done\n"
	"wait $pids; cat got? | md5sum\n"
	"{ kill $server; wait $server; } 2>/dev/null\n"
	"wget -q -O none http://127.0.0.1:8080/ 2>/dev/null; echo refused: $?\n"
	"nc -ll -p 7002 -e cat & server=$!\n"
	"listens 7002; seq 1 5000 | nc 127.0.0.1 7002 | md5sum; { kill $server; wait $server; } 2>/dev/null\n"
	"ping -c 2 -i 0.1 127.0.0.1 | sed 's/time=.*//; /round-trip/d'\n"
	"ping -6 -c 1 ::1 | sed 's/time=.*//; /round-trip/d'\n"
	"ifconfig lo | sed '/bytes\\|packets/d'\n"
	"ip link show lo\n";

int main(void)
{
	net_up();
	scratch();
	/* Where names of hosts come from; the guest may have none. */
	if (access("/etc/hosts", R_OK) != 0)
		write_file("/etc/hosts", "127.0.0.1 localhost\n");
	fflush(stdout);
	pid_t pid = (pid_t)MUST(fork());
	if (pid == 0) {
		dup2(1, 2);
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(127);
	}
	say_status("script", reap(pid));
	return 0;
}
