//! `mount` and `umount`: the changes to the mount tree, with Linux's checks.
//!
//! Owns nothing. Never drops what it unmounts with anything locked. Locks: the mutex of all changes of the tree ([`Changing`]), then
//! the `change` mutex of the directory that the mount point is in, then the tree's spinlock; a path walk takes neither mutex.
#![forbid(unsafe_code)]

use crate::mm::fallible::{TryGrow, TryMap, TryVec};
use crate::sync::Pace;
use crate::vfs::object::dentry::Dentry;
use crate::vfs::object::filesystem::SuperFlags;
use crate::vfs::object::mount::{self, Changing, Mount, MountFlags};
use crate::vfs::object::path::Path;
use crate::vfs::registry;
use abi::{Errno, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Mounts a new instance of `kind` on `at`.
pub fn new_mount(
    at: &Path,
    kind: &[u8],
    source: &[u8],
    options: &[u8],
    flags: MountFlags,
    of_instance: SuperFlags,
) -> Result<()> {
    let sb = registry::instance(kind, options)?;
    let root = sb.root().clone();
    let changing = mount::change();
    if !sb.lives_for_ever() {
        sb.set_flags(of_instance, SuperFlags::all());
    }
    let again = Arc::ptr_eq(&at.dentry, at.mount.root())
        && Arc::ptr_eq(at.mount.root(), &root)
        && Arc::ptr_eq(at.mount.super_block(), &sb);
    if again {
        return Err(Errno::EBUSY);
    }
    let mount = Mount::new(sb, root, source, flags)?;
    on_mount_point(at, |at| graft(&changing, mount, at))
}

/// Calls `act` with the place where a mount on `at` goes: the root of the topmost mount there, or `at` itself if there is none.
/// Its name cannot change meanwhile. ENOENT if the name is gone or the mount is not in the tree (unmounted, or kernel-internal).
fn on_mount_point<R>(at: &Path, act: impl FnOnce(Path) -> Result<R>) -> Result<R> {
    let mut at = at.clone();
    mount::descend(&mut at);
    if !mount::is_attached(&at.mount) {
        return Err(Errno::ENOENT);
    }
    let dentry = at.dentry.clone();
    dentry.while_named(|| act(at))
}

/// ENOTDIR unless a directory is mounted on a directory, or a file on a file.
fn check_graft(mount: &Mount, at: &Path) -> Result<()> {
    if mount.root().is_dir() == at.dentry.is_dir() { Ok(()) } else { Err(Errno::ENOTDIR) }
}

/// Attaches `mount` to `at`, a mount point.
fn graft(changing: &Changing, mount: Arc<Mount>, at: Path) -> Result<()> {
    check_graft(&mount, &at)?;
    mount::attach_all(changing, &[(mount, at)], |(mount, at)| (mount, at))
}

/// Shows what is at `from` also on `at`; with `recursive`, what is mounted below it too.
pub fn bind(from: &Path, at: &Path, recursive: bool) -> Result<()> {
    let changing = mount::change();
    on_mount_point(at, |at| bind_at(&changing, from, at, recursive))
}

/// As [`bind`], on a mount point.
fn bind_at(changing: &Changing, from: &Path, at: Path, recursive: bool) -> Result<()> {
    if !mount::is_attached(&from.mount) {
        return Err(Errno::EINVAL);
    }
    let clone =
        |of: &Arc<Mount>, root| Mount::new(of.super_block().clone(), root, of.source(), of.flags());
    let top = clone(&from.mount, from.dentry.clone())?;
    check_graft(&top, &at)?;
    let below: Vec<Arc<Mount>> = if recursive {
        mounts_below(changing, &from.mount, Some(&from.dentry))?
    } else {
        Vec::new()
    };
    mount::check_room(changing, below.len() + 1)?;
    // Each copy and its place, and the copy of each by the number of what is copied.
    let mut copies = Vec::with_room(below.len() + 1)?;
    let mut copy_of = BTreeMap::new();
    copy_of.try_put(from.mount.id(), top.clone())?;
    copies.try_push((top, at))?;
    for mount in below.into_iter().paced() {
        let Some(place) = mount.place() else { continue };
        let Some(parent) = copy_of.get(&place.mount.id()).cloned() else { continue };
        let copy = clone(&mount, mount.root().clone())?;
        copy_of.try_put(mount.id(), copy.clone())?;
        // The name stays there, since something is mounted on it.
        copies.try_push((copy, Path { mount: parent, dentry: place.dentry }))?;
    }
    mount::attach_all(changing, &copies, |(copy, place)| (copy, place))
}

/// Every mount that is attached to `top` (with `under`: at that directory or below it), or to one of those; parents first.
/// Without `under` none is left out, even one whose mount point was renamed out of what `top` shows.
fn mounts_below(
    changing: &Changing,
    top: &Arc<Mount>,
    under: Option<&Arc<Dentry>>,
) -> Result<Vec<Arc<Mount>>> {
    let mut found: Vec<Arc<Mount>> = Vec::new();
    // Their numbers.
    let mut known = BTreeMap::new();
    // The list has the oldest first, so a mount comes after the one it is attached to unless that was moved since:
    // repeat until nothing is added any more.
    loop {
        let before = found.len();
        for mount in mount::all(changing)?.into_iter().paced() {
            let Some(place) = mount.place() else { continue };
            if known.contains_key(&mount.id()) {
                continue;
            }
            let in_top = Arc::ptr_eq(&place.mount, top)
                && under.is_none_or(|under| under.is_above(&place.dentry));
            if in_top || known.contains_key(&place.mount.id()) {
                known.try_put(mount.id(), ())?;
                found.try_push(mount)?;
            }
        }
        if found.len() == before {
            return Ok(found);
        }
    }
}

/// Whether `path` is the root of its mount.
fn is_mount_root(path: &Path) -> bool {
    Arc::ptr_eq(&path.dentry, path.mount.root())
}

/// New flags for one mount (`MS_REMOUNT | MS_BIND`).
pub fn remount_flags(at: &Path, flags: MountFlags) -> Result<()> {
    let _changing = mount::change();
    if !is_mount_root(at) || !mount::is_attached(&at.mount) {
        return Err(Errno::EINVAL);
    }
    at.mount.set_flags(flags);
    Ok(())
}

/// New options for the instance and new flags for the mount (`MS_REMOUNT`).
pub fn remount(
    at: &Path,
    options: &[u8],
    flags: MountFlags,
    of_instance: SuperFlags,
) -> Result<()> {
    let _changing = mount::change();
    if !is_mount_root(at) || !mount::is_attached(&at.mount) {
        return Err(Errno::EINVAL);
    }
    let sb = at.mount.super_block();
    sb.fs().remount(options)?;
    sb.set_flags(of_instance, SuperFlags::OF_REMOUNT);
    at.mount.set_flags(flags);
    Ok(())
}

/// Moves the mount at `from` to `at`.
pub fn move_mount(from: &Path, at: &Path) -> Result<()> {
    let changing = mount::change();
    on_mount_point(at, |at| move_to(&changing, from, at))
}

/// As [`move_mount`], to a mount point.
fn move_to(changing: &Changing, from: &Path, at: Path) -> Result<()> {
    if !is_mount_root(from) || from.mount.place().is_none() {
        return Err(Errno::EINVAL);
    }
    if from.dentry.is_dir() != at.dentry.is_dir() {
        return Err(Errno::EINVAL);
    }
    // Not below itself.
    let mut above = at.mount.clone();
    loop {
        if Arc::ptr_eq(&above, &from.mount) {
            return Err(Errno::ELOOP);
        }
        match above.place() {
            Some(place) => above = place.mount,
            None => break,
        }
    }
    mount::relocate(changing, &from.mount, at)
}

/// How to unmount.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmount {
    /// `MNT_DETACH`: even if in use, with all mounts below; open files stay usable.
    pub lazy: bool,
    /// `MNT_EXPIRE`: only if unused since it was last asked for.
    pub expire: bool,
}

/// Unmounts what is mounted at `at`.
pub fn unmount(mut at: Path, how: Unmount, root: &Path) -> Result<()> {
    let changing = mount::change();
    mount::descend(&mut at);
    if !is_mount_root(&at) || !mount::is_attached(&at.mount) {
        return Err(Errno::EINVAL);
    }
    let is_root = Arc::ptr_eq(&at.mount, &root.mount);
    if how.expire {
        if is_root {
            return Err(Errno::EINVAL);
        }
        if is_busy(&at) {
            return Err(Errno::EBUSY);
        }
        if !at.mount.mark_expired() {
            return Err(Errno::EAGAIN);
        }
    }
    if is_root && !how.lazy {
        // The root cannot go; as on Linux it becomes read-only.
        at.mount.super_block().set_flags(SuperFlags::RDONLY, SuperFlags::RDONLY);
        return Ok(());
    }
    if at.mount.place().is_none() {
        return Err(Errno::EINVAL);
    }
    if !how.lazy && is_busy(&at) {
        return Err(Errno::EBUSY);
    }
    let mut gone = Vec::new();
    gone.try_push(at.mount.clone())?;
    if how.lazy {
        gone.try_extend(mounts_below(&changing, &at.mount, None)?)?;
    }
    // `gone` has one more. A walk may have entered it since the look above.
    let most = if how.lazy { usize::MAX } else { IDLE + 1 };
    let places = mount::detach_all(&changing, &gone, most)?;
    // This may free a whole file system, so it is done with nothing locked.
    drop(changing);
    drop(at);
    places.into_iter().paced().for_each(drop);
    gone.into_iter().paced().for_each(drop);
    Ok(())
}

/// Whether anything but the tree and the caller's `at` uses the mount: open files, working directories,
/// mounts on top.
fn is_busy(at: &Path) -> bool {
    Arc::strong_count(&at.mount) > IDLE
}

/// References from the tree's list, from its map, and from the path of who unmounts it.
const IDLE: usize = 3;
