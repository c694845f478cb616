//! mqueue: the file system of queues, which has one directory, and the kernel's own mount of it, by which mq_open finds them.
//!
//! Owns the one instance. Never keeps the directory's contents: the dentries are the directory. Locks: none.

use super::queue::Queue;
use crate::mm::fallible::try_arc;
use crate::process::current;
use crate::sync::Once;
use crate::vfs::object::filesystem::anonymous_dev;
use crate::vfs::{
    Dentry, DevId, FileSystem, FileType, Inode, InodeAttr, Metadata, Mount, MountFlags, Owner,
    Path, SetAttr, Super, Timestamp,
};
use abi::fs::{S_IFDIR, Statfs};
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

const MAGIC: i64 = 0x1980_0202;
/// What the directory's length grows by with each queue, as in Linux.
const ENTRY_SIZE: u64 = 20;

static MOUNT: Once<Arc<Mount>> = Once::new();

struct Mqueue;

impl FileSystem for Mqueue {
    fn name(&self) -> &'static str {
        "mqueue"
    }
    fn statfs(&self) -> Statfs {
        Statfs { kind: MAGIC, bsize: 4096, frsize: 4096, namelen: 255, ..Statfs::default() }
    }
}

/// The directory.
pub(super) struct Dir {
    attr: InodeAttr,
    /// Relaxed: for show; the directory's mutex orders the writers.
    length: AtomicU64,
}

impl Dir {
    /// A queue came (1) or went (-1).
    fn changed(&self, by: i64) {
        let length = self.size().saturating_add_signed(by * ENTRY_SIZE as i64);
        self.length.store(length, Ordering::Relaxed);
        let now = Timestamp::now();
        self.attr.update_times(|times| {
            (times.atime, times.mtime, times.ctime) = (now, now, now);
        });
    }

    /// Enters a new queue, as mq_open or open made it.
    pub(super) fn enter(&self, queue: Arc<Queue>) -> Arc<dyn Inode> {
        self.changed(1);
        queue
    }
}

impl Inode for Dir {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }

    fn meta(&self) -> Metadata {
        Metadata { size: self.size(), ..self.attr.metadata() }
    }

    fn size(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    fn set_attr(&self, change: &SetAttr) -> Result<bool> {
        Ok(self.attr.apply(change))
    }

    fn create(&self, _: &[u8], mode: u32, _: DevId, _: Owner) -> Result<Arc<dyn Inode>> {
        if FileType::from_mode(mode) != Some(FileType::Regular) {
            return Err(Errno::EPERM);
        }
        let cred = current().cred_arc();
        Ok(self.enter(Queue::new(self.attr.dev(), mode, None, &cred)?))
    }

    fn unlink(&self, _: &[u8], target: &Arc<dyn Inode>) -> Result<()> {
        self.changed(-1);
        target.attr().add_nlink(-1);
        Ok(())
    }
}

/// Makes the instance and lets it be mounted.
pub fn init() -> Result<()> {
    let number = anonymous_dev()?;
    let (owner, mode) = (Owner::default(), S_IFDIR | 0o1777);
    let attr = InodeAttr::new(number.id(), 1, mode, owner, DevId::NONE, Timestamp::now());
    let root = try_arc(Dir { attr, length: AtomicU64::new(2 * ENTRY_SIZE) })?;
    let sb = Super::new(try_arc(Mqueue)?, Dentry::new_root(root, b"/")?, number, true)?;
    let root = sb.root().clone();
    let mount = Mount::new(sb, root, b"mqueue", MountFlags::empty())?;
    MOUNT.call_once(|| mount);
    crate::vfs::registry::register("mqueue", |options| {
        crate::vfs::registry::refuse_options(options)?;
        Ok(directory()?.mount.super_block().clone())
    });
    Ok(())
}

/// The directory, where nobody needs to have it mounted.
pub fn directory() -> Result<Path> {
    let mount = MOUNT.get().ok_or(Errno::ENOSYS)?;
    Ok(Path::root_of(mount.clone()))
}
