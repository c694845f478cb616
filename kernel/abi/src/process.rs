//! Structures of process calls: `struct rusage`, `struct clone_args`.

use crate::time::Timeval;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct rusage`; times, peak resident KiB, faults and switches are filled, the rest is zero as on Linux.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Rusage {
    pub utime: Timeval,
    pub stime: Timeval,
    /// Peak resident set in KiB.
    pub maxrss: i64,
    pub ixrss: i64,
    pub idrss: i64,
    pub isrss: i64,
    pub minflt: i64,
    pub majflt: i64,
    pub nswap: i64,
    pub inblock: i64,
    pub oublock: i64,
    pub msgsnd: i64,
    pub msgrcv: i64,
    pub nsignals: i64,
    pub nvcsw: i64,
    pub nivcsw: i64,
}

/// `struct clone_args` in its longest version.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CloneArgsRaw {
    pub flags: u64,
    pub pidfd: u64,
    pub child_tid: u64,
    pub parent_tid: u64,
    pub exit_signal: u64,
    pub stack: u64,
    pub stack_size: u64,
    pub tls: u64,
    pub set_tid: u64,
    pub set_tid_size: u64,
    pub cgroup: u64,
}

/// `struct sched_attr` in its longest version.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SchedAttr {
    pub size: u32,
    pub policy: u32,
    pub flags: u64,
    pub nice: i32,
    pub priority: u32,
    pub runtime: u64,
    pub deadline: u64,
    pub period: u64,
    pub util_min: u32,
    pub util_max: u32,
}

impl SchedAttr {
    /// Without what was added later.
    pub const SIZE_VER0: usize = 48;

    /// Hands the first `size` bytes on.
    pub fn write_first<R>(&self, size: usize, write: impl FnOnce(&[u8]) -> R) -> R {
        let bytes = self.as_bytes();
        write(&bytes[..size.min(bytes.len())])
    }
}

/// Flags of [`SchedAttr`].
pub mod sched_flags {
    pub const RESET_ON_FORK: u64 = 1;
    pub const KEEP_POLICY: u64 = 8;
    pub const KEEP_PARAMS: u64 = 16;
    pub const UTIL_CLAMP: u64 = 0x60;
    /// All that Linux 6.12 knows.
    pub const ALL: u64 = 0x7f;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_linuxs() {
        assert_eq!(size_of::<Rusage>(), 144);
        assert_eq!(size_of::<CloneArgsRaw>(), 88);
        assert_eq!(size_of::<SchedAttr>(), 56);
    }
}

/// Settings of `personality`.
pub mod personality {
    pub const ADDR_NO_RANDOMIZE: u32 = 0x0004_0000;
    pub const MMAP_PAGE_ZERO: u32 = 0x0010_0000;
    pub const ADDR_COMPAT_LAYOUT: u32 = 0x0020_0000;
    pub const READ_IMPLIES_EXEC: u32 = 0x0040_0000;
    /// What a set-id program does not inherit.
    pub const CLEAR_ON_SETID: u32 =
        READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT | MMAP_PAGE_ZERO;
}
