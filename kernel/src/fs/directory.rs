//! Open directories: `getdents` over the dentry tree, for every file system; and `O_PATH` files, which can
//! do nothing at all.
#![forbid(unsafe_code)]

use super::dentry::Dentry;
use super::file::{FileOps, OpenFile, Whence};
use super::inode::DYNAMIC_CURSOR;
use super::types::{DirEntry, FileType};
use crate::mm::iov::{Sink, Source};
use crate::sync::Once;
use abi::{Errno, Result};
use alloc::sync::Arc;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};
use smallvec::SmallVec;

/// An open directory.
struct DirOps {
    /// A listing ends at this cursor, the end of the directory when it began: names that come, or come
    /// again by a rename, while somebody acts on each name that is listed, would make it endless.
    /// Relaxed: written and read under the file's position lock.
    end: AtomicU64,
}

struct PathOps;

static PATH_OPS: Once<Arc<PathOps>> = Once::new();

/// What an open directory does.
pub fn ops() -> Arc<dyn FileOps> {
    Arc::new(DirOps { end: AtomicU64::new(u64::MAX) })
}

/// What every `O_PATH` file does: nothing.
pub fn path_ops() -> Arc<dyn FileOps> {
    PATH_OPS.call_once(|| Arc::new(PathOps)).clone()
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
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl FileOps for PathOps {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Emits the entries of an open directory from cursor `pos` on, until `emit` says false; returns the cursor
/// to go on from. `emit` may run with a lock held: it must neither block nor touch user memory.
pub fn iterate(
    file: &OpenFile,
    pos: u64,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> Result<u64> {
    let dir = &file.path().dentry;
    if !dir.is_dir() {
        return Err(Errno::ENOTDIR);
    }
    if dir.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    let open = file.ops().as_any().downcast_ref::<DirOps>().ok_or(Errno::ENOTDIR)?;
    if pos == 0 {
        open.end.store(dir.children_end(), Ordering::Relaxed);
    }
    let end = open.end.load(Ordering::Relaxed);
    let mut at = pos;
    let mut emit = |entry: DirEntry<'_>| {
        let next = entry.next;
        let taken = emit(entry);
        if taken {
            at = next;
        }
        taken
    };
    if dots(dir, pos, &mut emit)
        && children(dir, pos.max(2), end, &mut emit)
        && dir.inode().is_dynamic()
    {
        dir.inode().readdir(pos.max(DYNAMIC_CURSOR), &mut emit)?;
    }
    super::touch_file(file);
    Ok(at)
}

/// `.` and `..`; false when `emit` had enough.
fn dots(dir: &Arc<Dentry>, pos: u64, emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> bool {
    let entry = |name, of: &Dentry, next| DirEntry {
        name,
        ino: of.inode().attr().ino(),
        kind: FileType::Dir,
        next,
    };
    if pos == 0 && !emit(entry(b".", dir, 1)) {
        return false;
    }
    let parent = dir.parent();
    pos > 1 || emit(entry(b"..", parent.as_ref().unwrap_or(dir), 2))
}

/// The entries that the table holds, up to the cursor `end`; false when `emit` had enough.
fn children(
    dir: &Arc<Dentry>,
    mut pos: u64,
    end: u64,
    emit: &mut dyn FnMut(DirEntry<'_>) -> bool,
) -> bool {
    let mut batch = SmallVec::new();
    loop {
        batch.clear();
        dir.children_from(pos, &mut batch);
        if batch.is_empty() {
            return true;
        }
        for (cursor, child) in &batch {
            if *cursor >= end {
                return true;
            }
            pos = cursor + 1;
            let ino = child.inode().attr().ino();
            let kind = child.kind();
            if !child.with_name(|name| emit(DirEntry { name, ino, kind, next: pos })) {
                return false;
            }
        }
    }
}
