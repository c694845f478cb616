//! Removal of names: `unlink` and `rmdir`.
#![forbid(unsafe_code)]

use crate::vfs::context::fdtable::Fd;
use crate::vfs::cred::Cred;
use crate::vfs::namei::{self, Last, LookupCtx, LookupFlags, perm};
use crate::vfs::notify;
use crate::vfs::object::dentry::Dentry;
use crate::vfs::object::path::Path;
use abi::{Errno, Result};
use alloc::sync::Arc;

/// `unlinkat` without `AT_REMOVEDIR`.
pub fn unlink(ctx: &LookupCtx<'_>, at: Fd, path: &[u8]) -> Result<()> {
    let (walker, last) = namei::parent(ctx, at, path, LookupFlags::empty())?;
    if last != Last::Name {
        return Err(Errno::EISDIR);
    }
    let dir = walker.dir();
    dir.mount.check_writable()?;
    let changes = dir.dentry.lock_changes()?;
    let victim = dir.dentry.lookup(walker.name())?;
    if walker.trailing_slash() {
        return Err(if victim.is_dir() { Errno::EISDIR } else { Errno::ENOTDIR });
    }
    unlink_locked(dir, walker.name(), &victim, ctx.cred)?;
    drop(changes);
    notify::removed(&dir.dentry, walker.name(), &victim);
    // Dropping the last reference may free many pages, so it is done with nothing locked.
    drop(victim);
    Ok(())
}

/// Unlinks the object of this name, in a directory where the caller knows of no path.
pub fn unlink_in(dir: &Path, name: &[u8], cred: &Cred) -> Result<()> {
    let changes = dir.dentry.lock_changes()?;
    let victim = dir.dentry.lookup(name)?;
    unlink_locked(dir, name, &victim, cred)?;
    drop(changes);
    notify::removed(&dir.dentry, name, &victim);
    Ok(())
}

/// Takes the name out; the caller holds the directory's `change` mutex.
fn unlink_locked(dir: &Path, name: &[u8], victim: &Arc<Dentry>, cred: &Cred) -> Result<()> {
    perm::check_delete(&**dir.inode(), &**victim.inode(), cred)?;
    if victim.is_dir() {
        return Err(Errno::EISDIR);
    }
    check_no_mount(victim)?;
    dir.inode().unlink(name, victim.inode())?;
    dir.dentry.remove(victim);
    Ok(())
}

/// `rmdir`.
pub fn rmdir(ctx: &LookupCtx<'_>, at: Fd, path: &[u8]) -> Result<()> {
    let (walker, last) = namei::parent(ctx, at, path, LookupFlags::empty())?;
    match last {
        Last::Name => {}
        Last::DotDot => return Err(Errno::ENOTEMPTY),
        Last::Dot => return Err(Errno::EINVAL),
        Last::Nothing => return Err(Errno::EBUSY),
    }
    let dir = walker.dir();
    dir.mount.check_writable()?;
    let _changes = dir.dentry.lock_changes()?;
    let victim = dir.dentry.lookup(walker.name())?;
    perm::check_delete(&**dir.inode(), &**victim.inode(), ctx.cred)?;
    if !victim.is_dir() {
        return Err(Errno::ENOTDIR);
    }
    check_no_mount(&victim)?;
    if dir.inode().refuses_names().is_some() {
        return Err(Errno::EPERM);
    }
    // Held until it is removed, so that nothing is created in it meanwhile.
    let inside = victim.lock_changes()?;
    if victim.has_children() {
        return Err(Errno::ENOTEMPTY);
    }
    dir.inode().rmdir(walker.name(), victim.inode())?;
    dir.dentry.remove(&victim);
    drop(inside);
    notify::removed(&dir.dentry, walker.name(), &victim);
    Ok(())
}

/// EBUSY if something is mounted on `child`, through whichever mount of its file system.
pub(super) fn check_no_mount(child: &Dentry) -> Result<()> {
    if child.is_mountpoint() { Err(Errno::EBUSY) } else { Ok(()) }
}
