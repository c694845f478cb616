//! mq_open and mq_unlink: queues by their names, which have no slash here.
//!
//! Owns nothing. Locks: the directory's mutex for changes, as `vfs::ops` does.

use super::filesystem::{Dir, directory};
use super::queue::{Queue, Shape};
use crate::mm::fallible::Room;
use crate::vfs::admission::admit;
use crate::vfs::namei::perm;
use crate::vfs::notify::{self, event};
use crate::vfs::{Cred, Dentry, OpenFile, Path, open, ops};
use abi::fs::OpenFlags;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// What `lookup_one_len` of Linux refuses: EACCES, also for what only paths have.
fn check_name(dir: &Path, name: &[u8], cred: &Cred) -> Result<()> {
    if name.is_empty() {
        return Err(Errno::ENOENT);
    }
    if name == b"." || name == b".." || name.contains(&b'/') {
        return Err(Errno::EACCES);
    }
    perm::check(&**dir.inode(), cred, perm::EXEC)
}

/// Opens a queue, or makes one. Errors as mq_open(2).
pub fn open(
    name: &[u8],
    flags: OpenFlags,
    mode: u32,
    shape: Option<Shape>,
    cred: &Arc<Cred>,
) -> Result<Arc<OpenFile>> {
    let admission = admit()?;
    let dir = directory()?;
    check_name(&dir, name, cred)?;
    // Without memory for the open file no queue is made.
    let room = Room::new()?;
    let dentry = find_or_make(&dir, name, flags, mode, shape, cred)?;
    let place = Path { mount: dir.mount, dentry };
    let file = open::open_made(admission, room, place, flags, cred)?;
    notify::file(&file, event::OPEN);
    Ok(file)
}

fn find_or_make(
    dir: &Path,
    name: &[u8],
    flags: OpenFlags,
    mode: u32,
    shape: Option<Shape>,
    cred: &Arc<Cred>,
) -> Result<Arc<Dentry>> {
    let _changes = dir.dentry.lock_changes()?;
    match dir.dentry.lookup(name) {
        Ok(_) if flags.contains(OpenFlags::CREAT | OpenFlags::EXCL) => Err(Errno::EEXIST),
        Ok(found) => {
            let want = match flags.bits() & 3 {
                0 => perm::READ,
                1 => perm::WRITE,
                2 => perm::READ | perm::WRITE,
                _ => return Err(Errno::EINVAL),
            };
            perm::check(&**found.inode(), cred, want)?;
            Ok(found)
        }
        Err(Errno::ENOENT) if flags.contains(OpenFlags::CREAT) => {
            dir.mount.check_writable()?;
            ops::create_with(dir, name, cred, || {
                let queues = dir.inode().downcast::<Dir>().ok_or(Errno::ENOSYS)?;
                let queue = Queue::new(dir.inode().attr().dev(), mode, shape, cred)?;
                Ok(queues.enter(queue))
            })
        }
        Err(error) => Err(error),
    }
}

/// Errors as mq_unlink(2).
pub fn unlink(name: &[u8], cred: &Cred) -> Result<()> {
    let dir = directory()?;
    dir.mount.check_writable()?;
    check_name(&dir, name, cred)?;
    ops::unlink_in(&dir, name, cred)
}
