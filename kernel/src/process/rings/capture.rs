//! What the arguments of system calls point to, copied when the call begins or ends.
//!
//! Owns the table of which calls have what. Reads user memory of the running task, which may fault: with nothing held.
//! Random bytes are never copied. Locks: none.

use crate::mm::user::{read_cstr_into, read_partial};
use zerocopy::IntoBytes;

/// When it is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Enter,
    /// The call succeeded.
    Leave,
}

/// What an argument points to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Capture {
    /// A path, or another text that a NUL ends.
    Text(u8),
    /// As many bytes as another argument says.
    Bytes(u8, u8),
    /// As many as the call returns.
    Result(u8),
    /// A structure of so many bytes.
    Fixed(u8, u16),
    /// As many structures of so many bytes as another argument says.
    Array(u8, u8, u16),
}

use Capture::{Array, Bytes, Fixed, Result, Text};

/// Most bytes of a path.
const TEXT: usize = 240;

/// Bytes of a `struct stat`.
const STAT: u16 = 144;

/// What is copied of a call.
pub(super) const fn of(number: u32, when: When) -> &'static [Capture] {
    match when {
        When::Enter => at_entry(number),
        When::Leave => at_end(number),
    }
}

const fn at_entry(number: u32) -> &'static [Capture] {
    match number {
        // open, stat, lstat, access, execve, truncate, chdir, mkdir, rmdir, creat, unlink, readlink, chmod, chown, lchown,
        // mknod, statfs, chroot, umount2, swapon, utime, utimes, setxattr and its like, memfd_create, mq_open, fsopen
        2
        | 4
        | 6
        | 21
        | 59
        | 76
        | 80
        | 83..=85
        | 87
        | 89
        | 90
        | 92
        | 94
        | 132
        | 133
        | 137
        | 161
        | 166
        | 235
        | 319 => &[Text(0)],
        // rename, link, symlink
        82 | 86 | 88 => &[Text(0), Text(1)],
        // mount
        165 => &[Text(0), Text(1), Text(2)],
        // setxattr, getxattr, removexattr and those of links
        188 | 189 | 191 | 192 | 197 | 198 => &[Text(0), Text(1)],
        // listxattr, llistxattr
        194 | 195 => &[Text(0)],
        // openat, mkdirat, mknodat, fchownat, futimesat, newfstatat, unlinkat, readlinkat, fchmodat, faccessat,
        // utimensat and the rest
        254 | 257..=263 | 267..=269 | 280 | 322 | 332 | 439 => &[Text(1)],
        // renameat, linkat, renameat2
        264 | 265 | 316 => &[Text(1), Text(3)],
        // symlinkat
        266 => &[Text(0), Text(2)],
        // openat2
        437 => &[Text(1), Fixed(2, 24)],
        // write, pwrite64
        1 | 18 => &[Bytes(1, 2)],
        // connect, bind
        42 | 49 => &[Bytes(1, 2)],
        // sendto
        44 => &[Bytes(1, 2), Bytes(4, 5)],
        // poll
        7 => &[Array(0, 1, 8)],
        // rt_sigaction, rt_sigprocmask
        13 => &[Fixed(1, 32)],
        14 => &[Fixed(1, 8)],
        // nanosleep, clock_nanosleep, prlimit64
        35 => &[Fixed(0, 16)],
        230 | 302 => &[Fixed(2, 16)],
        // clone3
        435 => &[Fixed(0, 88)],
        _ => &[],
    }
}

const fn at_end(number: u32) -> &'static [Capture] {
    match number {
        // read, pread64, recvfrom, readlink
        0 | 17 | 45 | 89 => &[Result(1)],
        // getcwd
        79 => &[Result(0)],
        // readlinkat
        267 => &[Result(2)],
        // stat, fstat, lstat, newfstatat
        4..=6 => &[Fixed(1, STAT)],
        262 => &[Fixed(2, STAT)],
        // poll
        7 => &[Array(0, 1, 8)],
        // rt_sigprocmask
        14 => &[Fixed(2, 8)],
        // pipe, pipe2, socketpair, wait4
        22 | 293 => &[Fixed(0, 8)],
        53 => &[Fixed(3, 8)],
        61 => &[Fixed(1, 4)],
        // gettimeofday, clock_gettime, getrlimit, prlimit64
        96 => &[Fixed(0, 16)],
        97 | 228 => &[Fixed(1, 16)],
        302 => &[Fixed(3, 16)],
        _ => &[],
    }
}

/// Which argument, whether there was more, how many bytes: the word before the bytes.
fn label(arg: u8, is_cut: bool, len: usize) -> u64 {
    u64::from(arg) | u64::from(is_cut) << 8 | (len as u64) << 16
}

/// Copies what there is room for, of bytes at most `most`: how many words of `to` it takes. What cannot be read is left out.
pub(super) fn copy(
    captures: &[Capture],
    args: &[u64; 6],
    result: u64,
    most: usize,
    to: &mut [u64],
) -> usize {
    let mut used = 0;
    for capture in captures {
        let Some((place, rest)) = to.get_mut(used..).and_then(<[u64]>::split_first_mut) else {
            break;
        };
        let (arg, want, most) = match *capture {
            Text(arg) => (arg, usize::MAX, TEXT),
            Bytes(arg, len) => (arg, args[usize::from(len)] as usize, most),
            Result(arg) => (arg, result as usize, most),
            Fixed(arg, len) => (arg, len.into(), len.into()),
            Array(arg, count, size) => {
                let len = (args[usize::from(count)] as usize).saturating_mul(size.into());
                (arg, len, most - most % usize::from(size))
            }
        };
        let addr = args[usize::from(arg)];
        let room = want.min(most).min(size_of_val(rest));
        let bytes = &mut rest.as_mut_bytes()[..room];
        let (len, is_cut) = match capture {
            _ if addr == 0 => continue,
            Text(_) => match read_cstr_into(addr, bytes) {
                Ok(Some(len)) => (len, false),
                Ok(None) => (room, true),
                Err(_) => continue,
            },
            Fixed(..) if read_partial(addr, bytes) < want => continue,
            Fixed(..) => (room, false),
            _ => match read_partial(addr, bytes) {
                0 if want > 0 && room > 0 => continue,
                len => (len, len < want),
            },
        };
        *place = label(arg, is_cut, len);
        used += 1 + len.div_ceil(8);
    }
    used
}
