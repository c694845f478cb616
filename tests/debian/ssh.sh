# sshd with PAM, as Debian sets it up: commands, a terminal, files both ways, a forwarded port.
# packages: openssh-server openssh-client adduser procps
set -eu
grep -q '^UsePAM yes' /etc/ssh/sshd_config
adduser --quiet --disabled-password --gecos '' ann
mkdir -p /run/sshd ~/.ssh
ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519
install -d -o ann -g ann -m 700 ~ann/.ssh
install -o ann -g ann -m 600 ~/.ssh/id_ed25519.pub ~ann/.ssh/authorized_keys
/usr/sbin/sshd -E /tmp/log
options='-o StrictHostKeyChecking=no -o LogLevel=ERROR -o BatchMode=yes'
fail() { cat /tmp/log; exit 1; }
ssh $options ann@localhost 'id -un; exit 7' && fail || [ $? = 7 ] || fail
ssh $options -tt ann@localhost 'tty > /dev/null && echo a terminal' < /dev/null | tr -d '\r' || fail
head -c 3000000 /dev/urandom > /tmp/there
scp -q $options /tmp/there ann@localhost:there || fail
scp -q $options ann@localhost:there /tmp/back || fail
cmp /tmp/there /tmp/back && echo copied
ssh $options -f -N -L 2222:localhost:22 ann@localhost || fail
ssh $options -p 2222 ann@localhost 'echo forwarded' || fail
kill $(cat /run/sshd.pid)
