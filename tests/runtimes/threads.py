#!/usr/bin/python3
"""Threads, queues, locks, subprocesses and pipes: prints what it computed, the same on every kernel."""
import concurrent.futures
import queue
import subprocess
import sys
import threading

done = queue.Queue()
total = 0
lock = threading.Lock()

def work(number):
    global total
    for i in range(200):
        with lock:
            total += number * i
    done.put(number)

threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("threads", sorted(done.get() for _ in threads) == list(range(16)), total)

def child(number):
    program = f"import sys; print(sum(map(int, sys.stdin.read().split())) + {number})"
    result = subprocess.run([sys.executable, "-c", program], input="1 2 3", capture_output=True, text=True, check=True)
    return int(result.stdout)

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print("subprocesses", list(pool.map(child, range(6))))
print("status", subprocess.call(["bash", "-c", "exit 7"]), subprocess.call(["bash", "-c", "kill -9 $$"]))
