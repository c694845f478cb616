//! `renameat2`.
//!
//! One mutex orders all renames between two directories, so that no directory gets another parent while it is
//! checked that none moves below itself; then the two directories are locked, an ancestor first.
//!
//! Owns that mutex. Never moves a directory below itself. Locks: the mutex, the `change` mutexes of the two directories
//! and of a directory that is replaced, then the spinlocks of dentries.
#![forbid(unsafe_code)]

use super::remove::check_no_mount;
use crate::mm::fallible::try_small;
use crate::sync::{Mutex, MutexGuard};
use crate::vfs::context::fdtable::Fd;
use crate::vfs::cred::Cred;
use crate::vfs::namei::{self, Last, LookupCtx, LookupFlags, Walker, perm};
use crate::vfs::notify;
use crate::vfs::object::dentry::Dentry;
use crate::vfs::object::inode::Rename;
use crate::vfs::object::path::Path;
use abi::{Errno, Result};
use alloc::sync::Arc;
use bitflags::bitflags;

bitflags! {
    /// `RENAME_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RenameFlags: u32 {
        const NOREPLACE = 1;
        const EXCHANGE = 2;
        const WHITEOUT = 4;
    }
}

/// Orders the renames that move something to another directory.
static MOVES: Mutex<()> = Mutex::new(());

/// `renameat2`.
pub fn rename(
    ctx: &LookupCtx<'_>,
    old: (Fd, &[u8]),
    new: (Fd, &[u8]),
    flags: RenameFlags,
) -> Result<()> {
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    let exclusive = flags.intersects(RenameFlags::NOREPLACE | RenameFlags::WHITEOUT);
    if exchange && exclusive {
        return Err(Errno::EINVAL);
    }
    if flags.contains(RenameFlags::WHITEOUT) {
        return Err(Errno::EINVAL);
    }
    let (from, from_last) = namei::parent(ctx, old.0, old.1, LookupFlags::empty())?;
    let (to, to_last) = namei::parent(ctx, new.0, new.1, LookupFlags::empty())?;
    if !Arc::ptr_eq(&from.dir().mount, &to.dir().mount) {
        return Err(Errno::EXDEV);
    }
    if from_last != Last::Name {
        return Err(Errno::EBUSY);
    }
    if to_last != Last::Name {
        let exists = flags.contains(RenameFlags::NOREPLACE);
        return Err(if exists { Errno::EEXIST } else { Errno::EBUSY });
    }
    from.dir().mount.check_writable()?;
    let locks = Locks::take(&from.dir().dentry, &to.dir().dentry)?;
    let gone = rename_locked(ctx.cred, &from, &to, flags)?;
    drop(locks);
    drop(gone);
    Ok(())
}

/// The rename itself, with both directories locked; returns the dentry that was replaced.
fn rename_locked(
    cred: &Cred,
    from: &Walker<'_>,
    to: &Walker<'_>,
    flags: RenameFlags,
) -> Result<Option<Arc<Dentry>>> {
    let (old_dir, new_dir) = (from.dir(), to.dir());
    let exchange = flags.contains(RenameFlags::EXCHANGE);
    let moved = old_dir.dentry.lookup(from.name())?;
    let target = match new_dir.dentry.lookup(to.name()) {
        Ok(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EEXIST),
        Ok(target) => Some(target),
        Err(Errno::ENOENT) if !exchange => None,
        Err(errno) => return Err(errno),
    };
    check_slashes(from, to, &moved, target.as_ref(), exchange)?;
    check_shape(old_dir, new_dir, &moved, target.as_ref(), exchange)?;
    if target.as_ref().is_some_and(|t| Arc::ptr_eq(t.inode(), moved.inode())) {
        return Ok(None);
    }
    check_permission(cred, old_dir, new_dir, &moved, target.as_ref(), exchange)?;
    check_no_mount(&moved)?;
    if let Some(target) = &target {
        check_no_mount(target)?;
    }
    // Held to the end, so that nothing is created in a directory that is being replaced. It is neither of the two that
    // are locked already: one that is or contains the old directory was refused, and it is an entry of the new one.
    let going = target.clone().filter(|target| !exchange && target.is_dir());
    let _inside = going.as_ref().map(|target| target.lock_changes()).transpose()?;
    if going.as_ref().is_some_and(|target| target.has_children()) {
        return Err(Errno::ENOTEMPTY);
    }
    // All memory is there before anything changes.
    let room = new_dir.dentry.reserve()?;
    let name = try_small(to.name())?;
    old_dir.inode().rename(&Rename {
        moved: moved.inode(),
        new_dir: new_dir.inode(),
        replaced: target.as_ref().map(|t| t.inode()),
        exchange,
    })?;
    match target {
        Some(target) if exchange => {
            old_dir.dentry.exchange(&moved, &new_dir.dentry, &target);
            let (old, new) = ((&*old_dir.dentry, from.name()), (&*new_dir.dentry, to.name()));
            notify::moved(old, new, moved.inode(), None);
            notify::moved(new, old, target.inode(), None);
            Ok(None)
        }
        target => {
            old_dir.dentry.relocate(&moved, &new_dir.dentry, (name, room), target.as_ref());
            let (old, new) = ((&*old_dir.dentry, from.name()), (&*new_dir.dentry, to.name()));
            notify::moved(old, new, moved.inode(), target.as_ref().map(|t| t.inode()));
            Ok(target)
        }
    }
}

/// A trailing slash may follow only the name of a directory.
fn check_slashes(
    from: &Walker<'_>,
    to: &Walker<'_>,
    moved: &Arc<Dentry>,
    target: Option<&Arc<Dentry>>,
    exchange: bool,
) -> Result<()> {
    if exchange && to.trailing_slash() && target.is_some_and(|t| !t.is_dir()) {
        return Err(Errno::ENOTDIR);
    }
    if !moved.is_dir() && (from.trailing_slash() || (!exchange && to.trailing_slash())) {
        return Err(Errno::ENOTDIR);
    }
    Ok(())
}

/// Nothing may move below itself, nor replace what it is in.
fn check_shape(
    old_dir: &Path,
    new_dir: &Path,
    moved: &Arc<Dentry>,
    target: Option<&Arc<Dentry>>,
    exchange: bool,
) -> Result<()> {
    if moved.is_dir() && moved.is_above(&new_dir.dentry) {
        return Err(Errno::EINVAL);
    }
    if target.is_some_and(|t| t.is_dir() && t.is_above(&old_dir.dentry)) {
        return Err(if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
    }
    Ok(())
}

fn check_permission(
    cred: &Cred,
    old_dir: &Path,
    new_dir: &Path,
    moved: &Arc<Dentry>,
    target: Option<&Arc<Dentry>>,
    exchange: bool,
) -> Result<()> {
    perm::check_delete(&**old_dir.inode(), &**moved.inode(), cred)?;
    match target {
        None => {
            if new_dir.dentry.is_unlinked() {
                return Err(Errno::ENOENT);
            }
            perm::check(&**new_dir.inode(), cred, perm::WRITE | perm::EXEC)?;
        }
        Some(target) => {
            perm::check_delete(&**new_dir.inode(), &**target.inode(), cred)?;
            match (moved.is_dir(), target.is_dir()) {
                (true, false) if !exchange => return Err(Errno::ENOTDIR),
                (false, true) if !exchange => return Err(Errno::EISDIR),
                _ => {}
            }
        }
    }
    // Its `..` changes.
    if !Arc::ptr_eq(&old_dir.dentry, &new_dir.dentry) {
        if moved.is_dir() {
            perm::check(&**moved.inode(), cred, perm::WRITE)?;
        }
        if let Some(target) = target.filter(|t| exchange && t.is_dir()) {
            perm::check(&**target.inode(), cred, perm::WRITE)?;
        }
    }
    Ok(())
}

/// The locks of a rename.
struct Locks<'a> {
    _upper: MutexGuard<'a, ()>,
    _lower: Option<MutexGuard<'a, ()>>,
    _moves: Option<MutexGuard<'a, ()>>,
}

impl<'a> Locks<'a> {
    fn take(a: &'a Arc<Dentry>, b: &'a Arc<Dentry>) -> Result<Self> {
        if Arc::ptr_eq(a, b) {
            return Ok(Self { _upper: a.lock_changes()?, _lower: None, _moves: None });
        }
        let moves = MOVES.lock();
        let a_first = a.is_above(b) || (!b.is_above(a) && Arc::as_ptr(a) < Arc::as_ptr(b));
        let (first, second) = if a_first { (a, b) } else { (b, a) };
        let upper = first.lock_changes()?;
        let lower = second.lock_changes()?;
        Ok(Self { _upper: upper, _lower: Some(lower), _moves: Some(moves) })
    }
}
