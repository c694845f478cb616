//! What a mapping of a file may be used for, now and after any `mprotect`: only this module combines what the file's open
//! mode, its mount and its seals allow.
#![forbid(unsafe_code)]

use super::file::OpenFile;
use super::mount::MountFlags;
use super::seals::Change;
use crate::mm::space::request::{Prot, VmFlags};
use abi::{Errno, Result};

/// Whether the file's mount is `noexec`.
pub fn is_noexec(file: &OpenFile) -> bool {
    file.path().mount.flags().contains(MountFlags::NOEXEC)
}

/// The rights (`MAY_*`) of a mapping of `file` that begins with those of `prot`: EACCES for what the mode it
/// was opened with does not allow, EPERM for what its mount or its seals do not.
///
/// A shared mapping that can never be written to, because the file was opened for reading or is sealed, loses
/// `MAY_WRITE`. Seals may be added at any time: an answer is valid only while the address space is locked, which it must
/// stay until the mapping is made (see `TmpfsInode::add_seals`).
pub fn mapping(file: &OpenFile, shared: bool, prot: Prot) -> Result<VmFlags> {
    let mut may = VmFlags::MAY_ALL;
    if shared && !file.writable() {
        if prot.contains(Prot::WRITE) {
            return Err(Errno::EACCES);
        }
        may.remove(VmFlags::MAY_WRITE);
    }
    if !file.readable() {
        return Err(Errno::EACCES);
    }
    if is_noexec(file) {
        if prot.contains(Prot::EXEC) {
            return Err(Errno::EPERM);
        }
        may.remove(VmFlags::MAY_EXEC);
    }
    if shared
        && may.contains(VmFlags::MAY_WRITE)
        && let Err(errno) = file.inode().seals().check(Change::MapWritable)
    {
        if prot.contains(Prot::WRITE) {
            return Err(errno);
        }
        may.remove(VmFlags::MAY_WRITE);
    }
    Ok(may)
}
