# PostgreSQL makes a cluster, starts, serves pgbench's four clients, and stops.
# packages: postgresql-15
set -eu
export PGHOST=/tmp PATH=/usr/lib/postgresql/15/bin:$PATH
as() { su postgres -s /bin/sh -c "PATH=$PATH; cd /tmp; $1"; }
as 'pg_ctl initdb -s -D /tmp/cluster -o --no-sync' > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
as 'pg_ctl start -s -w -D /tmp/cluster -l /tmp/server -o "-k /tmp"' || { cat /tmp/server; exit 1; }
as 'createdb bench && pgbench -q -i bench 2> /tmp/filled' || { cat /tmp/filled; exit 1; }
as 'pgbench -n -c 4 -t 50 bench' 2>&1 | grep -E 'clients|processed|failed'
as "psql -At bench -c 'select count(*) from pgbench_history'"
as 'pg_ctl stop -s -w -m fast -D /tmp/cluster'
