# Python's own tests of the calls of POSIX and of fcntl.
# packages: python3 libpython3.11-testsuite
set -u
cd /tmp
python3 -m test -u none test_posix test_fcntl > log 2>&1
status=$?
grep -E '^(FAIL|ERROR):|^Tests result' log
exit $status
