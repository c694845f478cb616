#!/usr/bin/python3
"""`python3 -m http.server` on the loopback, read by urllib, BusyBox's wget and several threads at once."""
import hashlib
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

os.makedirs("/tmp/www", exist_ok=True)
data = bytes(i * 7 % 251 for i in range(300000))
with open("/tmp/www/file", "wb") as file:
    file.write(data)
server = subprocess.Popen(
    [sys.executable, "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", "/tmp/www"],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
url = "http://127.0.0.1:8000/"
for _ in range(600):
    try:
        urllib.request.urlopen(url).close()
        break
    except urllib.error.URLError:
        time.sleep(0.1)
same = []

def fetch():
    same.append(urllib.request.urlopen(url + "file").read() == data)

threads = [threading.Thread(target=fetch) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("urllib", same)
got = subprocess.run(["/bin/busybox", "wget", "-q", "-O", "-", url + "file"], capture_output=True).stdout
print("wget", hashlib.md5(got).hexdigest() == hashlib.md5(data).hexdigest())
try:
    urllib.request.urlopen(url + "none")
except urllib.error.HTTPError as error:
    print("missing", error.code)
server.terminate()
print("server", server.wait())
