//! Files that are in no directory: pipes, sockets, epoll, eventfd and the like.
//!
//! They are on kernel-internal mounts that are not in the mount tree; /proc/PID/fd shows their names
//! (`pipe:[12]`, `anon_inode:[eventfd]`).
//!
//! Owns these mounts, made once each. Never reached by a path, except through the magic links in /proc/PID. Locks: takes
//! none; each inode has the lock of its slot.
#![forbid(unsafe_code)]

use super::admission::admit;
use super::object::dentry::Dentry;
use super::object::file::{FileOps, OpenFile};
use super::object::filesystem::{FileSystem, Super, anonymous_dev};
use super::object::inode::{Inode, InodeAttr, Owner, SpecialSlot};
use super::object::mount::{Mount, MountFlags};
use super::object::path::Path;
use super::object::types::{DevId, Timestamp};
use crate::mm::fallible::try_arc;
use crate::sync::{Once, SpinLock};
use crate::try_format;
use abi::Errno;
use abi::Result;
use abi::fs::OpenFlags;
use abi::fs::Statfs;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// Which of the kernel's internal file systems a nameless file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnonFs {
    /// Pipes; named by inode number.
    Pipe,
    /// Sockets; named by inode number.
    Socket,
    /// Everything else; named by its label.
    Anon,
    /// Namespaces; procfs makes their inodes.
    Namespace,
}

struct Kind {
    name: &'static str,
    magic: i64,
    mount: Once<Arc<Mount>>,
}

static KINDS: [Kind; 4] = [
    Kind { name: "pipefs", magic: 0x5049_5045, mount: Once::new() },
    Kind { name: "sockfs", magic: 0x534f_434b, mount: Once::new() },
    Kind { name: "anon_inodefs", magic: 0x0904_1934, mount: Once::new() },
    Kind { name: "nsfs", magic: 0x6e73_6673, mount: Once::new() },
];

/// Relaxed: only uniqueness matters.
static NEXT_INO: AtomicU64 = AtomicU64::new(1024);

/// An inode that is nothing but its attributes.
struct AnonInode {
    attr: InodeAttr,
    /// Holds the pipe, for an open through /proc/PID/fd.
    special: SpecialSlot,
}

impl Inode for AnonInode {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }
    fn special(&self) -> Option<&SpecialSlot> {
        Some(&self.special)
    }
}

impl FileSystem for Kind {
    fn name(&self) -> &'static str {
        self.name
    }
    fn statfs(&self) -> Statfs {
        Statfs { kind: self.magic, bsize: 4096, frsize: 4096, namelen: 255, ..Statfs::default() }
    }
}

struct KindRef(&'static Kind);

impl FileSystem for KindRef {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn statfs(&self) -> Statfs {
        self.0.statfs()
    }
}

fn mount_of(fs: AnonFs) -> Result<&'static Arc<Mount>> {
    KINDS[fs as usize].mount.get().ok_or(Errno::ENODEV)
}

/// Makes the mounts that nameless files belong to: at boot, so that no program causes their allocation.
pub fn init() -> Result<()> {
    KINDS.iter().try_for_each(make_mount)
}

fn make_mount(kind: &'static Kind) -> Result<()> {
    let number = anonymous_dev()?;
    let dev = number.id();
    let attr = InodeAttr::new(
        dev,
        1,
        abi::fs::S_IFDIR,
        Owner::default(),
        DevId::NONE,
        Timestamp::default(),
    );
    let root = Dentry::new_root(try_arc(AnonInode { attr, special: SpinLock::new(None) })?, b"/")?;
    let sb = Super::new(try_arc(KindRef(kind))?, root.clone(), number, true)?;
    let mount = Mount::new(sb, root, kind.name.as_bytes(), MountFlags::empty())?;
    kind.mount.call_once(|| mount);
    Ok(())
}

/// Whether the inode was made here, by [`new_path`].
pub fn is_anonymous(inode: &dyn Inode) -> bool {
    inode.downcast::<AnonInode>().is_some()
}

/// The number of a new inode on one of these file systems.
pub fn next_number() -> u64 {
    NEXT_INO.fetch_add(1, Ordering::Relaxed)
}

/// A path for a new nameless file. `mode` is what `fstat` shows (a pipe: `S_IFIFO | 0o600`); `label` names
/// an [`AnonFs::Anon`] file, like `[eventfd]`.
pub fn new_path(fs: AnonFs, mode: u32, label: &str, owner: Owner) -> Result<Path> {
    let mount = mount_of(fs)?;
    let ino = next_number();
    let dev = mount.super_block().dev();
    let attr = InodeAttr::new(dev, ino, mode, owner, DevId::NONE, Timestamp::now());
    let name = match fs {
        AnonFs::Pipe => try_format!("pipe:[{ino}]")?,
        AnonFs::Socket => try_format!("socket:[{ino}]")?,
        AnonFs::Anon | AnonFs::Namespace => try_format!("anon_inode:{label}")?,
    };
    let dentry = Dentry::new_root(
        try_arc(AnonInode { attr, special: SpinLock::new(None) })?,
        name.as_bytes(),
    )?;
    Ok(Path { mount: mount.clone(), dentry })
}

/// The device number of one of these file systems.
pub fn kernel_device(fs: AnonFs) -> Result<DevId> {
    Ok(mount_of(fs)?.super_block().dev())
}

/// A path for an inode that is made elsewhere; /proc/PID/fd shows `name`.
pub fn path_of(fs: AnonFs, inode: Arc<dyn Inode>, name: &[u8]) -> Result<Path> {
    let dentry = Dentry::new_root(inode, name)?;
    Ok(Path { mount: mount_of(fs)?.clone(), dentry })
}

/// An open file that is in no directory, as eventfd, timerfd and epoll make them.
pub fn anonymous(
    ops: Arc<dyn FileOps>,
    label: &str,
    access: OpenFlags,
    nonblock: bool,
) -> Result<OpenFile> {
    let admission = admit()?;
    if crate::mm::kernel_memory_low() {
        return Err(Errno::ENOMEM);
    }
    let path = new_path(AnonFs::Anon, 0o600, label, Owner::default())?;
    let mut flags = access;
    flags.set(OpenFlags::NONBLOCK, nonblock);
    Ok(OpenFile::new(admission, ops, path, flags))
}
