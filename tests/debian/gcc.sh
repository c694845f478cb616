# Compiles and runs a program with threads, shared and static.
# packages: gcc libc6-dev
set -eu
cd /tmp
cat > hello.c <<'C'
#include <pthread.h>
#include <stdio.h>
static void *greet(void *name) { printf("hello, %s\n", (char *)name); return NULL; }
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, greet, "world");
	return pthread_join(thread, NULL);
}
C
gcc -Wall -Werror -O2 -pthread hello.c
./a.out
gcc -static -g -pthread hello.c -o static
./static
