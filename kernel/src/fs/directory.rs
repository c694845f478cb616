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
use smallvec::SmallVec;

struct DirOps;
struct PathOps;

static DIR_OPS: Once<Arc<DirOps>> = Once::new();
static PATH_OPS: Once<Arc<PathOps>> = Once::new();

/// What every open directory does.
pub fn ops() -> Arc<dyn FileOps> {
    DIR_OPS.call_once(|| Arc::new(DirOps)).clone()
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
    let mut at = pos;
    let mut emit = |entry: DirEntry<'_>| {
        let next = entry.next;
        let taken = emit(entry);
        if taken {
            at = next;
        }
        taken
    };
    if dots(dir, pos, &mut emit) && children(dir, pos.max(2), &mut emit) && dir.inode().is_dynamic()
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

/// The entries that the table holds; false when `emit` had enough.
fn children(dir: &Arc<Dentry>, mut pos: u64, emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> bool {
    let mut batch = SmallVec::new();
    loop {
        batch.clear();
        dir.children_from(pos, &mut batch);
        if batch.is_empty() {
            return true;
        }
        for (cursor, child) in &batch {
            pos = cursor + 1;
            let ino = child.inode().attr().ino();
            let kind = child.kind();
            if !child.with_name(|name| emit(DirEntry { name, ino, kind, next: pos })) {
                return false;
            }
        }
    }
}
