# Writes and reads files with fio by io_uring, each byte verified, in each of its ways.
# packages: fio
set -eu
cd /tmp
# Field 5 is the error, 6 and 47 are KiB read and written.
say() {
    awk -F';' -v what="$1" '{ print what ": error", $5, "read", $6, "written", $47 } $5 != 0 { bad = 1 } END { exit bad || NR == 0 }' out
}
try() {
    fio --name=job --filename=file --size=2m --bs=4k --ioengine=io_uring --iodepth=16 --verify=crc32c --do_verify=1 \
        --verify_fatal=1 --minimal --terse-version=3 "$@" > out || { cat out; exit 1; }
    say "fio $*"
}
try --rw=write
try --rw=randwrite
try --rw=write --fixedbufs=1
try --rw=randwrite --registerfiles=1
try --rw=randwrite --registerfiles=1 --fixedbufs=1 --iodepth_batch_submit=8 --iodepth_batch_complete_min=4
try --rw=write --sqthread_poll=1
try --rw=write --nonvectored=0
fio --name=load --filename=file --size=2m --bs=4k --ioengine=io_uring --iodepth=32 --rw=randread --numjobs=3 --thread --minimal > out
say "three threads"
