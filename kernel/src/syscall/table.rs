//! The system-call table: number, name, handler, status.
//!
//! A row is `NUMBER NAME => HANDLER, STATUS;`. `cargo xtask syscalls` writes docs/abi.md from this file, and tidy
//! checks that it is up to date. A call that is not here returns `ENOSYS`.
//!
//! Owns the list. Never changed at run time. Locks: none.

use super::args::Handler;
use super::args::Status::{self, Full, Partial};
use super::event::{epoll, futex, pipe, poll};
use super::file::{dir, exec, fd, file, inotify, memfd, mount, path, splice, xattr};
use super::ipc::{mqueue, msg, sem, shm};
use super::net::{sendrecv, socket, sockopt};
use super::system::{log, misc, random};
use super::task::{
    cred, ioprio, kcmp, perf, pidfd, process, rseq, sched, sched_policy, seccomp, trace, unshare,
    wait,
};
use super::uring::{check, enter, register, setup};
use super::{counters, mm, signal, time};
use crate::arch::entry::frame::{SYSCALLS, SyscallTable, TrapFrame};
use counters::LEN;

macro_rules! syscalls {
    ($( $number:literal $name:ident => $handler:path, $status:expr; )*) => {
        /// The calls by number, reached from the entry code with interrupts on.
        pub static HANDLERS: SyscallTable = {
            let mut table: SyscallTable = [counters::no_such_call; SYSCALLS];
            $( table[$number] = {
                assert!($number < LEN, "the last entry answers for unknown calls");
                extern "C" fn $name(frame: &mut TrapFrame) -> i64 {
                    counters::count($number);
                    call(&$handler, frame)
                }
                $name
            }; )*
            table
        };

        /// Number, name and status of every call that is there.
        pub static NAMES: &[(u16, &str, Status)] = &[$( ($number, stringify!($name), $status), )*];
    };
}

#[inline(always)]
fn call<Args, H: Handler<Args>>(handler: &H, frame: &mut TrapFrame) -> i64 {
    handler.call(frame)
}

/// The number that a row's status begins with.
const fn leading_number(call: &str) -> usize {
    let mut row = 0;
    while !is_same(NAMES[row].1.as_bytes(), call.as_bytes()) {
        row += 1;
    }
    let Partial(said) = NAMES[row].2 else { panic!("the row says nothing") };
    let (mut number, mut at) = (0, 0);
    while said.as_bytes()[at].is_ascii_digit() {
        number = number * 10 + (said.as_bytes()[at] - b'0') as usize;
        at += 1;
    }
    number
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let (mut at, mut same) = (0, one.len() == other.len());
    while same && at < one.len() {
        same = one[at] == other[at];
        at += 1;
    }
    same
}

const _: () = assert!(leading_number("io_uring_enter") == check::BUILT, "as many as are built");

/// The name of a call and how much of it stands.
pub fn entry(number: usize) -> Option<(&'static str, Status)> {
    NAMES.iter().find(|(n, ..)| usize::from(*n) == number).map(|(_, name, status)| (*name, *status))
}

syscalls! {
    0 read => file::read, Full;
    1 write => file::write, Full;
    2 open => path::open, Full;
    3 close => fd::close, Full;
    4 stat => path::stat, Full;
    5 fstat => path::fstat, Full;
    6 lstat => path::lstat, Full;
    7 poll => poll::poll, Full;
    8 lseek => file::lseek, Full;
    9 mmap => mm::mmap, Full;
    10 mprotect => mm::mprotect, Full;
    11 munmap => mm::munmap, Full;
    12 brk => mm::brk, Full;
    13 rt_sigaction => signal::rt_sigaction, Full;
    14 rt_sigprocmask => signal::rt_sigprocmask, Full;
    15 rt_sigreturn => signal::rt_sigreturn, Full;
    16 ioctl => fd::ioctl, Full;
    17 pread64 => file::pread64, Full;
    18 pwrite64 => file::pwrite64, Full;
    19 readv => file::readv, Full;
    20 writev => file::writev, Full;
    21 access => path::access, Full;
    22 pipe => pipe::pipe, Full;
    23 select => poll::select, Full;
    24 sched_yield => sched::sched_yield, Full;
    25 mremap => mm::mremap, Full;
    26 msync => mm::msync, Full;
    27 mincore => mm::mincore, Full;
    28 madvise => mm::madvise, Full;
    29 shmget => shm::shmget, Partial("one namespace, no huge pages");
    30 shmat => shm::shmat, Full;
    31 shmctl => shm::shmctl, Full;
    32 dup => fd::dup, Full;
    33 dup2 => fd::dup2, Full;
    34 pause => signal::pause, Full;
    35 nanosleep => time::nanosleep, Full;
    36 getitimer => time::getitimer, Full;
    37 alarm => time::alarm, Full;
    38 setitimer => time::setitimer, Full;
    39 getpid => process::getpid, Full;
    40 sendfile => file::sendfile, Full;
    41 socket => socket::socket, Partial("AF_UNIX, AF_INET and AF_INET6 on a loopback, AF_NETLINK for routes; raw sockets see ICMP and each other; no packet sockets");
    42 connect => socket::connect, Full;
    43 accept => socket::accept, Full;
    44 sendto => sendrecv::sendto, Full;
    45 recvfrom => sendrecv::recvfrom, Full;
    46 sendmsg => sendrecv::sendmsg, Full;
    47 recvmsg => sendrecv::recvmsg, Full;
    48 shutdown => socket::shutdown, Full;
    49 bind => socket::bind, Full;
    50 listen => socket::listen, Full;
    51 getsockname => socket::getsockname, Full;
    52 getpeername => socket::getpeername, Full;
    53 socketpair => socket::socketpair, Full;
    54 setsockopt => sockopt::setsockopt, Partial("no filter chooses among the sockets of one port (SO_ATTACH_REUSEPORT_CBPF)");
    55 getsockopt => sockopt::getsockopt, Full;
    56 clone => process::clone, Partial("no namespaces");
    57 fork => process::fork, Full;
    58 vfork => process::vfork, Full;
    59 execve => exec::execve, Full;
    60 exit => process::exit, Full;
    61 wait4 => wait::wait4, Full;
    62 kill => signal::kill, Full;
    63 uname => misc::uname, Full;
    64 semget => sem::semget, Partial("one namespace");
    65 semop => sem::semop, Full;
    66 semctl => sem::semctl, Full;
    67 shmdt => shm::shmdt, Full;
    68 msgget => msg::msgget, Partial("one namespace");
    69 msgsnd => msg::msgsnd, Full;
    70 msgrcv => msg::msgrcv, Full;
    71 msgctl => msg::msgctl, Full;
    72 fcntl => fd::fcntl, Partial("no leases; O_ASYNC tells nothing of room at a serial port, nor of /dev/random");
    73 flock => fd::flock, Full;
    74 fsync => file::fsync, Full;
    75 fdatasync => file::fdatasync, Full;
    76 truncate => file::truncate, Full;
    77 ftruncate => file::ftruncate, Full;
    78 getdents => dir::getdents, Full;
    79 getcwd => dir::getcwd, Full;
    80 chdir => dir::chdir, Full;
    81 fchdir => dir::fchdir, Full;
    82 rename => dir::rename, Full;
    83 mkdir => dir::mkdir, Full;
    84 rmdir => dir::rmdir, Full;
    85 creat => path::creat, Full;
    86 link => dir::link, Full;
    87 unlink => dir::unlink, Full;
    88 symlink => dir::symlink, Full;
    89 readlink => path::readlink, Full;
    90 chmod => path::chmod, Full;
    91 fchmod => path::fchmod, Full;
    92 chown => path::chown, Full;
    93 fchown => path::fchown, Full;
    94 lchown => path::lchown, Full;
    95 umask => dir::umask, Full;
    96 gettimeofday => time::gettimeofday, Full;
    97 getrlimit => process::getrlimit, Full;
    98 getrusage => process::getrusage, Partial("the peak of children stays 0");
    99 sysinfo => misc::sysinfo, Full;
    100 times => time::times, Full;
    101 ptrace => trace::ptrace, Partial("no thread areas of 32-bit programs");
    102 getuid => cred::getuid, Full;
    103 syslog => log::syslog, Full;
    104 getgid => cred::getgid, Full;
    105 setuid => cred::setuid, Full;
    106 setgid => cred::setgid, Full;
    107 geteuid => cred::geteuid, Full;
    108 getegid => cred::getegid, Full;
    109 setpgid => process::setpgid, Full;
    110 getppid => process::getppid, Full;
    111 getpgrp => process::getpgrp, Full;
    112 setsid => process::setsid, Full;
    113 setreuid => cred::setreuid, Full;
    114 setregid => cred::setregid, Full;
    115 getgroups => cred::getgroups, Full;
    116 setgroups => cred::setgroups, Full;
    117 setresuid => cred::setresuid, Full;
    118 getresuid => cred::getresuid, Full;
    119 setresgid => cred::setresgid, Full;
    120 getresgid => cred::getresgid, Full;
    121 getpgid => process::getpgid, Full;
    122 setfsuid => cred::setfsuid, Full;
    123 setfsgid => cred::setfsgid, Full;
    124 getsid => process::getsid, Full;
    125 capget => cred::capget, Full;
    126 capset => cred::capset, Full;
    127 rt_sigpending => signal::rt_sigpending, Full;
    128 rt_sigtimedwait => signal::rt_sigtimedwait, Full;
    129 rt_sigqueueinfo => signal::rt_sigqueueinfo, Full;
    130 rt_sigsuspend => signal::rt_sigsuspend, Full;
    131 sigaltstack => signal::sigaltstack, Full;
    132 utime => path::utime, Full;
    133 mknod => dir::mknod, Full;
    135 personality => process::personality, Full;
    137 statfs => path::statfs, Full;
    138 fstatfs => path::fstatfs, Full;
    140 getpriority => sched::getpriority, Full;
    141 setpriority => sched::setpriority, Full;
    142 sched_setparam => sched_policy::sched_setparam, Full;
    143 sched_getparam => sched_policy::sched_getparam, Full;
    144 sched_setscheduler => sched_policy::sched_setscheduler, Full;
    145 sched_getscheduler => sched_policy::sched_getscheduler, Full;
    146 sched_get_priority_max => sched::sched_get_priority_max, Full;
    147 sched_get_priority_min => sched::sched_get_priority_min, Full;
    148 sched_rr_get_interval => sched::sched_rr_get_interval, Full;
    149 mlock => mm::mlock, Full;
    150 munlock => mm::munlock, Full;
    151 mlockall => mm::mlockall, Full;
    152 munlockall => mm::munlockall, Full;
    155 pivot_root => mount::pivot_root, Partial("EINVAL, as on Linux while the root is the initramfs");
    157 prctl => process::prctl, Partial("the options that programs use; others EINVAL");
    158 arch_prctl => process::arch_prctl, Full;
    159 adjtimex => time::adjtimex, Full;
    160 setrlimit => process::setrlimit, Full;
    161 chroot => dir::chroot, Full;
    162 sync => file::sync, Full;
    164 settimeofday => time::settimeofday, Full;
    165 mount => mount::mount, Partial("one namespace, no propagation");
    166 umount2 => mount::umount2, Full;
    169 reboot => misc::reboot, Full;
    170 sethostname => misc::sethostname, Full;
    171 setdomainname => misc::setdomainname, Full;
    186 gettid => process::gettid, Full;
    187 readahead => file::readahead, Full;
    188 setxattr => xattr::setxattr, Partial("no access lists");
    189 lsetxattr => xattr::lsetxattr, Partial("no access lists");
    190 fsetxattr => xattr::fsetxattr, Partial("no access lists");
    191 getxattr => xattr::getxattr, Partial("no access lists");
    192 lgetxattr => xattr::lgetxattr, Partial("no access lists");
    193 fgetxattr => xattr::fgetxattr, Partial("no access lists");
    194 listxattr => xattr::listxattr, Full;
    195 llistxattr => xattr::llistxattr, Full;
    196 flistxattr => xattr::flistxattr, Full;
    197 removexattr => xattr::removexattr, Partial("no access lists");
    198 lremovexattr => xattr::lremovexattr, Partial("no access lists");
    199 fremovexattr => xattr::fremovexattr, Partial("no access lists");
    200 tkill => signal::tkill, Full;
    201 time => time::time, Full;
    202 futex => futex::futex, Full;
    203 sched_setaffinity => sched::sched_setaffinity, Full;
    204 sched_getaffinity => sched::sched_getaffinity, Full;
    213 epoll_create => epoll::epoll_create, Full;
    217 getdents64 => dir::getdents64, Full;
    218 set_tid_address => process::set_tid_address, Full;
    219 restart_syscall => signal::restart_syscall, Full;
    220 semtimedop => sem::semtimedop, Full;
    221 fadvise64 => file::fadvise64, Partial("advice is checked and has nothing to act on: files are in memory");
    222 timer_create => time::timer_create, Full;
    223 timer_settime => time::timer_settime, Full;
    224 timer_gettime => time::timer_gettime, Full;
    225 timer_getoverrun => time::timer_getoverrun, Full;
    226 timer_delete => time::timer_delete, Full;
    227 clock_settime => time::clock_settime, Partial("who waits for the wall clock by io_uring keeps his time");
    228 clock_gettime => time::clock_gettime, Full;
    229 clock_getres => time::clock_getres, Full;
    230 clock_nanosleep => time::clock_nanosleep, Full;
    231 exit_group => process::exit_group, Full;
    232 epoll_wait => epoll::epoll_wait, Full;
    233 epoll_ctl => epoll::epoll_ctl, Full;
    234 tgkill => signal::tgkill, Full;
    235 utimes => path::utimes, Full;
    240 mq_open => mqueue::mq_open, Partial("one namespace");
    241 mq_unlink => mqueue::mq_unlink, Full;
    242 mq_timedsend => mqueue::mq_timedsend, Full;
    243 mq_timedreceive => mqueue::mq_timedreceive, Full;
    244 mq_notify => mqueue::mq_notify, Full;
    245 mq_getsetattr => mqueue::mq_getsetattr, Full;
    247 waitid => wait::waitid, Full;
    251 ioprio_set => ioprio::ioprio_set, Partial("CLONE_IO does not share it");
    252 ioprio_get => ioprio::ioprio_get, Full;
    253 inotify_init => inotify::inotify_init, Full;
    254 inotify_add_watch => inotify::inotify_add_watch, Full;
    255 inotify_rm_watch => inotify::inotify_rm_watch, Full;
    257 openat => path::openat, Full;
    258 mkdirat => dir::mkdirat, Full;
    259 mknodat => dir::mknodat, Full;
    260 fchownat => path::fchownat, Full;
    261 futimesat => path::futimesat, Full;
    262 newfstatat => path::newfstatat, Full;
    263 unlinkat => dir::unlinkat, Full;
    264 renameat => dir::renameat, Full;
    265 linkat => dir::linkat, Full;
    266 symlinkat => dir::symlinkat, Full;
    267 readlinkat => path::readlinkat, Full;
    268 fchmodat => path::fchmodat, Full;
    269 faccessat => path::faccessat, Full;
    270 pselect6 => poll::pselect6, Full;
    271 ppoll => poll::ppoll, Full;
    272 unshare => unshare::unshare, Partial("no namespaces");
    273 set_robust_list => futex::set_robust_list, Full;
    274 get_robust_list => futex::get_robust_list, Full;
    275 splice => splice::splice, Full;
    276 tee => pipe::tee, Full;
    277 sync_file_range => file::sync_file_range, Full;
    278 vmsplice => pipe::vmsplice, Full;
    280 utimensat => path::utimensat, Full;
    281 epoll_pwait => epoll::epoll_pwait, Full;
    282 signalfd => pipe::signalfd, Full;
    283 timerfd_create => pipe::timerfd_create, Full;
    284 eventfd => pipe::eventfd, Full;
    285 fallocate => file::fallocate, Partial("allocate and punch holes, as Linux's tmpfs");
    286 timerfd_settime => pipe::timerfd_settime, Full;
    287 timerfd_gettime => pipe::timerfd_gettime, Full;
    288 accept4 => socket::accept4, Full;
    289 signalfd4 => pipe::signalfd4, Full;
    290 eventfd2 => pipe::eventfd2, Full;
    291 epoll_create1 => epoll::epoll_create1, Full;
    292 dup3 => fd::dup3, Full;
    293 pipe2 => pipe::pipe2, Full;
    294 inotify_init1 => inotify::inotify_init1, Full;
    295 preadv => file::preadv, Full;
    296 pwritev => file::pwritev, Full;
    297 rt_tgsigqueueinfo => signal::rt_tgsigqueueinfo, Full;
    298 perf_event_open => perf::perf_event_open, Partial("software events and tracepoints of system calls and of the scheduler (switch, wakeup, process_fork, exec, exit; a filter compares numbers, not names), and breakpoints of tasks, counted and sampled: no hardware, no breakpoints of a whole CPU or in the kernel, no other tracepoints, no trace buffer in tracefs, no control groups; samples have no registers of the kernel; no THROTTLE");
    299 recvmmsg => sendrecv::recvmmsg, Full;
    302 prlimit64 => process::prlimit64, Full;
    305 clock_adjtime => time::clock_adjtime, Full;
    306 syncfs => file::syncfs, Full;
    307 sendmmsg => sendrecv::sendmmsg, Full;
    309 getcpu => process::getcpu, Full;
    310 process_vm_readv => trace::process_vm_readv, Full;
    311 process_vm_writev => trace::process_vm_writev, Full;
    312 kcmp => kcmp::kcmp, Partial("no KCMP_EPOLL_TFD");
    314 sched_setattr => sched_policy::sched_setattr, Partial("no SCHED_DEADLINE");
    315 sched_getattr => sched_policy::sched_getattr, Full;
    316 renameat2 => dir::renameat2, Partial("no RENAME_WHITEOUT");
    317 seccomp => seccomp::seccomp, Full;
    318 getrandom => random::getrandom, Full;
    319 memfd_create => memfd::memfd_create, Partial("no huge pages");
    322 execveat => exec::execveat, Full;
    324 membarrier => mm::membarrier, Full;
    325 mlock2 => mm::mlock2, Full;
    326 copy_file_range => file::copy_file_range, Full;
    327 preadv2 => file::preadv2, Partial("RWF_NOWAIT for random devices only, no RWF_APPEND");
    328 pwritev2 => file::pwritev2, Partial("RWF_NOWAIT for random devices only, no RWF_APPEND");
    332 statx => path::statx, Full;
    334 rseq => rseq::rseq, Partial("mm_cid is the number of the CPU");
    424 pidfd_send_signal => pidfd::pidfd_send_signal, Partial("no directories of /proc in place of a pidfd");
    425 io_uring_setup => setup::io_uring_setup, Partial("SQPOLL without a thread that polls: NEED_WAKEUP is always set, and who wakes takes the entries himself; no SQE128, CQE32, NO_MMAP, REGISTERED_FD_ONLY: EINVAL");
    426 io_uring_enter => enter::io_uring_enter, Partial("51 operations (PROBE lists them); what waits goes on when a task of the process that made the ring enters it, or when the thread that submitted it returns to user mode, whose interruptible sleep ends for it: TASKRUN is set meanwhile, and a poll of the ring says so; another process that holds the ring gets EAGAIN for what would wait, but for polls and times, which go on when anybody enters the ring; what waits for a process that is gone is cancelled at the next entry; an open waits for no other end of a fifo, not even where Linux leaves it to its pool (O_CREAT, a name that is not cached); what must block otherwise does so in the call; multishot of POLL_ADD, RECV, RECVMSG, ACCEPT and TIMEOUT only; buffers are selected for READ, RECV and RECVMSG only, not in bundles; SEND_ZC and SENDMSG_ZC copy; while a request with a personality runs, checks that others make of its task see those credentials; FUTEX_REQUEUE does not move a FUTEX_WAIT, and a wake-up comes to threads first; no FUTEX_WAITV, READ_MULTISHOT, URING_CMD, extended attributes; a failed READ gives a buffer of a list back; a multishot ACCEPT heeds RLIMIT_NOFILE when it accepts; SOCK_NONEMPTY is never set");
    427 io_uring_register => register::io_uring_register, Partial("PROBE, FILES, FILES2, FILES_UPDATE, FILES_UPDATE2, FILE_ALLOC_RANGE, BUFFERS, EVENTFD, PERSONALITY, RESTRICTIONS, ENABLE_RINGS, RING_FDS, SYNC_CANCEL, PBUF_RING, PBUF_STATUS; RLIMIT_MEMLOCK for each registration alone; a personality that was taken back fails what waits for its link; registered files for transfers only; registered buffers and rings of buffers are found by their addresses, not pinned, and only by the process that made the ring; rings of buffers in user memory only (no PBUF_RING_MMAP, no PBUF_RING_INC); 65536 provided buffers a ring; no tags of files, no BUFFERS2, no clones of buffers, no limits of workers (there are none)");
    434 pidfd_open => pidfd::pidfd_open, Full;
    435 clone3 => process::clone3, Partial("no namespaces, no set_tid, no cgroup");
    436 close_range => fd::close_range, Full;
    437 openat2 => path::openat2, Full;
    438 pidfd_getfd => pidfd::pidfd_getfd, Full;
    439 faccessat2 => path::faccessat2, Full;
    441 epoll_pwait2 => epoll::epoll_pwait2, Full;
    447 memfd_secret => memfd::memfd_secret, Full;
    452 fchmodat2 => path::fchmodat2, Full;
}
