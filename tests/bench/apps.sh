# What people run: each job's time in nanoseconds of the guest and a sum of what it printed, as `cargo xtask bench --apps` reads them.
# packages: git rsync zstd sqlite3 redis-server redis-tools nginx-light apache2-utils python3 perl gcc libc6-dev make openssl file
# The argument says which: files, packages, databases, servers, languages or compiler.
set -eu
cd /tmp
now() { date +%s%N; }

# app NAME FUNCTION: a line `app NAME NANOSECONDS SUM`; a first run brings in the files.
app() {
	for run in warm measured; do
		rm -rf work
		mkdir work
		begin=$(now)
		(cd work && "$2") > out.txt 2> err.txt || { echo "$1 failed:"; cat out.txt err.txt; exit 1; }
		end=$(now)
	done
	echo "app $1 $((end - begin)) $(cksum < out.txt | cut -d ' ' -f 1)"
}

sum_of() { (cd "$1" && find . -type f | sort | xargs cat | cksum); }

copy() {
	cp -a /tmp/tree copy
	sum_of copy
	rm -r copy
}
archive() {
	tar -C /tmp -cf - tree | zstd -q -3 > tree.zst
	zstd -q -dc tree.zst | tar -xf -
	sum_of tree
}
synchronise() {
	rsync -a /tmp/tree/ copy/
	touch copy/CPAN.pm
	rsync -a --checksum /tmp/tree/ copy/
	sum_of copy
}
search() {
	find /tmp/tree -type f -name '*.p[lm]' | sort | xargs grep -c 'sub ' | cksum
	grep -rl 'use strict' /tmp/tree | wc -l
}
history() {
	export GIT_AUTHOR_DATE='2026-01-01 00:00:00 +0000' GIT_COMMITTER_DATE='2026-01-01 00:00:00 +0000' HOME=/tmp/work
	git config --global user.name a
	git config --global user.email a@b
	git init -q one
	cp -a /tmp/tree one/tree
	cd one
	git add -A
	git commit -q -m one
	cd ..
	git clone -q one two
	git -C two gc -q
	git -C two fsck --no-progress
	git -C two rev-parse HEAD
}
# Perl's own modules: about 600 files, and as many bytes as a project of some size has.
take_tree() {
	cp -a /usr/share/perl/5.*.* /tmp/tree
	rm -rf /tmp/tree/unicore
}
of_files() {
	take_tree
	app "cp -a and rm -r of a tree" copy
	app "tar and zstd, both ways" archive
	app "rsync, twice" synchronise
	app "find and grep" search
	app "git: commit, clone, gc, fsck" history
}

package() {
	mkdir -p one/DEBIAN one/usr/share/one
	cp -a /tmp/tree/. one/usr/share/one/
	printf 'Package: one\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: one\n' > one/DEBIAN/control
	dpkg-deb -Zgzip --build one one.deb > /dev/null
	dpkg -i one.deb > /dev/null
	dpkg -L one | wc -l
	dpkg -V one
	dpkg -r one > /dev/null
}
of_packages() {
	take_tree
	app "dpkg: build, install, verify, remove" package
}

rows() {
	{
		echo 'pragma synchronous = full; create table t (a integer primary key, b text, c real); create index i on t (b);'
		i=0
		while [ $i -lt 100 ]; do
			echo "insert into t (b, c) values ('row $i', $i / 7.0);"
			i=$((i + 1))
		done
		echo 'begin; with recursive n(x) as (select 1 union all select x + 1 from n where x < 20000)'
		echo "insert into t (b, c) select 'more ' || (x * 7919 % 20000), x / 3.0 from n; commit;"
		echo 'select count(*), sum(c) from t; select b from t order by b limit 5; delete from t where a % 3 = 0; vacuum; select count(*) from t;'
	} | sqlite3 rows.db
}
keys() {
	redis-server --port 7000 --save '' --daemonize yes --logfile /dev/null > /dev/null
	until redis-cli -p 7000 ping > /dev/null 2>&1; do sleep 0.01; done
	redis-benchmark -p 7000 -q -n 10000 -c 20 -r 1000 -t set,get,lpush,lpop > /dev/null
	redis-cli -p 7000 llen mylist
	redis-cli -p 7000 shutdown nosave || true
}
of_databases() {
	app "sqlite3: 100 transactions, 20,000 rows" rows
	app "redis-benchmark: 40,000 requests of 20 clients" keys
}

pages() {
	mkdir www logs
	head -c 10000 /usr/bin/perl > www/page
	printf 'daemon on; pid %s/pid; error_log /dev/null; events {} http { access_log off; server { listen 7001; root %s/www; } }' "$PWD" "$PWD" > conf
	nginx -p "$PWD" -c "$PWD/conf"
	ab -q -k -n 3000 -c 10 http://127.0.0.1:7001/page | grep -E '^(Complete|Failed|HTML)'
	ab -q -n 1000 -c 10 http://127.0.0.1:7001/page | grep -E '^(Complete|Failed|HTML)'
	nginx -p "$PWD" -c "$PWD/conf" -s stop
}
of_servers() { app "nginx: 4,000 requests of ab" pages; }

python_starts() { for i in 1 2 3 4 5 6 7 8 9 10; do python3 -c 'import json, re; print(json.dumps({"a": 1}))'; done; }
python_works() {
	python3 -c '
words = {}
for i in range(60000):
    words.setdefault(str(i * 7919 % 1000), []).append(i)
print(len(words), sum(len(v) * int(k) for k, v in words.items()))
print(sorted((str(i * 31 % 5000) for i in range(20000)))[:5])
'
}
perl_works() {
	for i in 1 2 3 4 5 6 7 8 9 10; do perl -MPOSIX -e 'print floor(3.7), "\n"'; done
	perl -e 'my %w; $w{$_ * 7919 % 1000} .= $_ for 1 .. 100000; print length(join "", map { $w{$_} } sort keys %w), "\n"'
}
digests() {
	head -c 8000000 /dev/zero > zeros
	openssl dgst -sha256 zeros
	openssl enc -aes-256-ctr -K 00 -iv 00 -in zeros 2> /dev/null | openssl dgst -sha256
	for i in 1 2 3 4 5; do openssl version; done
}
of_languages() {
	app "python3: ten starts" python_starts
	app "python3: dictionaries and strings" python_works
	app "perl: ten starts and hashes" perl_works
	app "openssl: digests, a cipher, five starts" digests
}

objects() {
	i=0
	while [ $i -lt 12 ]; do
		printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f%d(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * %d %% 7; return s; }\n' $i $i > f$i.c
		i=$((i + 1))
	done
	printf '#include <stdio.h>\n' > main.c
	seq 0 11 | sed 's/.*/int f&(int n);/' >> main.c
	printf 'int main(void) {\n' >> main.c
	seq 0 11 | sed 's/.*/printf("%d\\n", f&(1000));/' >> main.c
	printf 'return 0; }\n' >> main.c
	printf 'OBJS = main.o %s\nall: $(OBJS)\n\tgcc -o all $(OBJS)\n%%.o: %%.c\n\tgcc -O2 -c $<\n' "$(seq -s ' ' 0 11 | sed 's/[0-9]*/f&.o/g')" > Makefile
	make -s -j4
	./all
}
of_compiler() { app "make -j4 of 13 files, gcc -O2" objects; }

"of_$1"
