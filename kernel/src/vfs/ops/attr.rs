//! Changes of attributes: `chmod`, `chown`, `utimensat`, `truncate`.
#![forbid(unsafe_code)]

use crate::vfs::cred::{Capability, Cred, running_cred};
use crate::vfs::file_caps;
use crate::vfs::namei::perm;
use crate::vfs::notify;
use crate::vfs::object::file::OpenFile;
use crate::vfs::object::inode::InodeAttr;
use crate::vfs::object::path::Path;
use crate::vfs::object::types::{FileType, SetAttr, Timestamp};
use abi::fs::{S_ISGID, S_ISUID};
use abi::{Errno, Result};

/// What to do with one of the two times of `utimensat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `UTIME_NOW`, or no times given at all.
    Now,
    /// `UTIME_OMIT`.
    Omit,
    /// This time.
    To(Timestamp),
}

/// Changes attributes and notifies watchers.
fn change(path: &Path, new: &SetAttr) -> Result<()> {
    path.inode().set_attr(new)?;
    notify::attr_changed(&path.dentry, new);
    Ok(())
}

/// `fchmodat`, when the name has been resolved.
pub fn chmod(path: &Path, mode: u32, cred: &Cred) -> Result<()> {
    path.mount.check_writable()?;
    if path.dentry.kind() == FileType::Symlink {
        return Err(Errno::EOPNOTSUPP);
    }
    let attr = path.inode().attr();
    if !perm::owns(attr, cred) {
        return Err(Errno::EPERM);
    }
    let mut mode = mode & 0o7777;
    if !cred.in_group(attr.gid()) && !cred.capable(Capability::FSETID) {
        mode &= !S_ISGID;
    }
    change(path, &SetAttr { mode: Some(mode), now: Timestamp::now(), ..SetAttr::default() })
}

/// `fchownat`, when the name has been resolved; `None` leaves an id alone.
pub fn chown(path: &Path, uid: Option<u32>, gid: Option<u32>, cred: &Cred) -> Result<()> {
    path.mount.check_writable()?;
    let attr = path.inode().attr();
    let owner = cred.fsuid == attr.uid();
    let may = cred.capable(Capability::CHOWN);
    if uid.is_some_and(|uid| !(may || (owner && uid == attr.uid()))) {
        return Err(Errno::EPERM);
    }
    let own_group = |gid| cred.in_group(gid) || gid == attr.gid();
    if gid.is_some_and(|gid| !(may || (owner && own_group(gid)))) {
        return Err(Errno::EPERM);
    }
    let drops = if path.dentry.kind() == FileType::Dir {
        0
    } else {
        file_caps::drop_from(&**path.inode());
        set_id_lost(attr, cred)
    };
    change(path, &SetAttr { uid, gid, drops, now: Timestamp::now(), ..SetAttr::default() })
}

/// The set-id bits that a change of the owner takes away.
fn set_id_lost(attr: &InodeAttr, cred: &Cred) -> u32 {
    let mode = attr.mode();
    let mut lost = mode & S_ISUID;
    if mode & S_ISGID != 0 {
        let executable = mode & 0o010 != 0;
        let foreign = !cred.in_group(attr.gid()) && !cred.capable(Capability::FSETID);
        if executable || foreign {
            lost |= S_ISGID;
        }
    }
    lost
}

/// The set-id bits that a change of the contents by the running task takes away: its rights count, not those of whoever
/// opened the file.
#[inline]
pub fn set_id_lost_by_change(attr: &InodeAttr) -> u32 {
    if attr.mode() & (S_ISUID | S_ISGID) == 0 {
        return 0;
    }
    match running_cred() {
        Some(cred) if !cred.capable(Capability::FSETID) => set_id_lost(attr, &cred),
        _ => 0,
    }
}

/// `utimensat`, when the name has been resolved.
pub fn set_times(path: &Path, atime: Change, mtime: Change, cred: &Cred) -> Result<()> {
    path.mount.check_writable()?;
    let attr = path.inode().attr();
    let touches = atime == Change::Now && mtime == Change::Now;
    if !perm::owns(attr, cred) {
        if !touches {
            return Err(Errno::EPERM);
        }
        perm::check(&**path.inode(), cred, perm::WRITE)?;
    }
    let now = Timestamp::now();
    let at = |change| match change {
        Change::Now => Some(now),
        Change::Omit => None,
        Change::To(time) => Some(time),
    };
    change(path, &SetAttr { atime: at(atime), mtime: at(mtime), now, ..SetAttr::default() })
}

/// `truncate`, when the name has been resolved. `ftruncate` passes `None` for `cred`: permission was checked by `open`.
pub fn truncate(path: &Path, len: u64, cred: Option<&Cred>) -> Result<()> {
    match path.dentry.kind() {
        FileType::Regular => {}
        FileType::Dir if cred.is_some() => return Err(Errno::EISDIR),
        _ => return Err(Errno::EINVAL),
    }
    path.mount.check_writable()?;
    let usage = path.inode().usage();
    if let Some(cred) = cred {
        perm::check(&**path.inode(), cred, perm::WRITE)?;
        if let Some(usage) = usage {
            usage.get_writer()?;
        }
    }
    file_caps::drop_from(&**path.inode());
    let result = change(path, &new_length(path, len));
    if let (Some(_), Some(usage)) = (cred, usage) {
        usage.put_writer();
    }
    result
}

/// The change that a new length is.
fn new_length(path: &Path, len: u64) -> SetAttr {
    let now = Timestamp::now();
    let drops = set_id_lost_by_change(path.inode().attr());
    SetAttr { size: Some(len), mtime: Some(now), drops, now, ..SetAttr::default() }
}

/// The truncation of `O_TRUNC`; permissions were checked by `open`.
pub fn truncate_opened(file: &OpenFile) -> Result<()> {
    file_caps::drop_from(&**file.inode());
    let new = new_length(file.path(), 0);
    let Some(usage) = file.inode().usage() else { return change(file.path(), &new) };
    usage.get_writer()?;
    let result = change(file.path(), &new);
    usage.put_writer();
    result
}
