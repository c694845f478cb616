//! Small types that every file system shares: times, metadata, attribute changes, directory entries.
//!
//! Plain values; no locks.

use abi::fs as lx;

/// What kind of object an inode is; fixed at its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FileType {
    Fifo = 1,
    Char = 2,
    Dir = 4,
    Block = 6,
    Regular = 8,
    Symlink = 10,
    Socket = 12,
    /// Files whose `st_mode` has no type bits (epoll, eventfd, ...).
    Anon = 0,
}

impl FileType {
    /// The type in `mode`, [`Anon`](Self::Anon) without type bits; `None` if the bits name no type.
    pub const fn from_mode(mode: u32) -> Option<Self> {
        Some(match mode & lx::S_IFMT {
            lx::S_IFIFO => Self::Fifo,
            lx::S_IFCHR => Self::Char,
            lx::S_IFDIR => Self::Dir,
            lx::S_IFBLK => Self::Block,
            lx::S_IFREG => Self::Regular,
            lx::S_IFLNK => Self::Symlink,
            lx::S_IFSOCK => Self::Socket,
            0 => Self::Anon,
            _ => return None,
        })
    }

    /// `d_type` of a directory entry.
    pub const fn dirent_type(self) -> u8 {
        self as u8
    }

    /// Character or block device.
    pub const fn is_device(self) -> bool {
        matches!(self, Self::Char | Self::Block)
    }
}

/// A device number, packed as `st_rdev` carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct DevId(pub u64);

impl DevId {
    /// No device.
    pub const NONE: Self = Self(0);

    /// From its two numbers.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self(lx::makedev(major, minor))
    }

    /// The major number: which driver.
    pub const fn major(self) -> u32 {
        lx::major(self.0)
    }

    /// The minor number: which of the driver's devices.
    pub const fn minor(self) -> u32 {
        lx::minor(self.0)
    }
}

/// A point in wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub secs: i64,
    /// 0 to 999,999,999.
    pub nanos: u32,
}

impl Timestamp {
    /// The time of the wall clock.
    #[inline]
    pub fn now() -> Self {
        let now = crate::time::realtime();
        // 64 bits of nanoseconds: the seconds fit, and the rest is below a second.
        Self { secs: now.secs() as i64, nanos: now.subsec() as u32 }
    }
}

/// The four times of an inode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    pub atime: Timestamp,
    pub mtime: Timestamp,
    pub ctime: Timestamp,
    pub btime: Timestamp,
}

/// Everything `stat` reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Metadata {
    pub dev: DevId,
    pub ino: u64,
    /// Type and permission bits.
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub rdev: DevId,
    pub size: u64,
    /// In units of 512 bytes.
    pub blocks: u64,
    pub blksize: u32,
    pub times: Times,
}

/// What permissions are decided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// Attributes to change; permission has been checked by the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetAttr {
    /// By these: the change is made only if they are the same still.
    pub checked: Option<Rights>,
    /// Permission bits only (0o7777).
    pub mode: Option<u32>,
    /// Bits of the mode to take away, whatever the others are by then: the set-id bits.
    pub drops: u32,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<Timestamp>,
    pub mtime: Option<Timestamp>,
    /// The time of the change, for `ctime`.
    pub now: Timestamp,
}

/// One entry that `readdir` emits.
#[derive(Clone, Copy, Debug)]
pub struct DirEntry<'a> {
    pub name: &'a [u8],
    pub ino: u64,
    pub kind: FileType,
    /// The cursor after this entry (`d_off`): `lseek` to it continues with the next one.
    pub next: u64,
}
