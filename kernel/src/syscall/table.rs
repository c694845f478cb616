//! The system-call table: number, name, handler, status.
//!
//! A row is `NUMBER NAME => HANDLER, STATUS;`. `cargo xtask syscalls` writes docs/abi.md from this file, and tidy
//! checks that it is up to date. A call that is not here returns `ENOSYS`.

use super::Status::{self, Full, Partial};
use super::args::Handler;
use crate::arch::trap::TrapFrame;

/// Takes the registers, returns what goes to `rax`.
pub type Entry = fn(&mut TrapFrame) -> i64;

/// One more than the highest number in the table.
const LEN: usize = 470;

macro_rules! syscalls {
    ($( $number:literal $name:ident => $handler:path, $status:expr; )*) => {
        /// Dispatch by number.
        pub static HANDLERS: [Entry; LEN] = {
            let mut table: [Entry; LEN] = [super::no_such_call; LEN];
            $( table[$number] = |frame: &mut TrapFrame| call(&$handler, frame); )*
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

/// The name of a call, for traces and messages.
pub fn name(number: u64) -> Option<&'static str> {
    NAMES.iter().find(|(n, ..)| u64::from(*n) == number).map(|(_, name, _)| *name)
}

syscalls! {
    0 read => super::file::read, Full;
    1 write => super::file::write, Full;
    2 open => super::path::open, Full;
    3 close => super::fd::close, Full;
    4 stat => super::path::stat, Full;
    5 fstat => super::path::fstat, Full;
    6 lstat => super::path::lstat, Full;
    8 lseek => super::file::lseek, Full;
    16 ioctl => super::fd::ioctl, Full;
    17 pread64 => super::file::pread64, Full;
    18 pwrite64 => super::file::pwrite64, Full;
    19 readv => super::file::readv, Full;
    20 writev => super::file::writev, Full;
    21 access => super::path::access, Full;
    32 dup => super::fd::dup, Full;
    33 dup2 => super::fd::dup2, Full;
    40 sendfile => super::file::sendfile, Full;
    72 fcntl => super::fd::fcntl, Partial("no leases, no F_NOTIFY");
    73 flock => super::fd::flock, Full;
    74 fsync => super::file::fsync, Full;
    75 fdatasync => super::file::fdatasync, Full;
    76 truncate => super::file::truncate, Full;
    77 ftruncate => super::file::ftruncate, Full;
    78 getdents => super::dir::getdents, Full;
    79 getcwd => super::dir::getcwd, Full;
    80 chdir => super::dir::chdir, Full;
    81 fchdir => super::dir::fchdir, Full;
    82 rename => super::dir::rename, Full;
    83 mkdir => super::dir::mkdir, Full;
    84 rmdir => super::dir::rmdir, Full;
    85 creat => super::path::creat, Full;
    86 link => super::dir::link, Full;
    87 unlink => super::dir::unlink, Full;
    88 symlink => super::dir::symlink, Full;
    89 readlink => super::path::readlink, Full;
    90 chmod => super::path::chmod, Full;
    91 fchmod => super::path::fchmod, Full;
    92 chown => super::path::chown, Full;
    93 fchown => super::path::fchown, Full;
    94 lchown => super::path::lchown, Full;
    95 umask => super::dir::umask, Full;
    102 getuid => super::cred::getuid, Full;
    104 getgid => super::cred::getgid, Full;
    105 setuid => super::cred::setuid, Full;
    106 setgid => super::cred::setgid, Full;
    107 geteuid => super::cred::geteuid, Full;
    108 getegid => super::cred::getegid, Full;
    113 setreuid => super::cred::setreuid, Full;
    114 setregid => super::cred::setregid, Full;
    115 getgroups => super::cred::getgroups, Full;
    116 setgroups => super::cred::setgroups, Full;
    117 setresuid => super::cred::setresuid, Full;
    118 getresuid => super::cred::getresuid, Full;
    119 setresgid => super::cred::setresgid, Full;
    120 getresgid => super::cred::getresgid, Full;
    122 setfsuid => super::cred::setfsuid, Full;
    123 setfsgid => super::cred::setfsgid, Full;
    125 capget => super::cred::capget, Full;
    126 capset => super::cred::capset, Full;
    132 utime => super::path::utime, Full;
    133 mknod => super::dir::mknod, Full;
    137 statfs => super::path::statfs, Full;
    138 fstatfs => super::path::fstatfs, Full;
    155 pivot_root => super::mount::pivot_root, Partial("EINVAL, as on Linux while the root is the initramfs");
    161 chroot => super::dir::chroot, Full;
    162 sync => super::file::sync, Full;
    165 mount => super::mount::mount, Partial("one namespace, no propagation");
    166 umount2 => super::mount::umount2, Full;
    187 readahead => super::file::readahead, Full;
    188 setxattr => super::path::setxattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    189 lsetxattr => super::path::lsetxattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    190 fsetxattr => super::path::fsetxattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    191 getxattr => super::path::getxattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    192 lgetxattr => super::path::lgetxattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    193 fgetxattr => super::path::fgetxattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    194 listxattr => super::path::listxattr, Full;
    195 llistxattr => super::path::llistxattr, Full;
    196 flistxattr => super::path::flistxattr, Full;
    197 removexattr => super::path::removexattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    198 lremovexattr => super::path::lremovexattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    199 fremovexattr => super::path::fremovexattr, Partial("EOPNOTSUPP: no file system keeps attributes");
    217 getdents64 => super::dir::getdents64, Full;
    221 fadvise64 => super::file::fadvise64, Full;
    235 utimes => super::path::utimes, Full;
    257 openat => super::path::openat, Full;
    258 mkdirat => super::dir::mkdirat, Full;
    259 mknodat => super::dir::mknodat, Full;
    260 fchownat => super::path::fchownat, Full;
    261 futimesat => super::path::futimesat, Full;
    262 newfstatat => super::path::newfstatat, Full;
    263 unlinkat => super::dir::unlinkat, Full;
    264 renameat => super::dir::renameat, Full;
    265 linkat => super::dir::linkat, Full;
    266 symlinkat => super::dir::symlinkat, Full;
    267 readlinkat => super::path::readlinkat, Full;
    268 fchmodat => super::path::fchmodat, Full;
    269 faccessat => super::path::faccessat, Full;
    277 sync_file_range => super::file::sync_file_range, Full;
    280 utimensat => super::path::utimensat, Full;
    285 fallocate => super::file::fallocate, Partial("allocate and punch holes, as Linux's tmpfs");
    292 dup3 => super::fd::dup3, Full;
    295 preadv => super::file::preadv, Full;
    296 pwritev => super::file::pwritev, Full;
    306 syncfs => super::file::syncfs, Full;
    316 renameat2 => super::dir::renameat2, Partial("no RENAME_WHITEOUT");
    318 getrandom => super::random::getrandom, Full;
    319 memfd_create => super::fd::memfd_create, Partial("no huge pages");
    326 copy_file_range => super::file::copy_file_range, Full;
    327 preadv2 => super::file::preadv2, Partial("no RWF_NOWAIT, no RWF_APPEND");
    328 pwritev2 => super::file::pwritev2, Partial("no RWF_NOWAIT, no RWF_APPEND");
    332 statx => super::path::statx, Full;
    436 close_range => super::fd::close_range, Full;
    437 openat2 => super::path::openat2, Full;
    439 faccessat2 => super::path::faccessat2, Full;
    452 fchmodat2 => super::path::fchmodat2, Full;
}
