//! New names: `mknod`, `mkdir`, `symlink`, `link`, and the file that `open` creates.
#![forbid(unsafe_code)]

use crate::vfs::context::fdtable::Fd;
use crate::vfs::cred::{Capability, Cred};
use crate::vfs::namei::{self, Last, LookupCtx, LookupFlags, Walker, perm, protect};
use crate::vfs::notify;
use crate::vfs::notify::event;
use crate::vfs::object::dentry::Dentry;
use crate::vfs::object::inode::Inode;
use crate::vfs::object::path::Path;
use crate::vfs::object::types::{DevId, FileType};
use abi::fs::{S_IFDIR, S_IFMT, S_IFREG, S_ISVTX};
use abi::{Errno, Result};
use alloc::sync::Arc;

/// `mknodat`: a regular file, device node, fifo or socket.
pub fn mknod(ctx: &LookupCtx<'_>, at: Fd, path: &[u8], mode: u32, rdev: DevId) -> Result<()> {
    let mode = if mode & S_IFMT == 0 { mode | S_IFREG } else { mode };
    let kind = FileType::from_mode(mode).ok_or(Errno::EINVAL)?;
    match kind {
        FileType::Dir => return Err(Errno::EPERM),
        FileType::Symlink | FileType::Anon => return Err(Errno::EINVAL),
        _ => {}
    }
    new_name(ctx, at, path, false, |dir, name| {
        let mode = (mode & S_IFMT) | (mode & 0o7777 & !ctx.fs.umask());
        check_create(dir, ctx.cred)?;
        let whiteout = kind == FileType::Char && rdev == DevId::NONE;
        if kind.is_device() && !whiteout && !ctx.cred.capable(Capability::MKNOD) {
            return Err(Errno::EPERM);
        }
        create_locked(dir, name, mode, rdev, ctx.cred).map(drop)
    })
}

/// `mkdirat`.
pub fn mkdir(ctx: &LookupCtx<'_>, at: Fd, path: &[u8], mode: u32) -> Result<()> {
    new_name(ctx, at, path, true, |dir, name| {
        let mode = S_IFDIR | (mode & (0o777 | S_ISVTX) & !ctx.fs.umask());
        create_locked(dir, name, mode, DevId::NONE, ctx.cred).map(drop)
    })
}

/// `symlinkat`.
pub fn symlink(ctx: &LookupCtx<'_>, target: &[u8], at: Fd, path: &[u8]) -> Result<()> {
    if target.is_empty() {
        return Err(Errno::ENOENT);
    }
    new_name(ctx, at, path, false, |dir, name| {
        check_create(dir, ctx.cred)?;
        let (owner, _) = perm::new_owner(&**dir.inode(), ctx.cred, 0);
        dir.dentry.reserve()?;
        let inode = dir.inode().symlink(name, target, owner)?;
        enter(dir, name, inode)?;
        notify::named(&dir.dentry, event::CREATE, name, false);
        Ok(())
    })
}

/// `linkat`, when the old name has been resolved.
pub fn link(ctx: &LookupCtx<'_>, old: &Path, at: Fd, path: &[u8]) -> Result<()> {
    new_name(ctx, at, path, false, |dir, name| {
        if !Arc::ptr_eq(&old.mount, &dir.mount) {
            return Err(Errno::EXDEV);
        }
        protect::check_link(&**old.inode(), ctx.cred)?;
        check_create(dir, ctx.cred)?;
        if old.dentry.is_dir() {
            return Err(Errno::EPERM);
        }
        dir.dentry.reserve()?;
        dir.inode().link(name, old.inode())?;
        enter(dir, name, old.inode().clone())?;
        notify::linked(&dir.dentry, name, old.inode());
        Ok(())
    })
}

/// Creates `name` in `dir`; the caller holds the directory's `change` mutex and has found the name free.
pub fn create_locked(
    dir: &Path,
    name: &[u8],
    mode: u32,
    rdev: DevId,
    cred: &Arc<Cred>,
) -> Result<Arc<Dentry>> {
    create_with(dir, name, cred, || {
        let (owner, mode) = perm::new_owner(&**dir.inode(), cred, mode);
        dir.inode().create(name, mode, rdev, owner)
    })
}

/// As [`create_locked`], where `make` makes the inode and has the directory's enter it.
pub fn create_with(
    dir: &Path,
    name: &[u8],
    cred: &Cred,
    make: impl FnOnce() -> Result<Arc<dyn Inode>>,
) -> Result<Arc<Dentry>> {
    check_create(dir, cred)?;
    dir.dentry.reserve()?;
    let child = enter(dir, name, make()?)?;
    notify::named(&dir.dentry, event::CREATE, name, child.is_dir());
    Ok(child)
}

/// Makes the dentry of a new name of `inode`, which the directory's inode has entered already; if there is no memory for
/// it, the name is taken out again.
fn enter(dir: &Path, name: &[u8], inode: Arc<dyn Inode>) -> Result<Arc<Dentry>> {
    let entered = Dentry::new_below(&dir.dentry, name, inode.clone())
        .and_then(|child| dir.dentry.insert(&child).map(|()| child));
    if entered.is_err() {
        match inode.attr().kind() {
            FileType::Dir => dir.inode().rmdir(name, &inode)?,
            _ => dir.inode().unlink(name, &inode)?,
        }
    }
    entered
}

fn check_create(dir: &Path, cred: &Cred) -> Result<()> {
    if dir.dentry.is_unlinked() {
        return Err(Errno::ENOENT);
    }
    perm::check(&**dir.inode(), cred, perm::WRITE | perm::EXEC)
}

/// Walks to the directory of a name that must not exist yet, and calls `make` to create it there with the directory's
/// `change` mutex held.
fn new_name(
    ctx: &LookupCtx<'_>,
    at: Fd,
    path: &[u8],
    is_dir: bool,
    make: impl FnOnce(&Path, &[u8]) -> Result<()>,
) -> Result<()> {
    let (walker, last) = namei::parent(ctx, at, path, LookupFlags::empty())?;
    if last != Last::Name {
        return Err(Errno::EEXIST);
    }
    let dir = walker.dir();
    let _changes = dir.dentry.lock_changes()?;
    check_free(&walker, is_dir)?;
    dir.mount.check_writable()?;
    make(dir, walker.name())
}

fn check_free(walker: &Walker<'_>, is_dir: bool) -> Result<()> {
    match walker.dir().dentry.lookup(checked_name(walker)?) {
        Ok(_) => Err(Errno::EEXIST),
        Err(Errno::ENOENT) if walker.trailing_slash() && !is_dir => Err(Errno::ENOENT),
        Err(Errno::ENOENT) => match walker.dir().inode().refuses_names() {
            Some([_, errno]) => Err(errno),
            None => Ok(()),
        },
        Err(errno) => Err(errno),
    }
}

fn checked_name<'w>(walker: &'w Walker<'_>) -> Result<&'w [u8]> {
    let name = walker.name();
    if name.len() > abi::fs::NAME_MAX { Err(Errno::ENAMETOOLONG) } else { Ok(name) }
}
