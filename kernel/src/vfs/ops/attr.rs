//! Changes of attributes: `chmod`, `chown`, `utimensat`, `truncate`.
#![forbid(unsafe_code)]

use crate::vfs::cred::{Capability, Cred, running_cred};
use crate::vfs::file_caps;
use crate::vfs::namei::perm;
use crate::vfs::notify;
use crate::vfs::object::file::OpenFile;
use crate::vfs::object::inode::InodeAttr;
use crate::vfs::object::path::Path;
use crate::vfs::object::types::{FileType, Rights, SetAttr, Timestamp};
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

/// Makes the change that `decide` finds for the rights of the moment, and notifies watchers. If they are others when it is made, it is
/// decided anew: who may change a file may not change what another has made of it meanwhile.
fn change(path: &Path, decide: impl Fn(Rights) -> Result<SetAttr>) -> Result<()> {
    loop {
        let rights = path.inode().attr().rights();
        let new = SetAttr { checked: Some(rights), ..decide(rights)? };
        if path.inode().set_attr(&new)? {
            notify::attr_changed(&path.dentry, &new);
            return Ok(());
        }
    }
}

/// `fchmodat`, when the name has been resolved.
pub fn chmod(path: &Path, mode: u32, cred: &Cred) -> Result<()> {
    path.mount.check_writable()?;
    if path.dentry.kind() == FileType::Symlink {
        return Err(Errno::EOPNOTSUPP);
    }
    change(path, |rights| {
        if !perm::owns_of(rights.uid, cred) {
            return Err(Errno::EPERM);
        }
        let mut mode = mode & 0o7777;
        if !cred.in_group(rights.gid) && !cred.capable(Capability::FSETID) {
            mode &= !S_ISGID;
        }
        Ok(SetAttr { mode: Some(mode), now: Timestamp::now(), ..SetAttr::default() })
    })
}

/// `fchownat`, when the name has been resolved; `None` leaves an id alone.
pub fn chown(path: &Path, uid: Option<u32>, gid: Option<u32>, cred: &Cred) -> Result<()> {
    path.mount.check_writable()?;
    change(path, |rights| {
        let owner = cred.fsuid == rights.uid;
        let may = cred.capable(Capability::CHOWN);
        if uid.is_some_and(|uid| !(may || (owner && uid == rights.uid))) {
            return Err(Errno::EPERM);
        }
        let own_group = |gid| cred.in_group(gid) || gid == rights.gid;
        if gid.is_some_and(|gid| !(may || (owner && own_group(gid)))) {
            return Err(Errno::EPERM);
        }
        let drops = if path.dentry.kind() == FileType::Dir {
            0
        } else {
            file_caps::drop_from(&**path.inode());
            set_id_lost(rights, cred)
        };
        Ok(SetAttr { uid, gid, drops, now: Timestamp::now(), ..SetAttr::default() })
    })
}

/// The set-id bits that a change of the owner takes away.
fn set_id_lost(Rights { mode, gid, .. }: Rights, cred: &Cred) -> u32 {
    let mut lost = mode & S_ISUID;
    if mode & S_ISGID != 0 {
        let executable = mode & 0o010 != 0;
        let foreign = !cred.in_group(gid) && !cred.capable(Capability::FSETID);
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
        Some(cred) if !cred.capable(Capability::FSETID) => set_id_lost(attr.rights(), &cred),
        _ => 0,
    }
}

/// `utimensat`, when the name has been resolved.
pub fn set_times(path: &Path, atime: Change, mtime: Change, cred: &Cred) -> Result<()> {
    path.mount.check_writable()?;
    let touches = atime == Change::Now && mtime == Change::Now;
    let now = Timestamp::now();
    let at = |change| match change {
        Change::Now => Some(now),
        Change::Omit => None,
        Change::To(time) => Some(time),
    };
    change(path, |rights| {
        if !perm::owns_of(rights.uid, cred) {
            if !touches {
                return Err(Errno::EPERM);
            }
            perm::check(&**path.inode(), cred, perm::WRITE)?;
        }
        Ok(SetAttr { atime: at(atime), mtime: at(mtime), now, ..SetAttr::default() })
    })
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
    let result = change(path, |_| Ok(new_length(path, len)));
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
    let shorten = || change(file.path(), |_| Ok(new_length(file.path(), 0)));
    let Some(usage) = file.inode().usage() else { return shorten() };
    usage.get_writer()?;
    let result = shorten();
    usage.put_writer();
    result
}
