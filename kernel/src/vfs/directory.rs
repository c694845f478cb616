//! Open directories: `getdents` over the dentry tree, for every file system; and the operations of `O_PATH` files, all of
//! which fail.
//!
//! Owns where each open directory's listing ends, and the one object that all `O_PATH` files share. Never blocks while it
//! emits entries of a dentry's table. Locks: the spinlocks of that table and of the entry, while the entry is emitted.
#![forbid(unsafe_code)]

use super::object::dentry::Dentry;
use super::object::file::{FileOps, OpenFile};
use super::object::inode::DYNAMIC_CURSOR;
use super::object::seek::Whence;
use super::object::types::{DirEntry, FileType};
use crate::mm::fallible::try_arc;
use crate::mm::{Sink, Source};
use crate::sync::Once;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::cell::Cell;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};

/// An open directory.
struct DirOps {
    /// The cursor at which this listing ends: the end of the directory when the listing began. Without it, a
    /// program that renames each name that it reads would never reach the end. Relaxed: written and read under the
    /// file's position lock.
    end: AtomicU64,
}

struct PathOps;

static PATH_OPS: Once<Arc<PathOps>> = Once::new();

/// The operations of a newly opened directory.
pub fn ops() -> Result<Arc<dyn FileOps>> {
    Ok(try_arc(DirOps { end: AtomicU64::new(u64::MAX) })?)
}

/// The operations of every `O_PATH` file: none works.
pub fn path_ops() -> Result<Arc<dyn FileOps>> {
    let made = match PATH_OPS.get() {
        Some(made) => made,
        None => {
            let new = try_arc(PathOps)?;
            PATH_OPS.call_once(|| new)
        }
    };
    Ok(made.clone())
}

impl FileOps for DirOps {
    fn read(&self, _: &OpenFile, _: &mut Sink<'_>, _: &mut u64) -> Result<usize> {
        Err(Errno::EISDIR)
    }
    fn write(&self, _: &OpenFile, _: &mut Source<'_>, _: &mut u64) -> Result<usize> {
        Err(Errno::EISDIR)
    }
    fn lseek(&self, _: &OpenFile, pos: u64, offset: i64, whence: Whence) -> Result<u64> {
        match whence {
            Whence::Set | Whence::Cur => whence.resolve(pos, 0, offset),
            _ => Err(Errno::EINVAL),
        }
    }
    fn fsync(&self, _: &OpenFile, _: bool) -> Result<()> {
        Ok(())
    }
}

impl FileOps for PathOps {}

/// Emits the entries of an open directory from cursor `pos` on, until `emit` returns false; returns the cursor
/// to continue from. `emit` runs with spinlocks held: it must neither block nor touch user memory, nor take many entries.
#[inline]
pub fn iterate(
    file: &OpenFile,
    pos: u64,
    mut emit: impl FnMut(DirEntry<'_>) -> bool,
) -> Result<u64> {
    let (dir, open) = begin(file, pos)?;
    let mut at = pos;
    let mut emit = |entry: DirEntry<'_>| {
        let next = entry.next;
        let taken = emit(entry);
        if taken {
            at = next;
        }
        taken
    };
    let end = Cell::new(open.end.load(Ordering::Relaxed));
    // Set again with the table locked: an entry that was moved since has a cursor above the end that `begin` saw.
    let begins = |all| {
        if pos == 0 {
            open.end.store(all, Ordering::Relaxed);
            end.set(all);
        }
    };
    let goes_on = dots(dir, pos, &mut emit)
        && dir
            .visit_children(pos.max(2), begins, |cursor, child, name| {
                // The listing of the table is done, but a dynamic directory may have entries that are not in it.
                if cursor >= end.get() {
                    return ControlFlow::Break(true);
                }
                let next = cursor.wrapping_add(1);
                match emit(DirEntry { name, ino: child.ino(), kind: child.kind(), next }) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(false),
                }
            })
            .unwrap_or(true);
    if goes_on && dir.inode().is_dynamic() {
        dir.inode().readdir(pos.max(DYNAMIC_CURSOR), &mut emit)?;
    }
    Ok(at)
}

/// The directory, and where its listing ends.
fn begin(file: &OpenFile, pos: u64) -> Result<(&Arc<Dentry>, &DirOps)> {
    let dir = &file.path().dentry;
    if !dir.is_dir() {
        return Err(Errno::ENOTDIR);
    }
    if dir.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    let open = file.ops().downcast::<DirOps>().ok_or(Errno::ENOTDIR)?;
    if pos == 0 {
        open.end.store(dir.children_end(), Ordering::Relaxed);
    }
    Ok((dir, open))
}

/// Emits `.` and `..`; false if `emit` returned false.
fn dots(dir: &Arc<Dentry>, pos: u64, emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> bool {
    let entry =
        |name, of: &Dentry, next| DirEntry { name, ino: of.ino(), kind: FileType::Dir, next };
    if pos == 0 && !emit(entry(b".", dir, 1)) {
        return false;
    }
    let parent = dir.parent();
    pos > 1 || emit(entry(b"..", parent.as_ref().unwrap_or(dir), 2))
}
