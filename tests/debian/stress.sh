# Stressors of stress-ng, which check what they do, end as on Linux: some here, all with `cargo xtask stress`.
# packages: stress-ng
set -u
stressors=${stressors:-"mutex sched schedpolicy get fork futex mmap pipe sem timer sigq set"}
users=${users:-"root user"} seconds=${seconds:-1} limit=${limit:-60}
[ "$stressors" = all ] && stressors=$(stress-ng --stressors)
echo "-- stressors of stress-ng"
cd /tmp
umask 0
for user in $users; do
	as=
	[ "$user" = user ] && as="setpriv --reuid 1000 --regid 1000 --clear-groups --inh-caps=-all"
	for name in $stressors; do
		[ -n "${tells:-}" ] && echo "begins $user $name"
		mkdir room && cd room || exit 1
		timeout -s KILL "$limit" $as stress-ng --"$name" 1 --timeout "$seconds" --verify --oomable \
			--temp-path /tmp/room > /tmp/said 2>&1 < /dev/null
		status=$?
		cd ..
		case $status in
		0) verdict=well ;;
		2) verdict=fails ;;
		3) verdict="no resources" ;;
		4) verdict="not implemented" ;;
		137) verdict="no end" ;;
		*) verdict="status $status" ;;
		esac
		echo "$user $name: $verdict"
		[ -n "${tells:-}" ] && [ $status -ne 0 ] && grep -m 2 "fail:\|error:\|warn:" said | sed "s/^/  /"
		[ $status -eq 137 ] && kill -KILL -1
		rm -rf room
	done
done
