//! What fs.protected_symlinks and its like forbid in folders where everybody may make names, such as /tmp.
//!
//! Owns the four settings. Never looks at capabilities but where Linux does: root is stopped too. Locks: none.
//! Source: Documentation/admin-guide/sysctl/fs.rst of Linux.
#![forbid(unsafe_code)]

use super::perm;
use crate::vfs::cred::Cred;
use crate::vfs::object::inode::{Inode, InodeAttr};
use crate::vfs::object::types::FileType;
use abi::fs::{S_ISGID, S_ISUID, S_ISVTX};
use abi::{Errno, Result};

crate::setting! {
    /// As Debian's kernels have them at boot.
    pub static PROTECTED_SYMLINKS = 1, 0..=1;
    pub static PROTECTED_HARDLINKS = 1, 0..=1;
    pub static PROTECTED_FIFOS = 0, 0..=2;
    pub static PROTECTED_REGULAR = 0, 0..=2;
}

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// EACCES if a link, the last component of a path, may not be followed: another user's in a sticky folder of everybody's,
/// unless the folder's owner made it.
pub fn check_follow(dir: &InodeAttr, link: &InodeAttr, cred: &Cred) -> Result<()> {
    let shared = dir.mode() & (S_ISVTX | OTHERS_WRITE) == S_ISVTX | OTHERS_WRITE;
    let refused = shared
        && PROTECTED_SYMLINKS.get() != 0
        && cred.fsuid != link.uid()
        && dir.uid() != link.uid();
    if refused { Err(Errno::EACCES) } else { Ok(()) }
}

/// EPERM if a file may not get another name: somebody else's that is special, runs with its owner's rights, or that the
/// caller may not read and write.
pub fn check_link(inode: &dyn Inode, cred: &Cred) -> Result<()> {
    if PROTECTED_HARDLINKS.get() == 0 || perm::owns(inode.attr(), cred) {
        return Ok(());
    }
    let mode = inode.attr().mode();
    let runs_as_group = mode & (S_ISGID | 0o010) == S_ISGID | 0o010;
    let harmless = inode.attr().kind() == FileType::Regular
        && mode & S_ISUID == 0
        && !runs_as_group
        && perm::check(inode, cred, perm::READ | perm::WRITE).is_ok();
    if harmless { Ok(()) } else { Err(Errno::EPERM) }
}

/// EACCES if an open that may create finds a file that may be a trap: neither the caller's nor the owner's of a sticky folder
/// that others may write to.
pub fn check_create(dir: &InodeAttr, found: &InodeAttr, cred: &Cred) -> Result<()> {
    let level = match found.kind() {
        FileType::Regular => PROTECTED_REGULAR.get(),
        FileType::Fifo => PROTECTED_FIFOS.get(),
        _ => 0,
    };
    let mode = dir.mode();
    let own = found.uid() == dir.uid() || found.uid() == cred.fsuid;
    if level == 0 || mode & S_ISVTX == 0 || own {
        return Ok(());
    }
    let refused = mode & OTHERS_WRITE != 0 || (level >= 2 && mode & GROUP_WRITES != 0);
    if refused { Err(Errno::EACCES) } else { Ok(()) }
}
