//! What fs.protected_symlinks and the sysctls like it forbid, mostly in sticky directories such as /tmp.
//!
//! Owns the four settings. Never lets a capability override a restriction where Linux does not: most hold for root too.
//! Locks: none.
//! Source: Documentation/admin-guide/sysctl/fs.rst of Linux.
#![forbid(unsafe_code)]

use super::perm;
use crate::vfs::cred::Cred;
use crate::vfs::object::inode::{Inode, InodeAttr};
use crate::vfs::object::types::FileType;
use abi::fs::{S_ISGID, S_ISUID, S_ISVTX};
use abi::{Errno, Result};

crate::setting! {
    /// At boot these have the values of Debian's kernels.
    pub static PROTECTED_SYMLINKS = 1, 0..=1;
    pub static PROTECTED_HARDLINKS = 1, 0..=1;
    pub static PROTECTED_FIFOS = 0, 0..=2;
    pub static PROTECTED_REGULAR = 0, 0..=2;
}

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// EACCES if the symbolic link at the end of a path may not be followed: it is in a sticky, world-writable directory and
/// belongs neither to the caller nor to the directory's owner.
pub fn check_follow(dir: &InodeAttr, link: &InodeAttr, cred: &Cred) -> Result<()> {
    let shared = dir.mode() & (S_ISVTX | OTHERS_WRITE) == S_ISVTX | OTHERS_WRITE;
    let refused = shared
        && PROTECTED_SYMLINKS.get() != 0
        && cred.fsuid != link.uid()
        && dir.uid() != link.uid();
    if refused { Err(Errno::EACCES) } else { Ok(()) }
}

/// EPERM if a file may not get another name: it belongs to somebody else, and is not a regular file, is set-uid or
/// set-gid, or is not both readable and writable for the caller.
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

/// EACCES if `open` with `O_CREAT` finds a fifo or regular file that may be a trap: it is in a sticky directory that others
/// (at level 2: or the group) may write to, and belongs neither to the caller nor to the directory's owner.
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
