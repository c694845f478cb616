# cron runs what the system's table says, through PAM, within a minute and a half.
# packages: cron
set -eu
echo '* * * * * root /usr/bin/id -un > /tmp/ran.new && mv /tmp/ran.new /tmp/ran' > /etc/cron.d/alea
cron
for second in $(seq 90); do
	[ -s /tmp/ran ] && break
	sleep 1
done
cat /tmp/ran
