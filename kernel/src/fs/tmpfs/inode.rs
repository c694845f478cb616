//! The inodes of tmpfs.
//!
//! Owns the attributes, and by kind the pages, the target of a link or the slot of a fifo or socket. Never has a page
//! that is not charged to its instance. Locks: a regular file's `writing` mutex, for changes of its seals and attributes.
#![forbid(unsafe_code)]

use super::regular::{MAX_SIZE, Regular};
use super::tmpfs::Tmpfs;
use super::xattr::Xattrs;
use crate::mm::fallible::{Room, try_arc, try_copy};
use crate::mm::{PageCache, PageQuota};
use crate::sync::SpinLock;
use crate::sync::counted::{Counted, Kind};
use crate::vfs::file_caps;
use crate::vfs::object::inode::{LinkText, Rename, XattrFlags, XattrValue};
use crate::vfs::object::seals::{Change, Seals};
use crate::vfs::object::usage::Usage;
use crate::vfs::{
    DevId, FileOps, FileType, Inode, InodeAttr, Metadata, Owner, SetAttr, SpecialSlot, Timestamp,
    chardev,
};
use abi::fs::{OpenFlags, S_IFLNK, S_IFREG};
use abi::{Errno, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// What a directory's length grows by with each entry, as in Linux.
const ENTRY_SIZE: u64 = 20;
/// Symbolic links from this length on are charged a page, as in Linux, which is what they take at most.
const LONG_LINK: usize = 128;

/// One file, directory, link or node.
pub struct TmpfsInode {
    _counted: Counted,
    pub(super) attr: InodeAttr,
    fs: Arc<Tmpfs>,
    xattrs: Xattrs,
    body: Body,
}

enum Body {
    Regular(Regular),
    /// The length: Relaxed, for show.
    Dir(AtomicU64),
    Symlink(LinkText),
    Special(SpecialSlot),
}

impl TmpfsInode {
    /// A new object of `mode`'s type.
    pub fn new(fs: &Arc<Tmpfs>, mode: u32, rdev: DevId, owner: Owner) -> Result<Arc<Self>> {
        if crate::mm::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let body = match FileType::from_mode(mode).ok_or(Errno::EINVAL)? {
            FileType::Regular => {
                let quota: Arc<dyn PageQuota> = fs.clone();
                Body::Regular(Regular::new(try_arc(PageCache::with_quota(quota))?))
            }
            FileType::Dir => Body::Dir(AtomicU64::new(2 * ENTRY_SIZE)),
            FileType::Symlink | FileType::Anon => return Err(Errno::EINVAL),
            _ => Body::Special(SpinLock::new(None)),
        };
        Self::with_body(fs, mode, rdev, owner, body)
    }

    fn with_body(
        fs: &Arc<Tmpfs>,
        mode: u32,
        rdev: DevId,
        owner: Owner,
        body: Body,
    ) -> Result<Arc<Self>> {
        fs.charge_inode()?;
        let attr = InodeAttr::new(fs.dev, fs.next_ino(), mode, owner, rdev, Timestamp::now());
        let inode = Room::new().map(|room| {
            room.arc(Self {
                _counted: Counted::new(Kind::TmpfsInode),
                attr,
                fs: fs.clone(),
                xattrs: Xattrs::default(),
                body,
            })
        });
        // No inode was made, so no drop gives the charge back.
        if inode.is_err() {
            fs.uncharge_inode();
        }
        inode
    }

    /// Adds seals: EPERM if `F_SEAL_SEAL` is set, EBUSY for `F_SEAL_WRITE` while a mapping is writable.
    pub fn add_seals(&self, more: Seals) -> Result<()> {
        let file = self.regular()?;
        let _writing = file.writing.lock();
        let old = file.seals();
        let new = old.with(more, self.attr.mode())?;
        if !new.end_writing_since(old) {
            file.set_seals(new);
            return Ok(());
        }
        if file.cache.is_mapped_writable() {
            return Err(Errno::EBUSY);
        }
        // A mapping that is being made, with its address space locked, either sees the new seals or was quicker and
        // is found by this second look, which waits for the lock of that space.
        file.set_seals(new);
        if file.cache.is_mapped_writable() {
            file.set_seals(old);
            return Err(Errno::EBUSY);
        }
        Ok(())
    }

    pub(super) fn regular(&self) -> Result<&Regular> {
        match &self.body {
            Body::Regular(file) => Ok(file),
            _ => Err(Errno::EINVAL),
        }
    }

    /// An entry came (1) or went (-1); `links` likewise for subdirectories' `..`.
    fn entries_changed(&self, by: i64, links: i32, now: Timestamp) {
        if let Body::Dir(size) = &self.body {
            // Relaxed: the directory's mutex orders the writers.
            let new = size.load(Ordering::Relaxed).saturating_add_signed(by * ENTRY_SIZE as i64);
            size.store(new, Ordering::Relaxed);
        }
        self.attr.add_nlink(links);
        self.attr.update_times(|times| {
            times.mtime = now;
            times.ctime = now;
        });
    }

    /// Charges one more name of `target` and adds it. As on Linux, each name after the first counts as an inode: it takes
    /// memory too. Names in other directories come and go meanwhile: what is charged is what was found when this one came.
    fn add_name(&self, target: &Arc<dyn Inode>) -> Result<()> {
        let attr = target.attr();
        loop {
            let names = attr.nlink();
            if names == 0 {
                if Self::add_first_name(target)? {
                    return Ok(());
                }
                continue;
            }
            self.fs.charge_inode()?;
            if attr.add_name_to(names) {
                return Ok(());
            }
            self.fs.uncharge_inode();
        }
    }

    /// Adds the first name of a file that had none: false if another was quicker, ENOENT if it had names before.
    fn add_first_name(target: &Arc<dyn Inode>) -> Result<bool> {
        let file = target.downcast::<Self>().ok_or(Errno::EXDEV)?;
        let mut linkable = file.regular().map_err(|_| Errno::ENOENT)?.linkable.lock();
        if target.attr().nlink() != 0 {
            return Ok(false);
        }
        if !core::mem::take(&mut *linkable) {
            return Err(Errno::ENOENT);
        }
        let first = target.attr().add_name_to(0);
        debug_assert!(first, "a first name comes with `linkable` locked");
        Ok(first)
    }

    /// One name of `target` goes: the last is charged with the inode itself.
    fn take_name(&self, target: &dyn Inode) {
        if target.attr().add_nlink(-1) > 1 {
            self.fs.uncharge_inode();
        }
    }
}

/// Whether attributes of this name are kept: EINVAL for a prefix without a name, EOPNOTSUPP for other prefixes.
fn check_xattr(name: &[u8]) -> Result<()> {
    let kept = [&b"user."[..], b"trusted.", b"security."];
    match kept.iter().find_map(|space| name.strip_prefix(*space)) {
        Some(b"") => Err(Errno::EINVAL),
        Some(_) => Ok(()),
        None => Err(Errno::EOPNOTSUPP),
    }
}

impl Drop for TmpfsInode {
    fn drop(&mut self) {
        if let Body::Symlink(target) = &self.body
            && target.len() >= LONG_LINK
        {
            self.fs.uncharge(1);
        }
        self.xattrs.uncharge_all(&self.fs);
        self.fs.uncharge_inode();
    }
}

impl Inode for TmpfsInode {
    fn attr(&self) -> &InodeAttr {
        &self.attr
    }

    fn meta(&self) -> Metadata {
        let mut meta = self.attr.metadata();
        match &self.body {
            Body::Regular(file) => {
                meta.size = file.cache.size();
                meta.blocks = file.cache.resident() * 8;
            }
            Body::Dir(size) => meta.size = size.load(Ordering::Relaxed),
            Body::Symlink(target) => {
                meta.size = target.len() as u64;
                meta.blocks = if target.len() >= LONG_LINK { 8 } else { 0 };
            }
            Body::Special(_) if self.attr.kind() == FileType::Char => {
                meta.blksize = chardev::block_size(meta.rdev);
            }
            Body::Special(_) => {}
        }
        meta
    }

    fn size(&self) -> u64 {
        match &self.body {
            Body::Regular(file) => file.cache.size(),
            _ => 0,
        }
    }

    fn set_attr(&self, change: &SetAttr) -> Result<bool> {
        if change.size.is_some_and(|size| size > MAX_SIZE) {
            return Err(Errno::EFBIG);
        }
        let file = match &self.body {
            Body::Regular(file) => Some(file),
            _ if change.size.is_some() => return Err(Errno::EINVAL),
            _ => None,
        };
        let _writing = file.map(|file| file.writing.lock());
        if change.checked.is_some_and(|rights| rights != self.attr.rights()) {
            return Ok(false);
        }
        if let (Some(file), Some(to)) = (file, change.mode) {
            file.seals().check(Change::Mode { from: self.attr.mode(), to })?;
        }
        if let (Some(file), Some(size)) = (file, change.size) {
            file.resize(size)?;
        }
        Ok(self.attr.apply(change))
    }

    fn create(&self, _: &[u8], mode: u32, rdev: DevId, owner: Owner) -> Result<Arc<dyn Inode>> {
        let inode = Self::new(&self.fs, mode, rdev, owner)?;
        let is_dir = matches!(inode.body, Body::Dir(_));
        self.entries_changed(1, i32::from(is_dir), inode.attr.times().btime);
        Ok(inode)
    }

    fn create_tmpfile(&self, mode: u32, owner: Owner, linkable: bool) -> Result<Arc<dyn Inode>> {
        let inode = Self::new(&self.fs, mode, DevId::NONE, owner)?;
        inode.attr.set_nlink(0);
        *inode.regular()?.linkable.lock() = linkable;
        Ok(inode)
    }

    fn symlink(&self, _: &[u8], target: &[u8], owner: Owner) -> Result<Arc<dyn Inode>> {
        if crate::mm::kernel_memory_low() {
            return Err(Errno::ENOMEM);
        }
        let text = try_arc(try_copy(target)?)?;
        if target.len() >= LONG_LINK {
            self.fs.charge(1)?;
        }
        let body = Body::Symlink(text);
        let inode = Self::with_body(&self.fs, S_IFLNK | 0o777, DevId::NONE, owner, body);
        if inode.is_err() && target.len() >= LONG_LINK {
            self.fs.uncharge(1);
        }
        let inode = inode?;
        self.entries_changed(1, 0, inode.attr.times().btime);
        Ok(inode)
    }

    fn link(&self, _: &[u8], target: &Arc<dyn Inode>) -> Result<()> {
        self.add_name(target)?;
        let now = Timestamp::now();
        target.attr().update_times(|times| times.ctime = now);
        self.entries_changed(1, 0, now);
        Ok(())
    }

    fn unlink(&self, _: &[u8], target: &Arc<dyn Inode>) -> Result<()> {
        let now = Timestamp::now();
        self.entries_changed(-1, 0, now);
        self.take_name(&**target);
        target.attr().update_times(|times| times.ctime = now);
        Ok(())
    }

    fn rmdir(&self, _: &[u8], target: &Arc<dyn Inode>) -> Result<()> {
        let now = Timestamp::now();
        self.entries_changed(-1, -1, now);
        target.attr().set_nlink(0);
        target.attr().update_times(|times| times.ctime = now);
        Ok(())
    }

    fn rename(&self, how: &Rename<'_>) -> Result<()> {
        let new_dir = how.new_dir.downcast::<Self>().ok_or(Errno::EXDEV)?;
        let now = Timestamp::now();
        let dir_links = |inode: &Arc<dyn Inode>| i32::from(inode.attr().kind() == FileType::Dir);
        let moved = dir_links(how.moved);
        how.moved.attr().update_times(|times| times.ctime = now);
        match how.replaced {
            Some(other) if how.exchange => {
                let others = dir_links(other);
                other.attr().update_times(|times| times.ctime = now);
                self.entries_changed(0, others - moved, now);
                new_dir.entries_changed(0, moved - others, now);
            }
            Some(gone) => {
                let lost = dir_links(gone);
                match lost {
                    0 => self.take_name(&**gone),
                    _ => gone.attr().set_nlink(0),
                }
                gone.attr().update_times(|times| times.ctime = now);
                self.entries_changed(-1, -moved, now);
                new_dir.entries_changed(0, moved - lost, now);
            }
            None => {
                self.entries_changed(-1, -moved, now);
                new_dir.entries_changed(1, moved, now);
            }
        }
        Ok(())
    }

    fn readlink(&self) -> Result<LinkText> {
        match &self.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(Errno::EINVAL),
        }
    }

    fn open(self: Arc<Self>, _: OpenFlags) -> Result<Arc<dyn FileOps>> {
        match self.body {
            Body::Regular(_) => Ok(self),
            _ => Err(Errno::ENXIO),
        }
    }

    fn page_cache(&self) -> Option<&Arc<PageCache>> {
        self.regular().ok().map(|file| &file.cache)
    }

    fn seals(&self) -> Seals {
        self.regular().map_or(Seals::NONE, Regular::seals)
    }

    fn special(&self) -> Option<&SpecialSlot> {
        match &self.body {
            Body::Special(slot) => Some(slot),
            _ => None,
        }
    }

    fn usage(&self) -> Option<&Usage> {
        self.regular().ok().map(|file| &file.usage)
    }

    fn xattr(&self, name: &[u8]) -> Result<XattrValue> {
        check_xattr(name)?;
        self.xattrs.get(name)
    }

    fn set_xattr(&self, name: &[u8], value: Vec<u8>, flags: XattrFlags) -> Result<()> {
        check_xattr(name)?;
        if name == file_caps::NAME {
            self.attr.set_file_caps();
        }
        self.xattrs.set(&self.fs, name, value, flags)?;
        self.attr.update_times(|times| times.ctime = Timestamp::now());
        Ok(())
    }

    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        check_xattr(name)?;
        self.xattrs.remove(&self.fs, name)?;
        self.attr.update_times(|times| times.ctime = Timestamp::now());
        Ok(())
    }

    fn xattr_names(&self, each: &mut dyn FnMut(&[u8])) {
        self.xattrs.names(each);
    }
}

/// A file that is in no directory, for `memfd_create`. `no_exec` takes its execute bits away for good.
pub(super) fn memfd(
    fs: &Arc<Tmpfs>,
    owner: Owner,
    sealable: bool,
    no_exec: bool,
) -> Result<Arc<TmpfsInode>> {
    let mode = if no_exec { 0o666 } else { 0o777 };
    let inode = TmpfsInode::new(fs, S_IFREG | mode, DevId::NONE, owner)?;
    inode.attr.set_nlink(0);
    let seals = match (sealable, no_exec) {
        (_, true) => Seals::NO_EXEC,
        (true, false) => Seals::NONE,
        (false, false) => Seals::FINAL,
    };
    inode.regular()?.set_seals(seals);
    Ok(inode)
}
