#!/bin/bash
# Jobs, process substitution, coprocesses, here documents, traps and pipe status in bash.
for i in 1 2 3 4 5 6; do (exit $i) & pids[$i]=$!; done
for i in 1 2 3 4 5 6; do wait ${pids[$i]}; echo -n "$? "; done; echo
sum=0; while read -r n; do ((sum += n)); done < <(seq 1 500); echo "sum $sum"
coproc cat; echo "through a coprocess" >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
exec {COPROC[1]}>&-; wait "$COPROC_PID"; echo "coprocess $?"
true | false | (exit 3) | true; echo "status ${PIPESTATUS[*]}"
sort -n <(seq 5 -1 1) <(seq 10 -1 6) | tr '\n' ' '; echo
trap 'echo caught' USR1; kill -USR1 $$; echo after
(trap 'echo leaving' EXIT; exit 4); echo "left $?"
cat <<< "a here string" | md5sum
echo 'one way' > /dev/tcp/127.0.0.1/9 2> /dev/null || echo "nobody listens"
