//! Discretionary access: mode bits, owners, groups and the capabilities that override them.
#![forbid(unsafe_code)]

use crate::vfs::cred::{Capability, Cred};
use crate::vfs::object::inode::{Inode, InodeAttr};
use crate::vfs::object::types::FileType;
use abi::fs::{S_IFDIR, S_IFMT, S_ISGID, S_ISVTX};
use abi::{Errno, Result};

/// Read. These are the bits of one octal digit of a mode.
pub const READ: u32 = 4;
/// Write.
pub const WRITE: u32 = 2;
/// Execute, or search a directory.
pub const EXEC: u32 = 1;

/// EACCES unless `cred` has all the permissions in `want`.
#[inline]
pub fn check(inode: &dyn Inode, cred: &Cred, want: u32) -> Result<()> {
    check_mode(inode.attr(), cred, want)?;
    inode.permission(cred, want)
}

/// As [`check`], by owner and mode alone.
#[inline]
pub fn check_mode(attr: &InodeAttr, cred: &Cred, want: u32) -> Result<()> {
    let mode = attr.mode();
    // What owner, group and others may all do needs no look at who asks.
    if mode & (mode >> 3) & (mode >> 6) & want == want {
        return Ok(());
    }
    let digit = if cred.fsuid == attr.uid() {
        mode >> 6
    } else if cred.in_group(attr.gid()) {
        mode >> 3
    } else {
        mode
    };
    if digit & want == want || overrides(mode, cred, want) { Ok(()) } else { Err(Errno::EACCES) }
}

#[cold]
fn overrides(mode: u32, cred: &Cred, want: u32) -> bool {
    let reads_all = cred.capable(Capability::DAC_READ_SEARCH);
    let does_all = cred.capable(Capability::DAC_OVERRIDE);
    if mode & S_IFMT == S_IFDIR {
        return does_all || (reads_all && want & WRITE == 0);
    }
    (reads_all && want == READ) || (does_all && (want & EXEC == 0 || mode & 0o111 != 0))
}

/// EROFS if the mount or file system is read-only and a write would change what it stores. Devices, fifos and sockets may
/// be written to on a read-only file system too.
pub fn check_read_only(path: &crate::vfs::object::path::Path, want: u32) -> Result<()> {
    let stored =
        matches!(path.dentry.kind(), FileType::Regular | FileType::Dir | FileType::Symlink);
    if want & WRITE != 0 && stored {
        path.mount.check_writable()?;
    }
    Ok(())
}

/// Whether `cred` owns the object, or has CAP_FOWNER.
pub fn owns(attr: &InodeAttr, cred: &Cred) -> bool {
    owns_of(attr.uid(), cred)
}

/// The same of an object of the user `uid`.
pub fn owns_of(uid: u32, cred: &Cred) -> bool {
    cred.fsuid == uid || cred.capable(Capability::FOWNER)
}

/// EACCES or EPERM unless `cred` may remove `victim` from `dir`.
pub fn check_delete(dir: &dyn Inode, victim: &dyn Inode, cred: &Cred) -> Result<()> {
    check(dir, cred, WRITE | EXEC)?;
    let attr = dir.attr();
    let sticky = attr.mode() & S_ISVTX != 0;
    if sticky
        && cred.fsuid != victim.attr().uid()
        && cred.fsuid != attr.uid()
        && !cred.capable(Capability::FOWNER)
    {
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// Owner and mode of a new object in `dir`: in a setgid directory it gets the directory's group.
pub fn new_owner(
    dir: &dyn Inode,
    cred: &Cred,
    mode: u32,
) -> (crate::vfs::object::inode::Owner, u32) {
    let attr = dir.attr();
    let mut owner = crate::vfs::object::inode::Owner { uid: cred.fsuid, gid: cred.fsgid };
    let mut mode = mode;
    if attr.mode() & S_ISGID != 0 {
        owner.gid = attr.gid();
        if mode & S_IFMT == S_IFDIR {
            mode |= S_ISGID;
        } else if mode & (S_ISGID | 0o010) == S_ISGID | 0o010
            && !cred.in_group(owner.gid)
            && !cred.capable(Capability::FSETID)
        {
            mode &= !S_ISGID;
        }
    }
    (owner, mode)
}
