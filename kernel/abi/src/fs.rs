//! Files: open flags, modes, stat structures, directory entries.

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// "The current directory" as a directory descriptor.
pub const AT_FDCWD: i32 = -100;
/// Longest path, its NUL included.
pub const PATH_MAX: usize = 4096;
/// Longest name of one component.
pub const NAME_MAX: usize = 255;

bitflags! {
    /// `open` flags. The two lowest bits are the access mode: 0 read, 1 write, 2 both, 3 neither.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct OpenFlags: u32 {
        const WRONLY = 1;
        const RDWR = 2;
        const CREAT = 0o100;
        const EXCL = 0o200;
        const NOCTTY = 0o400;
        const TRUNC = 0o1000;
        const APPEND = 0o2000;
        const NONBLOCK = 0o4000;
        const DSYNC = 0o10000;
        const ASYNC = 0o20000;
        const DIRECT = 0o40000;
        const LARGEFILE = 0o100_000;
        const DIRECTORY = 0o200_000;
        const NOFOLLOW = 0o400_000;
        const NOATIME = 0o1_000_000;
        const CLOEXEC = 0o2_000_000;
        const SYNC_BIT = 0o4_000_000;
        const PATH = 0o10_000_000;
        const TMPFILE_BIT = 0o20_000_000;
    }
}

impl OpenFlags {
    /// `O_TMPFILE` as programs pass it.
    pub const TMPFILE: Self = Self::TMPFILE_BIT.union(Self::DIRECTORY);
    /// `O_SYNC` as programs pass it.
    pub const SYNC: Self = Self::SYNC_BIT.union(Self::DSYNC);

    /// Access mode 0 or 2.
    #[inline]
    pub const fn readable(self) -> bool {
        matches!(self.bits() & 3, 0 | 2)
    }

    /// Access mode 1 or 2.
    #[inline]
    pub const fn writable(self) -> bool {
        matches!(self.bits() & 3, 1 | 2)
    }
}

bitflags! {
    /// `AT_*` flags of the *at calls.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct AtFlags: u32 {
        const SYMLINK_NOFOLLOW = 0x100;
        /// `AT_REMOVEDIR` and `AT_EACCESS` share a value.
        const REMOVEDIR = 0x200;
        const SYMLINK_FOLLOW = 0x400;
        const NO_AUTOMOUNT = 0x800;
        const EMPTY_PATH = 0x1000;
        const STATX_FORCE_SYNC = 0x2000;
        const STATX_DONT_SYNC = 0x4000;
        const RECURSIVE = 0x8000;
    }
}

impl AtFlags {
    /// For `faccessat2`.
    pub const EACCESS: Self = Self::REMOVEDIR;
}

bitflags! {
    /// `poll` events; epoll's share the values.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct PollEvents: u32 {
        const IN = 0x1;
        const PRI = 0x2;
        const OUT = 0x4;
        const ERR = 0x8;
        const HUP = 0x10;
        const NVAL = 0x20;
        const RDNORM = 0x40;
        const RDBAND = 0x80;
        const WRNORM = 0x100;
        const WRBAND = 0x200;
        const MSG = 0x400;
        const RDHUP = 0x2000;
    }
}

impl PollEvents {
    /// Readable, as ordinary files report it.
    pub const READABLE: Self = Self::IN.union(Self::RDNORM);
    /// Writable, as ordinary files report it.
    pub const WRITABLE: Self = Self::OUT.union(Self::WRNORM);
    /// Always ready both ways: what a file without a `poll` of its own reports.
    pub const ALWAYS: Self = Self::READABLE.union(Self::WRITABLE);
}

/// File type bits of a mode.
pub const S_IFMT: u32 = 0o170_000;
pub const S_IFSOCK: u32 = 0o140_000;
pub const S_IFLNK: u32 = 0o120_000;
pub const S_IFREG: u32 = 0o100_000;
pub const S_IFBLK: u32 = 0o060_000;
pub const S_IFDIR: u32 = 0o040_000;
pub const S_IFCHR: u32 = 0o020_000;
pub const S_IFIFO: u32 = 0o010_000;
pub const S_ISUID: u32 = 0o4000;
pub const S_ISGID: u32 = 0o2000;
pub const S_ISVTX: u32 = 0o1000;

/// `struct stat`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Stat {
    pub dev: u64,
    pub ino: u64,
    pub nlink: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub pad0: u32,
    pub rdev: u64,
    pub size: i64,
    pub blksize: i64,
    pub blocks: i64,
    pub atime: i64,
    pub atime_nsec: u64,
    pub mtime: i64,
    pub mtime_nsec: u64,
    pub ctime: i64,
    pub ctime_nsec: u64,
    pub unused: [i64; 3],
}

/// `struct statx_timestamp`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StatxTimestamp {
    pub sec: i64,
    pub nsec: u32,
    pub reserved: i32,
}

/// `struct statx`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Statx {
    pub mask: u32,
    pub blksize: u32,
    pub attributes: u64,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub mode: u16,
    pub spare0: u16,
    pub ino: u64,
    pub size: u64,
    pub blocks: u64,
    pub attributes_mask: u64,
    pub atime: StatxTimestamp,
    pub btime: StatxTimestamp,
    pub ctime: StatxTimestamp,
    pub mtime: StatxTimestamp,
    pub rdev_major: u32,
    pub rdev_minor: u32,
    pub dev_major: u32,
    pub dev_minor: u32,
    pub mnt_id: u64,
    pub dio_mem_align: u32,
    pub dio_offset_align: u32,
    pub subvol: u64,
    pub spare3: [u64; 11],
}

/// `struct statfs`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Statfs {
    pub kind: i64,
    pub bsize: i64,
    pub blocks: u64,
    pub bfree: u64,
    pub bavail: u64,
    pub files: u64,
    pub ffree: u64,
    pub fsid: [i32; 2],
    pub namelen: i64,
    pub frsize: i64,
    pub flags: i64,
    pub spare: [i64; 4],
}

/// `struct open_how` of `openat2`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OpenHow {
    pub flags: u64,
    pub mode: u64,
    pub resolve: u64,
}

/// `struct flock`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Flock {
    pub kind: i16,
    pub whence: i16,
    pub pad0: u32,
    pub start: i64,
    pub len: i64,
    pub pid: i32,
    pub pad1: u32,
}

/// Packs a device number as `st_rdev` carries it.
pub const fn makedev(major: u32, minor: u32) -> u64 {
    ((major as u64 & 0xffff_f000) << 32)
        | ((major as u64 & 0xfff) << 8)
        | ((minor as u64 & 0xffff_ff00) << 12)
        | (minor as u64 & 0xff)
}

/// Major number of a packed device number.
pub const fn major(dev: u64) -> u32 {
    (((dev >> 8) & 0xfff) | ((dev >> 32) & 0xffff_f000)) as u32
}

/// Minor number of a packed device number.
pub const fn minor(dev: u64) -> u32 {
    ((dev & 0xff) | ((dev >> 12) & 0xffff_ff00)) as u32
}
