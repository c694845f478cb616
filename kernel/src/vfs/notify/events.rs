//! Watching files: what happens to a file or a name is reported to those who watch it.
//!
//! Owns the hooks that the rest of `vfs` and the file systems call, and the order of the reports, which is Linux's: first to
//! those who watch the directory, with the name, then to those who watch the object; but of a new link and of a removal
//! the object's watchers hear first. While nobody watches anything, a hook costs one load. Hooks are never called with a
//! spinlock held. Locks: those of `marks`.

use super::happened::{Event, event, is_dir};
use super::marks;
use crate::vfs::object::dentry::Dentry;
use crate::vfs::object::file::OpenFile;
use crate::vfs::object::inode::Inode;
use crate::vfs::object::types::{DevId, SetAttr};
use abi::Result;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

/// Whether anybody watches anything.
#[inline(always)]
fn active() -> bool {
    marks::any()
}

/// `result` bytes of `file` were read or written.
#[inline(always)]
pub fn transferred(file: &OpenFile, result: Result<usize>, mask: u32) -> Result<usize> {
    if active() {
        on_transfer(file, result, mask);
    }
    result
}

#[cold]
fn on_transfer(file: &OpenFile, result: Result<usize>, mask: u32) {
    if result.is_ok_and(|n| n > 0) {
        on_file(file, mask);
    }
}

/// Something was done to an open file.
#[inline(always)]
pub fn file(file: &OpenFile, mask: u32) {
    if active() {
        on_file(file, mask);
    }
}

#[cold]
fn on_file(file: &OpenFile, mask: u32) {
    if !file.is_path() {
        let dentry = &file.path().dentry;
        let unlinked = dentry.is_unlinked();
        on_dentry(dentry, Event { unlinked, ..Event::plain(mask) });
    }
}

/// An open file is closed for good.
#[inline(always)]
pub fn closed(file: &OpenFile) {
    if active() {
        let written = file.flags().writable();
        on_file(file, if written { event::CLOSE_WRITE } else { event::CLOSE_NOWRITE });
    }
}

/// Attributes of the object behind a name changed.
#[inline(always)]
pub fn attr_changed(dentry: &Arc<Dentry>, change: &SetAttr) {
    if active() {
        on_change(dentry, change);
    }
}

/// An extended attribute of the object behind a name changed.
pub fn xattr_changed(dentry: &Arc<Dentry>) {
    if active() {
        on_dentry(dentry, Event::plain(event::ATTRIB));
    }
}

#[cold]
fn on_change(dentry: &Arc<Dentry>, change: &SetAttr) {
    let mut mask = 0;
    let mode = change.mode.is_some() || change.drops != 0;
    if change.uid.is_some() || change.gid.is_some() || mode {
        mask |= event::ATTRIB;
    }
    if change.size.is_some() {
        mask |= event::MODIFY;
    }
    mask |= match (change.atime, change.mtime) {
        (Some(_), Some(_)) => event::ATTRIB,
        (Some(_), None) => event::ACCESS,
        (None, Some(_)) => event::MODIFY,
        (None, None) => 0,
    };
    if mask != 0 {
        on_dentry(dentry, Event::plain(mask));
    }
}

/// Notifies the watchers of the directory, then those of the object.
fn on_dentry(dentry: &Arc<Dentry>, happened: Event<'_>) {
    let is_dir = if dentry.is_dir() { event::ISDIR } else { 0 };
    let happened = Event { mask: happened.mask | is_dir, ..happened };
    let (parent, name) = dentry.parent_and_name();
    if let Some(parent) = parent {
        marks::tell(parent.inode(), Event { name: Some(&name), ..happened });
    }
    marks::tell(dentry.inode(), happened);
}

/// Something happened to an object, whatever its names.
#[inline(always)]
pub fn object(inode: &Arc<dyn Inode>, mask: u32) {
    if active() {
        marks::tell(inode, Event::plain(mask | is_dir(inode)));
    }
}

/// `name` was added to a directory or removed from it.
#[inline(always)]
pub fn named(dir: &Dentry, mask: u32, name: &[u8], is_dir: bool) {
    if active() {
        let mask = mask | if is_dir { event::ISDIR } else { 0 };
        marks::tell(dir.inode(), Event { name: Some(name), ..Event::plain(mask) });
    }
}

/// A second name was given to an object.
#[inline(always)]
pub fn linked(dir: &Dentry, name: &[u8], inode: &Arc<dyn Inode>) {
    object(inode, event::ATTRIB);
    named(dir, event::CREATE, name, false);
}

/// A name was taken out of `dir`.
#[inline(always)]
pub fn removed(dir: &Dentry, name: &[u8], victim: &Arc<Dentry>) {
    if active() {
        on_removal(dir, name, victim);
    }
}

#[cold]
fn on_removal(dir: &Dentry, name: &[u8], victim: &Arc<Dentry>) {
    if !victim.is_dir() {
        marks::tell(victim.inode(), Event::plain(event::ATTRIB));
    }
    // If nobody else uses the dentry, `DELETE_SELF` comes before `DELETE`.
    if Arc::strong_count(victim) == 1 {
        name_dropped(victim.inode());
    }
    named(dir, event::DELETE, name, victim.is_dir());
}

/// Pairs the two halves of a move. Relaxed: only uniqueness matters.
static COOKIE: AtomicU32 = AtomicU32::new(0);

/// `inode` was renamed, and took the place of `replaced` if there was one.
#[inline(always)]
pub fn moved(
    from: (&Dentry, &[u8]),
    to: (&Dentry, &[u8]),
    inode: &Arc<dyn Inode>,
    replaced: Option<&Arc<dyn Inode>>,
) {
    if active() {
        on_move(from, to, inode, replaced);
    }
}

#[cold]
fn on_move(
    from: (&Dentry, &[u8]),
    to: (&Dentry, &[u8]),
    inode: &Arc<dyn Inode>,
    replaced: Option<&Arc<dyn Inode>>,
) {
    let cookie = COOKIE.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    let within = if core::ptr::eq(from.0, to.0) { event::WITHIN } else { 0 };
    for (mask, (dir, name)) in [(event::MOVED_FROM | within, from), (event::MOVED_TO, to)] {
        let mask = mask | is_dir(inode);
        marks::tell(dir.inode(), Event { mask, cookie, name: Some(name), unlinked: false });
    }
    if let Some(replaced) = replaced {
        object(replaced, event::ATTRIB);
    }
    object(inode, event::MOVE_SELF);
}

/// The dentry of an unlinked name was dropped: if it was the object's last name, the object is gone too.
#[inline(always)]
pub fn name_dropped(inode: &Arc<dyn Inode>) {
    if active() && inode.attr().watched() != 0 && inode.attr().nlink() == 0 {
        marks::end(inode, event::DELETE_SELF);
    }
}

/// The instance of a file system with this device number is gone.
#[inline(always)]
pub fn unmounted(dev: DevId) {
    if active() {
        marks::end_device(dev);
    }
}
