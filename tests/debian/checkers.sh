# Valgrind, ltrace and the sanitizers of gcc find what is wrong with programs, and say what these call.
# packages: valgrind ltrace gcc libc6-dev libc6-dbg
set -u
cd /tmp
cat > wrong.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static int shared;
static void *races(void *unused) { (void)unused; for (int n = 0; n < 1000; n++) shared++; return NULL; }
static void threads(void)
{
	pthread_t one, two;
	pthread_create(&one, NULL, races, NULL);
	pthread_create(&two, NULL, races, NULL);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
}
int main(int argc, char **argv)
{
	char *volatile memory = malloc(40);
	char *volatile lost = malloc(123);
	strcpy(memory, "some text");
	switch (argc > 1 ? argv[1][0] : 0) {
	case 'o': memory[40] = 1; break;
	case 'u': if (memory[20] == 3) puts("never"); break;
	case 'f': free(memory); printf("%d\n", memory[3] != 0); return 0;
	case 'l': lost = NULL; break;
	case 'r': threads(); break;
	case 's': { volatile int big = 0x7fffffff; printf("%d\n", big + argc - 1); break; }
	case 'c': if (fork() == 0) { memory[41] = 2; _exit(3); } wait(NULL); break;
	default: threads(); puts(memory);
	}
	free(memory);
	free(lost);
	return 0;
}
C
gcc -g -O0 -pthread -o wrong wrong.c
clean() { sed -e 's/==[0-9]*==/==PID==/' -e 's/0x[0-9A-Fa-f]*/ADDR/g'; }
echo "-- memcheck"
for kind in o u f l c; do
	valgrind -q --leak-check=full --error-exitcode=9 --track-origins=yes ./wrong $kind > out.txt 2>&1
	echo "$kind: status $?"; clean < out.txt | grep -v "vg_replace\|libc" | head -20
done
valgrind -q --error-exitcode=9 ./wrong; echo "status $?"
echo "-- helgrind"
valgrind -q --tool=helgrind --error-exitcode=9 ./wrong r > out.txt 2>&1; echo "status $?"
grep -o "Possible data race.*of size 4" out.txt | sed 's/0x[0-9A-F]*/ADDR/' | sort -u
echo "-- callgrind, massif"
valgrind -q --tool=callgrind --callgrind-out-file=calls.txt ./wrong > /dev/null 2>&1; echo "status $?"
callgrind_annotate calls.txt 2>/dev/null | grep -c "wrong.c:races"
valgrind -q --tool=massif --massif-out-file=heap.txt ./wrong > /dev/null 2>&1; echo "status $?"; grep -c "^snapshot=" heap.txt | sed 's/[0-9][0-9]*/some/'
echo "-- a program of Debian's under memcheck"
valgrind -q --error-exitcode=9 ls -d /etc/passwd; echo "status $?"
valgrind -q --trace-children=yes --error-exitcode=9 sh -c 'echo one | cat; exit 4'; echo "status $?"
echo "-- the address sanitizer, with leaks"
gcc -g -O0 -pthread -fsanitize=address -o asan wrong.c
for kind in o f l; do
	./asan $kind > out.txt 2>&1; echo "$kind: status $?"
	grep -o "ERROR: [A-Za-z]*: [a-z-]*\|SUMMARY: .*" out.txt | sed -e 's/0x[0-9a-f]*/ADDR/' -e 's|/[^ ]*/||'
done
./asan; echo "status $?"
echo "-- the thread sanitizer"
gcc -g -O1 -pthread -fsanitize=thread -o tsan wrong.c
./tsan r > out.txt 2>&1; echo "status $?"; grep -o "WARNING: ThreadSanitizer: [a-z ]*" out.txt | sort -u
echo "-- the one for undefined behaviour"
gcc -g -O0 -pthread -fsanitize=undefined -o ubsan wrong.c
./ubsan s; echo "status $?"
echo "-- ltrace"
ltrace -o trace.txt ./wrong l; echo "status $?"; clean < trace.txt
ltrace -f -c -o trace.txt ./wrong c; echo "status $?"; awk '$5 ~ /^[a-z]+$/ && $4 > 0 { print $5, $4 }' trace.txt | sort
ltrace -S -o trace.txt -e puts ./wrong; grep -o "puts([^)]*\|SYS_exit_group([0-9]*\|SYS_write([^)]*" trace.txt | clean
